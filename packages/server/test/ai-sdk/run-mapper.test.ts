/** Mapper from the events of a run to the UI message stream. */
import {
  defineGraph,
  defineState,
  END,
  type Model,
  memoryStore,
  type RunEvent,
  type RunStatus,
  resume as resumeRun,
  run,
  START,
  type Store,
  streamEvents,
} from "@statewright/core";
import { getState } from "@statewright/core/inspect";
import { memoryRelay } from "@statewright/core/store";
import { call, failWith, say, scriptedModel, think } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";

import { RunMapper, type UiFrame } from "../../src/ai-sdk/run-mapper.ts";
import type { UiChunk } from "../../src/ai-sdk/ui-chunk.ts";
import { statusTable } from "../../src/service/status-table.ts";
import { createChat } from "./agents.ts";
import { applyChunks } from "./apply-chunks.ts";
import { mapFrames, Tape } from "./record-tape.ts";

type Chat = ReturnType<typeof createChat>;

function toPlain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function listTypes(chunks: readonly UiChunk[]): string {
  return chunks
    .map(({ type }) => type)
    .filter((type, index, all) => type !== all[index - 1])
    .join(" ");
}

/** Answers the open interrupts, and records how the run goes on. */
async function resume(
  chat: Chat,
  store: Store,
  tape: Tape,
  answers: Readonly<Record<string, unknown>>,
): Promise<readonly string[]> {
  const before = await getState(chat, { store, thread: "t1" });
  const handle = chat.resume({ thread: "t1", answers: answers as never });
  const recorded = new Tape();
  const ids = await recorded.record(handle);
  const after = await getState(chat, { store, thread: "t1", at: before.checkpointId });
  tape.answer(after.answered);
  tape.frames.push(...recorded.frames);
  return ids;
}

test("text, reasoning and a tool call become parts in steps, and the message ends with its usage", async () => {
  const store = memoryStore();
  const model = scriptedModel([[think("I look."), say("Let me see."), call("look", { at: "Oslo" })], say("It rains.")]);
  const tape = new Tape();
  await tape.record(createChat({ model, store }).run({ thread: "t1", input: "hello" }));
  const { chunks, mapper } = mapFrames(tape.frames, { run: tape.run });
  expect(listTypes(chunks)).toBe(
    "data-checkpoint start-step reasoning-start reasoning-delta reasoning-end text-start text-delta text-end " +
      "tool-input-start tool-input-delta data-checkpoint tool-input-available data-progress tool-output-available " +
      "data-place tool-output-available data-checkpoint finish-step start-step text-start text-delta text-end " +
      "data-checkpoint finish-step finish",
  );
  expect(mapper.createStart()).toEqual({
    type: "start",
    messageId: tape.run,
    messageMetadata: { threadId: "t1", runId: tape.run },
  });
  expect(chunks.at(-1)).toMatchObject({
    type: "finish",
    finishReason: "stop",
    messageMetadata: { usage: { inputTokens: expect.any(Number), outputTokens: expect.any(Number) } },
  });
  expect(applyChunks(chunks)).toMatchObject([
    { type: "step-start" },
    { type: "reasoning", text: "I look.", state: "done" },
    { type: "text", text: "Let me see.", state: "done" },
    { type: "tool-look", state: "output-available", input: { at: "Oslo" }, output: "seen Oslo" },
    { type: "data-place", data: { at: "Oslo" } },
    { type: "step-start" },
    { type: "text", text: "It rains.", state: "done" },
  ]);
});

test("a tool call shows as running only when its body begins, and a waiting call never [V33]", async () => {
  const store = memoryStore();
  const chat = createChat({
    model: scriptedModel([[call("pay", { to: "Ada" }), call("look", { at: "x" })], say("Done.")]),
    store,
  });
  const tape = new Tape();
  await tape.record(chat.run({ thread: "t1", input: "pay" }));
  const body = tape.frames.findIndex(({ type }) => type === "tool.body_started");
  const isBodyOfLook = tape.frames[body];
  expect(isBodyOfLook).toMatchObject({ tool: "look" });
  const before = mapFrames(tape.frames.slice(0, body), { run: tape.run });
  expect(tape.frames.slice(0, body).filter(({ type }) => type === "tool.started")).toHaveLength(2);
  expect(before.chunks.filter(({ type }) => type === "tool-input-available")).toEqual([]);
  const after = mapFrames(tape.frames, { run: tape.run });
  const types = after.chunks
    .filter((chunk) => "toolCallId" in chunk && chunk.toolCallId === "call_1")
    .map(({ type }) => type);
  expect(types).toEqual(["tool-input-start", "tool-input-delta", "tool-input-available", "tool-approval-request"]);
});

test("approvals, client tools and denials continue the message of the run after their answers [V58]", async () => {
  const store = memoryStore();
  const model = scriptedModel([
    [call("pay", { to: "Ada" }), call("pick_color", { question: "?" }), call("pay", { to: "Bob" })],
    say("All done."),
  ]);
  const chat = createChat({ model, store });
  const tape = new Tape();
  const ids = await tape.record(chat.run({ thread: "t1", input: "go" }));
  const waiting = mapFrames(tape.frames, { run: tape.run });
  expect(waiting.chunks.at(-1)).toMatchObject({ type: "finish", finishReason: "tool-calls" });
  expect(applyChunks(waiting.chunks)).toMatchObject([
    { type: "step-start" },
    { state: "approval-requested", approval: { id: ids[0], requestReason: "Pay needs approval" } },
    { type: "tool-pick_color", state: "input-available" },
    { state: "approval-requested", approval: { id: ids[2] } },
  ]);
  await resume(chat, store, tape, { [ids[0] ?? ""]: true });
  await resume(chat, store, tape, {
    [ids[1] ?? ""]: { color: "red" },
    [ids[2] ?? ""]: { approved: false, reason: "too much" },
  });
  const { chunks } = mapFrames(tape.frames, { run: tape.run });
  expect(applyChunks(chunks)).toMatchObject([
    { type: "step-start" },
    { state: "output-available", output: { paid: "Ada" }, approval: { id: ids[0], approved: true } },
    { state: "output-available", output: { color: "red" } },
    { state: "output-denied", approval: { id: ids[2], approved: false, reason: "too much" } },
    { type: "step-start" },
    { type: "text", text: "All done." },
  ]);
  expect(chunks.filter(({ type }) => type === "tool-approval-request")).toHaveLength(2);
});

test("another interrupt is a tool part of its key, and its answer becomes the output", async () => {
  const store = memoryStore();
  const trip = defineGraph({
    name: "trip",
    state: defineState({ city: z.string().default("") }),
    interrupts: { which_city: z.object({ city: z.string() }) },
  })
    .nodes({
      ask: async (_state, { interrupt }) => await interrupt("which_city", { payload: { cities: ["Oslo", "Rome"] } }),
    })
    .edges({ [START]: "ask", ask: END });
  const tape = new Tape();
  const [id = ""] = await tape.record(run(trip, { store, thread: "t1", input: {} }));
  const { checkpointId: at } = await getState(trip, { store, thread: "t1" });
  const waiting = applyChunks(mapFrames(tape.frames, { run: tape.run }).chunks);
  expect(waiting).toMatchObject([
    { type: "step-start" },
    { type: "tool-which_city", toolCallId: id, state: "input-available", input: { cities: ["Oslo", "Rome"] } },
  ]);
  expect(waiting[1]?.["toolMetadata"]).toMatchObject({ interrupt: "which_city", schema: { type: "object" } });
  const resumed = new Tape();
  await resumed.record(resumeRun(trip, { store, thread: "t1", answers: { which_city: { city: "Rome" } } }));
  tape.answer((await getState(trip, { store, thread: "t1", at })).answered);
  tape.frames.push(...resumed.frames);
  const { chunks } = mapFrames(tape.frames, { run: tape.run });
  expect(applyChunks(chunks)).toMatchObject([
    { type: "step-start" },
    { state: "output-available", output: { city: "Rome" } },
    { type: "step-start" },
  ]);
  // The empty step tells clients that no call waits for them.
  expect(listTypes(chunks.slice(-3))).toBe("start-step finish-step finish");
});

test("a retracted message is taken back, and the client shows exactly the second text [V32]", async () => {
  const store = memoryStore();
  const overloaded = Object.assign(new Error("overloaded"), { status: 529 });
  const words = "one two three four five six seven eight nine ten ";
  const model = scriptedModel([
    [say("First."), call("look", { at: "Oslo" })],
    failWith(overloaded, { after: say(words) }),
    say("The second text."),
  ]);
  const tape = new Tape();
  await tape.record(createChat({ model, store }).run({ thread: "t1", input: "hello" }));
  const { chunks } = mapFrames(tape.frames, { run: tape.run });
  const reset = chunks.findIndex(({ type }) => type === "reset-step");
  expect(applyChunks(chunks.slice(0, reset)).at(-1)).toMatchObject({ type: "text", text: words });
  expect(applyChunks(chunks)).toMatchObject([
    { type: "step-start" },
    { type: "text", text: "First." },
    { type: "tool-look" },
    { type: "data-place" },
    { type: "step-start" },
    { type: "text", text: "The second text.", state: "done" },
  ]);
});

test("the text of a sub-agent is no part of the message, and its approval is a tool part of its own", async () => {
  const store = memoryStore();
  const helper = scriptedModel([call("pay", { to: "Eve" }), say("Helper is done.")]);
  const model = scriptedModel([call("helper", { task: "pay" }), say("All done.")]);
  const chat = createChat({ model, helper, store });
  const tape = new Tape();
  const [id = ""] = await tape.record(chat.run({ thread: "t1", input: "go" }));
  const waiting = applyChunks(mapFrames(tape.frames, { run: tape.run }).chunks);
  expect(waiting).toMatchObject([
    { type: "step-start" },
    { type: "tool-helper", state: "input-available" },
    { type: "tool-pay", toolCallId: id, state: "approval-requested", input: { to: "Eve" }, approval: { id } },
  ]);
  await resume(chat, store, tape, { [id]: true });
  const { chunks } = mapFrames(tape.frames, { run: tape.run });
  const parts = applyChunks(chunks);
  expect(parts.filter(({ type }) => type === "text")).toMatchObject([{ text: "All done." }]);
  expect(parts).toMatchObject([
    { type: "step-start" },
    { type: "tool-helper", state: "output-available", output: "Helper is done." },
    { type: "tool-pay", state: "output-available", output: { paid: "Eve" }, approval: { id, approved: true } },
    { type: "step-start" },
    { type: "text", text: "All done." },
  ]);
  expect(applyChunks(mapFrames(tape.storedFrames, { run: tape.run }).chunks)).toEqual(parts);
  expect(chunks.filter((chunk) => chunk.type === "data-agent")).not.toEqual([]);
});

test("a run that failed ends with an error of code and title, and then finishes", async () => {
  const store = memoryStore();
  const secret = "the secret of the provider";
  const tape = new Tape();
  const refused = Object.assign(new Error(secret), { status: 401 });
  await tape.record(
    createChat({ model: scriptedModel([failWith(refused)]), store }).run({ thread: "t1", input: "hello" }),
  );
  expect(tape.frames.at(-1)).toMatchObject({ type: "run.failed" });
  tape.frames.push({
    type: "ui.status",
    run: tape.run,
    status: "failed",
    error: { code: "model_failed", title: "A model call failed." },
  });
  const { chunks } = mapFrames(tape.frames, { run: tape.run });
  expect(chunks.slice(-2)).toEqual([
    { type: "error", errorText: "model_failed: A model call failed." },
    { type: "finish", finishReason: "error", messageMetadata: { threadId: "t1", runId: tape.run } },
  ]);
  expect(JSON.stringify(chunks)).not.toContain(secret);
});

const ends: readonly (readonly [RunStatus, readonly object[]])[] = [
  ["queued", []],
  ["running", []],
  ["crashed", []],
  ["waiting", [{ type: "finish", finishReason: "tool-calls" }]],
  ["paused", [{ type: "finish", finishReason: "other" }]],
  [
    "failed",
    [
      { type: "error", errorText: "node_failed: A node failed." },
      { type: "finish", finishReason: "error" },
    ],
  ],
  [
    "parked",
    [
      { type: "error", errorText: "node_failed: A node failed." },
      { type: "finish", finishReason: "error" },
    ],
  ],
  ["cancelled", [{ type: "abort" }]],
  ["done", [{ type: "finish", finishReason: "stop" }]],
];

test("each status of a run ends the message in its own way, never as interrupted [V62]", () => {
  expect(ends.map(([status]) => status).sort()).toEqual(Object.keys(statusTable).sort());
  for (const [status, expected] of ends) {
    const mapper = new RunMapper({ thread: "t1", run: "r1", branch: "main" });
    const error = { code: "node_failed", title: "A node failed." };
    const chunks = mapper.map({ type: "ui.status", run: "r1", status, error });
    expect([status, chunks]).toMatchObject([status, expected]);
    expect(JSON.stringify(chunks)).not.toContain("interrupted");
  }
});

test("the saved events of a run give the same message as its live events", async () => {
  const store = memoryStore();
  const model = scriptedModel([
    [think("Hm."), say("Let me pay."), call("pay", { to: "Ada" }), call("pay", { to: "Bob" })],
    [call("look", { at: "nothing" }), say("And more.")],
    say("Done."),
  ]);
  const chat = createChat({ model, store });
  const tape = new Tape();
  const [first = "", second = ""] = await tape.record(chat.run({ thread: "t1", input: "go" }));
  await resume(chat, store, tape, { [first]: { approved: true }, [second]: { approved: false } });
  const live = mapFrames(tape.frames, { run: tape.run });
  const stored = mapFrames(tape.storedFrames, { run: tape.run });
  const isNoData = ({ type }: { readonly type: string }): boolean => !type.startsWith("data-");
  const parts = applyChunks(live.chunks).filter(isNoData);
  expect(applyChunks(stored.chunks).filter(isNoData)).toMatchObject(parts.toReversed().toReversed());
  expect(toPlain(live.mapper.toMessage().parts)).toEqual(applyChunks(live.chunks));
  expect(toPlain(stored.mapper.toMessage().parts)).toEqual(applyChunks(stored.chunks));
});

/** Model that streams its words and waits after each of them. */
function createSteppedModel(words: readonly string[], afterWord: () => Promise<void>): Model {
  return {
    id: "stepped",
    respond: async (_request, { delta }) => {
      for (const text of words) {
        delta?.({ type: "text", text } as never);
        await afterWord();
      }
      return { content: [{ type: "text", text: words.join("") }], finish: "stop" } as never;
    },
  };
}

test("a reader that comes at any word shows each word once [V57]", async () => {
  const store = memoryStore();
  const relay = memoryRelay();
  const words = Array.from({ length: 60 }, (_, index) => `w${index} `);
  const readers: Promise<readonly UiFrame[]>[] = [];
  const read = async (ready: () => void): Promise<readonly UiFrame[]> => {
    const frames: UiFrame[] = [];
    const stop = new AbortController();
    for await (const event of streamEvents({ store, thread: "t1", relay, follow: stop.signal })) {
      frames.push(event);
      if (event.type === "snapshot") ready();
      if (event.type === "run.completed") stop.abort();
    }
    return frames;
  };
  const model = createSteppedModel(words, () => new Promise((resolve) => readers.push(read(resolve))));
  const chat = createChat({ model, store });
  await chat.run({ thread: "t1", input: "count", relay } as never).result;
  expect(readers).toHaveLength(60);
  for (const frames of await Promise.all(readers)) {
    const started = frames.find((frame) => frame.type === "run.started");
    const { chunks } = mapFrames(frames, { run: started?.type === "run.started" ? started.run : "" });
    expect(applyChunks(chunks)).toEqual([
      { type: "step-start" },
      { type: "text", text: words.join(""), state: "done" },
    ]);
    expect(chunks.some(({ type }) => type === "reset-step")).toBe(false);
  }
});

/** Creates an event of the run `r1` on the main branch. */
function createEvent<Type extends RunEvent["type"]>(
  type: Type,
  body: Omit<Extract<RunEvent, { readonly type: Type }>, "type" | "seq" | "at" | "branch">,
): UiFrame {
  const event: unknown = { type, ...body, seq: 1, at: 0, branch: "main" };
  return isFrame(event) ? event : { type: "ui.status", run: "", status: "running" };
}

function isFrame(event: unknown): event is UiFrame {
  return typeof event === "object" && event !== null && "type" in event;
}

const started = createEvent("run.started", { run: "r1", thread: "t1", graph: "g", attempt: 1, recovered: false });

function createDelta(node: string, text: string): UiFrame {
  return createEvent("message.delta", { node, task: `0:${node}`, messageId: `0:${node}:model`, kind: "text", text });
}

test("a retraction of one of two parallel messages leaves the other as it is, and both go on [V32]", () => {
  const { chunks } = mapFrames(
    [
      started,
      createDelta("a", "one "),
      createDelta("b", "wrong "),
      createDelta("a", "two "),
      createEvent("message.retracted", {
        node: "b",
        task: "0:b",
        messageId: "0:b:model",
        model: "m",
        kind: "overloaded",
      }),
      createDelta("a", "three"),
      createDelta("b", "right"),
    ],
    { run: "r1" },
  );
  expect(chunks.filter(({ type }) => type === "reset-step")).toHaveLength(1);
  expect(applyChunks(chunks)).toEqual([
    { type: "step-start" },
    { type: "text", text: "one two three", state: "streaming" },
    { type: "text", text: "right", state: "streaming" },
  ]);
});

test("a snapshot continues what is shown, and replaces what differs from it", () => {
  const createSnapshot = (text: string): UiFrame =>
    createEvent("snapshot", {
      run: "r1",
      messages: [
        {
          ...{ id: "0:a:model", branch: "main", node: "a", task: "0:a", text, reasoning: "" },
          ...{ calls: [{ callId: "c1", tool: "look", argsText: '{"at":' }], complete: false },
        },
      ],
      tools: [],
    });
  const before = [started, createDelta("a", "one "), createDelta("b", "of a process that died")];
  const continued = mapFrames([started, createDelta("a", "one "), createSnapshot("one two ")], { run: "r1" });
  expect(continued.chunks.some(({ type }) => type === "reset-step")).toBe(false);
  const shown = [
    { type: "step-start" },
    { type: "text", text: "one two ", state: "done" },
    { type: "tool-look", toolCallId: "c1", state: "input-streaming", rawInput: '{"at":' },
  ];
  expect(applyChunks(continued.chunks)).toEqual(shown);
  const replaced = mapFrames([...before, createSnapshot("one two ")], { run: "r1" });
  expect(applyChunks(replaced.chunks)).toEqual(shown);
  const other = mapFrames([...before, createSnapshot("again ")], { run: "r1" });
  expect(applyChunks(other.chunks)).toMatchObject([{ type: "step-start" }, { text: "again " }, { type: "tool-look" }]);
});

test("a call that a recovered run makes again is running again until its new result", () => {
  const place = { node: "tools", task: "1:0", callId: "c1", tool: "look" };
  const callDelta = { node: "model", task: "0:0", messageId: "0:0:model", callId: "c1", tool: "look", argsText: "{}" };
  const result = { callId: "c1", name: "look", isError: false, attempts: 1, elapsedMs: 0 };
  const complete = (text: string): UiFrame =>
    createEvent("tool.completed", { ...place, result: { ...result, content: [{ type: "text", text }] } });
  const frames = [
    started,
    createEvent("message.call_delta", callDelta),
    createEvent("tool.body_started", { ...place, args: {} }),
    complete("lost"),
    createEvent("tool.body_started", { ...place, args: {} }),
  ];
  expect(applyChunks(mapFrames(frames, { run: "r1" }).chunks)).toMatchObject([{}, { state: "input-available" }]);
  const again = mapFrames([...frames, complete("kept")], { run: "r1" });
  expect(applyChunks(again.chunks)).toMatchObject([{}, { state: "output-available", output: "kept" }]);
});

test("messages to the run at work are parts of its message only with the option steering", () => {
  const user = { role: "user", id: "u2", content: [{ type: "text", text: "hurry" }] } as const;
  const commit = createEvent("step.committed", {
    ...{ step: 1, checkpoint: 2, parent: 1, source: "step", run: "r1", nodes: [], next: [], bytes: 0, durationMs: 0 },
    changes: { messages: { kind: "append", items: [user] } },
  });
  expect(applyChunks(mapFrames([started, commit], { run: "r1" }).chunks)).toEqual([]);
  expect(applyChunks(mapFrames([started, commit], { run: "r1", steering: true }).chunks)).toEqual([
    { type: "steering-message", id: "u2", parts: [{ type: "text", text: "hurry" }] },
  ]);
});
