/** `defineGraph`: state, then nodes, then edges; the last call checks everything and reports all problems at once. */
import type { AnyStateMachine } from "xstate";
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { describeValue } from "../base/json.ts";
import { checkRetry } from "../base/retry.ts";
import type { Schema } from "../base/schema.ts";
import type { Recipe } from "../define/command.ts";
import type { ContextDefinition } from "../define/context.ts";
import { type Gotos, gotos, type Join, type Route, type Sends } from "../define/edge.ts";
import type {
  AnyNode,
  EdgeMap,
  EdgeRecord,
  GraphDefinition,
  GraphTypes,
  KeptOf,
  NodeMap,
  NodeRecord,
  Sound,
} from "../define/graph.ts";
import type { AttemptPolicy, ErrorHandler, NodeWithPolicy } from "../define/node.ts";
import { memoryCache } from "../define/node-cache.ts";
import { subgraphOf } from "../define/subgraph.ts";
import type { ToolNode } from "../define/tool-node.ts";
import type { StateDefinition, StateTypes } from "../state/definition.ts";
import type { InterruptShape, SoundExpiry } from "../tool/policy/interrupt.ts";
import type { Middleware } from "../tool/policy/middleware.ts";
import { checkDefinition } from "./check-definition.ts";
import { graphMachine } from "./compile-machine.ts";
import { checkGraphOptions, checkMap, checkPolicyKinds, edgeProblems, nodeProblems } from "./declarations.ts";
import { claimsOf } from "./node-declarations.ts";

/** The XState machine of a graph: named states, actors and guards, for Stately's tools, `xstate/graph` and `createActor`. */
export interface GraphMachine extends AnyStateMachine {}

/** A compiled graph: give it to `run`, `resume`, `history` and the tests. */
export interface Graph<Types extends GraphTypes = GraphTypes> extends GraphDefinition {
  readonly types?: Types;
  /**
   * The machine that it compiles to, made when it is first asked for. A plain `createActor` runs it too, without saving
   * anything, when every node is provided as an actor that ends, and `step.commit` as one that ends supersteps: a
   * `fromCallback` that is started for each node of a superstep (as `self.id`, which is `node.commit`) and, once for all of
   * them, sends back `{ type: "step.commit", to }` with the nodes that come next, none at the end. The first event is
   * `{ type: "step.commit", to }` with the first nodes.
   */
  readonly machine: GraphMachine;
}

/** What `defineGraph` takes. */
export interface GraphOptions<
  Types extends StateTypes,
  Context,
  Given,
  Interrupts extends InterruptShape,
  Private extends keyof Types["state"] & string,
  Input,
  Output,
> {
  readonly name: string;
  /** Count up when a change of the graph must not be taken for the old one. Default 1. */
  readonly version?: number;
  readonly state: StateDefinition<Types>;
  readonly context?: ContextDefinition<Context, Given>;
  readonly interrupts?: Interrupts & SoundExpiry<NoInfer<Interrupts>>;
  /** What a run is given, where that is not the channels as they are: an object schema whose keys are channels. */
  readonly input?: Schema<Input, Partial<Types["input"]>>;
  /** What a finished run gives as `output`, read from the final state; without it the state itself, less its private channels. */
  readonly output?: Schema<unknown, Output>;
  /** Channels that pass between nodes only: no input may hold them, and no result shows them. */
  readonly private?: readonly Private[];
  /** How much of what was sent to a run is taken in at a boundary: `all` that waits (the default), or what was sent at `one` time. */
  readonly inbox?: "one" | "all";
  /**
   * Middleware around every tool call and model call of this graph and of the graphs inside it, outside that of their nodes:
   * policy, limits and redaction that no part of the graph can leave out. Agents that a tool runs on its own are not inside it.
   */
  readonly middleware?: readonly Middleware[];
  /** What holds for every body and task node that does not say otherwise; tools have policies of their own. */
  readonly defaults?: GraphDefaults<Types, Context, Interrupts>;
}

/** Policies for all nodes of a graph. Graphs inside it have their own. */
export interface GraphDefaults<Types extends StateTypes, Context, Interrupts extends InterruptShape>
  extends AttemptPolicy {
  /** The error handler of nodes that have none. It changes state; where control goes is up to the node's edges. */
  readonly onError?: ErrorHandler<
    Types["state"],
    Types["update"],
    Context,
    Interrupts,
    unknown,
    undefined | void | Types["update"] | Recipe<Types["state"]>
  >;
}

/** The types of a graph with these parts, before its nodes are known; `never` stands for what it does not declare. */
export interface TypesOf<
  Types extends StateTypes,
  Context,
  Given,
  Interrupts extends InterruptShape,
  Private extends string = never,
  Input = never,
  Output = never,
> extends GraphTypes {
  readonly state: Types["state"];
  readonly update: Types["update"];
  readonly input: [Input] extends [never] ? Without<Types["input"], Private> : Input & object;
  readonly context: Context;
  readonly given: Given;
  readonly interrupts: Interrupts;
  readonly result: Without<Types["state"], Private>;
  readonly output: [Output] extends [never] ? Without<Types["state"], Private> : Output;
}

type Without<State, Private extends string> = [Private] extends [never] ? State : Omit<State, Private>;

/** The types of a graph whose nodes are known. */
export interface TypesWith<
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

/** A graph that still needs its nodes. */
export interface GraphWithoutNodes<Types extends GraphTypes> {
  nodes<const Nodes extends NodeMap<Types>>(
    nodes: Nodes & Sound<Types, NoInfer<Nodes>>,
  ): GraphWithoutEdges<Types, Nodes>;
}

/** A graph that still needs its edges. */
export interface GraphWithoutEdges<Types extends GraphTypes, Nodes> {
  /** Complete the graph; throws `invalid_graph` with every problem that was found. */
  edges(
    edges: EdgeMap<Types["state"], Nodes>,
  ): Graph<TypesWith<Types, KeptOf<Nodes>["names"], KeptOf<Nodes>["questions"], KeptOf<Nodes>["tools"]>>;
}

/** Define a graph over a state. Nodes come next, then edges. */
export function defineGraph<
  Types extends StateTypes,
  Context = unknown,
  Given = unknown,
  const Interrupts extends InterruptShape = Record<never, never>,
  const Private extends keyof Types["state"] & string = never,
  Input = never,
  Output = never,
>(
  options: GraphOptions<Types, Context, Given, Interrupts, Private, Input, Output>,
): GraphWithoutNodes<TypesOf<Types, Context, Given, Interrupts, Private, Input, Output>> {
  checkGraphOptions(options);
  const { name, version = 1, state, context, interrupts, input, output } = options;
  const defaults = defaultsOf(name, options.defaults ?? {});
  checkId("graph name", name);
  if (!Number.isInteger(version) || version < 1) {
    throw new StatewrightError("invalid_option", {
      what: `the version of the graph "${name}" is ${describeValue(version)}`,
      next: "Give a whole number from 1",
    });
  }
  return {
    nodes: (nodes) => {
      checkMap(name, "nodes", nodes);
      const nodeFaults = Object.entries(nodes).flatMap(([node, declared]) => nodeProblems(node, declared));
      const faulty = new Set(nodeFaults.map(({ node }) => node));
      const records = new Map(
        Object.entries(nodes as Record<string, AnyNode<GraphTypes>>).map(([node, declared], index) => [
          node,
          nodeRecord(node, faulty.has(node) ? toolsRunElsewhere : declared, index, defaults),
        ]),
      );
      return {
        edges: (edges) => {
          checkMap(name, "edges", edges);
          const edgeFaults = Object.entries(edges).flatMap(([source, declared]) => edgeProblems(source, declared));
          const broken = new Set(edgeFaults.map(({ node }) => node));
          const edgeRecords = new Map(
            Object.entries(edges as Record<string, DeclaredEdge>).map(([source, declared]) => [
              source,
              edgeRecord(broken.has(source) ? gotos(...records.keys()) : declared),
            ]),
          );
          const tools = [...records.values()].flatMap((node) =>
            node.tools === undefined
              ? []
              : node.tools.registry.names().flatMap((tool) => node.tools?.registry.get(tool) ?? []),
          );
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
              machine ??= graphMachine(definition);
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
  | Sends<never, string, unknown>
  | Gotos<string>
  | Join<string>;

type DeclaredPolicy = NodeRecord["policy"];
type OwnPolicy = Omit<NodeWithPolicy<never, never, never, never>, "run">;

function defaultsOf(name: string, { retry, timeoutMs, idleTimeoutMs, onError }: DeclaredPolicy): DeclaredPolicy {
  const defaults = {
    ...(retry === undefined ? {} : { retry }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
    ...(onError === undefined ? {} : { onError }),
  };
  checkPolicy(`the defaults of the graph "${name}"`, defaults);
  return defaults;
}

function nodeRecord(name: string, declared: AnyNode<GraphTypes>, index: number, defaults: DeclaredPolicy): NodeRecord {
  if (typeof declared === "function") return { name, index, kind: "body", ...bodyOf(declared), policy: defaults };
  if ("kind" in declared && declared.kind === "tools")
    return {
      name,
      index,
      kind: "tools",
      body: toolsRunElsewhere,
      tools: declared as ToolNode<never, never>,
      policy: {},
    };
  const { run: body, ...own } = declared;
  const policy = policyOf(name, own as OwnPolicy, defaults);
  if ("kind" in declared) return { name, index, kind: "task", input: declared.input, ...bodyOf(body), policy };
  return { name, index, kind: "body", ...bodyOf(body), policy };
}

function bodyOf(declared: unknown): Pick<NodeRecord, "body" | "subgraph"> {
  const body = declared as NodeRecord["body"];
  const subgraph = subgraphOf(body);
  return subgraph === undefined ? { body } : { body, subgraph };
}

function policyOf(
  name: string,
  { retry, timeoutMs, idleTimeoutMs, effect, defer, cache, onError, asks, writes }: OwnPolicy,
  defaults: DeclaredPolicy,
): DeclaredPolicy {
  const { retry: _, ...withoutRetry } = defaults;
  const policy: DeclaredPolicy = {
    // A default must not repeat what may happen once.
    ...(effect === "once" ? withoutRetry : defaults),
    ...(retry === undefined ? {} : { retry }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
    ...(effect === undefined ? {} : { effect }),
    ...(defer === undefined || defer === false ? {} : { defer }),
    ...(cache === undefined ? {} : { cache: keeping(name, cache) }),
    ...(onError === undefined ? {} : { onError }),
    ...claimsOf(name, { asks, writes }),
  };
  checkPolicy(`the node "${name}"`, policy);
  return policy;
}

function keeping(node: string, cache: NonNullable<OwnPolicy["cache"]>): NonNullable<DeclaredPolicy["cache"]> {
  checkPolicyKinds(`the node "${node}"`, { cache });
  return { ...cache, store: cache.store ?? memoryCache() };
}

function checkPolicy(owner: string, policy: DeclaredPolicy): void {
  checkPolicyKinds(owner, policy);
  const { retry, timeoutMs, idleTimeoutMs, effect, cache } = policy;
  if (retry !== undefined) checkRetry(owner, retry);
  for (const [option, value] of Object.entries({ timeoutMs, idleTimeoutMs, "cache.ttlMs": cache?.ttlMs })) {
    if (value === undefined || (typeof value === "number" && value > 0)) continue;
    throw new StatewrightError("invalid_option", {
      what: `the ${option} of ${owner} is ${describeValue(value)}`,
      next: "Give milliseconds above 0",
    });
  }
  if (effect === "once" && (retry?.attempts ?? 1) > 1)
    throw new StatewrightError("invalid_option", {
      what: `${owner} is declared once and has a retry`,
      next: 'Remove the retry, or declare effect "idempotent" if the other side honours the idempotency key',
    });
}

function toolsRunElsewhere(): never {
  throw new StatewrightError("machine_failed", {
    what: "the body of a tool node was called",
    next: "Report this: the engine runs tool nodes itself",
  });
}

function edgeRecord(declared: DeclaredEdge): EdgeRecord {
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
