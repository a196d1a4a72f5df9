/** `defineGraph`: state, then nodes, then edges; the last call checks everything and reports all problems at once. */
import type { AnyStateMachine } from "xstate";
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { checkRetry } from "../base/retry.ts";
import type { Recipe } from "../define/command.ts";
import type { ContextDefinition } from "../define/context.ts";
import type { Gotos, Join, Route, Sends } from "../define/edge.ts";
import type {
  AnyNode,
  EdgeMap,
  EdgeRecord,
  GraphDefinition,
  GraphTypes,
  NodeMap,
  NodeRecord,
  Sound,
} from "../define/graph.ts";
import type { InterruptShape } from "../define/interrupt.ts";
import type { AttemptPolicy, ErrorHandler, NodeWithPolicy } from "../define/node.ts";
import { memoryCache } from "../define/node-cache.ts";
import type { ToolNode } from "../define/tool-node.ts";
import type { StateDefinition, StateTypes } from "../state/definition.ts";
import { checkDefinition } from "./checks.ts";
import { graphMachine } from "./machine.ts";

/** The XState machine of a graph: named states, actors and guards, for Stately's tools, `xstate/graph` and `createActor`. */
export interface GraphMachine extends AnyStateMachine {}

/** A compiled graph: give it to `run`, `resume`, `history` and the tests. */
export interface Graph<Types extends GraphTypes = GraphTypes> extends GraphDefinition {
  readonly types?: Types;
  /** The machine that it compiles to, made when it is first asked for. */
  readonly machine: GraphMachine;
}

/** What `defineGraph` takes. */
export interface GraphOptions<Types extends StateTypes, Context, Given, Interrupts extends InterruptShape> {
  readonly name: string;
  /** Count up when a change of the graph must not be taken for the old one. Default 1. */
  readonly version?: number;
  readonly state: StateDefinition<Types>;
  readonly context?: ContextDefinition<Context, Given>;
  readonly interrupts?: Interrupts;
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

/** The types of a graph with these parts. */
export interface TypesOf<
  Types extends StateTypes,
  Context,
  Given,
  Interrupts extends InterruptShape,
  Nodes extends string,
> extends GraphTypes {
  readonly state: Types["state"];
  readonly update: Types["update"];
  readonly input: Types["input"];
  readonly context: Context;
  readonly given: Given;
  readonly interrupts: Interrupts;
  readonly nodes: Nodes;
}

/** A graph that still needs its nodes. */
export interface GraphWithoutNodes<Types extends StateTypes, Context, Given, Interrupts extends InterruptShape> {
  nodes<const Nodes extends NodeMap<TypesOf<Types, Context, Given, Interrupts, string>>>(
    nodes: Nodes & Sound<TypesOf<Types, Context, Given, Interrupts, string>, NoInfer<Nodes>>,
  ): GraphWithoutEdges<Types, Context, Given, Interrupts, Nodes>;
}

/** A graph that still needs its edges. */
export interface GraphWithoutEdges<Types extends StateTypes, Context, Given, Interrupts extends InterruptShape, Nodes> {
  /** Complete the graph; throws `invalid_graph` with every problem that was found. */
  edges(edges: EdgeMap<Types["state"], Nodes>): Graph<TypesOf<Types, Context, Given, Interrupts, keyof Nodes & string>>;
}

/** Define a graph over a state. Nodes come next, then edges. */
export function defineGraph<
  Types extends StateTypes,
  Context = unknown,
  Given = unknown,
  const Interrupts extends InterruptShape = Record<never, never>,
>(options: GraphOptions<Types, Context, Given, Interrupts>): GraphWithoutNodes<Types, Context, Given, Interrupts> {
  const { name, version = 1, state, context, interrupts } = options;
  const defaults = defaultsOf(name, options.defaults ?? {});
  checkId("graph name", name);
  if (!Number.isInteger(version) || version < 1) {
    throw new StatewrightError("invalid_option", {
      what: `the version of the graph "${name}" is ${version}`,
      next: "Give a whole number from 1",
    });
  }
  return {
    nodes: (nodes) => {
      const records = new Map(
        Object.entries(nodes as Record<string, AnyNode<GraphTypes>>).map(([node, declared], index) => [
          node,
          nodeRecord(node, declared, index, defaults),
        ]),
      );
      return {
        edges: (edges) => {
          const edgeRecords = new Map(
            Object.entries(edges as Record<string, DeclaredEdge>).map(([source, declared]) => [
              source,
              edgeRecord(declared),
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
            nodes: records,
            edges: edgeRecords,
            tools,
          };
          checkDefinition(definition);
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
  if (typeof declared === "function")
    return { name, index, kind: "body", body: declared as NodeRecord["body"], policy: defaults };
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
  if ("kind" in declared)
    return { name, index, kind: "task", input: declared.input, body: body as NodeRecord["body"], policy };
  return { name, index, kind: "body", body: body as NodeRecord["body"], policy };
}

function policyOf(
  name: string,
  { retry, timeoutMs, idleTimeoutMs, effect, defer, cache, onError }: OwnPolicy,
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
    ...(defer === true ? { defer } : {}),
    ...(cache === undefined ? {} : { cache: { ...cache, store: cache.store ?? memoryCache() } }),
    ...(onError === undefined ? {} : { onError }),
  };
  checkPolicy(`the node "${name}"`, policy);
  return policy;
}

function checkPolicy(owner: string, { retry, timeoutMs, idleTimeoutMs, effect, cache }: DeclaredPolicy): void {
  if (retry !== undefined) checkRetry(owner, retry);
  for (const [option, value] of Object.entries({ timeoutMs, idleTimeoutMs, "cache.ttlMs": cache?.ttlMs })) {
    if (value === undefined || value > 0) continue;
    throw new StatewrightError("invalid_option", {
      what: `the ${option} of ${owner} is ${value}`,
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
