/** Bounded concurrency: order, limit, and how many are at work when nothing limits them. */
import { describe, expect, test } from "vitest";
import { mapBounded } from "../../src/run/session/concurrency.ts";

const items = Array.from({ length: 1_000 }, (_, index) => index);
const nextTurn = (): Promise<void> => new Promise(setImmediate);

describe("without a limit", () => {
  test("all start in one turn of the event loop, and results have the order of the items", async () => {
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

  test("what waits for nothing has ended before all the others begin", async () => {
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

  test("one that fails fails the whole, also when others start after it", async () => {
    const failing = mapBounded(items, Number.POSITIVE_INFINITY, async (item) => {
      if (item === 3) throw new Error("the fourth");
      return item;
    });
    await expect(failing).rejects.toThrow("the fourth");
  });
});

test("with a limit no more than that are at work, and none is dropped", async () => {
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
