/** `onFinish` is called once per run that ends without a failure, also over crashes. */
import { defineTool, memoryStore } from "@statewright/core";
import { call, failWith, type ScriptedEntry, say, scriptedModel } from "@statewright/testing";
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { type AgentFinish, createAgent, turnCountIs } from "../../src/index.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  input: z.object({}),
  effect: "pure",
  run: () => "seen",
});
const submit = defineTool({
  name: "submit",
  description: "Ends the work.",
  input: z.object({}),
  run: () => ({ content: "in", terminate: true }),
});

function createAgentWithFinish(script: readonly ScriptedEntry[], more: object = {}) {
  const observed: AgentFinish[] = [];
  const agent = createAgent({
    name: "a",
    model: scriptedModel(script),
    tools: [look, submit],
    retry: { attempts: 1 },
    onFinish: (finish) => {
      observed.push(finish);
    },
    ...more,
  });
  return { agent, observed };
}

describe("onFinish", () => {
  test.each<readonly [string, readonly ScriptedEntry[], object, object]>([
    ["an answer", [call("look", {}), say("Done")], {}, { text: "Done", ended: { by: "answer" } }],
    ["a tool", [call("submit", {})], {}, { text: "", ended: { by: "tool" } }],
    ["a condition", [call("look", {})], { stopWhen: turnCountIs(1) }, { text: "", ended: { by: "stopWhen" } }],
    [
      "an output by a final call",
      [call("final_answer", { n: 1 })],
      { output: z.object({ n: z.number() }) },
      { output: { n: 1 }, ended: { by: "answer" } },
    ],
  ])(
    "onFinish is called once with the end by %s, the conversation and the state",
    async (_by, script, more, finish) => {
      const { agent, observed } = createAgentWithFinish(script, more);
      const { state } = await agent.run({ thread: "t", input: "Go" }).result;
      expect(observed).toHaveLength(1);
      expect(observed[0]).toMatchObject({ ...finish, run: { thread: "t" } });
      expect(observed[0]?.messages).toEqual(state.messages);
    },
  );

  test("onFinish receives the output with the type of the output schema (types)", () => {
    createAgent({
      name: "a",
      model: scriptedModel([]),
      output: z.object({ n: z.number() }),
      onFinish: ({ output, state }) => {
        expectTypeOf(output).toEqualTypeOf<{ n: number } | undefined>();
        expectTypeOf(state.messages.length).toEqualTypeOf<number>();
      },
    });
  });

  test("onFinish is called once with the repaired output, not with outputs that did not fit", async () => {
    const { agent, observed } = createAgentWithFinish(
      [call("final_answer", {}), say("no"), call("final_answer", { n: 1 })],
      {
        output: z.object({ n: z.number() }),
      },
    );
    await agent.run({ input: "Go" }).result;
    expect(observed.map(({ output }) => output)).toEqual([{ n: 1 }]);
  });

  test("onFinish is not called for a run that fails, waits or is cancelled", async () => {
    const failing = createAgentWithFinish([failWith(new Error("no"))]);
    await failing.agent.run({ input: "Go" }).result.catch(() => "failed");
    expect(failing.observed).toEqual([]);
    const cancelled = createAgentWithFinish([call("look", {}), say("Done")]);
    const run = cancelled.agent.run({ input: "Go" });
    run.on(({ type }) => {
      if (type === "tool.started") run.cancel();
    });
    expect((await run.result).status).toBe("cancelled");
    expect(cancelled.observed).toEqual([]);
  });

  test("onFinish is called once per input of a thread, and not by a resume of a finished run", async () => {
    const store = memoryStore();
    const { agent, observed } = createAgentWithFinish([say("one"), say("two")], { store });
    await agent.run({ thread: "t", input: "Go" }).result;
    await agent.resume({ thread: "t" }).result;
    await agent.run({ thread: "t", input: "Go on" }).result;
    expect(observed.map(({ text }) => text)).toEqual(["one", "two"]);
  });

  test("onFinish is called again after a crash during the call, and not after a crash behind the call", async () => {
    const store = memoryStore();
    const peer = store.peer();
    const observed: string[] = [];
    const agent = createAgent({
      name: "a",
      model: scriptedModel([say("one")], { key: "transcript" }),
      onFinish: ({ text }) => {
        observed.push(text);
        if (observed.length === 1) {
          store.crash();
          throw new Error("the process died here");
        }
      },
    });
    await agent.run({ thread: "t", input: "Go", store }).result.catch(() => "dead");
    expect(await agent.resume({ thread: "t", store: peer }).result).toMatchObject({ status: "done" });
    expect(observed).toEqual(["one", "one"]);
    await agent.resume({ thread: "t", store: peer }).result;
    expect(observed).toHaveLength(2);
  });

  test("an onFinish that throws fails the run, and a resume calls onFinish again without a model request", async () => {
    const store = memoryStore();
    const model = scriptedModel([say("one")]);
    let times = 0;
    const agent = createAgent({
      name: "a",
      model,
      store,
      onFinish: () => {
        times += 1;
        if (times === 1) throw new Error("the list is full");
      },
    });
    await expect(agent.run({ thread: "t", input: "Go" }).result).rejects.toThrow(/list is full/);
    expect(await agent.resume({ thread: "t" }).result).toMatchObject({ status: "done" });
    expect([times, model.requests.length]).toEqual([2, 1]);
  });
});
