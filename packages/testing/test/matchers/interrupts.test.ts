import { commandTargets, defineGraph, defineState, END, goto, START } from "@statewright/core";
import { testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { claims } from "../support/claims-graph.ts";

describe("toHaveInterrupted", () => {
  test("toHaveInterrupted compares the payload and shows the actual interrupt", async () => {
    const t = await testRun(claims, { input: { amount: 500 } });
    await t.finish();
    expect(t).toHaveInterrupted("approve");
    expect(t).toHaveInterrupted("approve", { amount: expect.any(Number) });
    expect(t).toHaveInterruptedOnce("approve");
    expect(t).not.toHaveInterrupted("approve", { amount: 5 });
    expect(() => expect(t).toHaveInterrupted("approve", { amount: 5 })).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run raised the interrupt "approve" with another payload: payload.amount is 500, not 5.
      The path: start → read → decide → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "approve" about {"amount":500}.]
    `);
    expect(() => expect(t).not.toHaveInterrupted("approve")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run raised the interrupt "approve" once, and should not.
        1. "approve" by "ask", about {"amount":500}
      The path: start → read → decide → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "approve" about {"amount":500}.]
    `);
    expect(() => expect(t).not.toHaveInterruptedOnce("approve")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run raised the interrupt "approve" once, and should not have raised it exactly once.
        1. "approve" by "ask", about {"amount":500}
      The path: start → read → decide → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "approve" about {"amount":500}.]
    `);
    const small = await testRun(claims, { input: { amount: 5 } });
    await small.finish();
    expect(small).not.toHaveInterrupted("approve");
    expect(() => expect(small).toHaveInterrupted("approve")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run never raised the interrupt "approve"; it raised nothing.
      The path: start → read → decide → pay → done
      The run is done and accepts no more events.
      Nodes that never ran: "check", "ask", "refuse".]
    `);
    expect(() => expect(small).toHaveInterruptedOnce("approve")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run never raised the interrupt "approve", and should raise it once.
      The path: start → read → decide → pay → done
      The run is done and accepts no more events.
      Nodes that never ran: "check", "ask", "refuse".]
    `);
  });
});

describe("toHaveInterruptedOnce", () => {
  const loops = defineGraph({
    name: "loops",
    state: defineState({ asked: z.number().default(0) }),
    interrupts: { ok: z.boolean() },
  })
    .nodes({
      ask: async (state, { interrupt }) => {
        const ok = await interrupt("ok", { payload: state.asked });
        return ok && state.asked > 0 ? goto("close") : goto("ask", { asked: state.asked + 1 });
      },
      close: () => undefined,
    })
    .edges({ [START]: "ask", ask: commandTargets("ask", "close"), close: END });
  const createRestlessGraph = () => {
    let starts = 0;
    return defineGraph({
      name: "restless",
      state: defineState({ done: z.boolean().default(false) }),
      interrupts: { ok: z.boolean() },
    })
      .nodes({
        ask: async (_state, { interrupt }) => {
          starts += 1;
          await interrupt("ok", { payload: `question ${starts}` });
          return { done: true };
        },
      })
      .edges({ [START]: "ask", ask: END });
  };

  test("toHaveInterruptedOnce distinguishes a repeated visit of a node from a body that asks differently after each start", async () => {
    const t = await testRun(loops, {});
    await t.finish();
    await t.resume({ ok: true });
    expect(() => expect(t).toHaveInterruptedOnce("ok")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run raised the interrupt "ok" 2 times, and should raise it once.
        1. "ok" by "ask", about 0
        2. "ok" by "ask", about 1
      Different tasks raised the interrupts: the path reached the node again after the first answer.
      The path: start → ask → ask.interrupted → ask → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "ok" about 1.]
    `);
    const again = await testRun(createRestlessGraph(), {});
    await again.finish();
    await again.resume({ ok: true });
    expect(() => expect(again).toHaveInterruptedOnce("ok")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run raised the interrupt "ok" 2 times, and should raise it once.
        1. "ok" by "ask", about "question 1"
        2. "ok" by "ask", about "question 2"
      One task raised both interrupts: after its restart with the first answer, it raised an interrupt that does not match the answer. A body must raise the same interrupts after each start.
      The path: start → ask → ask.interrupted → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "ok" about "question 2".]
    `);
  });
});
