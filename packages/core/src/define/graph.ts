/** A graph: named state, nodes and edges, with the types that runs, tests and middleware read from it. */
import type { Schema } from "../base/schema.ts";
import type { StateDefinition, StateTypes } from "../state/definition.ts";
import type { Tool } from "../tool/tool.ts";
import type { ContextDefinition } from "./context.ts";
import type { END, Gotos, Join, Route, Sends, START } from "./edge.ts";
import type { InterruptShape } from "./interrupt.ts";
import type { CachePolicy, NodeBody, NodePolicy, NodeReturn, NodeWithPolicy, TaskNode } from "./node.ts";
import type { NodeCache } from "./node-cache.ts";
import type { ToolNode } from "./tool-node.ts";

/** The types that a graph carries. */
export interface GraphTypes extends StateTypes {
  readonly context: unknown;
  /** What a run is given as context. */
  readonly given: unknown;
  readonly interrupts: InterruptShape;
  readonly nodes: string;
}

/** Any node that a graph with these types may have. */
export type AnyNode<Types extends GraphTypes> =
  | NodeBody<Types["state"], Types["update"], Types["context"], Types["interrupts"]>
  | NodeWithPolicy<Types["state"], Types["update"], Types["context"], Types["interrupts"]>
  | TaskNode<Types["state"], Types["update"], Types["context"], Types["interrupts"], unknown>
  | ToolNode<Types["state"], Types["context"]>;

/** The nodes of a graph by name. */
export type NodeMap<Types extends GraphTypes> = { readonly [name: string]: AnyNode<Types> };

type ReturnOf<Node> = Node extends (...args: never) => infer Returned
  ? Awaited<Returned>
  :
      | (Node extends { readonly run: (...args: never) => infer Returned } ? Awaited<Returned> : never)
      | (Node extends { readonly onError: (...args: never) => infer Handled } ? Awaited<Handled> : never);
type Each<Returned> = Returned extends readonly (infer Item)[] ? Item : Returned;
type CommandTargets<Node> =
  Each<ReturnOf<Node>> extends infer Item
    ? Item extends { readonly target: infer Target extends string }
      ? Target
      : never
    : never;
type GivenOf<Node> = Node extends { readonly kind: "task"; readonly input: Schema<infer Given, unknown> }
  ? Given
  : never;
type TaskNames<Nodes> = {
  [Name in keyof Nodes & string]: Nodes[Name] extends { readonly kind: "task" } ? Name : never;
}[keyof Nodes & string];
type PlainNames<Nodes> = Exclude<keyof Nodes & string, TaskNames<Nodes>> | typeof END;

type SendsTo<State, Nodes> = { [Name in TaskNames<Nodes>]: Sends<State, Name, GivenOf<Nodes[Name]>> }[TaskNames<Nodes>];

/** What may stand as the edge of a node: commands that it returns must be listed with `gotos`. */
export type EdgeOf<State, Nodes, Node> = [CommandTargets<Node>] extends [never]
  ?
      | PlainNames<Nodes>
      | readonly PlainNames<Nodes>[]
      | Route<State, PlainNames<Nodes>>
      | SendsTo<State, Nodes>
      | Join<PlainNames<Nodes>>
  : Pick<Gotos<(keyof Nodes & string) | typeof END>, "kind" | "targets"> & {
      readonly accepts?: (target: CommandTargets<Node>) => void;
    };

/** The edges of a graph by source. */
export type EdgeMap<State, Nodes> = { readonly [Name in keyof Nodes]?: EdgeOf<State, Nodes, Nodes[Name]> } & {
  readonly [START]: EdgeOf<State, Nodes, never>;
};

/** A key that the state does not have turns the type of the node that returns it into this sentence. */
type Unknown<Name extends string> = `returns a channel that the state does not have: ${Name}`;
type KeysOf<Item> = Item extends { readonly target: string; readonly update?: infer Update }
  ? KeysOf<Update>
  : Item extends { readonly recipe: unknown }
    ? never
    : Item extends object
      ? keyof Item & string
      : never;
type StrayKeys<Types extends GraphTypes, Node> = Exclude<KeysOf<Each<ReturnOf<Node>>>, keyof Types["state"] & string>;

/** Nodes whose returns name only channels of the state. */
export type Sound<Types extends GraphTypes, Nodes> = {
  readonly [Name in keyof Nodes]: [StrayKeys<Types, Nodes[Name]>] extends [never]
    ? unknown
    : Unknown<StrayKeys<Types, Nodes[Name]>>;
};

/** A node as the engine sees it, whatever form it was declared in. */
export interface NodeRecord {
  readonly name: string;
  /** Its place in the declaration: the order in which results fold. */
  readonly index: number;
  readonly kind: "body" | "task" | "tools";
  readonly input?: Schema | undefined;
  readonly body: (state: never, runtime: never) => NodeReturn<unknown, unknown> | Promise<NodeReturn<unknown, unknown>>;
  readonly tools?: ToolNode<never, never> | undefined;
  readonly policy: NodePolicy & {
    readonly cache?: CachePolicy<never, never> & { readonly store: NodeCache };
    readonly onError?: NodeRecord["body"];
  };
}

/** An edge as the engine sees it: where control may go, and how it is chosen. */
export type EdgeRecord =
  | { readonly kind: "to"; readonly targets: readonly string[] }
  | {
      readonly kind: "route";
      readonly targets: readonly string[];
      readonly choose: (state: never) => unknown;
      readonly many: boolean;
    }
  | {
      readonly kind: "sends";
      readonly targets: readonly string[];
      readonly target: string;
      readonly select: (state: never) => unknown;
      readonly otherwise: string | undefined;
    }
  | { readonly kind: "gotos"; readonly targets: readonly string[] }
  | { readonly kind: "join"; readonly targets: readonly string[] };

/** A graph as the engine sees it: everything that was declared, checked, without types. */
export interface GraphDefinition {
  readonly name: string;
  readonly version: number;
  readonly state: Pick<StateDefinition, "channels">;
  readonly context: Pick<ContextDefinition, "schema"> | undefined;
  readonly interrupts: InterruptShape;
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  readonly edges: ReadonlyMap<string, EdgeRecord>;
  /** Every tool that some node may call. */
  readonly tools: readonly Tool<never, never>[];
}
