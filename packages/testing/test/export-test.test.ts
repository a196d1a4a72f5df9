import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  type Graph,
  inject,
  type Message,
  memoryStore,
  resume,
  run,
  START,
  toolNode,
} from "@statewright/core";
import { call, exportTest, replayRun, say, scriptedModel } from "@statewright/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { createDeskGraph, createInput } from "./support/desk-graph.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-export-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("exported runs", () => {
  let recorded: unknown;
  let code = "";
  beforeAll(async () => {
    const store = memoryStore();
    const model = scriptedModel([call("lookup", { order: "7" }), say("It came. My key is sk-abcdefghijklmnop1234")]);
    await run(createDeskGraph({ model }), { store, thread: "t", input: createInput("Where is order 7?") }).result;
    const file = join(folder, "order.test.ts");
    const written = await exportTest(store, "t", {
      graph: createDeskGraph({ model }),
      file,
      from: "../src/desk.ts#theDesk",
    });
    expect(written).toMatchObject({ file, recording: join(folder, "order.run.json"), unrecorded: [] });
    code = readFileSync(file, "utf8");
    recorded = JSON.parse(readFileSync(written.recording, "utf8"));
  });

  test("exportTest writes a readable test", () => {
    expect(code).toMatchInlineSnapshot(`
      "// Written by exportTest. Export the run again when the graph changes on purpose.
      import { readFileSync } from "node:fs";
      import { replayRun } from "@statewright/testing";
      import { expect, test } from "vitest";
      import { theDesk } from "../src/desk.ts";

      const recorded = JSON.parse(readFileSync(new URL("order.run.json", import.meta.url), "utf8"));

      test("the graph desk follows the recorded path: model → tools → model", async () => {
        const run = await replayRun(theDesk, recorded);
        expect(run.path).toEqual([["model"],["tools"],["model"]]);
        expect(run.state).toEqual(recorded.state);
        expect(run.status).toBe("done");
      });
      "
    `);
  });

  test("an exported run passes with the unchanged graph, without its model and tools", async () => {
    expect(await replayRun(createDeskGraph(), recorded)).toMatchObject({
      status: "done",
      path: [["model"], ["tools"], ["model"]],
    });
    expect((await replayRun(createDeskGraph(), recorded)).state).toEqual((recorded as { state: unknown }).state);
  });

  test("an exported run contains no secret", () => {
    expect(JSON.stringify(recorded)).toContain("My key is [redacted]");
    expect(JSON.stringify(recorded)).not.toContain("sk-abc");
  });

  test("an exported run fails after a changed prompt, edge or use of a result", async () => {
    await expect(
      replayRun(createDeskGraph({ instructions: "Be brief." }), recorded),
    ).rejects.toThrowErrorMatchingInlineSnapshot(`
      [Error: the graph "desk" does not follow the recorded run: model_failed: a model request differs from the recording: messages.0.content: recorded "Be kind.", asked "Be brief." (node "model", graph "desk", step 0, attempt 1, thread "replayed", branch "main"). Fix the difference, or export the run again. See node_modules/statewright/docs/errors.md#model_failed.
      Path: none; recorded path: model → tools → model]
    `);
    const otherReplay = await replayRun(createDeskGraph({ after: END }), recorded);
    expect(otherReplay.path).toEqual([["model"], ["tools"]]);
    await expect(replayRun(createDeskGraph({ shout: true }), recorded)).rejects.toThrowErrorMatchingInlineSnapshot(`
      [Error: the graph "desk" does not follow the recorded run: model_failed: a model request differs from the recording: messages.3.content.0.text: recorded "order 7 was delivered", asked "DONE" (node "model", graph "desk", step 2, attempt 1, thread "replayed", branch "main"). Fix the difference, or export the run again. See node_modules/statewright/docs/errors.md#model_failed.
      Path: model → tools; recorded path: model → tools → model]
    `);
  });
});

test("a run whose tools use secrets is exported and replayed without them", async () => {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    input: z.object({}),
    inject: { key: inject.secret("BANK_KEY") },
    run: () => "paid",
  });
  const bank = defineGraph({ name: "bank", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools: [pay] }) })
    .edges({ [START]: "tools", tools: END });
  const store = memoryStore();
  const asks: Message = {
    role: "assistant",
    id: "m1",
    finish: "calls",
    content: [{ type: "call", id: "c1", name: "pay", args: {} }],
  };
  const input = { messages: [asks] };
  await run(bank, { store, thread: "t", input, secrets: new Map([["BANK_KEY", "hush"]]) }).result;
  const file = join(folder, "bank.test.ts");
  const { recording } = await exportTest(store, "t", { graph: bank, file, from: "./bank.ts#bank" });
  const recorded: unknown = JSON.parse(readFileSync(recording, "utf8"));
  expect(await replayRun(bank, recorded)).toMatchObject({ status: "done", path: [["tools"]] });
});

describe("recorded steps and answers", () => {
  const rates = { calls: 0 };
  function quote(text = "fine"): Graph {
    return defineGraph({
      name: "quote",
      state: defineState({ rate: z.number().default(0), log: channel.list(z.string()) }),
      interrupts: { ok: z.boolean() },
    })
      .nodes({
        fetch: async (_state, { step }) => {
          const rate = await step("rate", () => ++rates.calls);
          return { rate, log: ["fetched"] };
        },
        book: async (_state, { step }) => {
          await step("book", () => "b-1", { effect: "once" });
          return { log: ["booked"] };
        },
        ask: async ({ rate }, { interrupt }) => ({ log: [(await interrupt("ok", { payload: rate })) ? text : "no"] }),
      })
      .edges({ [START]: "fetch", fetch: "book", book: "ask", ask: END });
  }

  test("a replayed run does not call unrecorded steps: its node returns the recorded writes, and answers are replayed", async () => {
    const store = memoryStore();
    await run(quote(), { store, thread: "t" }).result;
    await resume(quote(), { store, thread: "t", answers: { ok: true } }).result;
    const file = join(folder, "quote.test.ts");
    const before = rates.calls;
    const { unrecorded, recording } = await exportTest(store, "t", { graph: quote(), file, from: "./quote.ts#quote" });
    expect(rates.calls).toBe(before);
    expect(unrecorded).toMatchInlineSnapshot(`
      [
        "the step "rate" of the node "fetch" has no saved outcome: the test contains the writes of the node and does not run its body",
      ]
    `);
    expect(readFileSync(file, "utf8").split("\n").slice(0, 3)).toMatchInlineSnapshot(`
      [
        "// Written by exportTest. Export the run again when the graph changes on purpose.",
        "// Not recorded:",
        "// - the step "rate" of the node "fetch" has no saved outcome: the test contains the writes of the node and does not run its body",
      ]
    `);
    const recorded = JSON.parse(readFileSync(recording, "utf8"));
    expect((await replayRun(quote(), recorded)).state).toEqual(recorded.state);
    expect((await replayRun(quote("good"), recorded)).state).toMatchObject({ log: ["fetched", "booked", "good"] });
    const other = exportTest(store, "t", { graph: quote("good"), file, from: "./quote.ts#quote" });
    await expect(other).rejects.toThrowErrorMatchingInlineSnapshot(
      `[StatewrightError: invalid_option: exportTest: \`graph\` must be a graph that replays the run of the thread "t", got the graph "quote" with a difference: the channel "log" is ["fetched","booked","good"], but was ["fetched","booked","fine"]. Not recorded: the step "rate" of the node "fetch" has no saved outcome: the test contains the writes of the node and does not run its body. Pass the context of the run, and export with the code version of the run. Move values that change from run to run into once steps or tools. See node_modules/statewright/docs/errors.md#invalid_option.]`,
    );
  });
});

describe("a part of a run as a test", () => {
  const Count = defineState({ n: z.number().default(0), log: channel.list(z.string()) });

  function createCounter(word = "at"): Graph {
    return defineGraph({ name: "counter", state: Count, interrupts: { go: z.boolean() } })
      .nodes({
        first: ({ n }) => ({ n: n + 1, log: [`${word} ${n}`] }),
        ask: async ({ n }, { interrupt }) => ({ n: n + 1, log: [(await interrupt("go")) ? "went" : "stayed"] }),
        last: ({ n }) => ({ n: n + 1, log: [`${word} ${n}`] }),
      })
      .edges({ [START]: "first", first: "ask", ask: "last", last: END });
  }

  /** Thread with a finished run, and a branch that forked before the answer and got another one. */
  async function createForkedThread() {
    const store = memoryStore();
    await run(createCounter(), { store, thread: "t", input: { n: 10 } }).result;
    const waiting = await store.head("t");
    await resume(createCounter(), { store, thread: "t", answers: { go: true } }).result;
    await fork(createCounter(), { store, thread: "t", at: waiting?.id ?? 0, name: "b" });
    await resume(createCounter(), { store, thread: "t", branch: "b" }).result;
    await resume(createCounter(), { store, thread: "t", branch: "b", answers: { go: false } }).result;
    const history = (await store.history("t", { branch: "b", limit: 20 })).toReversed();
    return { store, ids: history.map(({ id }) => id) };
  }

  const options = {
    graph: createCounter(),
    file: join(folder, "part", "counter.test.ts"),
    from: "./counter.ts#counter",
  };
  const texts = { ...options, write: false } as const;

  test("each checkpoint of a branch can be the last one of an exported test, which passes with the same graph [ND19]", async () => {
    const { store, ids } = await createForkedThread();
    const seen: unknown[] = [];
    for (const upTo of ids) {
      const { recordingText } = await exportTest(store, "t", { ...texts, branch: "b", upTo });
      const recorded = JSON.parse(recordingText) as { path: unknown; state: unknown; status: string };
      const replayed = await replayRun(createCounter(), recorded);
      expect(replayed).toEqual({ path: recorded.path, state: recorded.state, status: recorded.status });
      seen.push([recorded.path, recorded.state, recorded.status]);
    }
    const [n, log] = [12, ["at 10", "stayed"]];
    expect(seen).toEqual([
      [[], { n: 10, log: [] }, "held"],
      [[["first"]], { n: 11, log: ["at 10"] }, "held"],
      [[["first"]], { n: 11, log: ["at 10"] }, "held"],
      [[["first"], ["ask"]], { n, log }, "held"],
      [[["first"], ["ask"], ["last"]], { n: 13, log: [...log, "at 12"] }, "done"],
    ]);
  });

  test("a part of a run has the answers of its branch up to its end, and fails when the graph differs before its end only [ND19]", async () => {
    const { store, ids } = await createForkedThread();
    const [, second = 0, , asked = 0] = ids;
    const { recordingText, text } = await exportTest(store, "t", { ...texts, branch: "b", upTo: asked });
    const recorded = JSON.parse(recordingText) as { answers: unknown; state: unknown };
    expect(recorded.answers).toEqual([{ node: "ask", key: "go", answer: false }]);
    expect((await replayRun(createCounter("after"), recorded)).state).not.toEqual(recorded.state);
    expect(text).toContain("// Part of a run: the replay is held after the last recorded superstep.");
    expect(text).toContain('test("the graph counter follows the recorded path: first → ask"');
    const early = await exportTest(store, "t", { ...texts, upTo: second });
    expect((JSON.parse(early.recordingText) as { answers: unknown }).answers).toEqual([]);
  });

  test("an export with `write: false` returns the texts that it would write, and writes no file [ND19]", async () => {
    const { store } = await createForkedThread();
    const { file, recording, ...shown } = await exportTest(store, "t", texts);
    expect([existsSync(file), existsSync(recording)]).toEqual([false, false]);
    const written = await exportTest(store, "t", options);
    expect([readFileSync(file, "utf8"), readFileSync(recording, "utf8")]).toEqual([shown.text, shown.recordingText]);
    expect(written).toEqual({ file, recording, ...shown });
  });

  test("an export up to a checkpoint that the branch does not have is refused [ND19]", async () => {
    const { store, ids } = await createForkedThread();
    const end = ids.at(-1) ?? 0;
    await expect(exportTest(store, "t", { ...texts, branch: "main", upTo: end })).rejects.toThrow(
      `\`upTo\` must be a checkpoint of the branch "main", got the checkpoint ${end} of "b"`,
    );
    await expect(exportTest(store, "t", { ...texts, upTo: 999 })).rejects.toMatchObject({ code: "unknown_checkpoint" });
    await expect(exportTest(store, "x", { ...texts, upTo: 1 })).rejects.toMatchObject({ code: "unknown_thread" });
  });
});
