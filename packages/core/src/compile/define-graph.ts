/**
 * `defineGraph`: state, then nodes, then edges; the last call checks the whole definition and reports all problems in
 * one error.
 */
import type { AnyStateMachine } from "xstate";
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { describeValue } from "../base/json.ts";
import { checkRetry } from "../base/retry.ts";
import type { Schema } from "../base/schema.ts";
import type { Recipe } from "../define/command.ts";
import type { ContextDefinition } from "../define/context.ts";
import { type CommandTargets, commandTargets, type FanOut, type Join, type Route } from "../define/edge.ts";
import type {
  AnyNode,
  EdgeMap,
  EdgeRecord,
  GraphDefinition,
  GraphTypes,
  NodeMap,
  NodeRecord,
  NodeTypes,
  ValidNodes,
} from "../define/graph.ts";
import type { AttemptPolicy, ErrorHandler, NodeWithPolicy } from "../define/node.ts";
import { memoryCache } from "../define/node-cache.ts";
import type { StateDefinition, StateTypes } from "../state/definition.ts";
import type { InterruptShape, ValidExpiry } from "../tool/policy/interrupt.ts";
import type { Middleware } from "../tool/policy/middleware.ts";
import { checkDefinition } from "./check-definition.ts";
import { compileMachine } from "./compile-machine.ts";
import { checkDeclaredObject, checkGraphOptions, checkPolicyValues, findEdgeProblems } from "./declarations.ts";
import { findNodeProblems, readNodeDeclaration, rejectBody } from "./kinds/kinds.ts";
import { copyDeclarations } from "./node-declarations.ts";

/**
 * The XState machine of a graph: named states, actors and guards, for Stately's tools, `xstate/graph` and
 * `createActor`.
 */
export interface GraphMachine extends AnyStateMachine {}

/** A compiled graph: the argument of `run`, `resume`, `getHistory` and the test functions. */
export interface Graph<Types extends GraphTypes = GraphTypes> extends GraphDefinition {
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

/** Options of `defineGraph`. */
export interface GraphOptions<
  Types extends StateTypes,
  Context,
  ContextInput,
  Interrupts extends InterruptShape,
  Private extends keyof Types["state"] & string,
  Input,
  Output,
> {
  readonly name: string;
  /** Version of the graph, a whole number; default 1. Increment for changes that are incompatible with saved runs. */
  readonly version?: number;
  readonly state: StateDefinition<Types>;
  readonly context?: ContextDefinition<Context, ContextInput>;
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
   * Middleware around every tool call and model call of this graph and its inner graphs, outside node middleware:
   * policies, limits and redaction for every part of the graph. Does not apply to agents started independently by a
   * tool.
   */
  readonly middleware?: readonly Middleware[];
  /** Default policy of every body node and input node; tools have their own policies. */
  readonly defaults?: GraphDefaults<Types, Context, Interrupts>;
}

/** Default policies of the nodes of a graph. Inner graphs have their own defaults. */
export interface GraphDefaults<Types extends StateTypes, Context, Interrupts extends InterruptShape>
  extends AttemptPolicy {
  /** Default error handler. The handler updates the state; the edges of the node decide the next node. */
  readonly onError?: ErrorHandler<
    Types["state"],
    Types["update"],
    Context,
    Interrupts,
    unknown,
    undefined | void | Types["update"] | Recipe<Types["state"]>
  >;
}

/** Types of a graph before its nodes are known; `never` for undeclared parts. */
export interface GraphTypesWithoutNodes<
  Types extends StateTypes,
  Context,
  ContextInput,
  Interrupts extends InterruptShape,
  Private extends string = never,
  Input = never,
  Output = never,
> extends GraphTypes {
  readonly state: Types["state"];
  readonly update: Types["update"];
  readonly input: [Input] extends [never] ? Without<Types["input"], Private> : Input & object;
  readonly context: Context;
  readonly given: ContextInput;
  readonly interrupts: Interrupts;
  readonly result: Without<Types["state"], Private>;
  readonly output: [Output] extends [never] ? Without<Types["state"], Private> : Output;
}

type Without<State, Private extends string> = [Private] extends [never] ? State : Omit<State, Private>;

/** Types of a graph with known nodes. */
export interface GraphTypesWithNodes<
  Types extends GraphTypes,
  Nodes extends string,
  Inner extends InterruptShape = Record<never, never>,
  Tools extends string = string,
> extends GraphTypes {
  readonly state: Types["state"];
  readonly update: Types["update"];
  readonly input: Types["input"];
  readonly context: Types["context"];
  readonly given: Types["given"];
  readonly interrupts: Types["interrupts"];
  readonly nodes: Nodes;
  readonly result: Types["result"];
  readonly output: Types["output"];
  readonly innerInterrupts: Inner;
  readonly tools: Tools;
}

/** A graph definition without nodes and edges yet. */
export interface GraphWithoutNodes<Types extends GraphTypes> {
  nodes<const Nodes extends NodeMap<Types>>(
    nodes: Nodes & ValidNodes<Types, NoInfer<Nodes>>,
  ): GraphWithoutEdges<Types, Nodes>;
}

/** A graph definition without edges yet. */
export interface GraphWithoutEdges<Types extends GraphTypes, Nodes> {
  /** Completes the graph. Throws `invalid_graph` with all problems of the definition. */
  edges(
    edges: EdgeMap<Types["state"], Nodes>,
  ): Graph<
    GraphTypesWithNodes<Types, NodeTypes<Nodes>["names"], NodeTypes<Nodes>["interrupts"], NodeTypes<Nodes>["tools"]>
  >;
}

/** Defines a graph over a state; add nodes next, then edges. */
export function defineGraph<
  Types extends StateTypes,
  Context = unknown,
  ContextInput = unknown,
  const Interrupts extends InterruptShape = Record<never, never>,
  const Private extends keyof Types["state"] & string = never,
  Input = never,
  Output = never,
>(
  options: GraphOptions<Types, Context, ContextInput, Interrupts, Private, Input, Output>,
): GraphWithoutNodes<GraphTypesWithoutNodes<Types, Context, ContextInput, Interrupts, Private, Input, Output>> {
  checkGraphOptions(options);
  const { name, version = 1, state, context, interrupts, input, output } = options;
  const defaults = toDefaultPolicy(name, options.defaults ?? {});
  checkId("graph name", name);
  if (!Number.isInteger(version) || version < 1) {
    throw new StatewrightError("invalid_option", {
      what: `the version of the graph "${name}" is ${describeValue(version)}, expected an integer ≥ 1`,
      next: "Pass an integer from 1",
    });
  }
  return {
    nodes: (nodes) => {
      checkDeclaredObject(name, "nodes", nodes);
      const nodeFaults = Object.entries(nodes).flatMap(([node, declared]) => findNodeProblems(node, declared));
      const invalidNodes = new Set(nodeFaults.map(({ node }) => node));
      const records = new Map(
        Object.entries(nodes as Record<string, AnyNode<GraphTypes>>).map(([node, declared], index) => [
          node,
          createNodeRecord(node, invalidNodes.has(node) ? rejectBody : declared, index, defaults),
        ]),
      );
      return {
        edges: (edges) => {
          checkDeclaredObject(name, "edges", edges);
          const edgeFaults = Object.entries(edges).flatMap(([source, declared]) => findEdgeProblems(source, declared));
          const invalidEdges = new Set(edgeFaults.map(({ node }) => node));
          const edgeRecords = new Map(
            Object.entries(edges as Record<string, DeclaredEdge>).map(([source, declared]) => [
              source,
              toEdgeRecord(invalidEdges.has(source) ? commandTargets(...records.keys()) : declared),
            ]),
          );
          const tools = [...records.values()]
            .flatMap((node) => node.logic.listTools(node))
            .flatMap(({ registry }) => registry.names().flatMap((tool) => registry.get(tool) ?? []));
          const definition: GraphDefinition = {
            name,
            version,
            state,
            context,
            interrupts: interrupts ?? {},
            input,
            output,
            private: new Set(options.private ?? []),
            nodes: records,
            edges: edgeRecords,
            tools,
            inbox: options.inbox ?? "all",
            middleware: options.middleware ?? [],
          };
          checkDefinition(definition, [...nodeFaults, ...edgeFaults]);
          let machine: GraphMachine | undefined;
          return Object.freeze({
            ...definition,
            get machine() {
              machine ??= compileMachine(definition);
              return machine;
            },
          });
        },
      };
    },
  };
}

type DeclaredEdge =
  | string
  | readonly string[]
  | Route<never, string>
  | FanOut<never, string, unknown>
  | CommandTargets<string>
  | Join<string>;

type DeclaredPolicy = NodeRecord["policy"];
type OwnPolicy = Omit<NodeWithPolicy<never, never, never, never>, "run">;

function toDefaultPolicy(name: string, { retry, timeoutMs, idleTimeoutMs, onError }: DeclaredPolicy): DeclaredPolicy {
  const defaults = {
    ...(retry === undefined ? {} : { retry }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
    ...(onError === undefined ? {} : { onError }),
  };
  checkPolicy(`the defaults of the graph "${name}"`, defaults);
  return defaults;
}

function createNodeRecord(name: string, declared: unknown, index: number, defaults: DeclaredPolicy): NodeRecord {
  const { parts, options, hasPolicy } = readNodeDeclaration(declared);
  const ownPolicy = options === undefined ? defaults : mergePolicy(name, options, defaults);
  return { name, index, ...parts, policy: hasPolicy ? ownPolicy : {} };
}

function mergePolicy(
  name: string,
  { retry, timeoutMs, idleTimeoutMs, effect, defer, cache, onError, asks, writes }: OwnPolicy,
  defaults: DeclaredPolicy,
): DeclaredPolicy {
  const { retry: _, ...withoutRetry } = defaults;
  const policy: DeclaredPolicy = {
    // A default retry must not repeat a `once` effect.
    ...(effect === "once" ? withoutRetry : defaults),
    ...(retry === undefined ? {} : { retry }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
    ...(effect === undefined ? {} : { effect }),
    ...(defer === undefined || defer === false ? {} : { defer }),
    ...(cache === undefined ? {} : { cache: resolveCachePolicy(name, cache) }),
    ...(onError === undefined ? {} : { onError }),
    ...copyDeclarations(name, { asks, writes }),
  };
  checkPolicy(`the node "${name}"`, policy);
  return policy;
}

function resolveCachePolicy(
  node: string,
  cache: NonNullable<OwnPolicy["cache"]>,
): NonNullable<DeclaredPolicy["cache"]> {
  checkPolicyValues(`the node "${node}"`, { cache });
  return { ...cache, store: cache.store ?? memoryCache() };
}

function checkPolicy(owner: string, policy: DeclaredPolicy): void {
  checkPolicyValues(owner, policy);
  const { retry, timeoutMs, idleTimeoutMs, effect, cache } = policy;
  if (retry !== undefined) checkRetry(owner, retry);
  for (const [option, value] of Object.entries({ timeoutMs, idleTimeoutMs, "cache.ttlMs": cache?.ttlMs })) {
    if (value === undefined || (typeof value === "number" && value > 0)) continue;
    throw new StatewrightError("invalid_option", {
      what: `the ${option} of ${owner} is ${describeValue(value)}, expected milliseconds > 0`,
      next: "Pass milliseconds above 0",
    });
  }
  if (effect === "once" && (retry?.attempts ?? 1) > 1)
    throw new StatewrightError("invalid_option", {
      what: `${owner} is declared with effect "once" and has a retry policy`,
      next: 'Remove the retry, or declare effect "idempotent" if the external system honors the idempotency key',
    });
}

function toEdgeRecord(declared: DeclaredEdge): EdgeRecord {
  if (typeof declared === "string") return { kind: "to", targets: [declared] };
  if (!("kind" in declared)) return { kind: "to", targets: declared };
  switch (declared.kind) {
    case "route":
      return { kind: "route", targets: declared.targets, choose: declared.choose, many: declared.many };
    case "sends": {
      const { target, select, otherwise } = declared;
      return {
        kind: "sends",
        targets: otherwise === undefined ? [target] : [target, otherwise],
        target,
        select,
        otherwise,
      };
    }
    case "gotos":
      return { kind: "gotos", targets: declared.targets };
    case "join":
      return { kind: "join", targets: [declared.target] };
  }
}
