/** Authors of values in supersteps of several tasks, tool calls or inbox messages. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fanOut,
  inputNode,
  memoryStore,
  run,
  START,
  type Store,
  steer,
  toolNode,
  userMessage,
} from "../../../src/index.ts";
import { blame, getSuperstep, isSuperstep, listSupersteps } from "../../../src/inspect.ts";
import { call } from "../../support/tool-loop.ts";

const thread = "t";

/** Returns task and call of the newest write of each path. */
async function findAuthors(store: Store, paths: readonly string[]): Promise<readonly (readonly unknown[])[]> {
  return await Promise.all(
    paths.map(async (path) => {
      const [write] = await blame(store, { thread, path });
      return [path, write?.task, write?.call];
    }),
  );
}

const Parts = defineState({
  best: z.string().optional(),
  total: channel.reduce(z.number().default(0), (sum: number, n: number) => sum + n),
  found: channel.list(z.string()),
  facts: channel.record(z.string()),
});

test("a value that one of several parallel tasks wrote names its task, in lists, records and single values [ND4]", async () => {
  const graph = defineGraph({ name: "parallel", state: Parts })
    .nodes({
      begin: () => ({ found: ["begin"], facts: { begin: "1" } }),
      left: () => ({ found: ["l1", "l2"], facts: { left: "1", both: "1" }, best: "left", total: 1 }),
      right: () => ({ found: ["r1"], facts: { right: "1", both: "2" }, total: 2 }),
      idle: () => undefined,
    })
    .edges({ [START]: "begin", begin: ["left", "right", "idle"], left: END, right: END, idle: END });
  const store = memoryStore();
  await run(graph, { store, thread, input: {} }).result;
  const paths = [
    "/found/0",
    "/found/1",
    "/found/2",
    "/found/3",
    "/facts/begin",
    "/facts/left",
    "/facts/right",
    "/best",
  ];
  expect(await findAuthors(store, paths)).toEqual([
    ["/found/0", "0:0", undefined],
    ["/found/1", "1:0", undefined],
    ["/found/2", "1:0", undefined],
    ["/found/3", "1:1", undefined],
    ["/facts/begin", "0:0", undefined],
    ["/facts/left", "1:0", undefined],
    ["/facts/right", "1:1", undefined],
    ["/best", "1:0", undefined],
  ]);
  // Both tasks could have written these.
  expect((await findAuthors(store, ["/facts/both", "/total", "/found"])).map(([, task]) => task)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("each item of a fan-out names the task that appended it, and getSuperstep names the author of each operation [ND3, ND4]", async () => {
  const Found = defineState({ found: channel.list(z.string()), facts: channel.record(z.string()) });
  const graph = defineGraph({ name: "fan-out", state: Found })
    .nodes({
      begin: () => ({ found: ["begin"], facts: { begin: "1" } }),
      look: inputNode(z.string(), (_state, { input }) => ({ found: [input], facts: { [input]: "seen" } })),
    })
    .edges({ [START]: "begin", begin: fanOut("look", () => ["a", "b", "c"]), look: END });
  const store = memoryStore();
  await run(graph, { store, thread, input: {} }).result;
  expect((await findAuthors(store, ["/found/1", "/found/2", "/found/3"])).map(([, task]) => task)).toEqual([
    "1:0",
    "1:1",
    "1:2",
  ]);
  const newest = (await listSupersteps(store, { thread })).find(isSuperstep);
  const detail = await getSuperstep(store, { thread, checkpoint: newest?.id ?? 0 });
  expect(detail?.patch.map(({ path }, index) => [path, detail.authors[index]])).toEqual([
    ["/found/1", { task: "1:0" }],
    ["/found/2", { task: "1:1" }],
    ["/found/3", { task: "1:2" }],
    ["/facts/a", { task: "1:0" }],
    ["/facts/b", { task: "1:1" }],
    ["/facts/c", { task: "1:2" }],
  ]);
});

const Desk = defineState({
  messages: channel.messages(),
  facts: channel.record(z.string()),
  found: channel.list(z.string()),
});

const look = defineTool({
  name: "look",
  description: "Looks at a thing.",
  input: z.object({ at: z.string() }),
  run: async ({ at }) => ({ content: at, command: { update: { facts: { [at]: "seen" }, found: [at] } } }),
});

test("a value that one of several tool calls of a task wrote names the call [ND4]", async () => {
  const graph = defineGraph({ name: "desk", state: Desk })
    .nodes({
      ask: () => ({
        messages: [
          {
            role: "assistant" as const,
            id: "m1",
            content: [call("look", { at: "a" }, "c1"), call("look", { at: "b" }, "c2")],
            finish: "calls" as const,
          },
        ],
      }),
      tools: toolNode({ tools: [look] }),
    })
    .edges({ [START]: "ask", ask: "tools", tools: END });
  const store = memoryStore();
  await run(graph, { store, thread, input: {} }).result;
  expect(await findAuthors(store, ["/facts/a", "/facts/b", "/found/0", "/found/1", "/messages/2", "/facts"])).toEqual([
    ["/facts/a", "1:0", "c1"],
    ["/facts/b", "1:0", "c2"],
    ["/found/0", "1:0", "c1"],
    ["/found/1", "1:0", "c2"],
    ["/messages/2", "1:0", "c2"],
    ["/facts", "1:0", undefined],
  ]);
});

test("a message that the inbox delivered with a superstep has no task as its author [ND4]", async () => {
  const graph = defineGraph({ name: "chat", state: Desk })
    .nodes({
      think: async () => {
        await steer(graph, { store, thread, input: "hurry" });
        return { messages: [userMessage("thinking")] };
      },
      end: () => undefined,
    })
    .edges({ [START]: "think", think: "end", end: END });
  const store = memoryStore();
  await run(graph, { store, thread, input: {} }).result;
  const written = await blame(store, { thread, path: "/messages/1" });
  expect(written).toHaveLength(1);
  expect(written[0]?.superstep.nodes).toEqual(["think"]);
  expect(written[0]).not.toHaveProperty("task");
  expect((await findAuthors(store, ["/messages/0"]))[0]?.[1]).toBe("0:0");
});
