/** A compiled graph, and the options that define it. */
import type { AnyStateMachine } from "xstate";
import type { Schema } from "../base/schema.ts";
import type { DraftOf, Recipe } from "../define/command.ts";
import type { ContextDefinition } from "../define/context.ts";
import type { GraphDefinition, GraphTypes } from "../define/graph.ts";
import type { AttemptPolicy, ErrorHandler } from "../define/node.ts";
import type { ModelsOption } from "../model/model-source.ts";
import type { StateDefinition, StateTypes } from "../state/definition.ts";
import type { InterruptShape, ValidExpiry } from "../tool/policy/interrupt.ts";
import type { Middleware } from "../tool/policy/middleware.ts";

/**
 * The XState machine of a graph: named states, actors and guards, for Stately's tools, `xstate/graph` and
 * `createActor`.
 */
export interface GraphMachine extends AnyStateMachine {}

/** A compiled graph: the argument of `run`, `resume`, `getHistory` and the test functions. */
export interface Graph<Types extends GraphTypes = GraphTypes> extends GraphDefinition {
  /** Exists only in types. */
  readonly types?: Types;
  /**
   * XState machine of the graph, compiled on first access. A plain `createActor` can run the machine without
   * persistence if every node is provided as an actor that ends, and `step.commit` as an actor that ends supersteps:
   * a `fromCallback` started for each node of a superstep (with `self.id` = `node.commit`), which sends back `{ type:
   * "step.commit", to }` once per superstep with the next nodes, an empty list at the end. The first event is `{
   * type: "step.commit", to }` with the first nodes.
   */
  readonly machine: GraphMachine;
}

/**
 * Types of a graph or an agent. An interface that extends them gives them a name, which hovers and errors show instead
 * of the types.
 *
 * @example
 * ```ts
 * interface OrderTypes extends GraphTypesOf<typeof order> {}
 * export const shown: Graph<OrderTypes> = order;
 * ```
 */
export type GraphTypesOf<Defined extends Graph> = Defined extends Graph<infer Types> ? Types : never;

/** Options of `defineGraph`. */
export interface GraphOptions<
  Types extends StateTypes,
  Context,
  ContextInput,
  Interrupts extends InterruptShape,
  Private extends keyof Types["state"] & string,
  Input,
  Output,
> extends ModelsOption {
  /** Name of the graph in runs, events and errors. */
  readonly name: string;
  /** Version of the graph, a whole number; default 1. Increment for changes that are incompatible with saved runs. */
  readonly version?: number;
  /** State of the graph: the result of `defineState`. */
  readonly state: StateDefinition<Types>;
  /** Definition of the context that nodes, routes and tools read. Default: none. */
  readonly context?: ContextDefinition<Context, ContextInput>;
  /** Interrupts that nodes may raise, by key: the schema of the answer, and of the payload. Default: none. */
  readonly interrupts?: Interrupts & ValidExpiry<NoInfer<Interrupts>>;
  /** Schema of the run input, if different from the channels: an object schema whose keys are channel names. */
  readonly input?: Schema<Input, Partial<Types["input"]>>;
  /** Schema of the run `output`, parsed from the final state; default: the state without private channels. */
  readonly output?: Schema<unknown, Output>;
  /** Channels for internal use between nodes: not accepted in inputs, not included in results. */
  readonly private?: readonly Private[];
  /** Inbox messages delivered at a superstep boundary: `all` waiting messages (default), or `one` per boundary. */
  readonly inbox?: "one" | "all";
  /**
   * Middleware around every tool call and model call of this graph and the inner graphs, outside node middleware:
   * policies, limits and redaction for every part of the graph. Does not apply to agents started independently by a
   * tool.
   */
  readonly middleware?: readonly Middleware[];
  /** Default policy of every body node and input node, and of the tools of every tool node. */
  readonly defaults?: GraphDefaults<Types, Context, Interrupts>;
}

/** Defaults of the tools of a graph. */
export interface ToolDefaults {
  /**
   * Time limit of an attempt in milliseconds, for tools without a `timeoutMs` of their own or of their tool node; it
   * fires the tool's signal. Default: none.
   */
  readonly timeoutMs?: number;
}

/** Default policies of the nodes of a graph. Inner graphs have their own defaults. */
export interface GraphDefaults<Types extends StateTypes, Context, Interrupts extends InterruptShape>
  extends AttemptPolicy {
  /** Defaults of the tools of all tool nodes. */
  readonly tools?: ToolDefaults;
  /** Default error handler. The handler updates the state; the edges of the node decide the next node. */
  readonly onError?: ErrorHandler<
    Types["state"],
    Types["update"],
    Context,
    Interrupts,
    unknown,
    undefined | void | Types["update"] | Recipe<Types["state"], DraftOf<Types["state"], Types["editable"]>>
  >;
}
