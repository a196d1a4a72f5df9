/** Subgraphs: a graph as the body of a node of another. Its state is its own; what goes in and what comes out is mapped. */
import { StatewrightError } from "../base/errors.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { GraphDefinition, GraphTypes, SubgraphRecord } from "./graph.ts";
import type { NodeReturn } from "./node.ts";

/**
 * What becomes of the inner state. `per-call` (default): every call begins anew, and its steps are saved, so that it goes on
 * where it stood. `kept`: the same, and a call begins with the state that the one before it left. `none`: nothing of it is
 * saved; after a crash the call begins again, so that it may neither ask a person nor do anything `once`.
 */
export type SubgraphPersistence = "per-call" | "kept" | "none";

/** How a subgraph is bound to the graph around it. */
export interface SubgraphOptions<Inner extends GraphTypes, State, Context, Input, Returned> {
  /** What a call is given, made from the outer state when the call begins; a call that goes on is not given it again. */
  readonly input: (state: State, outer: { readonly context: Context; readonly input: Input }) => Inner["input"];
  /**
   * What the outer node returns, made from the output of the inner graph: an update, a command, or nothing. `input` is what the
   * task was given, where it was given something. `ended` is the state that the inner graph ended with: its private channels
   * too, which its output does not show.
   */
  readonly output: (
    output: Inner["output"],
    outer: { readonly state: State; readonly context: Context; readonly input: Input; readonly ended: Inner["state"] },
  ) => Returned;
  readonly persistence?: SubgraphPersistence;
}

/** The body of a node that is a graph. `inner` exists only in types. */
export interface SubgraphBody<Inner extends GraphTypes, State, Context, Input, Returned> {
  (state: State, runtime: { readonly context: Context; readonly input?: Input }): Promise<Awaited<Returned>>;
  readonly inner?: Inner;
}

/**
 * A graph as the body of a node. It gets the context of the graph around it, or what `context` makes of it; its questions
 * are answered as `node.key`. Throws `invalid_option` for what is no graph and for mappings that are not functions.
 */
export function subgraph<Inner extends GraphTypes, State, Input, Returned extends NodeReturn<State, unknown>>(
  graph: GraphDefinition & { readonly types?: Inner },
  options: SubgraphOptions<Inner, State, Inner["given"], Input, Returned> & { readonly context?: undefined },
): SubgraphBody<Inner, State, Inner["given"], Input, Returned>;
export function subgraph<Inner extends GraphTypes, State, Context, Input, Returned extends NodeReturn<State, unknown>>(
  graph: GraphDefinition & { readonly types?: Inner },
  options: SubgraphOptions<Inner, State, Context, Input, Returned> & {
    readonly context: (context: Context) => Inner["given"];
  },
): SubgraphBody<Inner, State, Context, Input, Returned>;
export function subgraph(
  graph: GraphDefinition,
  options: Omit<SubgraphRecord, "graph" | "persistence" | "context"> & {
    readonly context?: SubgraphRecord["context"] | undefined;
    readonly persistence?: SubgraphPersistence;
  },
): SubgraphBody<GraphTypes, never, never, never, unknown> {
  const { input, output, context, persistence = "per-call" } = options;
  checkOptions("subgraph", options, names);
  refuseUnfit(graph, { input, output, context, persistence });
  const record: SubgraphRecord = { graph, persistence, input, output, ...(context === undefined ? {} : { context }) };
  return Object.assign(() => runsElsewhere(graph.name), { [key]: record });
}

/** What `subgraph` made of a body, or undefined for any other. */
export function subgraphOf(body: object): SubgraphRecord | undefined {
  return (body as { readonly [key]?: SubgraphRecord })[key];
}

const key: unique symbol = Symbol.for("statewright.subgraph") as never;

const names = optionNames<Omit<SubgraphRecord, "graph">>({
  input: true,
  output: true,
  context: true,
  persistence: true,
});

function refuseUnfit(
  graph: GraphDefinition,
  { input, output, context, persistence }: Omit<SubgraphRecord, "graph" | "context"> & { readonly context: unknown },
): void {
  const refuse = (what: string, next: string): never => {
    throw new StatewrightError("invalid_option", { what, next });
  };
  if (!(graph?.nodes instanceof Map))
    refuse("subgraph got something that is not a graph", "Give it what defineGraph gives");
  const of = `the subgraph "${graph.name}"`;
  for (const [name, given] of Object.entries({ input, output, context }))
    if (typeof given !== "function" && (name !== "context" || given !== undefined))
      refuse(
        `the ${name} of ${of} is not a function`,
        `Give ${name}: (${name === "output" ? "output" : "state"}) => …`,
      );
  if (!["per-call", "kept", "none"].includes(persistence))
    refuse(`the persistence of ${of} is ${JSON.stringify(persistence)}`, 'Give "per-call", "kept" or "none"');
}

function runsElsewhere(name: string): never {
  throw new StatewrightError("machine_failed", {
    what: `the body of the subgraph "${name}" was called`,
    next: "Give the graph that holds it to run: the engine runs inner graphs itself",
  });
}
