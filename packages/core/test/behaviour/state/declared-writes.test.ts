/** Nodes with declared writes: other writes are refused, and `checkGraph` can prove the absence of conflicts. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  checkGraph,
  commandTargets,
  defineGraph,
  defineState,
  END,
  edit,
  fanOut,
  type GraphProblem,
  goto,
  inputNode,
  memoryStore,
  run,
  START,
  subgraph,
} from "../../../src/index.ts";
import { describeGraph } from "../../../src/inspect.ts";
import { getFailure } from "../../support/failure.ts";
import { fromJavaScript } from "../../support/from-javascript.ts";

const State = defineState({ a: z.string().default(""), b: z.string().default(""), log: channel.list(z.string()) });
const start = defineGraph({ name: "claims", state: State, interrupts: { ok: z.boolean() } });
const other = { b: "written" };

describe("undeclared writes", () => {
  const inner = defineGraph({ name: "inner", state: State })
    .nodes({ only: () => undefined })
    .edges({ [START]: "only", only: END });
  const nodes = {
    "a partial state": { writes: ["a"], run: () => fromJavaScript<undefined>(other) },
    "a list of them": { writes: ["a"], run: () => fromJavaScript<undefined>([{ a: "x" }, other]) },
    "a recipe": {
      writes: ["a"],
      run: () =>
        edit((draft: { a: string; b: string }) => {
          draft.b = "written";
        }),
    },
    "a command": { writes: ["a"], run: () => fromJavaScript<undefined>(goto("end", other)) },
    "an error handler": {
      writes: ["a"],
      run: () => {
        throw new Error("no");
      },
      onError: () => fromJavaScript<undefined>(other),
    },
    "the output of a subgraph": {
      writes: ["a"],
      run: subgraph(inner, { input: () => ({}), output: () => fromJavaScript<undefined>(other) }),
    },
    "an empty list of writes": { writes: [], run: () => fromJavaScript<undefined>({ log: ["x"] }) },
  } as const;

  test.each(Object.entries(nodes))(
    "a write to an undeclared channel is refused with the node and the channel: %s",
    async (name, node) => {
      const graph = start
        .nodes({ node: node as { run: () => undefined }, end: () => undefined })
        .edges({ [START]: "node", node: commandTargets("end") as never, end: END });
      const store = memoryStore();
      const error = await getFailure(run(graph, { store, thread: "t" }).result, "undeclared_write");
      const oneChannel = name === "an empty list of writes" ? "log" : "b";
      expect(error.message).toContain(
        `the node "node" in graph "claims" wrote the channel "${oneChannel}", which its writes`,
      );
      expect(error.place).toMatchObject({ graph: "claims", node: "node", channel: oneChannel });
      expect((await store.head("t"))?.step).toBe(0);
    },
  );

  test("a write to an undeclared channel by a sent task is refused with the node", async () => {
    const each = inputNode(z.number(), () => fromJavaScript<undefined>(other), { writes: fromJavaScript<[]>(["a"]) });
    const graph = start.nodes({ each }).edges({ [START]: fanOut("each", () => [1]), each: END });
    expect((await getFailure(run(graph, {}).result, "undeclared_write")).place.node).toBe("each");
  });
});

test("a node may write every declared channel and may leave declared channels unwritten", async () => {
  const graph = start
    .nodes({ node: { writes: ["a", "b", "log"], run: () => ({ a: "x", log: ["y"] }) } })
    .edges({ [START]: "node", node: END });
  expect((await run(graph, {}).result).state).toEqual({ a: "x", b: "", log: ["y"] });
  expect(checkGraph(graph)).toEqual({ violations: [], unknownWrites: [] });
});

test("the interrupts that a node declares appear in the graph outline used for diagrams", () => {
  const graph = start
    .nodes({ ask: { interrupts: ["ok"], run: () => undefined }, free: () => undefined })
    .edges({ [START]: "ask", ask: "free", free: END });
  const asks = describeGraph(graph).nodes.flatMap((node) =>
    "interrupts" in node ? [[node.name, node.interrupts]] : [],
  );
  expect(asks).toEqual([["ask", ["ok"]]]);
});

describe("invalid node declarations", () => {
  async function listProblems(node: object): Promise<readonly string[]> {
    const error = await getFailure(
      () => start.nodes({ node: fromJavaScript<() => undefined>(node) }).edges({ [START]: "node", node: END }),
      "invalid_graph",
    );
    return (error.details as readonly GraphProblem[]).map(({ code, message }) => `${code}: ${message}`);
  }
  const body = (): undefined => undefined;
  const inner = defineGraph({ name: "inner", state: State })
    .nodes({ only: body })
    .edges({ [START]: "only", only: END });
  const within = subgraph(inner, { input: () => ({}), output: () => undefined });

  test.each([
    [
      "an undeclared interrupt",
      { interrupts: ["no"], run: body },
      'unknown_interrupt: the node "node" declares the interrupt "no"',
    ],
    ["an unknown channel", { writes: ["c"], run: body }, 'unknown_channel: the node "node" declares writes to "c"'],
    [
      "an interrupt of a once node",
      { interrupts: ["ok"], effect: "once", run: body },
      'cannot_interrupt: the node "node" is declared with effect "once"',
    ],
    [
      "a question of a subgraph",
      { interrupts: ["ok"], run: within },
      'cannot_interrupt: the node "node" is a subgraph',
    ],
  ])("an invalid declaration of a node is refused: %s", async (_name, node, said) => {
    const problems = await listProblems(node);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(said);
  });

  test("the error handler of a once node may declare an interrupt", () => {
    const graph = start
      .nodes({ node: { interrupts: ["ok"], effect: "once", run: body, onError: body } })
      .edges({ [START]: "node", node: END });
    expect(checkGraph(graph).violations).toEqual([]);
  });

  test.each([["interrupts"], ["writes"]])("a node option %s that is not a list of names is refused", async (option) => {
    for (const given of ["a", [1], { a: true }]) {
      const error = await getFailure(
        () => start.nodes({ node: fromJavaScript<() => undefined>({ [option]: given, run: body }) }),
        "invalid_option",
      );
      expect(error.message).toContain(`node "node": \`${option}\` must be a list of names, got `);
    }
  });
});
