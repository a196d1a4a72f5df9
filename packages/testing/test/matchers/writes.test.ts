import { channel, defineGraph, defineState, END, fanOut, inputNode, START } from "@statewright/core";
import { testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { claims } from "../support/claims-graph.ts";

describe("toHaveWritten", () => {
  test("toHaveWritten matches each value that a channel had", async () => {
    const t = await testRun(claims, { input: { amount: 50, documents: ["a", "b"] } });
    await t.finish();
    expect(t).toHaveWritten("paid");
    expect(t).toHaveWritten("paid", 50);
    expect(t).toHaveWritten("checked", expect.arrayContaining(["b"]));
    expect(t).not.toHaveWritten("paid", 5);
    expect(() => expect(t).toHaveWritten("paid", 5)).toThrowErrorMatchingInlineSnapshot(`
      [Error: "paid" is 50, and never was 5.
        step 4, given 50 by "pay": 50
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).toHaveWritten("checked", ["a", "c"])).toThrowErrorMatchingInlineSnapshot(`
      [Error: "checked" never was ["a","c"]: checked[1] is "b", not "c".
        step 2, given ["a"] by "check" ("a"), ["b"] by "check" ("b"): ["a","b"]
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).not.toHaveWritten("paid")).toThrowErrorMatchingInlineSnapshot(`
      [Error: "paid" was written once, and should not.
        step 4, given 50 by "pay": 50
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).not.toHaveWritten("paid", 50)).toThrowErrorMatchingInlineSnapshot(`
      [Error: "paid" was written once, and was 50, and should not.
        step 4, given 50 by "pay": 50
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.]
    `);
    const none = await testRun(claims, { input: { amount: 500 } });
    await none.finish();
    expect(none).not.toHaveWritten("paid");
    expect(() => expect(none).toHaveWritten("paid")).toThrowErrorMatchingInlineSnapshot(`
      [Error: no superstep wrote "paid".
      The path: start → read → decide → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "approve" about {"amount":500}.]
    `);
  });

  test("toHaveWritten names a write dropped by a reducer", async () => {
    const forgetful = defineGraph({
      name: "forgetful",
      state: defineState({ best: channel.reduce(z.number().default(0), (_known, next: number) => next) }),
    })
      .nodes({ plan: () => undefined, price: inputNode(z.number(), (_state, { input }) => ({ best: input })) })
      .edges({ [START]: "plan", plan: fanOut("price", () => [7, 5], { otherwise: END }), price: END });
    const t = await testRun(forgetful, {});
    await t.finish();
    expect(() => expect(t).toHaveWritten("best", 7)).toThrowErrorMatchingInlineSnapshot(`
      [Error: "best" is 5, and never was 7.
        step 2, given 7 by "price" (7), 5 by "price" (5): 5
      The path: start → plan → price → done
      The run is done and accepts no more events.
      "best" has the value of one of the 2 writes of step 2, so the other writes are lost. Use a reducer that combines the writes.]
    `);
  });
});
