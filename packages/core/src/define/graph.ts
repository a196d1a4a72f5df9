/** A graph: named state, nodes and edges, with the types that runs, tests and middleware read from it. */
import type { RetryPolicy } from "../base/retry.ts";
import type { Schema } from "../base/schema.ts";
import type { StateDefinition, StateTypes } from "../state/definition.ts";
import type { Tool } from "../tool/definition/tool.ts";
import type { InterruptShape } from "../tool/policy/interrupt.ts";
import type { Middleware } from "../tool/policy/middleware.ts";
import type { Goto, PlainObject, Recipe, Send } from "./command.ts";
import type { ContextDefinition } from "./context.ts";
import type { END, Join, Route, Sends, START } from "./edge.ts";
import type { CachePolicy, NodeBody, NodePolicy, NodeReturn, NodeWithPolicy, TaskNode } from "./node.ts";
import type { NodeCache } from "./node-cache.ts";
import type { SubgraphPersistence } from "./subgraph.ts";
import type { ToolNode } from "./tool-node.ts";

/** The types that a graph carries. */
export interface GraphTypes extends StateTypes {
  readonly context: unknown;
  /** What a run is given as context. */
  readonly given: unknown;
  readonly interrupts: InterruptShape;
  readonly nodes: string;
  /** The state as a result shows it: without its private channels. */
  readonly result: object;
  /** What a run gives when it has finished. */
  readonly output: unknown;
  /** Questions of the graphs inside, as `node.key`. */
  readonly innerInterrupts: InterruptShape;
  /** The names of the tools that its calls may be of, where the graph is made of lists of tools; any name with a registry. */
  readonly tools: string;
}

/** Any node that a graph with these types may have. */
export type AnyNode<Types extends GraphTypes> =
  | NodeBody<Types["state"], WithAnyKeys<Types["update"]>, Types["context"], Types["interrupts"]>
  | NodeWithPolicy<Types["state"], WithAnyKeys<Types["update"]>, Types["context"], Types["interrupts"]>
  | TaskNode<Types["state"], WithAnyKeys<Types["update"]>, Types["context"], Types["interrupts"], unknown>
  | ToolNode<Types["state"], Types["context"]>;

/** An update that may also hold keys of no channel: {@link Sound} names them in words, where the compiler would list all channels. */
type WithAnyKeys<Update> = Update & PlainObject & Anything;
/** Only objects whose properties are all optional must have a key in common with a value: with this one they are not. */
interface Anything extends Readonly<Record<never, never>> {}

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
    ? Item extends Goto<infer Target> | Send<infer Target>
      ? Target
      : never
    : never;
type GivenOf<Node> = Node extends { readonly kind: "task"; readonly input: Schema<infer Given, unknown> }
  ? Given
  : never;
type TaskNames<Nodes> = {
  [Name in keyof Nodes & string]: Nodes[Name] extends { readonly kind: "task" } ? Name : never;
}[keyof Nodes & string];

/** The names that edges may use. Properties, here and below, so that messages show names and not how they were found. */
interface Names<Nodes> {
  readonly plain: Exclude<keyof Nodes & string, TaskNames<Nodes>> | typeof END;
  readonly all: (keyof Nodes & string) | typeof END;
}

type SendsTo<State, Nodes, Plain extends string> = {
  [Name in TaskNames<Nodes>]: Sends<State, Name, GivenOf<Nodes[Name]>, Plain>;
}[TaskNames<Nodes>];

/** What may stand as the edge of a node that returns no commands. */
interface Plain<State, Nodes, Name extends string> {
  readonly edge: Name | readonly Name[] | Join<Name> | Route<State, Name> | SendsTo<State, Nodes, Name>;
}

/** The edge of a node that returns commands: `gotos` with every target that they name. */
export interface GotosOf<Listed extends string, Named extends string> {
  readonly kind: "gotos";
  readonly targets: readonly Listed[];
  readonly accepts?: ((target: Named) => void) | undefined;
}

/** A command that no edge makes right turns the type of the edge into a sentence. */
type WrongCommand<Nodes, Item> = Item extends Goto<infer Target> | Send<infer Target>
  ? Target extends keyof Nodes & string
    ? Item extends Send<string, infer Sent>
      ? Nodes[Target] extends { readonly kind: "task" }
        ? [Sent] extends [GivenOf<Nodes[Target]>]
          ? never
          : `the node sends "${Target}" an input that it does not take`
        : `the node sends "${Target}" an input, and it takes none: use goto`
      : Nodes[Target] extends { readonly kind: "task" }
        ? `the node goes to "${Target}" without the input that it takes: use send`
        : never
    : Target extends typeof END
      ? never
      : `the node leads to "${Target}", which is no node`
  : never;

/** What may stand as the edge of a node: commands that it returns must be listed with `gotos`. */
export type EdgeOf<State, Nodes, Node> = [CommandTargets<Node>] extends [never]
  ? Plain<State, Nodes, Names<Nodes>["plain"]>["edge"]
  : [WrongCommand<Nodes, Each<ReturnOf<Node>>>] extends [never]
    ? GotosOf<Names<Nodes>["all"], CommandTargets<Node>>
    : WrongCommand<Nodes, Each<ReturnOf<Node>>>;

/** The edges of a graph by source: one for `START` and one for each node. */
export type EdgeMap<State, Nodes> = { readonly [Name in keyof Nodes]: EdgeOf<State, Nodes, Nodes[Name]> } & {
  readonly [START]: EdgeOf<State, Nodes, never>;
};

/** What no channel can take turns the type of the node that returns it into a sentence. */
type WrongReturn<Channels, Item> =
  Item extends Goto<string, infer Update>
    ? WrongReturn<Channels, Update>
    : Item extends Send | Recipe<never>
      ? never
      : Item extends string | number | bigint | boolean | symbol | ((...args: never) => unknown)
        ? "returns what is neither a partial state nor a command"
        : Item extends object
          ? Stray<Exclude<keyof Item & string, Channels>>
          : never;
type Stray<Name extends string> = [Name] extends [never]
  ? never
  : `returns a channel that the state does not have: ${Name}`;

/** A channel that a node returns and its `writes` do not list turns its type into this sentence. */
type UnlistedWrite<Name extends string> = `returns a channel that its writes do not list: ${Name}`;
/** A goto without an update has the type of all updates, of which every part may be left out. */
type WrittenIn<Item> =
  Item extends Goto<string, infer Update>
    ? Record<never, never> extends Update
      ? never
      : WrittenIn<Update>
    : Item extends Send | Recipe<never>
      ? never
      : Item extends object
        ? keyof Item & string
        : never;
/** A task node that was made apart from its graph says `never` of what it writes. */
type Unlisted<Node> = "writes" extends keyof Node
  ? Node extends { readonly writes?: readonly (infer Listed)[] | undefined }
    ? [Node, Listed] extends [{ readonly kind: "task" }, never]
      ? never
      : Exclude<WrittenIn<Each<ReturnOf<Node>>>, Listed>
    : never
  : never;

/** An option that a node does not have turns its type into this sentence. */
type UnknownOption<Name extends string> = `has an option that a node does not have: ${Name}`;
type NodeOption = keyof NodeWithPolicy<unknown, unknown, unknown, InterruptShape>;
type Within<Option extends string, Given, Known extends string> = `${Option}.${Exclude<keyof Given & string, Known>}`;
type StrayOptions<Node> = Node extends { readonly kind: unknown }
  ? never
  : Node extends { readonly run: unknown }
    ?
        | Exclude<keyof Node & string, NodeOption>
        | (Node extends { readonly cache: infer Given } ? Within<"cache", Given, keyof CachePolicy<unknown>> : never)
        | (Node extends { readonly retry: infer Given } ? Within<"retry", Given, keyof RetryPolicy> : never)
    : never;

/** Nodes whose returns name only channels of the state, and whose options are those of a node. */
export type Sound<Types extends GraphTypes, Nodes> = {
  readonly [Name in keyof Nodes]: [WrongReturn<keyof Types["state"], Each<ReturnOf<Nodes[Name]>>>] extends [never]
    ? [StrayOptions<Nodes[Name]>] extends [never]
      ? [Unlisted<Nodes[Name]>] extends [never]
        ? unknown
        : UnlistedWrite<Unlisted<Nodes[Name]>>
      : UnknownOption<StrayOptions<Nodes[Name]>>
    : WrongReturn<keyof Types["state"], Each<ReturnOf<Nodes[Name]>>>;
};

type InnerOf<Node> = "inner" extends keyof Node
  ? NonNullable<Node["inner"]>
  : Node extends { readonly run: infer Body }
    ? InnerOf<Body>
    : never;
type Asked<Name extends string, Interrupts> = {
  [Key in keyof Interrupts & string]: { readonly key: `${Name}.${Key}`; readonly declared: Interrupts[Key] };
}[keyof Interrupts & string];
type AskedWithin<Nodes> = {
  [Name in keyof Nodes & string]: InnerOf<Nodes[Name]> extends infer Inner
    ? Inner extends GraphTypes
      ? Asked<Name, Inner["interrupts"]> | Asked<Name, Inner["innerInterrupts"]>
      : never
    : never;
}[keyof Nodes & string];

/** What a graph's type keeps of its nodes. Properties, so that the graph's type does not name the types of all nodes. */
export interface KeptOf<Nodes> {
  readonly names: keyof Nodes & string;
  /** The questions of the graphs among them, as `node.key`. */
  readonly questions: { readonly [Question in AskedWithin<Nodes> as Question["key"]]: Question["declared"] };
  /** The tools of the tool nodes among them, and of the graphs inside. */
  readonly tools: ToolsOf<Nodes[keyof Nodes]>;
}

type ToolsOf<Node> = Node extends { readonly kind: "tools"; readonly names?: infer Names }
  ? Names & string
  : InnerOf<Node> extends infer Inner
    ? Inner extends GraphTypes
      ? Inner["tools"]
      : never
    : never;

/** The graph that runs as a node, as the engine sees it. */
export interface SubgraphRecord {
  readonly graph: GraphDefinition;
  readonly persistence: SubgraphPersistence;
  readonly input: (state: never, outer: never) => unknown;
  readonly output: (output: never, outer: never) => unknown;
  readonly context?: (context: never) => unknown;
}

/** A node as the engine sees it, whatever form it was declared in. */
export interface NodeRecord {
  readonly name: string;
  /** Its place in the declaration: the order in which results fold. */
  readonly index: number;
  readonly kind: "body" | "task" | "tools";
  readonly input?: Schema | undefined;
  readonly body: (state: never, runtime: never) => NodeReturn<unknown, unknown> | Promise<NodeReturn<unknown, unknown>>;
  readonly tools?: ToolNode<never, never> | undefined;
  /** Present where the body is a graph. */
  readonly subgraph?: SubgraphRecord | undefined;
  readonly policy: NodePolicy & {
    readonly asks?: readonly string[];
    readonly writes?: readonly string[];
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
  /** What a run is given is parsed by it first, where it is declared. */
  readonly input: Schema | undefined;
  /** What the final state is parsed by, where it is declared. */
  readonly output: Schema | undefined;
  /** Channels that pass between nodes and stand in no input and no result. */
  readonly private: ReadonlySet<string>;
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  readonly edges: ReadonlyMap<string, EdgeRecord>;
  /** How many letters of its inbox a run of it takes in at a boundary. */
  readonly inbox: "one" | "all";
  /** Every tool that some node may call. */
  readonly tools: readonly Tool<never, never>[];
  /** Middleware around every tool call and model call in it and in the graphs inside it, outermost first. */
  readonly middleware: readonly Middleware[];
}
