import { expect, test } from "vitest";
import * as z from "zod";
import type { GraphProblem, StateDefinition, StateTypes } from "../../src/index.ts";
import {
  defineGraph,
  defineState,
  END,
  gotos,
  join,
  messages,
  route,
  START,
  sends,
  task,
  toolNode,
  toolRegistry,
} from "../../src/index.ts";
import { failureOf } from "../support/failure.ts";

const Empty = defineState({ n: z.number().default(0) });
const nothing = () => undefined;

/** The problems of a graph that types would refuse too: they are for those who write JavaScript, or generate graphs. */
async function problemsOf<Types extends StateTypes>(
  nodes: Readonly<Record<string, unknown>>,
  edges: object,
  state: StateDefinition<Types> = Empty as never,
) {
  const error = await failureOf(
    () =>
      defineGraph({ name: "wrong", state })
        .nodes(nodes as Record<string, () => undefined>)
        .edges(edges as never),
    "invalid_graph",
  );
  expect(error.kind).toBe("definition");
  const problems = error.details as readonly GraphProblem[];
  for (const { message, hint } of problems) {
    expect(error.message).toContain(message);
    expect(error.message).toContain(hint);
  }
  return problems.map(({ code, node }) => `${code} ${node}`);
}

test("E11 a graph with ten mistakes reports all of them at once, each with code, place and hint", async () => {
  const problems = await problemsOf(
    {
      done: nothing,
      "a b": nothing,
      a: nothing,
      b: nothing,
      spin: nothing,
      spun: nothing,
      lost: nothing,
      each: task(z.string(), nothing),
      tools: toolNode<{ messages: readonly never[] }>({ tools: [] }),
      open: nothing,
      late: nothing,
      waits: nothing,
    },
    {
      [START]: ["done", "a b", "a", "b", "spin", "each", "tools", "open", "waits"],
      done: END,
      "a b": END,
      a: "nowhere",
      ghost: END,
      b: route([], () => END as never),
      spin: "spun",
      spun: "spin",
      lost: END,
      each: END,
      tools: END,
      late: join("waits"),
      waits: "late",
    },
  );
  expect(problems.toSorted()).toEqual(
    [
      "reserved_name done",
      "reserved_name a b",
      "unknown_node a",
      "unknown_node ghost",
      "route_without_targets b",
      "no_way_out a",
      "no_way_out b",
      "no_way_out spin",
      "no_way_out spun",
      "no_way_out late",
      "no_way_out waits",
      "no_way_out open",
      "unreachable_node lost",
      "task_without_send each",
      "tools_without_messages tools",
      "empty_tool_node tools",
      "missing_edge open",
      "join_never_fills waits",
    ].toSorted(),
  );
});

test("E11 a join that waits for what only itself leads to can never fill", async () => {
  const problems = await problemsOf(
    { a: nothing, b: nothing, c: nothing },
    { [START]: "a", a: join("c"), b: join("c"), c: route(["b", END], () => "b") },
  );
  expect(problems).toEqual(["join_never_fills c"]);
});

test("a join inside a loop is sound", () => {
  const graph = defineGraph({ name: "loop", state: Empty })
    .nodes({ a: nothing, b: nothing, c: nothing })
    .edges({ [START]: ["a", "b"], a: join("c"), b: join("c"), c: route(["a", END], () => END) });
  expect(graph.name).toBe("loop");
});

test("E11 without a first edge nothing can be reached, and both are told", async () => {
  expect(await problemsOf({ a: nothing }, { a: END })).toEqual(["missing_start __start__", "unreachable_node a"]);
});

test.each(["start", "driver", "__end__", "constructor", "toString", "1st", "a.b", "x".repeat(65), ""])(
  "E11 no node is called %j",
  async (name) => {
    expect(await problemsOf({ [name]: nothing }, { [START]: name, [name]: END })).toContain(`reserved_name ${name}`);
  },
);

test("a task node may be led to by sends and by a command, and by nothing else", async () => {
  const each = task(z.string(), nothing);
  expect(await problemsOf({ each }, { [START]: "each", each: END })).toEqual(["task_without_send each"]);
  expect(await problemsOf({ each }, { [START]: sends("each", () => ["x"], { otherwise: "each" }), each: END })).toEqual(
    ["task_without_send each"],
  );
  expect(
    defineGraph({ name: "sound", state: Empty })
      .nodes({ each })
      .edges({ [START]: sends("each", () => ["x"]), each: END }).name,
  ).toBe("sound");
});

test("a tool node finds its calls in the channel messages", async () => {
  const Chat = defineState({ n: z.number().default(0), messages: messages() });
  expect(
    await problemsOf(
      { tools: toolNode<{ messages: readonly never[] }>({ tools: [] }) },
      { [START]: "tools", tools: END },
      Chat,
    ),
  ).toEqual(["empty_tool_node tools"]);
});

test("a tool node of an empty registry is sound: tools may come later", () => {
  const tools = toolNode<{ messages: readonly never[] }>({ tools: toolRegistry() });
  const graph = defineGraph({ name: "later", state: defineState({ messages: messages() }) })
    .nodes({ tools: tools as never })
    .edges({ [START]: "tools", tools: END } as never);
  expect(graph.tools).toEqual([]);
});

test("a command's edge may end the branch, so that a node with nothing else has a way out", () => {
  const graph = defineGraph({ name: "sound", state: Empty })
    .nodes({ a: nothing })
    .edges({ [START]: "a", a: gotos("a") as never });
  expect(graph.nodes.size).toBe(1);
});

test.each([
  ["a retry that cannot be followed", { retry: { attempts: Number.NaN } }],
  ["a retry of no attempts", { retry: { attempts: 0 } }],
  ["a timeout of nothing", { timeoutMs: 0 }],
  ["a timeout that is no number", { timeoutMs: Number.NaN }],
])("a node with %s is refused where it is defined", async (_name, policy) => {
  const error = await failureOf(
    () => defineGraph({ name: "wrong", state: Empty }).nodes({ a: { run: nothing, ...policy } }),
    "invalid_option",
  );
  expect(error.message).toContain('"a"');
});

test("a graph's name is an id and its version a whole number from 1", async () => {
  await failureOf(() => defineGraph({ name: "my graph", state: Empty }), "invalid_id");
  await failureOf(() => defineGraph({ name: "mine", version: 0, state: Empty }), "invalid_option");
});
