import { channel, defineGraph, defineState, defineTool, END, START, toolNode } from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { claims, office, words } from "../support/claims-graph.ts";

describe("toHaveRunOnce", () => {
  test("toHaveRunOnce counts nodes, tools and steps across all processes", async () => {
    const t = await testRun(claims, { input: { amount: 50 } });
    await t.until("pay.committing");
    await t.crash();
    await t.resume();
    expect(t).toHaveRunOnce("read");
    expect(t).not.toHaveRunOnce("check");
    expect(t).not.toHaveRunOnce({ step: "transfer" });
    expect(() => expect(t).toHaveRunOnce({ step: "transfer" })).toThrowErrorMatchingInlineSnapshot(`
      [Error: "transfer" ran 2 times, and should run once.
        1. in "pay", key thread_1/nhr6qerz7r4a/main/2:0/transfer
        (crash)
        2. in "pay", key thread_1/nhr6qerz7r4a/main/2:0/transfer
      It is the same step, executed again after a crash: the process died before its outcome was saved. Declare { effect: "once" } for an effect that must not happen twice.
      The path: start → read → decide → pay → (crash) → pay → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).toHaveRunOnce("pay")).toThrowErrorMatchingInlineSnapshot(`
      [Error: "pay" ran 2 times, and should run once.
        1. task 2:0 of "pay", attempt 1
        (crash)
        2. task 2:0 of "pay", attempt 1
      It is the same task, executed again after a crash: the process died before its outcome was saved. Effects of a body outside of step(key, fn) and tools are repeated. Put the effect into a step.
      The path: start → read → decide → pay → (crash) → pay → done
      The run is done and accepts no more events.]
    `);
    expect(() => expect(t).toHaveRunOnce("check")).toThrowErrorMatchingInlineSnapshot(`
      [Error: "check" never ran, and should run once.
      The path: start → read → decide → pay → (crash) → pay → done
      The run is done and accepts no more events.
      After "read" the fan-out chose "decide" of "check", "decide", not "check".]
    `);
    expect(() => expect(t).not.toHaveRunOnce("read")).toThrowErrorMatchingInlineSnapshot(`
      [Error: "read" ran once, and should not have run just once.
        1. task 0:0 of "read", attempt 1
      The path: start → read → decide → pay → (crash) → pay → done
      The run is done and accepts no more events.]
    `);
  });

  test("toHaveRunOnce distinguishes tasks of one superstep and refuses unknown names", async () => {
    const t = await testRun(claims, { input: { amount: 50, documents: ["a", "b"] } });
    await t.finish();
    expect(() => expect(t).toHaveRunOnce("check")).toThrowErrorMatchingInlineSnapshot(`
      [Error: "check" ran 2 times, and should run once.
        1. task 1:0 of "check", attempt 1, sent "a"
        2. task 1:1 of "check", attempt 1, sent "b"
      These are different tasks of one superstep: the node got more than one input.
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.]
    `);
    // @ts-expect-error the node is called check
    expect(() => expect(t).toHaveRunOnce("chek")).toThrowErrorMatchingInlineSnapshot(`
      [Error: "chek" never ran, and should run once.
      The graph has no node and no tool with this name: its nodes are "read", "check", "decide", "ask", "pay", "refuse", its tools none.
      The path: start → read → check → decide → pay → done
      The run is done and accepts no more events.]
    `);
  });

  test("toHaveRunOnce distinguishes a repeated call from a repeated execution of a tool", async () => {
    const mail = call("send_mail", { to: "Ann", text: "Paid" });
    const twice = await testRun(office, { input: words, model: scriptedModel([mail, mail, say("Done")]) });
    await twice.finish();
    expect(() => expect(twice).toHaveRunOnce("send_mail")).toThrowErrorMatchingInlineSnapshot(`
      [Error: "send_mail" ran 2 times, and should run once.
        1. call call_1, attempt 1, with {"to":"Ann","text":"Paid"}, key thread_1/nhr6qerz7r4a/main/1:0/call_1
        2. call call_2, attempt 1, with {"to":"Ann","text":"Paid"}, key thread_1/nhr6qerz7r4a/main/3:0/call_2
      These are different calls: the model requested each of them.
      The path: start → model → tools → model → tools → model → done
      The run is done and accepts no more events.]
    `);
    const again = await testRun(office, { input: words, model: scriptedModel([mail, say("Done")]) });
    await again.until("tools.committing");
    await again.crash();
    await again.resume();
    expect(() => expect(again).toHaveRunOnce("send_mail")).toThrowErrorMatchingInlineSnapshot(`
      [Error: "send_mail" ran 2 times, and should run once.
        1. call call_1, attempt 1, with {"to":"Ann","text":"Paid"}, key thread_1/nhr6qerz7r4a/main/1:0/call_1
        (crash)
        2. call call_1, attempt 1, with {"to":"Ann","text":"Paid"}, key thread_1/nhr6qerz7r4a/main/1:0/call_1
      It is the same call, executed again after a crash: the process died before its outcome was saved. It is declared "idempotent", so the engine may repeat it; declare "once" for an effect that must not happen twice.
      The path: start → model → tools → (crash) → tools → model → done
      The run is done and accepts no more events.]
    `);
  });
});

describe("toResumeIdentically", () => {
  test("toResumeIdentically continues in another process and reaches the same end", async () => {
    const t = await testRun(claims, { input: { amount: 500, documents: ["a", "b"] } });
    await t.until("decide");
    await expect(t).toResumeIdentically();
    await expect(t).toResumeIdentically();
    expect(t).toBeInState("ask.interrupted");
    await expect(t).toResumeIdentically({ answers: { approve: true } });
    expect(t.state.paid).toBe(500);
    await expect(expect(t).toResumeIdentically()).rejects.toThrow(
      "expected a run that is held or waits, got a run that is done",
    );
  });

  test("toResumeIdentically gives both processes the same scripted replies", async () => {
    const mail = call("send_mail", { to: "Ann", text: "Paid" });
    const t = await testRun(office, { input: words, model: scriptedModel([mail, say("More"), say("Never")]) });
    await t.until("tools");
    await expect(t).toResumeIdentically();
    expect(t.state.messages.at(-1)).toMatchObject({ content: [{ text: "More" }] });
  });

  test("toResumeIdentically reports an effect in doubt", async () => {
    const charge = defineTool({
      name: "charge",
      description: "Charge a card.",
      input: z.object({ cents: z.int() }),
      effect: "once",
      run: () => "charged",
    });
    const asks = defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
      .nodes({ tools: toolNode({ tools: [charge] }) })
      .edges({ [START]: "tools", tools: END });
    const t = await testRun(asks, {
      input: {
        messages: [
          {
            role: "assistant",
            id: "a",
            finish: "calls",
            content: [{ type: "call", id: "c1", name: "charge", args: { cents: 5 } }],
          },
        ],
      },
    });
    await t.until("tools.committing");
    await expect(expect(t).toResumeIdentically()).rejects.toThrowErrorMatchingInlineSnapshot(`
      [Error: a process that resumes from the saved state does not produce the same result as this process.
      First difference: status is "done" without a crash, and "waiting" after it.
      An effect of "tools" is declared "once", had started, and has no saved outcome, so an interrupt asks for it. Declare it "idempotent" when the external system honours the key, or add a reconcile.
      Without a crash: tools.committing → done
      After a crash:   tools.committing → (crash) → tools.interrupted
      The path: start → tools → done
      The run is done and accepts no more events.]
    `);
  });

  test("toResumeIdentically detects state kept in a node variable", async () => {
    const make = () => {
      let seen = 0;
      return defineGraph({ name: "counts", state: defineState({ log: channel.list(z.number()) }) })
        .nodes({
          one: () => ({ log: [++seen] }),
          two: () => ({ log: [++seen] }),
        })
        .edges({ [START]: "one", one: "two", two: END });
    };
    const t = await testRun(make, {});
    await t.until("two.executing");
    await expect(expect(t).toResumeIdentically()).rejects.toThrowErrorMatchingInlineSnapshot(`
      [Error: a process that resumes from the saved state does not produce the same result as this process.
      First difference: state.log[1] is 2 without a crash, and 1 after it.
      The saved state is the same for both processes. Look for a variable outside of the state, for the clock or random values, or for an effect outside of step(key, fn) and tools.
      Without a crash: two.executing → done
      After a crash:   two.executing → (crash) → done
      The path: start → one → two → done
      The run is done and accepts no more events.]
    `);
    const sound = await testRun(claims, { input: { amount: 5 } });
    await sound.until("decide");
    await expect(expect(sound).not.toResumeIdentically()).rejects.toThrowErrorMatchingInlineSnapshot(`
      [Error: a process that resumes from the saved state produces the same result, and should not.
      Without a crash: decide.executing → pay → done
      After a crash:   decide.executing → (crash) → pay → done
      The path: start → read → decide → pay → done
      The run is done and accepts no more events.]
    `);
  });
});
