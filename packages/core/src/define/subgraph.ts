/** Subgraphs: a graph as the body of a node. The inner state is separate; input and output are mapped. */
import { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkChoice, checkOptions, listOptionNames } from "../base/options.ts";
import type { GraphDefinition, GraphTypes, SubgraphPersistence, SubgraphRecord } from "./graph.ts";
import type { NodeReturn } from "./node.ts";

/** Mapping of a subgraph to its parent graph. */
export interface SubgraphOptions<Inner extends GraphTypes, State, Context, Input, Returned> {
  /** Creates the inner input from the outer state when a call starts; not called again on resume. */
  readonly input: (state: State, outer: { readonly context: Context; readonly input: Input }) => Inner["input"];
  /**
   * Creates the return value of the outer node from the output of the inner graph: an update, a command, or nothing.
   * `input` is the input of the task, if any. `ended` is the final state of the inner graph, including private
   * channels.
   */
  readonly output: (
    output: Inner["output"],
    outer: { readonly state: State; readonly context: Context; readonly input: Input; readonly ended: Inner["state"] },
  ) => Returned;
  /** Creates the context of the inner graph from the context of the parent graph. Default: the same context. */
  readonly context?: (context: Context) => Inner["given"];
  /** Lifetime of the saved state of the inner graph. Default `per-call`. */
  readonly persistence?: SubgraphPersistence;
}

/** Requires `context` where the inner graph cannot take the context of the parent graph. */
type RequiredMapping<Context, Given> = [Context] extends [Given]
  ? unknown
  : { readonly context: (context: Context) => Given };

/** Node body that runs a graph. `inner` exists only in types. */
export interface SubgraphBody<Inner extends GraphTypes, State, Context, Input, Returned> {
  (state: State, runtime: { readonly context: Context; readonly input?: Input }): Promise<Awaited<Returned>>;
  readonly inner?: Inner;
}

/**
 * Creates a node body that runs a graph. The inner graph gets the context of its parent graph, or the result of
 * `context`; answer its interrupts as `node.key`. Throws `invalid_option` for an invalid graph and for mappings that
 * are not functions.
 */
export function subgraph<
  Inner extends GraphTypes,
  State,
  Input,
  Returned extends NodeReturn<State, unknown>,
  Context = Inner["given"],
>(
  graph: GraphDefinition & { readonly types?: Inner },
  options: SubgraphOptions<Inner, State, Context, Input, Returned> & RequiredMapping<NoInfer<Context>, Inner["given"]>,
): SubgraphBody<Inner, State, Context, Input, Returned> {
  checkOptions("subgraph", options, names);
  const { input, output, context, persistence = "per-call" } = options;
  checkSubgraph(graph, { input, output, context, persistence });
  const record: SubgraphRecord = { graph, persistence, input, output, ...(context === undefined ? {} : { context }) };
  return Object.assign(() => refuseDirectCall(graph.name), { [key]: record });
}

/** Returns the subgraph record of a body created by `subgraph`; undefined for any other body. */
export function getSubgraph(body: object): SubgraphRecord | undefined {
  return (body as { readonly [key]?: SubgraphRecord })[key];
}

const key: unique symbol = Symbol.for("statewright.subgraph") as never;

const names = listOptionNames<Omit<SubgraphRecord, "graph">>({
  input: true,
  output: true,
  context: true,
  persistence: true,
});

function checkSubgraph(
  graph: GraphDefinition,
  { input, output, context, persistence }: Omit<SubgraphRecord, "graph" | "context"> & { readonly context: unknown },
): void {
  if (!(graph?.nodes instanceof Map))
    throw invalidOption({
      where: "subgraph",
      expected: "a graph",
      got: graph,
      fix: "Pass the result of defineGraph",
    });
  const where = `subgraph "${graph.name}"`;
  for (const [option, mapping] of Object.entries({ input, output, context }))
    if (typeof mapping !== "function" && (option !== "context" || mapping !== undefined))
      throw invalidOption({
        where,
        option,
        expected: "a function",
        got: mapping,
        fix: `Use ${option}: (${option === "output" ? "output" : "state"}) => …`,
      });
  checkChoice(where, { persistence }, ["per-call", "per-thread", "none"]);
}

function refuseDirectCall(name: string): never {
  throw new StatewrightError("machine_failed", {
    what: `the body of the subgraph "${name}" was called directly`,
    next: "Pass the parent graph to run: the engine runs inner graphs itself",
  });
}
