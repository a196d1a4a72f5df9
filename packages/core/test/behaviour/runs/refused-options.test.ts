/** Refused call options: unknown names, invalid ids and names of built-in object properties. */
import { describe, expect, test } from "vitest";
import { createMachine } from "xstate";
import * as z from "zod";
import {
  channel,
  checkGraph,
  checkRuns,
  defineGraph,
  defineMigration,
  defineState,
  defineTool,
  durableMachine,
  END,
  editMessage,
  engine,
  fork,
  getHistory,
  getState,
  isStatewrightError,
  listInterrupts,
  memoryStore,
  recover,
  resume,
  run,
  START,
  steer,
  streamEvents,
  subgraph,
  toolNode,
  updateState,
} from "../../../src/index.ts";
import {
  copyThread,
  deleteThread,
  exportThread,
  importThread,
  listRuns,
  listThreads,
  pruneThread,
} from "../../../src/inspect.ts";

const Chat = defineState({ messages: channel.messages(), notes: channel.list(z.string()) });
const graph = defineGraph({ name: "chat", version: 2, state: Chat, interrupts: { ok: z.boolean() } })
  .nodes({ say: () => ({ notes: ["said"] }) })
  .edges({ [START]: "say", say: END });
const older = defineGraph({ name: "chat", state: Chat, version: 1 })
  .nodes({ say: () => ({ notes: ["said"] }) })
  .edges({ [START]: "say", say: END });
const store = memoryStore();
const message = { role: "user", id: "u1", content: [{ type: "text", text: "hello" }] } as const;

type Call = (more: object) => unknown;

/** Every API call with options: the required options and `more`. */
const calls: Readonly<Record<string, Call>> = {
  run: (more) => run(graph, { store, thread: "t", ...more }).result,
  resume: (more) => resume(graph, { store, thread: "t", ...more }).result,
  fork: (more) => fork(graph, { store, thread: "t", at: 1, name: "again", ...more }),
  updateState: (more) => updateState(graph, { store, thread: "t", as: "say", values: {}, ...more }),
  "an update of updateState": (more) =>
    updateState(graph, { store, thread: "t", updates: [{ as: "say", values: {}, ...more }] }),
  editMessage: (more) => editMessage(graph, { store, thread: "t", message, ...more }),
  steer: (more) => steer(graph, { store, thread: "t", input: "stop", ...more }),
  getState: (more) => getState(graph, { store, thread: "t", ...more }),
  history: (more) => getHistory(graph, { store, thread: "t", ...more }).next(),
  readEvents: (more) => streamEvents({ store, thread: "t", ...more }).next(),
  listRuns: (more) => listRuns(store, more),
  listThreads: (more) => listThreads(store, more),
  waiting: (more) => listInterrupts(store, more),
  prune: (more) => pruneThread(store, { keepLast: 1, ...more }),
  recover: (more) => recover({ store, graphs: [graph], ...more }),
  engine: (more) => engine({ store, graphs: [graph], ...more }),
  checkRuns: (more) => checkRuns(store, [graph], more),
  importThread: (more) => importThread(store, "{}", more),
  checkGraph: (more) => checkGraph(graph, more),
  defineGraph: (more) => defineGraph({ name: "g", state: Chat, ...more }),
  defineTool: (more) => defineTool({ name: "t", description: "t", input: z.object({}), run: () => "", ...more }),
  toolNode: (more) => toolNode({ tools: [], ...more }),
  durable: (more) => durableMachine(createMachine({ id: "m" }), { version: 1, ...more }),
  subgraph: (more) => subgraph(graph, { input: () => ({}), output: () => ({}), ...more }),
  defineMigration: (more) => defineMigration({ from: older, to: graph, ...more }),
};

async function getCode(work: () => unknown): Promise<string> {
  try {
    await work();
    return "nothing";
  } catch (error) {
    return isStatewrightError(error) ? error.code : String(error);
  }
}

test("an unknown option or filter is refused with its name in every API call [R3]", async () => {
  for (const [name, call] of Object.entries(calls)) {
    for (const key of ["treshold", "Thread", "toString"]) {
      const refused = await getCode(() => call({ [key]: 1 }));
      expect([name, key, refused]).toEqual([name, key, name === "defineTool" ? "invalid_tool" : "invalid_option"]);
    }
    const own = JSON.parse('{"__proto__": {"limit": 1}}') as object;
    expect([name, await getCode(() => call(own))], name).not.toEqual([name, "nothing"]);
  }
});

/** Every place that takes an id, called with the given id. */
const borders: Readonly<Record<string, (id: string) => unknown>> = {
  "the thread of run": (id) => run(graph, { store, thread: id }).result,
  "the branch of run": (id) => run(graph, { store, thread: "t", branch: id }).result,
  "the key of run": (id) => run(graph, { store, thread: "t", key: id }).result,
  "the thread of resume": (id) => resume(graph, { store, thread: id }).result,
  "the branch of resume": (id) => resume(graph, { store, thread: "t", branch: id }).result,
  "the thread of fork": (id) => fork(graph, { store, thread: id, at: 1, name: "again" }),
  "the name of fork": (id) => fork(graph, { store, thread: "t", at: 1, name: id }),
  "the thread of updateState": (id) => updateState(graph, { store, thread: id, as: "say", values: {} }),
  "the thread of editMessage": (id) => editMessage(graph, { store, thread: id, message }),
  "the thread of steer": (id) => steer(graph, { store, thread: id, input: "stop" }),
  "the thread of getState": (id) => getState(graph, { store, thread: id }),
  "the thread of history": (id) => getHistory(graph, { store, thread: id }).next(),
  "the thread of readEvents": (id) => streamEvents({ store, thread: id }).next(),
  "the thread of prune": (id) => pruneThread(store, { keepLast: 1, thread: id }),
  "the thread of deleteThread": (id) => deleteThread(store, id),
  "the thread of exportThread": (id) => exportThread(store, id),
  "the thread of copyThread": (id) => copyThread(store, id, "other"),
  "the copy of copyThread": (id) => copyThread(store, "t", id),
  "the new name of importThread": async (id) => importThread(store, await exportThread(store, "t"), { as: id }),
  "the name of a graph": (id) => defineGraph({ name: id, state: Chat }),
  "the name of a node": (id) =>
    defineGraph({ name: "g", state: Chat })
      .nodes({ [id]: () => ({}) })
      .edges({ [START]: id } as never),
  "the name of a tool": (id) => defineTool({ name: id, description: "t", input: z.object({}), run: () => "" }),
  "the key of a question": (id) => defineGraph({ name: "g", state: Chat, interrupts: { [id]: z.boolean() } }),
};

const noIds = [
  "",
  " ",
  "a b",
  "a/b",
  "é",
  "a\u0000",
  "a\n",
  "\ud800",
  "a".repeat(129),
  "__proto__",
  "constructor",
  "prototype",
];
const refusals = ["invalid_id", "invalid_graph", "invalid_tool", "invalid_option"];

test("an invalid id is refused by every API call, and a valid id is never normalized [R4, R5]", async () => {
  await run(graph, { store, thread: "t" }).result;
  for (const [border, at] of Object.entries(borders)) {
    for (const id of noIds) {
      const refused = await getCode(() => at(id));
      expect([border, id, refusals.includes(refused) || refused]).toEqual([border, id, true]);
    }
  }
  const longest = "a".repeat(128);
  for (const id of ["T", "a:b", "a.b-c_d", "0", longest]) {
    expect(await run(graph, { store, thread: id, input: { notes: [id] } }).result).toMatchObject({ status: "done" });
    expect((await getState(graph, { store, thread: id })).state.notes).toEqual([id, "said"]);
  }
  expect((await listThreads(store)).map(({ id }) => id).toSorted()).toEqual(
    ["t", "T", "a:b", "a.b-c_d", "0", longest].toSorted(),
  );
});

test("a step key may be any well-formed string, and a key that a database could confuse with another is refused [R4]", async () => {
  const keyed = (key: string) =>
    defineGraph({ name: "g", state: Chat })
      .nodes({ say: async (_state, { step }) => ({ notes: [await step(key, () => "x")] }) })
      .edges({ [START]: "say", say: END });
  for (const key of ["charge 1/2", "é", "\u{1f600}"])
    expect(await getCode(() => run(keyed(key), {}).result)).toBe("nothing");
  for (const key of ["", "\ud800", "a\udc00b"])
    expect(await getCode(() => run(keyed(key), {}).result)).not.toBe("nothing");
});

test("a step name that a database would store differently is refused", async () => {
  const named = (name: string) =>
    defineGraph({ name: "g", state: Chat })
      .nodes({ say: async (_state, { step }) => ({ notes: [await step("key", () => "x", { name })] }) })
      .edges({ [START]: "say", say: END });
  expect(await getCode(() => run(named("\u{1f600} 1/2"), {}).result)).toBe("nothing");
  for (const name of ["a\ud800", 7 as never])
    expect(await getCode(() => run(named(name), {}).result)).not.toBe("nothing");
});

describe("built-in object property names [R5]", () => {
  const names = ["__proto__", "constructor", "prototype", "toString"] as const;

  function own(name: string, value: unknown): Record<string, unknown> {
    return Object.defineProperty({}, name, { value, enumerable: true, configurable: true, writable: true });
  }

  test("built-in object property names are refused as channels of state, input, update and node return [R5]", async () => {
    for (const name of names) {
      const input = own(name, { polluted: true });
      const returning = defineGraph({ name: "g", state: Chat })
        .nodes({ say: () => input as never })
        .edges({ [START]: "say", say: END });
      const refused = await Promise.all([
        getCode(() => run(graph, { input: input as never }).result),
        getCode(() => run(returning, {}).result),
        getCode(() => updateState(graph, { store, thread: "t", as: "say", values: input as never })),
        getCode(() => resume(graph, { store, thread: "t", answers: own(name, true) }).result),
      ]);
      expect([name, refused.map((code) => code !== "nothing" && !code.startsWith("TypeError"))]).toEqual([
        name,
        [true, true, true, true],
      ]);
    }
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  test("a lookup by a built-in object property name finds no node and no run [R5]", async () => {
    for (const name of names) {
      expect(graph.nodes.get(name)).toBeUndefined();
      expect(await getCode(() => updateState(graph, { store, thread: "t", as: name as never }))).not.toBe("nothing");
      expect(await listRuns(store, { graph: name })).toEqual([]);
    }
  });
});
