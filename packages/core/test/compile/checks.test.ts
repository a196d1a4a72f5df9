import { expect, test } from "vitest";
import * as z from "zod";
import type { GraphProblem, StateDefinition, StateTypes } from "../../src/index.ts";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  join,
  route,
  START,
  toolNode,
  toolRegistry,
} from "../../src/index.ts";
import { getFailure } from "../support/failure.ts";

const Empty = defineState({ n: z.number().default(0) });
const returnNothing = () => undefined;

/** Problems that types would refuse too: they are for JavaScript and for generated graphs. */
async function listProblems<Types extends StateTypes>(
  nodes: Readonly<Record<string, unknown>>,
  edges: object,
  state: StateDefinition<Types> = Empty as never,
) {
  const error = await getFailure(
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

test("a graph with ten mistakes reports all of them together, each with code, place and hint [E11]", async () => {
  const problems = await listProblems(
    {
      done: returnNothing,
      "a b": returnNothing,
      a: returnNothing,
      b: returnNothing,
      spin: returnNothing,
      spun: returnNothing,
      lost: returnNothing,
      each: inputNode(z.string(), returnNothing),
      tools: toolNode<{ messages: readonly never[] }>({ tools: [] }),
      open: returnNothing,
      late: returnNothing,
      waits: returnNothing,
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
      "no_path_to_end a",
      "no_path_to_end b",
      "no_path_to_end spin",
      "no_path_to_end spun",
      "no_path_to_end late",
      "no_path_to_end waits",
      "no_path_to_end open",
      "unreachable_node lost",
      "input_node_without_send each",
      "tools_without_messages tools",
      "empty_tool_node tools",
      "missing_edge open",
      "join_never_fills waits",
    ].toSorted(),
  );
});

test("a join that waits for a node reachable only through the join is reported [E11]", async () => {
  const problems = await listProblems(
    { a: returnNothing, b: returnNothing, c: returnNothing },
    { [START]: "a", a: join("c"), b: join("c"), c: route(["b", END], () => "b") },
  );
  expect(problems).toEqual(["join_never_fills c"]);
});

test("a join inside a loop is valid", () => {
  const graph = defineGraph({ name: "loop", state: Empty })
    .nodes({ a: returnNothing, b: returnNothing, c: returnNothing })
    .edges({ [START]: ["a", "b"], a: join("c"), b: join("c"), c: route(["a", END], () => END) });
  expect(graph.name).toBe("loop");
});

test("a graph without a first edge is reported with its unreachable nodes [E11]", async () => {
  expect(await listProblems({ a: returnNothing }, { a: END })).toEqual([
    "missing_start __start__",
    "unreachable_node a",
  ]);
});

test.each(["start", "driver", "__end__", "constructor", "toString", "1st", "a.b", "x".repeat(65), ""])(
  "the node name %j is refused [E11]",
  async (name) => {
    expect(await listProblems({ [name]: returnNothing }, { [START]: name, [name]: END })).toContain(
      `reserved_name ${name}`,
    );
  },
);

test("an input node may be reached by sends and commands, and by no other edge", async () => {
  const each = inputNode(z.string(), returnNothing);
  expect(await listProblems({ each }, { [START]: "each", each: END })).toEqual(["input_node_without_send each"]);
  expect(
    await listProblems({ each }, { [START]: fanOut("each", () => ["x"], { otherwise: "each" }), each: END }),
  ).toEqual(["input_node_without_send each"]);
  expect(
    defineGraph({ name: "sound", state: Empty })
      .nodes({ each })
      .edges({ [START]: fanOut("each", () => ["x"]), each: END }).name,
  ).toBe("sound");
});

test("a tool node with an empty tool list in a graph with a messages channel is reported as empty only", async () => {
  const Chat = defineState({ n: z.number().default(0), messages: channel.messages() });
  expect(
    await listProblems(
      { tools: toolNode<{ messages: readonly never[] }>({ tools: [] }) },
      { [START]: "tools", tools: END },
      Chat,
    ),
  ).toEqual(["empty_tool_node tools"]);
});

test("a tool node with an empty registry is valid, since tools may be registered later", () => {
  const tools = toolNode<{ messages: readonly never[] }>({ tools: toolRegistry() });
  const graph = defineGraph({ name: "later", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: tools as never })
    .edges({ [START]: "tools", tools: END } as never);
  expect(graph.tools).toEqual([]);
});

test("a command edge may end its branch, so that a node with only a self target is valid", () => {
  const graph = defineGraph({ name: "sound", state: Empty })
    .nodes({ a: returnNothing })
    .edges({ [START]: "a", a: commandTargets("a") as never });
  expect(graph.nodes.size).toBe(1);
});

test.each([
  ["an invalid retry", { retry: { attempts: Number.NaN } }],
  ["a retry of zero attempts", { retry: { attempts: 0 } }],
  ["a timeout of zero", { timeoutMs: 0 }],
  ["a timeout that is not a number", { timeoutMs: Number.NaN }],
])("a node with %s is refused at definition", async (_name, policy) => {
  const error = await getFailure(
    () => defineGraph({ name: "wrong", state: Empty }).nodes({ a: { run: returnNothing, ...policy } }),
    "invalid_option",
  );
  expect(error.message).toContain('"a"');
});

test("a graph name must be an id and a graph version a positive integer", async () => {
  await getFailure(() => defineGraph({ name: "my graph", state: Empty }), "invalid_id");
  await getFailure(() => defineGraph({ name: "mine", version: 0, state: Empty }), "invalid_option");
});
