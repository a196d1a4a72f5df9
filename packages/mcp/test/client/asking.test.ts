/** Elicitations of MCP servers as saved interrupts, answered in the same process or after the server and its call have ended. */
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type Message,
  memoryStore,
  type OpenInterrupt,
  type RunResult,
  resume,
  run,
  START,
  type Tool,
  toolNode,
} from "@statewright/core";
import { virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { collectAnswers, startCalls } from "../support/calls.ts";
import { connect, createRecordingPath, endServers, listSent, serve } from "../support/mcp.ts";

function createDesk(tools: readonly Tool[]) {
  return defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools }) })
    .edges({ [START]: "tools", tools: END });
}

const asks: Message = {
  role: "assistant",
  id: "asks",
  finish: "calls",
  content: [{ type: "call", id: "c1", name: "book", args: {} }],
};

function getAnswer(state: { readonly messages: readonly Message[] }): string {
  const answer = state.messages.find(({ role }) => role === "tool");
  return answer === undefined ? "" : getMessageText(answer);
}

endServers();
const official = join(import.meta.dirname, "../fixtures/official-mcp.mjs");

type Ended = RunResult<{ readonly messages: readonly Message[] }>;

function listOpenInterrupts(ended: Ended): readonly OpenInterrupt[] {
  return ended.status === "waiting" ? ended.interrupts : [];
}

/** Returns the id of the only interrupt. */
function getId(ended: Ended): string {
  return listOpenInterrupts(ended)[0]?.id ?? "";
}

test("an elicitation waits as an interrupt, and another process repeats the call and answers the same elicitation", async () => {
  const store = memoryStore();
  const first = createRecordingPath();
  const before = await serve("usual", { file: first, elicitation: "ask", only: ["book"] });
  const waiting = await run(createDesk(before.tools), { store, thread: "t", input: { messages: [asks] } }).result;
  expect(waiting.status).toBe("waiting");
  const [question] = listOpenInterrupts(waiting);
  const id = getId(waiting);
  expect(question).toMatchObject({
    key: "book.elicit",
    payload: {
      server: "hand",
      tool: "book",
      message: "How many?",
      requestedSchema: { properties: { seats: { type: "integer", minimum: 1 } }, required: ["seats"] },
    },
  });
  await before.close();
  // No default answer: the call is cancelled, and the elicitation is answered with an error.
  const said = listSent(first);
  expect(said.find(({ id }) => id === "ask_1")).toMatchObject({
    error: { message: expect.stringContaining("No answer yet") },
  });
  expect(said.map(({ method }) => method)).toContain("notifications/cancelled");

  const second = createRecordingPath();
  const after = await serve("usual", { file: second, elicitation: "ask", only: ["book"] });
  const graph = createDesk(after.tools);
  await expect(resume(graph, { store, thread: "t", answers: { [id]: { seats: 2 } } }).result).rejects.toMatchObject({
    code: "invalid_answer",
  });
  const unfit = { action: "accept", content: { seats: 0 } };
  const again = await resume(graph, { store, thread: "t", answers: { [id]: unfit } }).result;
  const other = getId(again);
  expect(listOpenInterrupts(again)[0]?.payload).toMatchObject({
    problem: "seats: must be >= 1",
    tries: 2,
  });
  const fit = { action: "accept", content: { seats: 2 } };
  const done = await resume(graph, { store, thread: "t", answers: { [other]: fit } }).result;
  expect(done.status).toBe("done");
  expect(getAnswer(done.state)).toBe('booked by {"action":"accept","content":{"seats":2}}');
  expect(listSent(second).filter(({ method }) => method === "tools/call")).toHaveLength(1);
});

test("a declined elicitation and a failure inside the call are errors that the model reads", async () => {
  const store = memoryStore();
  const { tools } = await serve("usual", { elicitation: "ask", only: ["book", "broken"] });
  const graph = createDesk(tools);
  const id = getId(await run(graph, { store, thread: "t", input: { messages: [asks] } }).result);
  const done = await resume(graph, { store, thread: "t", answers: { [id]: { action: "decline" } } }).result;
  expect(getAnswer(done.state)).toBe('booked by {"action":"decline"}');
  const broken: Message = { ...asks, content: [{ type: "call", id: "c2", name: "broken", args: { how: "error" } }] };
  const failed = await run(graph, { input: { messages: [broken] } }).result;
  expect(getAnswer(failed.state)).toContain("rejected the arguments: a must be b");
});

test("an MCP server without elicitation permission gets no answer", async () => {
  const { tools } = await serve("usual", { only: ["book"] });
  const done = await run(createDesk(tools), { input: { messages: [asks] } }).result;
  expect(getAnswer(done.state)).toBe("booked by undefined");
});

test("declared or hinted options of an eliciting MCP tool apply to its calls: effect, retry, grace and schema refusals", async () => {
  const file = createRecordingPath();
  const retry = { attempts: 2, initialMs: 1 };
  const die = { effect: "idempotent", retry, graceMs: 7, timeoutMs: 9_000 } as const;
  const weather = { effect: "idempotent", retry: { ...retry, on: ["invalid_output"] } } as const;
  const options = { elicitation: "ask", file, onChange: () => true } as const;
  const { tools } = await serve("usual", { ...options, tools: { die, weather } });
  expect(tools.find(({ spec }) => spec.name === "die")?.spec).toMatchObject(die);
  const live = startCalls(
    tools,
    [
      { name: "die", args: {} },
      { name: "weather", args: { as: "wrong" } },
    ],
    { strategy: "sequential" },
  );
  const [again, wrong] = await live.answers();
  expect(getMessageText(again ?? asks)).toBe("lives again");
  expect(getMessageText(wrong ?? asks)).toContain("celsius: must be number");
  expect(live.events.flatMap((event) => (event.type === "tool.retried" ? [event.error] : []))).toEqual([
    expect.stringContaining("exited with code 3"),
    expect.stringContaining("does not match its output schema"),
  ]);
  const results = live.events.flatMap((event) =>
    event.type === "tool.completed" || event.type === "tool.failed" ? [event.result] : [],
  );
  expect(results).toMatchObject([{ attempts: 2 }, { attempts: 2, error: { kind: "invalid_output" } }]);

  const hinted = await serve("usual", { elicitation: "ask", trustHints: true });
  const effects = new Map(hinted.tools.map(({ spec }) => [spec.name, spec.effect]));
  expect([effects.get("die"), effects.get("book")]).toEqual(["idempotent", "once"]);
});

test("a lost once call of an MCP tool is not repeated, whatever its retry option", async () => {
  const file = createRecordingPath();
  const retry = { attempts: 3, initialMs: 1, on: ["unavailable"] } as const;
  const { tools } = await serve("usual", { elicitation: "ask", file, retry });
  const [lost] = await collectAnswers(tools, [{ name: "die", args: {} }]);
  expect(getMessageText(lost ?? asks)).toContain("The outcome of the call is unknown.");
  expect(listSent(file).filter(({ method }) => method === "tools/call")).toHaveLength(1);
});

test("an unsent MCP call is retried, a sent one is in doubt, and nothing is sent twice", async () => {
  const file = createRecordingPath();
  const program = `${createRecordingPath()}.mjs`;
  const fixture = join(import.meta.dirname, "../fixtures/mcp.mjs");
  copyFileSync(fixture, program);
  const options = { name: "hand", command: process.execPath, args: [program, "usual", file] } as const;
  const retry = { attempts: 2, initialMs: 60_000, jitter: 0, on: ["unavailable"] } as const;
  const server = await connect({ ...options, elicitation: "ask", only: ["hold"], retry });
  const calls = (): number => listSent(file).filter(({ method }) => method === "tools/call").length;
  const holds: Message = { ...asks, content: [{ type: "call", id: "c1", name: "hold", args: {} }] };
  const graph = createDesk(server.tools);
  const clock = virtualClock({ waitsForWork: false });

  // The server fails to start: the first attempt sends nothing, and the process dies during the second one.
  rmSync(program);
  process.kill(server.pid ?? 0, "SIGKILL");
  await expect.poll(() => server.pid).toBeUndefined();
  const first = memoryStore();
  const one = run(graph, { store: first, thread: "t", input: { messages: [holds] }, world: clock });
  await new Promise<void>((go) => one.on((event) => event.type === "tool.retried" && go()));
  first.crash();
  await Promise.allSettled([one.result]);
  copyFileSync(fixture, program);

  // The saved failure is reported first; then the call runs, and the process dies during it.
  const second = first.peer();
  const two = resume(graph, { store: second, thread: "t", world: clock });
  const ended = Promise.allSettled([two.result]);
  await new Promise<void>((go) => two.on((event) => event.type === "tool.retried" && go()));
  expect(calls()).toBe(0);
  await clock.advance(60_000);
  await expect.poll(calls).toBe(1);
  second.crash();
  two.cancel("it died");
  await ended;

  const third = second.peer();
  const doubt = await resume(graph, { store: third, thread: "t" }).result;
  expect(listOpenInterrupts(doubt)).toMatchObject([{ key: "hold.in_doubt" }]);
  const observed = { [getId(doubt)]: { happened: true } };
  const done = await resume(graph, { store: third, thread: "t", answers: observed }).result;
  expect(getAnswer(done.state)).toContain("A person confirmed that the call happened.");
  expect(calls()).toBe(1);
});

test.each(["initialize", "auto"] as const)(
  "an elicitation of the official server by revision (%s) gets its request state back, also from another process",
  async (protocol) => {
    const store = memoryStore();
    const file = createRecordingPath();
    const options = { name: "official", command: process.execPath, args: [official, file], protocol } as const;
    const before = await connect({ ...options, elicitation: "ask" });
    expect(before.tools.map(({ spec }) => [spec.name, spec.originalName])).toEqual([
      ["book_table", "book-table"],
      ["add", undefined],
    ]);
    expect(before).toMatchObject({ info: { name: "official", version: "1.0.0" }, instructions: "Book early." });
    const calls: Message = {
      ...asks,
      content: [
        { type: "call", id: "c1", name: "book_table", args: { name: "Ann" } },
        { type: "call", id: "c2", name: "add", args: { a: 1, b: 2 } },
      ],
    };
    const waiting = await run(createDesk(before.tools), { store, thread: "t", input: { messages: [calls] } }).result;
    await before.close();
    const after = await connect({ ...options, elicitation: "ask" });
    const answers = { [getId(waiting)]: { action: "accept", content: { seats: 4 } } };
    const { state } = await resume(createDesk(after.tools), { store, thread: "t", answers }).result;
    const said = state.messages.flatMap((message) => (message.role === "tool" ? [getMessageText(message)] : []));
    expect(said).toEqual(["4 seats for Ann", "3"]);
    const states = readFileSync(file, "utf8").trim().split("\n");
    expect(states.at(-1)).toBe("kept");
    expect(states).toHaveLength(protocol === "auto" ? 2 : 3);
  },
);
