import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentTool, createAgent } from "@statewright/agent";
import { budget } from "@statewright/agent/middleware";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fanOut,
  fork,
  type Graph,
  type GraphTypes,
  getMessageText,
  inputNode,
  type Model,
  memoryStore,
  type RunHandle,
  resume,
  run,
  START,
  type Store,
  subgraph,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { call, exportTest, replayRun, say, scriptedModel } from "@statewright/testing";
import { afterAll, describe, expect, test } from "vitest";
import * as z from "zod";

const folder = mkdtempSync(join(tmpdir(), "statewright-export-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Model call with a single text. */
const ask = (model: Model, text: string) => ({
  model,
  request: { messages: [{ role: "user" as const, id: "u", content: [{ type: "text" as const, text }] }], tools: [] },
});

/** Exports the run of the thread `t`, and replays the export with the same graph. */
async function exportAndReplay<Types extends GraphTypes>(graph: Graph<Types>, store: Store, branch = "main") {
  const file = join(folder, `${graph.name}.test.ts`);
  const { unrecorded, recording } = await exportTest(store, "t", {
    graph,
    file,
    branch,
    from: `./graph.ts#${graph.name}`,
  });
  const recorded = JSON.parse(readFileSync(recording, "utf8"));
  const replayed = await replayRun(graph, recorded);
  expect(replayed).toEqual({ path: recorded.path, status: recorded.status, state: recorded.state });
  return { unrecorded, recorded };
}

const finish = (handle: RunHandle<unknown>) => handle.result;

describe("exportTest", () => {
  test("a graph whose model replies are in no channel is exported with the writes of its node [FX7]", async () => {
    let calls = 0;
    const counting: Model = {
      id: "counting",
      respond: async () => ({ content: [{ type: "text", text: `mood ${++calls}` }], finish: "stop" }),
    };
    const graph = defineGraph({
      name: "mood",
      state: defineState({ mood: z.string().default(""), log: channel.list(z.string()) }),
    })
      .nodes({
        feel: async (_state, { model }) => ({ mood: getMessageText(await model(ask(counting, "How is it?"))) }),
        note: ({ mood }) => ({ log: [mood] }),
      })
      .edges({ [START]: "feel", feel: "note", note: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: {} }).result;
    const { unrecorded, recorded } = await exportAndReplay(graph, store);
    expect(unrecorded).toEqual([
      'the reply to the model call "model" of the node "feel" has no saved outcome: the test contains the writes of the node and does not run its body',
    ]);
    expect([recorded.state, calls]).toEqual([{ mood: "mood 1", log: ["mood 1"] }, 1]);
  });

  test("a node that asks a model with generate is exported with its writes [FX7]", async () => {
    const model = scriptedModel([say("fine")]);
    const graph = defineGraph({ name: "asking", state: defineState({ mood: z.string().default("") }) })
      .nodes({
        feel: async (_state, { generate }) => ({ mood: (await generate({ model, prompt: "How is it?" })).text }),
      })
      .edges({ [START]: "feel", feel: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: {} }).result;
    const { unrecorded, recorded } = await exportAndReplay(graph, store);
    expect(unrecorded).toEqual([
      'the reply to generate of the node "feel" has no saved outcome: the test contains the writes of the node and does not run its body',
    ]);
    expect([recorded.state, model.requests.length]).toEqual([{ mood: "fine" }, 1]);
  });

  test("an agent with a sub-agent as a tool is exported with the replies of both, whose call ids are equal [FX7]", async () => {
    const looked: string[] = [];
    const look = defineTool({
      name: "look",
      description: "Look.",
      input: z.object({}),
      effect: "pure",
      run: () => `seen ${looked.push("look")}`,
    });
    const clerk = createAgent({
      name: "clerk",
      model: scriptedModel([call("look", {}), say("It is there.")]),
      tools: [look],
    });
    const boss = createAgent({
      name: "boss",
      model: scriptedModel([call("clerk", { task: "Where is it?" }), say("Found.")]),
      tools: [agentTool(clerk, { name: "clerk", description: "Ask the clerk." })],
    });
    const store = memoryStore();
    await finish(boss.run({ store, thread: "t", input: "Find it" }));
    const { unrecorded, recorded } = await exportAndReplay(boss, store);
    expect([unrecorded, recorded.models.length, looked]).toEqual([[], 4, ["look"]]);
  });

  test("a forked branch is exported with the replies of its own line only [FX7]", async () => {
    let calls = 0;
    const counting: Model = {
      id: "counting",
      respond: async () => ({ content: [{ type: "text", text: `answer ${++calls}` }], finish: "stop" }),
    };
    const graph = defineGraph({
      name: "chat",
      state: defineState({ messages: channel.messages(), log: channel.list(z.string()) }),
    })
      .nodes({
        plan: () => ({ log: ["planned"] }),
        answer: async (_state, { model }) => ({ messages: [await model(ask(counting, "Well?"))] }),
      })
      .edges({ [START]: "plan", plan: "answer", answer: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: {} }).result;
    const branch = await fork(graph, { store, thread: "t", at: 2, name: "other" });
    await resume(graph, { store, thread: "t", branch }).result;
    for (const [name, reply] of [
      ["main", "answer 1"],
      [branch, "answer 2"],
    ] as const) {
      const { unrecorded, recorded } = await exportAndReplay(graph, store, name);
      expect([unrecorded, recorded.path]).toEqual([[], [["plan"], ["answer"]]]);
      expect(recorded.state).toMatchObject({ messages: [{ content: [{ text: reply }] }] });
    }
  });

  test("a graph that writes a private channel is exported [FX7]", async () => {
    const state = defineState({ draft: z.string().default(""), text: z.string().default("") });
    const graph = defineGraph({ name: "essay", state, private: ["draft"] })
      .nodes({ write: () => ({ draft: "rough" }), polish: ({ draft }) => ({ text: `${draft}, polished` }) })
      .edges({ [START]: "write", write: "polish", polish: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: {} }).result;
    const { unrecorded, recorded } = await exportAndReplay(graph, store);
    expect([unrecorded, recorded.state]).toEqual([[], { text: "rough, polished" }]);
  });

  test("an agent with a budget is exported, and its times are measured on the clock of the test [FX7]", async () => {
    const agent = createAgent({
      name: "frugal",
      model: scriptedModel([say("Done.")]),
      middleware: [budget({ turns: 5, wallMs: 60_000 })],
    });
    const store = memoryStore();
    // Each read of the clock is 5 ms later, so that the run takes time on every machine.
    let ms = 0;
    const world = { ...systemWorld(), clock: { now: () => Date.UTC(2026, 0, 1) + ms, monotonic: () => (ms += 5) } };
    await finish(agent.run({ store, world, thread: "t", input: "Do it" }));
    const { unrecorded } = await exportAndReplay(agent, store);
    expect(unrecorded).toEqual(['the times in the channel "budgetSpent": the test measures them on its virtual clock']);
  });

  test("a graph with an untracked channel is exported without its value [FX7]", async () => {
    const state = defineState({ scratch: channel.untracked(z.string()), text: z.string().default("") });
    const graph = defineGraph({ name: "pad", state })
      .nodes({ write: () => ({ scratch: "rough" }), polish: ({ scratch }) => ({ text: `${scratch}, polished` }) })
      .edges({ [START]: "write", write: "polish", polish: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: {} }).result;
    const { unrecorded, recorded } = await exportAndReplay(graph, store);
    expect([unrecorded, recorded.state]).toEqual([
      ['the untracked channel "scratch", whose values no store has'],
      { text: "rough, polished" },
    ]);
  });

  test("the steps of a subgraph are not called by an export: its node is recorded by its writes [FX7]", async () => {
    let calls = 0;
    const Log = defineState({ log: channel.list(z.string()) });
    const inner = defineGraph({ name: "inner", state: Log })
      .nodes({ fetch: async (_state, { step }) => ({ log: [await step("rate", () => `rate ${++calls}`)] }) })
      .edges({ [START]: "fetch", fetch: END });
    const graph = defineGraph({ name: "outer", state: Log })
      .nodes({ part: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }) }) })
      .edges({ [START]: "part", part: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: {} }).result;
    const { unrecorded, recorded } = await exportAndReplay(graph, store);
    expect(unrecorded).toEqual([
      'the step "rate" of the node "part.fetch" has no saved outcome: the test contains the writes of the node and does not run its body',
    ]);
    expect([recorded.state, calls]).toEqual([{ log: ["rate 1"] }, 1]);
  });

  test("a refused export names the node whose writes cannot be separated [FX7]", async () => {
    const graph = defineGraph({ name: "many", state: defineState({ log: channel.list(z.string()) }) })
      .nodes({ each: inputNode(z.number(), async (_state, { step }) => ({ log: [await step("rate", () => "rate")] })) })
      .edges({ [START]: fanOut("each", () => [1, 2]), each: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: {} }).result;
    await expect(exportAndReplay(graph, store)).rejects.toThrow(
      'an effect of "each" has no saved outcome, and the node ran in parallel with itself, so its writes cannot be determined',
    );
  });

  test("a refused export names the parts of the run that no store has [FX7]", async () => {
    const state = defineState({ scratch: channel.untracked(z.string()), text: z.string().default("") });
    const graph = defineGraph({ name: "given", state })
      .nodes({ polish: ({ scratch }) => ({ text: `${scratch}, polished` }) })
      .edges({ [START]: "polish", polish: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: { scratch: "rough" } }).result;
    await expect(exportAndReplay(graph, store)).rejects.toThrow(
      'Not recorded: the untracked channel "scratch", whose values no store has',
    );
  });

  test("a recording of an earlier form is refused with what to do [FX7]", async () => {
    const graph = defineGraph({ name: "tiny", state: defineState({ log: channel.list(z.string()) }) })
      .nodes({ a: () => ({}) })
      .edges({ [START]: "a", a: END });
    await expect(replayRun(graph, { form: 1 })).rejects.toThrow("got a run of form 1. Export the run again");
  });
});
