/** The routes of the streaming events protocol: commands, streams, and what they refuse. */
import { createAgent } from "@statewright/agent";
import { describe, expect, test } from "vitest";
import { createServices } from "../../src/index.ts";
import { openThreadEvents, streamThreadEvents } from "../../src/langgraph/v2/stream-thread-events.ts";
import { v2Commands } from "../../src/langgraph/v2/v2-routes.ts";
import { Speaker } from "../support/talk.ts";
import { createV2Session, everything, human, isRest, type WireFrame } from "../support/v2-session.ts";

const assistant = { assistant_id: "assistant" };

const talk = { assistant_id: "talk" };

/** Session with a graph whose model answers when the test lets it. */
async function createTalk() {
  const speaker = new Speaker();
  const session = await createV2Session({ graphs: [createAgent({ name: "talk", model: speaker.model })] });
  const answer = async (): Promise<void> => {
    await session.clock.until(speaker.waitForRequest());
    speaker.say("word");
    speaker.finish();
  };
  return { ...session, speaker, answer };
}

function getData({ params }: WireFrame): Readonly<Record<string, unknown>> {
  return Object(params?.data);
}

describe("streams of v2", () => {
  test("a client that subscribes before the first run of a thread gets the whole run [V43]", async () => {
    const { open, command } = await createV2Session();
    const stream = await open();
    const started = await command("run.start", { ...assistant, input: human("hello") });
    expect(started).toMatchObject({ type: "success", meta: { thread_id: "t1" } });
    await stream.until(isRest);
    const [first] = stream.frames;
    expect(first).toMatchObject({ method: "lifecycle", event_id: `synth:${started.result?.["run_id"]}:${first?.seq}` });
    const values = stream.frames.findLast(({ method }) => method === "values");
    expect(values?.params?.data).toMatchObject({ messages: [{ type: "human" }, { content: "You said: hello" }] });
  });

  test("a second page of v2 gets the past of the thread from its start, with the same ids [V43]", async () => {
    const { say, open } = await createV2Session({ store: "sqlite" });
    const first = await say("lookup tea");
    const second = await open();
    await second.until(isRest);
    const seen = new Set(first.frames.map(({ event_id: id }) => id));
    const isTransient = ({ method }: WireFrame): boolean => method === "tasks";
    expect(second.frames.filter(({ event_id: id }) => !seen.has(id))).toEqual([]);
    const repeated = new Set(second.frames.map(({ event_id: id }) => id));
    expect(first.frames.filter((frame) => !isTransient(frame) && !repeated.has(frame.event_id))).toEqual([]);
  });

  test("a v2 stream with since begins after that frame [V43]", async () => {
    const { say, open } = await createV2Session();
    const { frames } = await say("hello");
    const at = frames.findLast(({ method }) => method === "checkpoints");
    const { frames: rest, until } = await open({ ...everything, since: at?.seq });
    await until(isRest);
    const durable = (list: readonly WireFrame[]) =>
      list.filter(({ event_id: id = "" }) => /^(e|synth)/.test(id)).map(({ event_id: id }) => id);
    expect(durable(rest)).toEqual(durable(frames.filter(({ seq = 0 }) => seq > (at?.seq ?? 0))));
    expect(durable(rest)).toHaveLength(2);
  });

  test("a v2 stream has the channels, namespaces and levels of its subscription only", async () => {
    const { say, open } = await createV2Session();
    await say("lookup tea");
    const { frames, until } = await open({ channels: ["lifecycle", "tools"], namespaces: [[]], depth: 0 });
    await until(isRest);
    expect(new Set(frames.map(({ method }) => method))).toEqual(new Set(["lifecycle", "tools"]));
    const none = await open({ channels: ["lifecycle"], namespaces: [["research"]] });
    await none.close();
    expect(none.frames).toEqual([]);
  });

  test("a long past of v2 begins at the newest checkpoint, with its state and the end of its run [V43]", async () => {
    const { say, engine } = await createV2Session();
    await say("lookup tea");
    await say("hello");
    const service = createServices({ engine }).forCaller({ id: "ann", tenant: "acme" }, "langgraph");
    const leave = new AbortController();
    const subscription = { channels: ["values", "checkpoints", "lifecycle"] as const };
    const stream = {
      service,
      thread: "t1",
      subscription,
      hitl: true,
      signal: leave.signal,
      replayLimits: { frames: 6 },
    };
    const methods: (string | undefined)[] = [];
    for await (const line of streamThreadEvents(stream, await openThreadEvents(stream))) {
      if ("data" in line) methods.push(line.event);
      if ("data" in line && line.event === "lifecycle") leave.abort();
    }
    expect(methods).toEqual(["checkpoints", "values", "lifecycle"]);
  });

  test("a v2 stream ends when its thread is deleted", async () => {
    const { say, sendJson } = await createV2Session();
    const stream = await say("hello");
    expect(await sendJson("/langgraph/threads/t1", { method: "DELETE" })).toMatchObject({ status: 204 });
    await expect(stream.until(() => false)).rejects.toThrow("the stream has ended");
  });

  test("a subscription to an unknown thread creates no thread on a server that only reads: it is refused with 404", async () => {
    const { open } = await createV2Session({ role: "readOnly" });
    expect((await open()).status).toBe(404);
  });

  test("an unknown channel of a v2 stream is refused with 422 and the list of channels [V48, V53]", async () => {
    const { sendJson } = await createV2Session();
    const refused = await sendJson("/langgraph/threads/t1/stream/events", { body: { channels: ["frames"] } });
    expect(refused).toMatchObject({ status: 422, body: { code: "invalid_request" } });
  });
});

describe("commands of v2", () => {
  test("an input for a thread at work waits for its turn by default, and both runs end [V36]", async () => {
    const { command, open, speaker, answer } = await createTalk();
    const stream = await open({ channels: ["lifecycle"] });
    const first = await command("run.start", { ...talk, input: human("one") });
    await speaker.waitForRequest();
    const second = await command("run.start", { ...talk, input: human("two") });
    expect([first.type, second.type]).toEqual(["success", "success"]);
    await answer();
    await stream.until(isRest);
    await answer();
    await stream.until(isRest);
    const runs = stream.frames.map((frame) => [frame.event_id?.split(":")[1], getData(frame)["event"]]);
    expect(runs).toEqual([
      [first.result?.["run_id"], "running"],
      [first.result?.["run_id"], "completed"],
      [second.result?.["run_id"], "running"],
      [second.result?.["run_id"], "completed"],
    ]);
  });

  test("the strategies of multitasking decide about the run at work: reject refuses, interrupt cancels [V36]", async () => {
    const { command, open, speaker, answer } = await createTalk();
    const stream = await open({ channels: ["lifecycle"] });
    await command("run.start", { ...talk, input: human("one") });
    await speaker.waitForRequest();
    const start = { ...talk, input: human("two") };
    const refused = await command("run.start", { ...start, multitaskStrategy: "reject" });
    expect(refused).toMatchObject({ type: "error", error: "invalid_argument", code: "thread_busy" });
    const started = await command("run.start", { ...start, multitask_strategy: "interrupt" });
    expect(started).toMatchObject({ type: "success" });
    await answer();
    await stream.until((frame) => getData(frame)["event"] === "completed");
    expect(stream.frames.map((frame) => getData(frame)["event"])).toEqual([
      ...["running", "interrupted", "running", "completed"],
    ]);
  });

  test("an interrupt is answered by its id, once, with arguments that a person has edited [V30, V45]", async () => {
    const { say, command, transfers } = await createV2Session({ store: "sqlite" });
    const stream = await say("transfer please");
    const asked = stream.frames.find(({ method }) => method === "input.requested");
    const { interrupt_id: id, payload } = getData(asked ?? { type: "none" });
    expect(payload).toMatchObject({ action_requests: [{ name: "transfer", args: { to: "ann", amount: 5 } }] });
    const wrong = await command("input.respond", { namespace: [], interrupt_id: "9:9:call_9", response: true });
    expect(wrong).toMatchObject({ type: "error", error: "no_such_interrupt" });
    const edited_action = { name: "transfer", args: { to: "bob", amount: 7 } };
    const response = { decisions: [{ type: "edit", edited_action }] };
    const answered = await command("input.respond", { namespace: [], interrupt_id: id, response });
    expect(answered).toMatchObject({ type: "success" });
    await stream.until(isRest);
    expect(transfers).toEqual([{ to: "bob", amount: 7 }]);
    expect(stream.frames.find(({ method }) => method === "input.answered")?.params?.data).toEqual({
      interrupt_ids: [id],
    });
    const again = await command("input.respond", { namespace: [], interrupt_id: id, response });
    expect(again).toMatchObject({ type: "error", error: "no_such_interrupt" });
    expect(transfers).toHaveLength(1);
  });

  test("messages beside an answer reach the run, and no other update beside an answer is taken", async () => {
    const { say, command, transfers } = await createV2Session();
    const stream = await say("transfer please");
    const asked = stream.frames.find(({ method }) => method === "input.requested");
    const { interrupt_id: id } = getData(asked ?? { type: "none" });
    const respond = { interrupt_id: id, response: { decisions: [{ type: "approve" }] }, update: human("and thanks") };
    const other = { ...respond, update: { messages: [{ type: "ai", content: "I did it" }] } };
    expect(await command("input.respond", other)).toMatchObject({ error: "not_supported" });
    expect(await command("input.respond", respond)).toMatchObject({ type: "success" });
    await stream.until(isRest);
    expect(transfers).toHaveLength(1);
    const { result } = await command("state.get", { namespace: [] });
    expect(JSON.stringify(result)).toContain("and thanks");
  });

  test("an answer that does not fit its interrupt is refused, and the interrupt stays open [V30]", async () => {
    const { command, open } = await createV2Session();
    const stream = await open({ channels: ["lifecycle", "input"] });
    await command("run.start", { assistant_id: "review", input: { draft: "d" } });
    const asked = await stream.until(({ method }) => method === "input.requested");
    expect(getData(asked)).toMatchObject({ payload: { draft: "d" }, response_schema: { type: "boolean" } });
    const id = getData(asked)["interrupt_id"];
    const refused = await command("input.respond", { namespace: [], interrupt_id: id, response: "perhaps" });
    expect(refused).toMatchObject({ type: "error", error: "invalid_argument", code: "invalid_answer" });
    const answers = { responses: [{ namespace: [], interrupt_id: id, response: true }] };
    expect(await command("input.respond", answers)).toMatchObject({ type: "success" });
    await stream.until((frame) => getData(frame)["event"] === "completed");
  });

  test("a new input ends a run that waits, and the thread goes on with the input [V36]", async () => {
    const { say, command, transfers } = await createV2Session();
    const stream = await say("transfer please");
    await command("run.start", { ...assistant, input: human("hello") });
    await stream.until((frame) => getData(frame)["event"] === "completed");
    expect(transfers).toEqual([]);
  });

  test("state.get, state.listCheckpoints and agent.getTree read the thread", async () => {
    const { say, command } = await createV2Session({ store: "sqlite" });
    expect(await command("state.get", { namespace: [] })).toMatchObject({ error: "no_such_run" });
    await say("hello");
    const state = await command("state.get", { namespace: [], keys: ["messages"] });
    expect(state.result).toMatchObject({ values: { messages: [{}, {}] }, checkpoint: { id: "000000000002", ns: "" } });
    const list = await command("state.listCheckpoints", { limit: 1, before: "000000000002" });
    expect(list.result).toMatchObject({
      checkpoints: [{ id: "000000000001", step: 0, metadata: { source: "input" } }],
    });
    expect(await command("state.get", { namespace: ["nowhere:1"] })).toMatchObject({ error: "no_such_namespace" });
    const tree = await command("agent.getTree");
    expect(tree.result).toEqual({ tree: { namespace: [], status: "completed", graph_name: "assistant" } });
  });

  test("state.fork continues the thread from one of its checkpoints, and the fork is the head", async () => {
    const { say, command } = await createV2Session();
    const stream = await say("hello");
    const forked = await command("state.fork", { checkpoint_id: "000000000001" });
    expect(forked).toMatchObject({ type: "success", result: { thread_id: "t1" } });
    await stream.until(isRest);
    const { result } = await command("state.listCheckpoints");
    expect(result).toMatchObject({ checkpoints: [{ step: 1 }, { metadata: { source: "fork" } }, {}] });
    expect(await command("state.fork", { checkpoint_id: "000000009999" })).toMatchObject({
      error: "no_such_checkpoint",
    });
  });

  test("a message that is injected reaches the run at work, and an idle thread has no such run", async () => {
    const { command, open, speaker, answer } = await createTalk();
    const message = { role: "user", content: "and tea" };
    const stream = await open({ channels: ["lifecycle", "values"] });
    await command("run.start", { ...talk, input: human("milk") });
    await speaker.waitForRequest();
    expect(await command("input.inject", { namespace: [], message })).toMatchObject({ type: "success" });
    await answer();
    await answer();
    await stream.until(isRest);
    const { result } = await command("state.get", { namespace: [] });
    expect(JSON.stringify(result)).toContain("and tea");
    expect(await command("input.inject", { message })).toMatchObject({ error: "no_such_run" });
    const system = { message: { ...message, role: "system" } };
    expect(await command("input.inject", system)).toMatchObject({ error: "not_supported" });
  });

  test("methods that are not served are unknown commands, also those of every object [V53, SS40]", async () => {
    const { command, sendJson } = await createV2Session();
    for (const method of ["subscription.subscribe", "toString", "constructor", "hasOwnProperty", "run.stop"])
      expect(await command(method)).toMatchObject({ type: "error", error: "unknown_command" });
    const batch = [{ id: 1, method: "state.get", params: {} }];
    expect(await sendJson("/langgraph/threads/t1/commands", { body: batch })).toMatchObject({ status: 422 });
  });

  test("an id of a thread in the parameters never wins over the path: another one is refused [V101]", async () => {
    const { command } = await createV2Session();
    const config = { configurable: { thread_id: "t2" } };
    const refused = await command("run.start", { ...assistant, input: human("hello"), config });
    expect(refused).toMatchObject({ type: "error", error: "invalid_argument" });
    const same = { configurable: { thread_id: "t1" } };
    expect(await command("run.start", { ...assistant, input: human("hello"), config: same })).toMatchObject({
      type: "success",
    });
  });

  test("refusals name what does not fit, and no refusal has a status that clients repeat [V48, V53]", async () => {
    const { command, say } = await createV2Session();
    const start = { ...assistant, input: human("hello") };
    expect(await command("run.start", { input: {} })).toMatchObject({
      error: "invalid_argument",
      message: /assistant_id/,
    });
    expect(await command("run.start", { ...start, webhook: "https://example.com" })).toMatchObject({
      error: "invalid_argument",
    });
    expect(await command("run.start", { ...start, input: { nothing: 1 } })).toMatchObject({ code: "invalid_input" });
    await say("transfer please");
    const respond = { interrupt_id: "x", response: true, goto: "model" };
    expect(await command("input.respond", respond)).toMatchObject({ error: "not_supported" });
  });
});

describe("other tenants in v2", () => {
  test("a caller of another tenant gets no frame of a thread, as if the thread did not exist [V100, SS3]", async () => {
    const { open, say } = await createV2Session();
    const foreign = await open(everything, "bob");
    await say("hello");
    await foreign.close();
    expect(foreign.frames).toEqual([]);
  });

  test("a caller of another tenant answers no interrupt: the reply is that for an unknown thread [V100, SS4]", async () => {
    const { say, command, transfers } = await createV2Session();
    const stream = await say("transfer please");
    const asked = stream.frames.find(({ method }) => method === "input.requested");
    const { interrupt_id: id } = getData(asked ?? { type: "none" });
    const params = { namespace: [], interrupt_id: id, response: { decisions: [{ type: "approve" }] } };
    const foreign = await command("input.respond", params, "bob");
    const unknown = await (await createV2Session()).command("input.respond", params, "bob");
    expect({ ...foreign, id: 0 }).toEqual({ ...unknown, id: 0 });
    expect(foreign).toMatchObject({ type: "error", code: "unknown_thread" });
    expect(transfers).toEqual([]);
  });

  test("each command of v2 answers a caller of another tenant as for an unknown thread [V100]", async () => {
    const params: Readonly<Record<string, object>> = {
      "run.start": { ...assistant, input: human("hello") },
      "input.respond": { interrupt_id: "1:0:call_1", response: true },
      "input.inject": { message: { role: "user", content: "hello" } },
      "state.fork": { checkpoint_id: "000000000001" },
    };
    const ask = async (isForeign: boolean) => {
      const { say, command } = await createV2Session();
      if (isForeign) await say("transfer please");
      const replies = [];
      // A started run creates the own thread of the caller: it comes last.
      for (const method of [...v2Commands.keys()].filter((name) => name !== "run.start").concat("run.start"))
        replies.push([method, await command(method, params[method], "bob")]);
      return JSON.stringify(replies).replaceAll(/run_\w+|"id":\d+/g, "id");
    };
    expect(await ask(true)).toBe(await ask(false));
  });
});
