import { channel, defineGraph, defineState, END, fanOut, inputNode, route, START } from "@statewright/core";
import { everyOrder, testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import * as z from "zod";

/** Parallel tasks with bodies given by the test. */
function createAuction(
  bids: readonly string[],
  work: (input: string) => object | undefined | Promise<object | undefined>,
) {
  return defineGraph({
    name: "auction",
    state: defineState({
      winner: z.string().default(""),
      bids: channel.list(z.string()),
      total: channel.reduce(z.number().default(0), (sum, bid: number) => sum + bid),
    }),
  })
    .nodes({
      open: () => undefined,
      bid: inputNode(z.string(), (_state, { input }) => work(input) as never),
      close: () => undefined,
    })
    .edges({ [START]: "open", open: fanOut("bid", () => bids, { otherwise: "close" }), bid: "close", close: END });
}

describe("every order of completion", () => {
  test("everyOrder tries all orders of a small fan-out, one after the other and concurrently", async () => {
    const seen = new Set<string>();
    const tried = await everyOrder(async (order) => {
      const mine: string[] = [];
      const t = await testRun(
        createAuction(["a", "b", "c"], (bid) => void mine.push(bid)),
        { order },
      );
      await t.finish();
      seen.add(mine.join(""));
      return t;
    });
    expect(tried).toEqual({ orders: 12, all: true });
    expect([...seen].sort()).toEqual(["abc", "acb", "bac", "bca", "cab", "cba"]);
  });

  test("reducers yield the same state in every order", async () => {
    await everyOrder(async (order) => {
      const t = await testRun(
        createAuction(["a", "bb"], (bid) => ({ bids: [bid], total: bid.length })),
        { order },
      );
      await t.finish();
      expect(t.state).toMatchObject({ bids: ["a", "bb"], total: 3 });
      return t;
    });
  });

  test("everyOrder finds a race between two sends that write one last-value channel and prints the failed order", async () => {
    const race = everyOrder(async (order) => {
      let best = 0;
      const graph = createAuction(["a", "bb"], (bid) => {
        // The slowest task so far writes: a second write conflicts with the first.
        if (bid.length <= best) return undefined;
        best = bid.length;
        return { winner: bid };
      });
      const t = await testRun(graph, { order });
      await t.finish();
      return t;
    });
    await expect(race).rejects.toThrowErrorMatchingInlineSnapshot(`
      [Error: the body fails in 2 of 4 orders, such as bid("a"), then bid("bb") (one after the other).
      channel_conflict: 2 tasks of "bid" wrote the channel "winner" in the same superstep, and nothing of the step was applied (graph "auction", step 1, thread "thread_1", branch "main"). Write the channel from one task only, or make it a list, a record or a reduce channel. See node_modules/statewright/docs/errors.md#channel_conflict.
      The body succeeds in others, such as bid("bb"), then bid("a") (one after the other).
      The path: start → open → bid
      To test this order alone: everyOrder(body, { only: "apart 0" })]
    `);
  });

  test("everyOrder finds an end that depends on the first task to complete", async () => {
    const race = everyOrder(async (order) => {
      let first: string | undefined;
      const graph = createAuction(["a", "b"], (bid) => {
        if (first !== undefined) return undefined;
        first = bid;
        return { winner: bid };
      });
      const t = await testRun(graph, { order });
      await t.finish();
      return t;
    });
    await expect(race).rejects.toThrowErrorMatchingInlineSnapshot(`
      [Error: the result depends on the order in which work completes: state.winner is "a" in one order, and "b" in another.
      "a": bid("a"), then bid("b") (one after the other).
      "b": bid("b"), then bid("a") (one after the other).
      Writes of "winner" in this order:
        step 2, given "b" by "bid" ("b"): "b"
      The path: start → open → bid → close → done
      The run is done and accepts no more events.
      To test this order alone: everyOrder(body, { only: "apart 1" })]
    `);
  });

  test("everyOrder finds an update lost between two reads and a write", async () => {
    const lost = everyOrder(async (order) => {
      let stock = 5;
      const graph = createAuction(["a", "b"], async () => {
        const seen = stock;
        await Promise.resolve();
        stock = seen - 1;
        return undefined;
      });
      const t = await testRun(graph, { order });
      await t.finish();
      expect(stock).toBe(3);
    });
    await expect(lost).rejects.toThrow("(all at the same time)");
  });

  test("everyOrder interleaves the steps of one task with those of another", async () => {
    const orders = new Set<string>();
    const { orders: count } = await everyOrder(async (order) => {
      const log: string[] = [];
      const graph = defineGraph({ name: "two", state: defineState({ done: channel.list(z.string()) }) })
        .nodes({
          open: () => undefined,
          work: inputNode(z.string(), async (_state, { input, step }) => {
            await step("read", () => void log.push(`${input} reads`));
            await step("write", () => void log.push(`${input} writes`));
          }),
        })
        .edges({ [START]: "open", open: fanOut("work", () => ["a", "b"], { otherwise: END }), work: END });
      const t = await testRun(graph, { order });
      await t.finish();
      orders.add(log.join());
    });
    expect(count).toBeLessThan(120);
    expect([...orders]).toContain("a reads,b reads,b writes,a writes");
    expect([...orders]).toContain("b reads,b writes,a reads,a writes");
  });

  test("everyOrder samples a larger fan-out by seed, and a single order can be repeated", async () => {
    const many = ["a", "b", "c", "d", "e", "f"];
    const sample = async (seed: number): Promise<string[]> => {
      const orders: string[] = [];
      const tried = await everyOrder(
        async (order) => {
          const mine: string[] = [];
          const t = await testRun(
            createAuction(many, (bid) => void mine.push(bid)),
            { order },
          );
          await t.finish();
          orders.push(mine.join(""));
        },
        { limit: 5, seed },
      );
      expect(tried).toEqual({ orders: 5, all: false });
      return orders;
    };
    expect(await sample(1)).toEqual(await sample(1));
    expect(await sample(1)).not.toEqual(await sample(2));
    const alone: string[] = [];
    await everyOrder(
      async (order) => {
        const t = await testRun(
          createAuction(["a", "b", "c"], (bid) => void alone.push(bid)),
          { order },
        );
        await t.finish();
      },
      { only: "apart 2 1" },
    );
    expect(alone.join("")).toBe("cba");
  });

  test("everyOrder has one order for a graph without parallel tasks", async () => {
    const graph = defineGraph({ name: "line", state: defineState({ n: z.number().default(0) }) })
      .nodes({ one: () => ({ n: 1 }), two: () => ({ n: 2 }) })
      .edges({ [START]: "one", one: route(["two"], () => "two"), two: END });
    const tried = await everyOrder(async (order) => {
      const t = await testRun(graph, { order });
      await t.finish();
      return t;
    });
    expect(tried).toEqual({ orders: 1, all: true });
  });
});
