/** Questions of MCP servers to people: saved, answered by whoever and whenever, also after the server and its call are gone. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  defineGraph,
  defineState,
  END,
  type Message,
  memoryStore,
  messages,
  type OpenInterrupt,
  type RunResult,
  resume,
  run,
  START,
  type Tool,
  textOf,
  toolNode,
} from "@statewright/core";
import { expect, test } from "vitest";
import { connect, endServers, recording, sentTo, serve } from "../support/mcp.ts";

function desk(tools: readonly Tool[]) {
  return defineGraph({ name: "desk", state: defineState({ messages: messages() }) })
    .nodes({ tools: toolNode({ tools }) })
    .edges({ [START]: "tools", tools: END });
}

const asks: Message = {
  role: "assistant",
  id: "asks",
  finish: "calls",
  content: [{ type: "call", id: "c1", name: "book", args: {} }],
};

function answerIn(state: { readonly messages: readonly Message[] }): string {
  const answer = state.messages.find(({ role }) => role === "tool");
  return answer === undefined ? "" : textOf(answer);
}

endServers();
const official = join(import.meta.dirname, "../fixtures/official-mcp.mjs");

type Ended = RunResult<{ readonly messages: readonly Message[] }>;

function openIn(ended: Ended): readonly OpenInterrupt[] {
  return ended.status === "waiting" ? ended.interrupts : [];
}

/** The id of the one question. */
function idOf(ended: Ended): string {
  return openIn(ended)[0]?.id ?? "";
}

test("a question waits for a person; another process makes the call anew, and the server that asks the same is answered", async () => {
  const store = memoryStore();
  const first = recording();
  const before = await serve("usual", { file: first, elicitation: "ask", only: ["book"] });
  const waiting = await run(desk(before.tools), { store, thread: "t", input: { messages: [asks] } }).result;
  expect(waiting.status).toBe("waiting");
  const [question] = openIn(waiting);
  const id = idOf(waiting);
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
  // Nothing was decided in the person's place: the call was cancelled, and the question answered with an error.
  const said = sentTo(first);
  expect(said.find(({ id }) => id === "ask_1")).toMatchObject({
    error: { message: expect.stringContaining("Nobody") },
  });
  expect(said.map(({ method }) => method)).toContain("notifications/cancelled");

  const second = recording();
  const after = await serve("usual", { file: second, elicitation: "ask", only: ["book"] });
  const graph = desk(after.tools);
  await expect(resume(graph, { store, thread: "t", answers: { [id]: { seats: 2 } } }).result).rejects.toMatchObject({
    code: "invalid_answer",
  });
  const unfit = { action: "accept", content: { seats: 0 } };
  const again = await resume(graph, { store, thread: "t", answers: { [id]: unfit } }).result;
  const other = idOf(again);
  expect(openIn(again)[0]?.payload).toMatchObject({
    problem: "seats: must be >= 1",
    tries: 2,
  });
  const fit = { action: "accept", content: { seats: 2 } };
  const done = await resume(graph, { store, thread: "t", answers: { [other]: fit } }).result;
  expect(done.status).toBe("done");
  expect(answerIn(done.state)).toBe('booked by {"action":"accept","content":{"seats":2}}');
  expect(sentTo(second).filter(({ method }) => method === "tools/call")).toHaveLength(1);
});

test("a person may decline, and what fails in the call is an error that the model reads", async () => {
  const store = memoryStore();
  const { tools } = await serve("usual", { elicitation: "ask", only: ["book", "broken"] });
  const graph = desk(tools);
  const id = idOf(await run(graph, { store, thread: "t", input: { messages: [asks] } }).result);
  const done = await resume(graph, { store, thread: "t", answers: { [id]: { action: "decline" } } }).result;
  expect(answerIn(done.state)).toBe('booked by {"action":"decline"}');
  const broken: Message = { ...asks, content: [{ type: "call", id: "c2", name: "broken", args: { how: "error" } }] };
  const failed = await run(graph, { input: { messages: [broken] } }).result;
  expect(answerIn(failed.state)).toContain("refuses the arguments: a must be b");
});

test("a server that was not told that it may ask gets no answer of a person's", async () => {
  const { tools } = await serve("usual", { only: ["book"] });
  const done = await run(desk(tools), { input: { messages: [asks] } }).result;
  expect(answerIn(done.state)).toBe("booked by undefined");
});

test.each(["initialize", "auto"] as const)(
  "the official server asks by its revision (%s): what it gave to be given back comes back, also from another process",
  async (protocol) => {
    const store = memoryStore();
    const file = recording();
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
    const waiting = await run(desk(before.tools), { store, thread: "t", input: { messages: [calls] } }).result;
    await before.close();
    const after = await connect({ ...options, elicitation: "ask" });
    const answers = { [idOf(waiting)]: { action: "accept", content: { seats: 4 } } };
    const { state } = await resume(desk(after.tools), { store, thread: "t", answers }).result;
    const said = state.messages.flatMap((message) => (message.role === "tool" ? [textOf(message)] : []));
    expect(said).toEqual(["4 seats for Ann", "3"]);
    const states = readFileSync(file, "utf8").trim().split("\n");
    expect(states.at(-1)).toBe("kept");
    expect(states).toHaveLength(protocol === "auto" ? 2 : 3);
  },
);
