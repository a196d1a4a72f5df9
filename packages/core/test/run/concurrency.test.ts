/** Bounded concurrency: order, limit, and the number of active items without a limit. */
import { describe, expect, test } from "vitest";
import { mapBounded } from "../../src/run/session/concurrency.ts";

const items = Array.from({ length: 1_000 }, (_, index) => index);
const nextTurn = (): Promise<void> => new Promise(setImmediate);

describe("mapBounded without a limit", () => {
  test("mapBounded without a limit starts all items in one event loop turn and returns results in item order", async () => {
    let started = 0;
    const results = mapBounded(items, Number.POSITIVE_INFINITY, async (item) => {
      started += 1;
      await nextTurn();
      return item * 2;
    });
    await nextTurn();
    expect(started).toBe(items.length);
    expect(await results).toEqual(items.map((item) => item * 2));
  });

  test("mapBounded lets items that wait for nothing end before all other items start", async () => {
    let atWork = 0;
    let most = 0;
    await mapBounded(items, Number.POSITIVE_INFINITY, async () => {
      atWork += 1;
      most = Math.max(most, atWork);
      await undefined;
      atWork -= 1;
    });
    expect(most).toBeLessThan(items.length / 2);
  });

  test("mapBounded fails when one item fails, also when later items start after the failure", async () => {
    const failing = mapBounded(items, Number.POSITIVE_INFINITY, async (item) => {
      if (item === 3) throw new Error("the fourth");
      return item;
    });
    await expect(failing).rejects.toThrow("the fourth");
  });
});

test("mapBounded with a limit runs at most that many items at a time and drops none", async () => {
  let atWork = 0;
  let most = 0;
  const results = await mapBounded(items.slice(0, 50), 3, async (item) => {
    atWork += 1;
    most = Math.max(most, atWork);
    await nextTurn();
    atWork -= 1;
    return item;
  });
  expect(most).toBe(3);
  expect(results).toEqual(items.slice(0, 50));
});
