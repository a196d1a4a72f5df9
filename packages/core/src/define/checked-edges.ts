/**
 * Types that check the edges of a graph. The edges are inferred from a loose type; then each wrong edge gets an error
 * message, or the possible targets, as its expected type.
 */

import type { NodesProblem, OpenTarget } from "./checked-nodes.ts";
import type { CommandTargets, END, FanOut, Join, Route, START } from "./edge.ts";
import type { GraphTypes } from "./graph.ts";
import type { ModelRoute } from "./model-route.ts";
import type { InputNodeNames, ReturnedTargets, TaskInput } from "./node-types.ts";

/** Any name besides the names of the nodes, which editors offer. */
type AnyName = string & NonNullable<unknown>;
declare const loose: unique symbol;

/** Any edge of a graph, for inference: gives the functions of routes and fan-outs their contextual types. */
type AnyEdge<State, Nodes, Context> =
  | ValidEdge<State, Nodes, EdgeTargets<Nodes>["plain"], Context>
  | CommandTargets<EdgeTargets<Nodes>["all"]>
  | ([InputNodeNames<Nodes>] extends [never] ? FanOut<State, string, unknown, string, Context> : never)
  | ((state: State, context: Context) => unknown)
  | AnyName
  | object;

/** Edges of a graph by source, for inference. Only this type has the key {@link loose}. */
export type EdgeMap<State, Nodes, Context> = {
  readonly [Name in keyof Nodes | typeof START]?: AnyEdge<State, Nodes, Context>;
} & { readonly [loose]?: never };

/**
 * The edges when all are valid; otherwise the edges with an error message as the type of each invalid edge. The
 * edges of wrong nodes are not checked, so that one mistake is one error.
 */
export type CheckedEdges<Types extends GraphTypes, Nodes, Edges> =
  Edges extends LooseEdges<Edges>
    ? Edges
    : string extends keyof Nodes
      ? Edges
      : [NodesProblem<Types, Nodes>] extends [OpenTarget]
        ? ValidEdges<Types["state"], Nodes, Edges, Types["context"]>
        : Edges;

type ValidEdges<State, Nodes, Edges, Context> = [Exclude<(keyof Nodes & string) | typeof START, keyof Edges>] extends [
  never,
]
  ? [{ [Name in keyof Edges]: EdgeProblem<State, Nodes, Name, Edges[Name], Context> }[keyof Edges]] extends [never]
    ? Edges
    : {
        readonly [Name in keyof Edges]: [EdgeProblem<State, Nodes, Name, Edges[Name], Context>] extends [never]
          ? Edges[Name]
          : ExpectedEdge<State, Nodes, Name, Edges[Name], Context>;
      }
  : MissingEdge<Exclude<(keyof Nodes & string) | typeof START, keyof Edges>>;

/** `unknown` for edges that are not inferred yet: the compiler takes the result of the condition for {@link EdgeMap}. */
type LooseEdges<Edges> = typeof loose extends keyof Edges ? unknown : never;

type MissingEdge<Name> = Name extends typeof START
  ? "add an edge for START"
  : `add an edge for the node ${Name & string}`;
type NoNode<Name> = `there is no node ${Name & string}`;
type TakesInput<Name> = `the node ${Name & string} takes an input: use fanOut`;

/** Valid edge targets. Properties, so that compiler messages show names instead of conditional types. */
interface EdgeTargets<Nodes> {
  readonly plain: Exclude<keyof Nodes & string, InputNodeNames<Nodes>> | typeof END;
  readonly all: (keyof Nodes & string) | typeof END;
}

/** Targets of the commands of a source; START and a node that returns no commands have none. */
type CommandNames<Nodes, Name> = Name extends keyof Nodes ? ReturnedTargets<Nodes[Name]> : never;

/** `never` for a valid edge. */
type EdgeProblem<State, Nodes, Name, Edge, Context> = Name extends keyof Nodes | typeof START
  ? [CommandNames<Nodes, Name>] extends [never]
    ? Edge extends ValidEdge<State, Nodes, EdgeTargets<Nodes>["plain"], Context>
      ? never
      : Name
    : string extends CommandNames<Nodes, Name>
      ? never
      : Edge extends CommandEdge<EdgeTargets<Nodes>["all"], CommandNames<Nodes, Name>>
        ? never
        : Name
  : Name;

type ValidEdge<State, Nodes, Plain extends string, Context> =
  | Plain
  | readonly Plain[]
  | Join<Plain>
  | Route<State, Plain, Context>
  | ModelRoute<State, Plain, Context>
  | ValidFanOut<State, Nodes, Plain, Context>;

type ValidFanOut<State, Nodes, Plain extends string, Context> = {
  [Name in InputNodeNames<Nodes>]: FanOut<State, Name, TaskInput<Nodes[Name]>, Plain, Context>;
}[InputNodeNames<Nodes>];

/** Edge of a node that returns commands: `commandTargets` with every target of the commands. */
interface CommandEdge<Listed extends string, Named extends string> {
  readonly kind: "commandTargets";
  readonly targets: readonly Listed[];
  readonly accepts?: ((target: Named) => void) | undefined;
}

/**
 * Editors infer `fanOut("` and other edges without the argument, as an edge to any string or to all nodes, and offer the
 * names in the expected type.
 */
type ExpectedEdge<State, Nodes, Name, Edge, Context> = Name extends keyof Nodes | typeof START
  ? [CommandNames<Nodes, Name>] extends [never]
    ? ExpectedPlainEdge<State, Nodes, Edge, EdgeTargets<Nodes>["plain"], Context>
    : Edge extends CommandTargets<infer Target>
      ? string extends Target
        ? CommandTargets<EdgeTargets<Nodes>["all"]>
        : [Exclude<Target, EdgeTargets<Nodes>["all"]>] extends [never]
          ? UnlistedTarget<Exclude<CommandNames<Nodes, Name>, Target>>
          : NoNode<Exclude<Target, EdgeTargets<Nodes>["all"]>>
      : `the node returns a command to ${CommandNames<Nodes, Name>}: use commandTargets`
  : NoNode<Name>;

type UnlistedTarget<Target extends string> = `the node returns a command to ${Target}: add it to commandTargets`;

type ExpectedPlainEdge<State, Nodes, Edge, Plain extends string, Context> = Edge extends string
  ? Edge extends keyof Nodes
    ? TakesInput<Edge>
    : Plain
  : Edge extends readonly string[]
    ? readonly Plain[]
    : Edge extends Join<infer Target> | Route<never, infer Target, never> | ModelRoute<never, infer Target, never>
      ? [Plain] extends [Target]
        ? Edge extends Join<string>
          ? Join<Plain>
          : Route<State, Plain, Context>
        : [Exclude<Target, Plain>] extends [never]
          ? Route<State, Plain, Context>
          : NoTarget<Nodes, Exclude<Target, Plain>>
      : Edge extends FanOut<never, infer Target, unknown, infer Otherwise, never>
        ? [Plain] extends [Target]
          ? ValidFanOut<State, Nodes, Plain, Context>
          : ExpectedFanOut<Nodes, Target, Exclude<Otherwise, Plain>>
        : Edge extends { readonly kind: "commandTargets" }
          ? "the node returns no command: use the name of the next node, or route"
          : Edge extends (...args: never) => unknown
            ? "use route(targets, choose) for a function that chooses the next node"
            : Plain;

type NoTarget<Nodes, Name> = Name extends keyof Nodes ? TakesInput<Name> : NoNode<Name>;

/** Fan-out with the input that the tasks of its target take. */
interface FanOutWithInput<Target, Input> {
  readonly target: { readonly name: Target; readonly input: Input };
}

type ExpectedFanOut<Nodes, Target, WrongOtherwise> =
  Target extends InputNodeNames<Nodes>
    ? [WrongOtherwise] extends [never]
      ? FanOutWithInput<Target, TaskInput<Nodes[Target]>>
      : NoTarget<Nodes, WrongOtherwise>
    : Target extends keyof Nodes
      ? `the node ${Target & string} takes no input: use route, or declare the node with inputNode`
      : NoNode<Target>;
