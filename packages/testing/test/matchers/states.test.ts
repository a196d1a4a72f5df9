import { testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import { claims } from "../support/claims-graph.ts";

describe("toBeInState", () => {
  test("toBeInState shows the current state and the guard that refused on the path", async () => {
    const t = await testRun(claims, { input: { amount: 50 } });
    await t.finish();
    expect(t).toBeInState("done");
    expect(t).not.toBeInState("ask");
    expect(() => expect(t).toBeInState("ask")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run is not in "ask" but in "done".
      The path: start → read → decide → pay → done
      The run is done and accepts no more events.
      After "decide" the route chose "pay" of "pay", "ask", not "ask".]
    `);
    expect(() => expect(t).not.toBeInState("done")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run is in "done", and should not be.
      The path: start → read → decide → pay → done
      The run is done and accepts no more events.]
    `);
  });

  test("toBeInState shows the pending interrupt of a run", async () => {
    const t = await testRun(claims, { input: { amount: 500 } });
    await t.until("interrupted");
    expect(t).toBeInState("ask.interrupted");
    expect(() => expect(t).toBeInState("pay")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run is not in "pay" but in "ask.interrupted".
      The path: start → read → decide → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "approve" about {"amount":500}.
      After "decide" the route chose "ask" of "pay", "ask", not "pay".]
    `);
  });

  test("toBeInState reports that a run is held, failed or crashed", async () => {
    const t = await testRun(claims, { input: { amount: 50 } });
    expect(() => expect(t).toBeInState("read")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run is not in "read" but in "start".
      The path: nothing yet
      The run has not started: call until, step or finish.]
    `);
    await t.until("decide");
    expect(() => expect(t).toBeInState("pay")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run is not in "pay" but in "decide.executing".
      The path: start → read → decide
      The run is held while it executes in "decide.executing"; it has no open interrupt and accepts no answer.
      "pay" may follow "ask", which never ran.]
    `);
    await t.crash();
    expect(() => expect(t).toBeInState("pay")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run is not in "pay" but in "decide.executing".
      The path: start → read → decide → (crash)
      The run crashed; a resume continues in "decide.executing".
      "pay" may follow "ask", which never ran.]
    `);
  });
});

describe("toHaveTag", () => {
  test("toHaveTag matches the tags of a graph's machine", async () => {
    const t = await testRun(claims, { input: { amount: 500 } });
    await t.until({ tag: "waiting" });
    expect(t).toHaveTag("waiting");
    expect(t).not.toHaveTag("failed");
    expect(() => expect(t).toHaveTag("failed")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run is in "ask.interrupted", which has the tag "waiting", not "failed".
      The path: start → read → decide → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "approve" about {"amount":500}.]
    `);
    expect(() => expect(t).not.toHaveTag("waiting")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run is in "ask.interrupted", which has the tag "waiting", and should not.
      The path: start → read → decide → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "approve" about {"amount":500}.]
    `);
  });
});

describe("toAccept", () => {
  test("toAccept matches open interrupts and machine events", async () => {
    const t = await testRun(claims, { input: { amount: 500 } });
    await t.until("interrupted");
    expect(t).toAccept("approve");
    expect(t).toAccept("run.resumed");
    expect(() => expect(t).not.toAccept("approve")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run accepts "approve", and should not.
      The path: start → read → decide → ask → ask.interrupted
      The run waits in "ask.interrupted" and accepts an answer to "approve" about {"amount":500}.]
    `);
    await t.resume({ approve: true });
    expect(t).not.toAccept("approve");
    expect(() => expect(t).toAccept("approve")).toThrowErrorMatchingInlineSnapshot(`
      [Error: the run does not accept "approve" in "done": it accepts nothing.
      The path: start → read → decide → ask → ask.interrupted → ask → pay → done
      The run is done and accepts no more events.]
    `);
  });
});
