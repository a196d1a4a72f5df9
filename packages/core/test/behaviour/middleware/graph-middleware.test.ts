/** Middleware around every tool call: denied, skipped, unknown, malformed, cancelled and nested calls. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  approval,
  channel,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  type Message,
  memoryStore,
  resume,
  run,
  START,
  subgraph,
  toolNode,
} from "../../../src/index.ts";
import {
  call,
  checkTranscript,
  createRawCall,
  createToolLoop,
  getAnswerText,
  listEvents,
  listResults,
  listToolAnswers,
  user,
} from "../../support/tool-loop.ts";

const work = defineTool({
  name: "work",
  description: "Work.",
  input: z.object({ n: z.number().default(0) }),
  effect: "pure",
  run: ({ n }) => `worked ${n}`,
});

const hangs = defineTool({
  name: "hangs",
  description: "Hangs.",
  input: z.object({}),
  effect: "pure",
  run: (_args, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
});

const untilSteered = defineTool({
  name: "until_steered",
  description: "Works until the user speaks.",
  input: z.object({}),
  effect: "pure",
  run: (_args, { steered }) => new Promise<string>((resolve) => steered.addEventListener("abort", () => resolve("ok"))),
});

function createMarkingMiddleware(name: string, log: string[]) {
  return defineMiddleware({
    name,
    beforeTool: ({ call: made }) => void log.push(`${made.id} before ${name}`) as undefined,
    aroundTool: async ({ call: made }, next) => {
      log.push(`${made.id} enter ${name}`);
      const result = await next(made);
      log.push(`${made.id} leave ${name}`);
      return result;
    },
    afterTool: ({ call: made }) => void log.push(`${made.id} after ${name}`) as undefined,
  });
}

const getOnlyEvent = (id: string, log: readonly string[]): readonly string[] =>
  log.filter((line) => line.startsWith(`${id} `)).map((line) => line.slice(id.length + 1));

test("hooks run before in order, around with the first outermost, and after in reverse; after hooks and one end event cover refused calls [K5, T10]", async () => {
  const log: string[] = [];
  const deciding = defineMiddleware({
    name: "deciding",
    beforeTool: ({ call: made }) =>
      made.id === "denied"
        ? decide.deny("no")
        : made.id === "answered"
          ? decide.respond("here")
          : made.id === "unfit"
            ? decide.modify({ n: "x" })
            : made.id === "changed"
              ? decide.modify({ n: 5 })
              : undefined,
  });
  const calls = [
    call("work", {}, "denied"),
    call("work", {}, "answered"),
    call("nothing", {}, "unknown"),
    createRawCall("work", "{", "malformed"),
    call("work", {}, "unfit"),
    call("work", { n: 1 }, "runs"),
    call("work", { n: 1 }, "changed"),
    call("work", {}, "over"),
  ];
  const loop = createToolLoop({
    tools: [work],
    middleware: [createMarkingMiddleware("one", log), deciding, createMarkingMiddleware("two", log)],
    strategy: "sequential",
    // Refused calls release their slots: two of eight calls run.
    maxCalls: 2,
    turns: [calls, ["ok"]],
  });
  const end = await loop.start().result;
  const whole = [
    "before one",
    "before two",
    "enter one",
    "enter two",
    "leave two",
    "leave one",
    "after two",
    "after one",
  ];
  expect(getOnlyEvent("runs", log)).toEqual(whole);
  // A hook that ran before a change runs again after the change.
  expect(getOnlyEvent("changed", log)).toEqual([...whole.slice(0, 2), "before one", ...whole.slice(2)]);
  for (const id of ["denied", "answered", "unfit"])
    expect(getOnlyEvent(id, log)).toEqual(["before one", "after two", "after one"]);
  for (const id of ["unknown", "malformed", "over"]) expect(getOnlyEvent(id, log)).toEqual(["after two", "after one"]);
  expect(listEvents(loop, "tool.args_rewritten").map(({ callId, args }) => [callId, args])).toEqual([
    ["changed", { n: 5 }],
  ]);
  expect(listResults(loop).map(({ callId }) => callId)).toEqual(calls.map(({ id }) => id));
  expect(listToolAnswers(end).map(getAnswerText).slice(-3)).toEqual([
    "worked 1",
    "worked 5",
    expect.stringContaining("at most 2"),
  ]);
});

test("a skipped tool call passes the after hooks and has its end event [K5, T10]", async () => {
  const log: string[] = [];
  const loop = createToolLoop({
    tools: [untilSteered],
    middleware: [createMarkingMiddleware("one", log)],
    strategy: "sequential",
    turns: [[call("until_steered", {}, "first"), call("until_steered", {}, "skipped")], ["heard"], ["ok"]],
  });
  const handle = loop.start();
  await loop.world.waitUntilIdle();
  await handle.steer("stop");
  await handle.result;
  expect(getOnlyEvent("skipped", log)).toEqual(["after one"]);
  expect(listResults(loop).map(({ callId, error }) => [callId, error?.kind])).toEqual([
    ["first", undefined],
    ["skipped", "skipped"],
  ]);
});

test("tool calls cancelled while running, waiting or unstarted pass the after hooks and have their end events [T10]", async () => {
  const log: string[] = [];
  const ask = defineMiddleware({
    name: "ask",
    beforeTool: ({ call: made }) => (made.id === "asked" ? decide.interrupt(made, "may it?") : undefined),
  });
  const loop = createToolLoop({
    tools: [hangs, work],
    middleware: [createMarkingMiddleware("one", log), ask],
    maxConcurrency: 2,
    turns: [
      [call("work", {}, "asked"), call("hangs", {}, "runs"), call("hangs", {}, "also"), call("work", {}, "late")],
      ["ok"],
    ],
  });
  const handle = loop.start();
  await loop.world.waitUntilIdle();
  handle.cancel("enough");
  const end = await handle.result;
  expect(end.status).toBe("cancelled");
  expect(listToolAnswers(end).map(({ callId, isError }) => [callId, isError])).toEqual(
    ["asked", "runs", "also", "late"].map((id) => [id, true]),
  );
  for (const id of ["asked", "runs", "also", "late"]) expect(getOnlyEvent(id, log).at(-1)).toBe("after one");
  expect(
    listResults(loop)
      .map(({ callId, error }) => `${callId} ${error?.kind}`)
      .sort(),
  ).toEqual(["also cancelled", "asked cancelled", "late cancelled", "runs cancelled"]);
});

describe("abort by a hook", () => {
  test("an abort by a hook ends the run as cancelled with its reason, signals active tools, answers every call and makes no model request", async () => {
    const ran: string[] = [];
    const stop = defineMiddleware({
      name: "stop",
      beforeTool: ({ call: made }) =>
        made.name === "work" ? decide.abort("the budget is spent") : void ran.push(made.name),
    });
    const store = memoryStore();
    const loop = createToolLoop({
      tools: [work, hangs],
      middleware: [stop],
      store,
      turns: [[call("hangs", {}, "a"), call("work", {}, "b"), call("hangs", {}, "c")], ["ok"]],
    });
    const end = await loop.start().result;
    expect(end).toMatchObject({ status: "cancelled", reason: "the budget is spent" });
    expect(listToolAnswers(end).map((message) => [message.callId, getAnswerText(message)])).toEqual([
      ["a", "Cancelled"],
      ["b", "The run was ended: the budget is spent"],
      ["c", "Cancelled"],
    ]);
    expect([loop.requests.length, loop.world.timers]).toEqual([1, 0]);
    expect([(await loop.again().result).status, loop.requests.length]).toEqual(["done", 2]);
  });

  test("an abort by a hook without a reason is an invalid decision", async () => {
    const stop = defineMiddleware({ name: "stop", beforeTool: () => ({ action: "abort" }) as never });
    const loop = createToolLoop({ tools: [work], middleware: [stop], turns: [[call("work")], ["ok"]] });
    expect((await loop.start().result).status).toBe("done");
    expect(loop.world.lines.some(({ message }) => message.includes('"stop" failed'))).toBe(true);
  });
});

describe("graph middleware", () => {
  const State = defineState({ messages: channel.messages() });
  const createCallMessage = (name: string): Message => ({
    role: "assistant",
    id: "a1",
    content: [call(name, { n: 7 }, "c1")],
    finish: "calls",
  });
  const secret = "SENTINEL";
  const leaks = defineTool({
    name: "leaks",
    description: "Leaks.",
    input: z.object({ n: z.number() }),
    effect: "pure",
    run: (_args, { update, progress }) => {
      progress(secret);
      update?.({ content: secret });
      return secret;
    },
  });

  function nested(
    policies: Parameters<typeof defineMiddleware>[0][],
    own: ReturnType<typeof createMarkingMiddleware>[],
    tool: string,
  ) {
    const inner = defineGraph({ name: "inner", state: State, interrupts: { approve: approval } })
      .nodes({
        ask: () => ({ messages: [createCallMessage(tool)] }),
        tools: toolNode({ tools: [work, leaks], middleware: own }),
      })
      .edges({ [START]: "ask", ask: "tools", tools: END });
    return defineGraph({ name: "outer", state: State, interrupts: { approve: approval }, middleware: policies })
      .nodes({
        team: subgraph(inner, { input: () => ({ messages: [] }), output: (state) => ({ messages: state.messages }) }),
      })
      .edges({ [START]: "team", team: END });
  }

  test("graph middleware wraps the tool calls of every nested graph, outside their own middleware: policy, redaction and interrupts [T54]", async () => {
    const log: string[] = [];
    const policy = createMarkingMiddleware("host", log);
    const store = memoryStore();
    const graph = nested(
      [policy, { name: "ask", beforeTool: ({ call: made }) => decide.interrupt(made, "the host asks") }],
      [createMarkingMiddleware("own", log)],
      "work",
    );
    const first = await run(graph, { store, thread: "t", input: { messages: [user("go")] } }).result;
    expect(first).toMatchObject({ status: "waiting", interrupts: [{ key: "team.approve", node: "team.tools" }] });
    const end = await resume(graph, { store, thread: "t", answers: { "team.approve": true } }).result;
    checkTranscript(end.state.messages);
    expect(getOnlyEvent("c1", log)).toEqual([
      "before host",
      "before host",
      "before own",
      "enter host",
      "enter own",
      "leave own",
      "leave host",
      "after own",
      "after host",
    ]);
  });

  test("a filter of the outer graph redacts partial and final results of tools in an inner graph [T54]", async () => {
    const hide = {
      name: "hide",
      onToolUpdate: () => ({ content: "[hidden]" }),
      afterTool: ({ result }: { result: ReturnType<typeof listResults>[number] }) => ({
        ...result,
        content: [{ type: "text" as const, text: "[hidden]" }],
        value: undefined,
      }),
    };
    const store = memoryStore();
    const handle = run(nested([hide], [], "leaks"), { store, thread: "t", input: { messages: [user("go")] } });
    const observed: string[] = [];
    handle.on((event) => observed.push(JSON.stringify(event)));
    const { state } = await handle.result;
    expect(observed.some((event) => event.includes("tool.update"))).toBe(true);
    expect([observed.filter((event) => event.includes(secret)), JSON.stringify(state).includes(secret)]).toEqual([
      [],
      false,
    ]);
  });

  test("graph middleware wraps model calls, and its interrupts must be declared by every nested graph with tools", async () => {
    const log: string[] = [];
    const watching = defineMiddleware({ name: "watching", beforeModel: () => void log.push("asked") as undefined });
    const loop = createToolLoop({ tools: [work], policies: [watching], turns: [[call("work")], ["ok"]] });
    await loop.start().result;
    expect(log).toEqual(["asked", "asked"]);
    const inner = defineGraph({ name: "inner", state: State })
      .nodes({ tools: toolNode({ tools: [work] }) })
      .edges({ [START]: "tools", tools: END });
    const define = () =>
      defineGraph({
        name: "outer",
        state: State,
        interrupts: { approve: approval },
        middleware: [{ name: "ask", interrupts: { approve: approval } }],
      })
        .nodes({ team: subgraph(inner, { input: () => ({ messages: [] }), output: () => ({}) }) })
        .edges({ [START]: "team", team: END });
    expect(define).toThrow(
      /"ask" of the tool node "team.tools" has the interrupt "approve", which the graph "inner" does not declare/,
    );
  });
});
