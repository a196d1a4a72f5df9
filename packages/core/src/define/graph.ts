/** Graph: named state, nodes and edges, with the types read by runs, tests and middleware. */
import type { Schema } from "../base/schema.ts";
import type { ToolCallBlock } from "../model/message.ts";
import type { GraphModels } from "../model/model-source.ts";
import type { StateDefinition, StateTypes } from "../state/definition.ts";
import type { Tool } from "../tool/definition/tool.ts";
import type { InterruptShape } from "../tool/policy/interrupt.ts";
import type { Middleware } from "../tool/policy/middleware.ts";
import type { ContextDefinition } from "./context.ts";
import type { CachePolicy, NodePolicy, NodeReturn } from "./node.ts";
import type { NodeCache } from "./node-cache.ts";
import type { Outline, OutlineNode } from "./outline.ts";
import type { GraphProblem } from "./problem.ts";
import type { ToolNode } from "./tool-node.ts";

/** Types of a graph. */
export interface GraphTypes extends StateTypes {
  readonly context: unknown;
  /** Context as passed to a run. */
  readonly given: unknown;
  readonly interrupts: InterruptShape;
  readonly nodes: string;
  /** State in results: without private channels. */
  readonly result: object;
  /** Output of a finished run. */
  readonly output: unknown;
  /** Interrupts of inner graphs, as `node.key`. */
  readonly innerInterrupts: InterruptShape;
  /** Names of the nodes of inner graphs. */
  readonly innerNodes: string;
  /** Names of callable tools when the graph lists its tools; any string with a registry. */
  readonly tools: string;
  /** Events of a durable machine; a graph of nodes takes no events. */
  readonly events?: object | undefined;
}

/** Function that creates the context of the inner graph; undefined for the context of the calling graph. */
export type ContextMapping<Inner extends GraphTypes> = ((context: never) => Inner["given"]) | undefined;

/** Context of the calling graph. */
export type CallerContext<Inner extends GraphTypes, Mapping> = Mapping extends (context: infer Context) => unknown
  ? Context
  : Inner["given"];

type InnerTypes<Node> = "inner" extends keyof Node
  ? NonNullable<Node["inner"]>
  : Node extends { readonly run: infer Body }
    ? InnerTypes<Body>
    : never;
type InnerInterrupt<Name extends string, Interrupts> = {
  [Key in keyof Interrupts & string]: { readonly key: `${Name}.${Key}`; readonly declared: Interrupts[Key] };
}[keyof Interrupts & string];
type InnerInterrupts<Nodes> = {
  [Name in keyof Nodes & string]: InnerTypes<Nodes[Name]> extends infer Inner
    ? Inner extends GraphTypes
      ? InnerInterrupt<Name, Inner["interrupts"]> | InnerInterrupt<Name, Inner["innerInterrupts"]>
      : never
    : never;
}[keyof Nodes & string];

/** Types of a graph's nodes. Properties, so that the graph's type does not name the types of all nodes. */
export interface NodeTypes<Nodes> {
  readonly names: keyof Nodes & string;
  /** Interrupts of inner graphs, as `node.key`. */
  readonly interrupts: { readonly [Question in InnerInterrupts<Nodes> as Question["key"]]: Question["declared"] };
  /** Tools of the tool nodes and of inner graphs. */
  readonly tools: NodeToolNames<Nodes[keyof Nodes]>;
  /** Names of the nodes of inner graphs. */
  readonly inner: InnerNodeNames<Nodes[keyof Nodes]>;
}

type InnerNodeNames<Node> = Node extends unknown
  ? InnerTypes<Node> extends infer Inner
    ? Inner extends GraphTypes
      ? Inner["nodes"] | Inner["innerNodes"]
      : never
    : never
  : never;

type NodeToolNames<Node> = Node extends { readonly kind: "tools"; readonly names?: infer Names }
  ? Names & string
  : InnerTypes<Node> extends infer Inner
    ? Inner extends GraphTypes
      ? Inner["tools"]
      : never
    : never;

/** Engine record of a subgraph. */
export interface SubgraphRecord {
  readonly graph: GraphDefinition;
  readonly persistence: SubgraphPersistence;
  /** Creates the input of the inner graph. */
  readonly input: (state: never, outer: never) => unknown;
  /** Creates the return value of the outer node. */
  readonly output: (output: never, outer: never) => unknown;
  /** Creates the context of the inner graph. Default: the context of the parent graph. */
  readonly context?: (context: never) => unknown;
}

/**
 * Persistence of the inner state. `per-call` (default): each call starts with a new state, its steps are saved, and a
 * call resumes from its last checkpoint. `per-thread`: as `per-call`, and a call starts with the final state of the
 * previous call. `none`: no inner state is saved; after a crash the call starts again, so that interrupts and `once`
 * effects are not allowed.
 */
export type SubgraphPersistence = "per-call" | "per-thread" | "none";

/** A task as its node's kind sees it: the engine's own task, of which a kind reads only the node. */
export interface NodeTask {
  readonly node: NodeRecord;
}

/**
 * Operations that the engine offers to `NodeKind.execute`. Created once; a kind passes its task on. `Task` and
 * `Outcome` are types of the engine, opaque to kinds.
 */
export interface NodeEngine<Task, Outcome> {
  /** Calls a body with the state and the task's runtime: steps, model calls, interrupts. Its result is the outcome. */
  readonly runBody: (task: Task, body: NodeRecord["body"]) => Promise<Outcome>;
  /** Runs an inner graph in a namespace of its own. */
  readonly runGraph: (task: Task, subgraph: SubgraphRecord) => Promise<Outcome>;
  /** Answers every pending tool call of the last assistant message. */
  readonly answerCalls: (task: Task, tools: ToolNode<never, never>) => Promise<Outcome>;
}

/** An interrupt of a node, as far as its kind is concerned. */
export interface NodeInterrupt {
  readonly key: string;
  readonly isAboutCall: boolean;
  /** True when the interrupt asks for the outcome of a started `once` body. */
  readonly isStartInDoubt: boolean;
}

/** Describes the inner graphs of an outline. */
export interface OutlineContext {
  readonly describe: (graph: GraphDefinition, path: string) => Outline;
  /** True for a graph that encloses the node: a recursive graph has no outline of its own. */
  readonly isEnclosing: (graph: GraphDefinition) => boolean;
}

/**
 * Kind of a node: all knowledge of the engine about nodes of a kind. Stateless: each method takes the record of the
 * node. No code outside of the kinds compares kinds; code asks for the answer of a method. Extend `functionKind` for
 * a new kind.
 */
export interface NodeKind {
  /** Kind in outlines and pictures. */
  readonly shownAs: Extract<OutlineNode["kind"], "body" | "input" | "tools" | "turn">;
  /**
   * Kind in the fingerprint of the graph, which stores save with each run. Another word for an existing kind makes
   * saved runs look like runs of another graph.
   */
  readonly savedAs: "body" | "task" | "tools";

  // Run.

  /** Runs a single task of the node. */
  readonly execute: <Task extends NodeTask, Outcome>(engine: NodeEngine<Task, Outcome>, task: Task) => Promise<Outcome>;
  /** True when an attempt ends by itself after its signal fires: the engine waits, and no failed sibling stops it. */
  readonly runsToEnd: boolean;
  /** True when an attempt must have ended before the next one starts: both would write the same rows. */
  readonly endsBeforeRetry: boolean;

  // Needs.

  /** True when every task has an input: the node is reached by sends. */
  readonly takesInput: boolean;
  /** True when its tasks answer the pending tool calls of the conversation. */
  readonly answersCalls: boolean;
  /** True when its interrupts are those that the graph declares; false when tools and middleware raise them. */
  readonly raisesDeclared: boolean;
  /** Lists the tool nodes whose tools this node calls. */
  readonly listTools: (node: NodeRecord) => readonly ToolNode<never, never>[];
  /** Lists the graphs that run in place of a body. */
  readonly listSubgraphs: (node: NodeRecord) => readonly SubgraphRecord[];
  /** Returns the reason why the body of a node cannot interrupt, or undefined. */
  readonly getInterruptObstacle: (node: NodeRecord) => string | undefined;

  // Check and outline.

  /** Lists the problems of a definition, for `invalid_graph`. */
  readonly findProblems: (node: NodeRecord, graph: GraphDefinition) => readonly GraphProblem[];
  /** Returns the outline of the inner graph; undefined without one. */
  readonly outline: (node: NodeRecord, path: string, context: OutlineContext) => Outline | undefined;
  /** Returns the schema of a task's input; undefined without one. */
  readonly getInputSchema: (node: NodeRecord) => Schema | undefined;

  // Compatibility of saved work, each as a sentence or clause about the node; undefined when compatible.

  /** `sent`: the input of a pending task; undefined for a task without input. */
  readonly findInputProblem: (
    node: NodeRecord,
    name: string,
    sent: { readonly input: unknown } | undefined,
  ) => string | undefined;
  /** True when a task of the node can have recorded this journal row. */
  readonly canRecord: (row: { readonly kind: "task" | "step" | "model" | "tool"; readonly key: string }) => boolean;
  /** Returns why the node cannot answer a pending tool call. */
  readonly findCallProblem: (
    node: NodeRecord,
    name: string,
    call: ToolCallBlock,
    checksArgs: () => boolean,
  ) => string | undefined;
  /** Returns why the node cannot continue with the answer of an open interrupt. */
  readonly findInterruptProblem: (interrupt: NodeInterrupt) => string | undefined;
  /** Returns the fixed schema of an answer; undefined when the graph or the engine defines the schema. */
  readonly getAnswerSchema: (node: NodeRecord, key: string) => Schema | undefined;
}

/** Engine record of a node, independent of the form of declaration. */
export interface NodeRecord {
  readonly name: string;
  /** Index of declaration: results are reduced in this order. */
  readonly index: number;
  readonly logic: NodeKind;
  readonly input?: Schema | undefined;
  readonly body: (state: never, runtime: never) => NodeReturn<unknown, unknown> | Promise<NodeReturn<unknown, unknown>>;
  readonly tools?: ToolNode<never, never> | undefined;
  /** Set when the body is a graph. */
  readonly subgraph?: SubgraphRecord | undefined;
  readonly policy: NodePolicy & {
    readonly interrupts?: readonly string[];
    readonly writes?: readonly string[];
    readonly cache?: CachePolicy<never, never> & { readonly store: NodeCache };
    readonly onError?: NodeRecord["body"];
  };
}

/** Engine record of an edge: the possible targets, and the function that chooses. */
export type EdgeRecord =
  | { readonly kind: "to"; readonly targets: readonly string[] }
  | {
      readonly kind: "route";
      readonly targets: readonly string[];
      readonly choose: (state: never, context: never) => unknown;
      readonly many: boolean;
    }
  | {
      readonly kind: "fanOut";
      readonly targets: readonly string[];
      readonly target: string;
      readonly select: (state: never, context: never) => unknown;
      readonly otherwise: string | undefined;
    }
  | { readonly kind: "commandTargets"; readonly targets: readonly string[] }
  | { readonly kind: "join"; readonly targets: readonly string[] };

/** Engine definition of a graph: the validated declaration, without types. */
export interface GraphDefinition {
  readonly name: string;
  readonly version: number;
  readonly state: Pick<StateDefinition, "channels">;
  readonly context: Pick<ContextDefinition, "schema"> | undefined;
  readonly interrupts: InterruptShape;
  /** Schema of a run's input, if declared. */
  readonly input: Schema | undefined;
  /** Schema of the output, applied to the final state, if declared. */
  readonly output: Schema | undefined;
  /** Private channels: passed between nodes, absent from input and results. */
  readonly private: ReadonlySet<string>;
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  readonly edges: ReadonlyMap<string, EdgeRecord>;
  /** Number of inbox messages delivered per boundary. */
  readonly inbox: "one" | "all";
  /** Every tool callable by a node. */
  readonly tools: readonly Tool<never, never>[];
  /** Middleware of every tool call and model call in the graph and the inner graphs, outermost first. */
  readonly middleware: readonly Middleware[];
  /** Sources of the models of the graph; undefined without a source. */
  readonly models?: GraphModels | undefined;
  /** Time limit of tool attempts in milliseconds, for tools and tool nodes without their own. */
  readonly toolTimeoutMs?: number | undefined;
}
