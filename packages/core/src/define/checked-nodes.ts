/**
 * Types that check the nodes of a graph. The nodes are inferred from a loose type, so that a mistake in a single node
 * hides no names of the other nodes. Then each mistake becomes the expected type of its own place: the returned
 * channel, the command, the option or the node.
 */
import type { Draft } from "immer";
import type { RetryPolicy } from "../base/retry.ts";
import type { Overwrite } from "../state/channel.ts";
import type { InterruptShape } from "../tool/policy/interrupt.ts";
import type { AnyRecipe, DraftOf, Goto, PlainObject, Recipe, Send } from "./command.ts";
import type { END } from "./edge.ts";
import type { GraphTypes } from "./graph.ts";
import type {
  CachePolicy,
  FailureRuntime,
  InputNode,
  NodeBody,
  NodeReturn,
  NodeRuntime,
  NodeWithPolicy,
} from "./node.ts";
import type { InputNodeNames, ReturnedItem, ReturnedValue, TaskInput } from "./node-types.ts";
import type { ToolNode } from "./tool-node.ts";

/** Update that may contain unknown keys, which {@link CheckedNodes} reports by name. */
type WithUnknownKeys<Update> = Update & PlainObject & NonWeakObject;
/** Disables weak type detection: an object type with only optional properties would require a common key. */
interface NonWeakObject extends Readonly<Record<never, never>> {}

type StateDraft<Types extends GraphTypes> = DraftOf<Types["state"], Types["editable"]>;
type Body<Types extends GraphTypes> = NodeBody<
  Types["state"],
  WithUnknownKeys<Types["update"]>,
  Types["context"],
  Types["interrupts"],
  StateDraft<Types>
>;
type Policy<Types extends GraphTypes> = NodeWithPolicy<
  Types["state"],
  WithUnknownKeys<Types["update"]>,
  Types["context"],
  Types["interrupts"],
  StateDraft<Types>
>;
type AnyInputNode<Types extends GraphTypes> = InputNode<
  Types["state"],
  WithUnknownKeys<Types["update"]>,
  Types["context"],
  Types["interrupts"],
  unknown,
  NodeReturn<Types["state"], WithUnknownKeys<Types["update"]>, StateDraft<Types>>
>;

/**
 * Any node of a graph with these types, for inference: `NonNullable<unknown>` accepts every value, and the other members give a node
 * its contextual types. Editors do not offer the properties of a member with a call signature: the properties of input
 * nodes and tool nodes are no options of a node's policy.
 */
export type AnyNode<Types extends GraphTypes> =
  | Body<Types>
  | Policy<Types>
  | (AnyInputNode<Types> & Body<Types>)
  | (ToolNode<Types["state"], Types["context"]> & Body<Types>)
  | NonNullable<unknown>;

declare const loose: unique symbol;

/** Nodes of a graph by name, for inference. Only this type has the key {@link loose}. */
export type NodeMap<Types extends GraphTypes> = { readonly [name: string]: AnyNode<Types> } & {
  readonly [loose]?: never;
};

/** Nodes with a computed name, whose names are not known: each is valid or not as a whole. */
type UnnamedNodes<Types extends GraphTypes> = {
  readonly [name: string]:
    | Body<Types>
    | Policy<Types>
    | AnyInputNode<Types>
    | ToolNode<Types["state"], Types["context"]>;
};

/**
 * {@link NodeMap} when all nodes are valid, which is short in hovers; otherwise the nodes with an error message as the
 * type of each invalid part. The first condition is distributive, so that the contextual type of the nodes is its result
 * for {@link NodeMap}.
 */
export type CheckedNodes<Types extends GraphTypes, Nodes> =
  Nodes extends LooseNodes<Nodes>
    ? Nodes
    : string extends keyof Nodes
      ? UnnamedNodes<Types>
      : [NodesProblem<Types, Nodes>] extends [never]
        ? NodeMap<Types>
        : {
            readonly [Name in keyof Nodes]: Name extends ReservedNodeName
              ? ReservedName<Name>
              : [NodeProblem<Types, Nodes, Nodes[Name]>] extends [never]
                ? Nodes[Name]
                : ExpectedNode<Types, Nodes, Nodes[Name]>;
          };

/** `never` for valid nodes; {@link OpenTarget} for valid nodes with a command to any string. */
export type NodesProblem<Types extends GraphTypes, Nodes> =
  | ReservedName<keyof Nodes & ReservedNodeName>
  | { [Name in keyof Nodes]: NodeProblem<Types, Nodes, Nodes[Name]> }[keyof Nodes];

/** Names of states of the machine of a graph. */
type ReservedNodeName = "start" | "done" | "driver";
type ReservedName<Name extends string> = `is a reserved name, use another name for the node: ${Name}`;

/** `unknown` for nodes that are not inferred yet. */
type LooseNodes<Nodes> = typeof loose extends keyof Nodes ? unknown : never;

/** Function of a graph with these types, whatever it returns. */
type AnyBody<Types extends GraphTypes> = (
  state: Types["state"],
  runtime: NodeRuntime<Types["context"], Types["interrupts"]>,
) => unknown;

/** `never` for a valid node. */
type NodeProblem<Types extends GraphTypes, Nodes, Node> = Node extends { readonly kind: "tools" }
  ? ToolNodeProblem<Types, Node>
  : Node extends (...args: never) => unknown
    ? Node extends AnyBody<Types>
      ? ItemProblem<Types, Nodes, ReturnedItem<ReturnedValue<Node>>>
      : "needs"
    : Node extends { readonly run: (...args: never) => unknown }
      ? Node["run"] extends AnyBody<Types>
        ? ReturnProblem<Types, Nodes, Node> | OptionProblem<Types, Node>
        : "needs"
      : "run";

type ExpectedNode<Types extends GraphTypes, Nodes, Node> = Node extends { readonly kind: "tools" }
  ? ExpectedToolNode<Types, Node>
  : Node extends (...args: never) => infer Returned
    ? Node extends AnyBody<Types>
      ? "inner" extends keyof Node
        ? ExpectedCall<Node, ReturnProblem<Types, Nodes, Node>, "the output of the subgraph: ">
        : ExpectedBody<Types, Nodes, Returned>["body"]
      : ExpectedNeeds<Types, Node>
    : Node extends { readonly run: infer Run }
      ? Node extends { readonly kind: "input" }
        ? Run extends AnyBody<Types>
          ? ExpectedCall<Node, ReturnProblem<Types, Nodes, Node>>
          : ExpectedNeeds<Types, Run>
        : ExpectedPolicy<Types, Nodes, Node>
      : "a node is a function, an object with `run`, or the result of inputNode, toolNode or subgraph";

/** The result of `inputNode` or `subgraph` when valid, otherwise the error message. */
type ExpectedCall<Node, Problem extends string, Prefix extends string = ""> = [Problem] extends [OpenTarget]
  ? Node
  : `${Prefix}${Exclude<Problem, OpenTarget>}`;

// What a node needs.

/** Error message with the type of the missing part. Every value has `toString`, so that no property is missing. */
interface Missing<Message extends string, Part> {
  readonly toString: () => readonly [Message, Part];
}

/** State and context that the tools of a node inject. */
type ToolNeeds<Node> = Node extends { readonly needs?: (state: infer State, context: infer Context) => void }
  ? { readonly state: State; readonly context: Context }
  : never;
type ToolNodeProblem<Types extends GraphTypes, Node> = [Types["context"]] extends [ToolNeeds<Node>["context"]]
  ? [Types["state"]] extends [ToolNeeds<Node>["state"]]
    ? never
    : "state"
  : "context";
type MissingContext<Types extends GraphTypes> = unknown extends Types["context"]
  ? "add `context` to defineGraph"
  : "change the `context` of defineGraph";
type ExpectedToolNode<Types extends GraphTypes, Node> = [Types["context"]] extends [ToolNeeds<Node>["context"]]
  ? Missing<"a tool injects channels that the state of the graph lacks", ToolNeeds<Node>["state"]>
  : Missing<`a tool injects from the context: ${MissingContext<Types>}`, ToolNeeds<Node>["context"]>;

/** State or context that a body reads, such as the body of a subgraph. */
type ExpectedNeeds<Types extends GraphTypes, Node> = Node extends (
  state: infer State,
  runtime: infer Runtime,
) => unknown
  ? [Types["state"]] extends [State]
    ? Runtime extends { readonly context: infer Context }
      ? Missing<`the node reads the context: ${MissingContext<Types>}`, Context>
      : AnyBody<Types>
    : Missing<"the node reads channels that the state of the graph lacks", State>
  : AnyBody<Types>;

// Returned values.

type ReturnProblem<Types extends GraphTypes, Nodes, Node> =
  | ItemProblem<Types, Nodes, ReturnedItem<ReturnedValue<Node>>>
  | UnlistedChannels<Types, Node>;

type ItemProblem<Types extends GraphTypes, Nodes, Item> =
  Item extends Goto<infer Target, infer Update>
    ? GotoProblem<Nodes, Target> | (Record<never, never> extends Update ? never : UpdateProblem<Types, Update>)
    : Item extends Send<infer Target, infer Input>
      ? SendProblem<Nodes, Target, Input>
      : Item extends AnyRecipe
        ? Item extends Recipe<Types["state"], StateDraft<Types> & Draft<Types["state"]>>
          ? never
          : "the recipe edits another state"
        : Item extends undefined | void
          ? never
          : UpdateProblem<Types, Item>;

type UpdateProblem<Types extends GraphTypes, Update> = Update extends PlainObject & NonWeakObject
  ? [keyof Update] extends [keyof Types["update"]]
    ? [Update] extends [Types["update"]]
      ? never
      : WrongWrites<Types["update"], Update>
    : NoChannel<Exclude<keyof Update, keyof Types["update"]>>
  : NoUpdate;

type WrongWrites<Writes, Update> = {
  [Name in keyof Update & keyof Writes]-?: [Update[Name]] extends [Writes[Name]]
    ? never
    : `the channel ${Name & string} takes another type`;
}[keyof Update & keyof Writes];

type NoUpdate = "return an update of the state, or a command such as goto(name)";
type NoChannel<Name> = `the state has no channel ${Name & string}`;
type NoNode<Name> = `there is no node ${Name & string}`;

/**
 * Mark of a command whose target is any string. The command is valid; its expected type lists the names of the nodes,
 * because editors infer `goto("` without the argument and offer the names in the expected type.
 */
export type OpenTarget = "any string";

type GotoProblem<Nodes, Target> = string extends Target
  ? OpenTarget
  : Target extends typeof END
    ? never
    : Target extends keyof Nodes
      ? Nodes[Target] extends { readonly kind: "input" }
        ? `the node ${Target & string} takes an input: use send`
        : never
      : NoNode<Target>;

type SendProblem<Nodes, Target, Input> = string extends Target
  ? OpenTarget
  : Target extends keyof Nodes
    ? Nodes[Target] extends { readonly kind: "input" }
      ? [Input] extends [TaskInput<Nodes[Target]>]
        ? never
        : `the node ${Target & string} takes another input`
      : `the node ${Target & string} takes no input: use goto`
    : NoNode<Target>;

/** Targets of a `goto`: nodes without an input, and END. */
type GotoTargets<Nodes> = Exclude<keyof Nodes & string, InputNodeNames<Nodes>> | typeof END;
/** Any string besides the names that editors offer. */
type AnyName = string & NonNullable<unknown>;
type OfferedTarget<Target extends string, Names extends string> = string extends Target ? Names | AnyName : Target;

/** Body with the expected return value. A property, so that compiler messages show the value. */
interface ExpectedBody<Types extends GraphTypes, Nodes, Returned, Listed = unknown> {
  readonly body: NodeReturning<
    Returned extends PromiseLike<infer Value>
      ? Promise<ExpectedValue<Types, Nodes, Value, Listed>>
      : ExpectedValue<Types, Nodes, Returned, Listed>
  >;
}

/** Function of a node that returns a valid value. */
interface NodeReturning<Returned> {
  // biome-ignore lint/style/useShorthandFunctionType: compiler messages show the name of the interface
  (...args: never): Returned;
}

type ExpectedValue<Types extends GraphTypes, Nodes, Value, Listed> = Value extends readonly (infer Item)[]
  ? readonly ExpectedItem<Types, Nodes, Item, Listed>[]
  : ExpectedItem<Types, Nodes, Value, Listed>;

type ExpectedItem<Types extends GraphTypes, Nodes, Item, Listed> =
  Item extends Goto<infer Target, infer Update>
    ? [GotoProblem<Nodes, Target>] extends [OpenTarget]
      ? [UpdateProblem<Types, Update> | Exclude<keyof Update, Listed>] extends [never]
        ? Goto<OfferedTarget<Target, GotoTargets<Nodes>>, Update>
        : GotoWithUpdate<OfferedTarget<Target, GotoTargets<Nodes>>, ExpectedUpdate<Types, Update, Listed>["update"]>
      : GotoProblem<Nodes, Target>
    : Item extends Send<infer Target, infer Input>
      ? [SendProblem<Nodes, Target, Input>] extends [OpenTarget]
        ? Send<OfferedTarget<Target, InputNodeNames<Nodes>>, Input>
        : Target extends keyof Nodes
          ? Nodes[Target] extends { readonly kind: "input" }
            ? Send<Target & string, TaskInput<Nodes[Target]>>
            : SendProblem<Nodes, Target, Input>
          : SendProblem<Nodes, Target, Input>
      : Item extends AnyRecipe
        ? Recipe<Types["state"], StateDraft<Types>>
        : Item extends undefined | void
          ? Item
          : Item extends PlainObject & NonWeakObject
            ? ExpectedUpdate<Types, Item, Listed>["update"]
            : NoUpdate;

/**
 * Update with the expected type of each channel; an unlisted or unknown channel has an error message as its type. A
 * property, so that compiler messages show the channels.
 */
interface ExpectedUpdate<Types extends GraphTypes, Update, Listed> {
  readonly update: {
    readonly [Name in keyof Update]: Name extends keyof Types["update"]
      ? Name extends Listed
        ? ExpectedWrite<Types["update"][Name], Update[Name]>
        : UnlistedWrite<Name>
      : NoChannel<Name>;
  };
}

/** Goto with the update that the state takes. Every value has `toString`, so that no property is missing. */
interface GotoWithUpdate<Target, Update> {
  readonly toString: () => readonly [Target, Update];
}

/** The written value when it is valid; otherwise the type of the channel, without the alternatives of every channel. */
type ExpectedWrite<Write, Given> = [Given] extends [Write]
  ? Given
  : [Given] extends [Overwrite<unknown>]
    ? Extract<Write, Overwrite<unknown>>
    : Exclude<Write, undefined | Overwrite<unknown>> extends infer Plain
      ? Plain extends readonly (infer Item)[]
        ? [Given] extends [Item]
          ? "a write to a list is a list of items: use [item]"
          : Plain
        : Plain
      : never;

// Declared writes.

/**
 * Channels written by a returned item. A goto without an update has the type of all updates, with all parts optional.
 */
type WrittenChannels<Item> =
  Item extends Goto<string, infer Update>
    ? Record<never, never> extends Update
      ? never
      : WrittenChannels<Update>
    : Item extends Send | AnyRecipe
      ? never
      : Item extends object
        ? keyof Item & string
        : never;

/** Channels in the `writes` of a node; any channel without `writes`, and for an input node created outside its graph. */
type ListedChannels<Node> = "writes" extends keyof Node
  ? Node extends { readonly writes?: readonly (infer Listed)[] | undefined }
    ? [Node, Listed] extends [{ readonly kind: "input" }, never]
      ? unknown
      : Listed
    : unknown
  : unknown;
type UnlistedChannels<Types extends GraphTypes, Node> =
  unknown extends ListedChannels<Node>
    ? never
    : UnlistedWrite<
        Exclude<WrittenChannels<ReturnedItem<ReturnedValue<Node>>> & keyof Types["update"], ListedChannels<Node>>
      >;
type UnlistedWrite<Name> = Name extends string ? `add ${Name} to the writes of the node` : never;

// Options.

type NodeOption = keyof NodeWithPolicy<unknown, unknown, unknown, InterruptShape>;
type NoOption<Name> = `nodes have no option ${Name & string}`;

/** Node with its policy, whatever its functions return. */
type PolicyOptions<Types extends GraphTypes> = Omit<Policy<Types>, "run" | "onError"> & {
  readonly run: unknown;
  readonly onError?: (state: Types["state"], failure: FailureRuntime<Types["context"], Types["interrupts"]>) => unknown;
};
type OptionProblem<Types extends GraphTypes, Node> = Node extends { readonly kind: unknown }
  ? never
  : UnknownOptions<Node> | ([Node] extends [PolicyOptions<Types>] ? never : "option");

/** Unknown options of a node, of its cache and of its retry. */
type UnknownOptions<Node> =
  | Exclude<keyof Node & string, NodeOption>
  | (Node extends { readonly cache: infer Given } ? Exclude<keyof Given, keyof CachePolicy<unknown>> : never)
  | (Node extends { readonly retry: infer Given } ? Exclude<keyof Given, keyof RetryPolicy> : never);

/** Policy with the expected type of each option; an unknown option has an error message as its type. */
type ExpectedPolicy<Types extends GraphTypes, Nodes, Node> = {
  readonly [Option in keyof Node]: Option extends "run" | "onError"
    ? Node[Option] extends (...args: never) => infer Returned
      ? Option extends "run"
        ? Node[Option] extends AnyBody<Types>
          ? ExpectedBody<Types, Nodes, Returned, ListedChannels<Node>>["body"]
          : ExpectedNeeds<Types, Node[Option]>
        : ExpectedBody<Types, Nodes, Returned, ListedChannels<Node>>["body"]
      : NonNullable<Policy<Types>[Option]>
    : Option extends "cache" | "retry"
      ? ExpectedOptions<NonNullable<Policy<Types>[Option]>, Node[Option], Option>
      : Option extends NodeOption
        ? Policy<Types>[Option]
        : NoOption<Option>;
};
type ExpectedOptions<Known, Given, Option extends string> = Given extends object
  ? [keyof Given] extends [keyof Known]
    ? Known
    : {
        readonly [Name in keyof Given]: Name extends keyof Known ? Known[Name] : NoOption<`${Option}.${Name & string}`>;
      }
  : Known;
