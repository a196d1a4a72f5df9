/** `defineGraph`: declares the state, the nodes and the edges of a graph, and compiles the graph to a machine. */
import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount } from "../base/options.ts";
import { checkRetry } from "../base/retry.ts";
import type { CheckedEdges, EdgeMap } from "../define/checked-edges.ts";
import type { CheckedNodes, NodeMap } from "../define/checked-nodes.ts";
import { type CommandTargets, commandTargets, type FanOut, type Join, type Route } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition, GraphTypes, NodeRecord, NodeTypes } from "../define/graph.ts";
import type { NodeWithPolicy } from "../define/node.ts";
import { memoryCache } from "../define/node-cache.ts";
import type { GraphProblem } from "../define/problem.ts";
import { type ModelsOption, readGraphModels } from "../model/model-source.ts";
import type { StateTypes } from "../state/definition.ts";
import type { InterruptShape } from "../tool/policy/interrupt.ts";
import { checkDefinition } from "./check-definition.ts";
import { compileMachine } from "./compile-machine.ts";
import { checkDeclaredObject, checkGraphOptions, checkPolicyValues, findEdgeProblems } from "./declarations.ts";
import type { Graph, GraphMachine, GraphOptions, ToolDefaults } from "./graph.ts";
import { findNodeProblems, readNodeDeclaration, rejectBody } from "./kinds/kinds.ts";
import { expandModelRoutes } from "./model-routes.ts";
import { copyDeclarations } from "./node-declarations.ts";

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
  readonly editable: Types["editable"];
  readonly input: [Input] extends [never] ? Without<Types["input"], Private> : Input & object;
  readonly context: Context;
  readonly given: ContextInput;
  readonly interrupts: Interrupts;
  readonly result: Without<Types["state"], Private>;
  readonly output: [Output] extends [never] ? Without<Types["state"], Private> : Output;
}

type Without<State, Private extends string> = [Private] extends [never] ? State : Omit<State, Private>;

/**
 * Types of a graph with known nodes. Hovers begin with the first parameters: the name, the nodes, the interrupts and the
 * tools of the graph. `_Name` and `_Interrupts` exist only for hovers.
 */
export interface GraphTypesWithNodes<
  _Name extends string,
  Nodes extends string,
  _Interrupts extends string,
  Tools extends string,
  Types extends GraphTypes,
  Inner extends InterruptShape = Record<never, never>,
  InnerNodes extends string = never,
> extends GraphTypes {
  readonly state: Types["state"];
  readonly update: Types["update"];
  readonly editable: Types["editable"];
  readonly input: Types["input"];
  readonly context: Types["context"];
  readonly given: Types["given"];
  readonly interrupts: Types["interrupts"];
  readonly nodes: Nodes;
  readonly result: Types["result"];
  readonly output: Types["output"];
  readonly innerInterrupts: Inner;
  readonly tools: Tools;
  readonly innerNodes: InnerNodes;
  readonly events?: never;
}

/** A graph definition without nodes and edges yet. */
export interface GraphWithoutNodes<Name extends string, Types extends GraphTypes> {
  /** Adds the nodes by name. A node is a function, an object with `run`, or a result of inputNode, toolNode or subgraph. */
  nodes<const Nodes extends NodeMap<Types>>(nodes: CheckedNodes<Types, Nodes>): GraphWithoutEdges<Name, Types, Nodes>;
}

/** A graph definition without edges yet. */
export interface GraphWithoutEdges<Name extends string, Types extends GraphTypes, Nodes> {
  /** Completes the graph. Throws `invalid_graph` with all problems of the definition. */
  edges<const Edges extends EdgeMap<Types["state"], Nodes, Types["context"]>>(
    edges: CheckedEdges<Types, Nodes, Edges>,
  ): Graph<
    GraphTypesWithNodes<
      Name,
      NodeTypes<Nodes>["names"],
      keyof Types["interrupts"] & string,
      NodeTypes<Nodes>["tools"],
      Types,
      NodeTypes<Nodes>["interrupts"],
      NodeTypes<Nodes>["inner"]
    >
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
  const Name extends string = string,
>(
  options: GraphOptions<Types, Context, ContextInput, Interrupts, Private, Input, Output> & { readonly name: Name },
): GraphWithoutNodes<Name, GraphTypesWithoutNodes<Types, Context, ContextInput, Interrupts, Private, Input, Output>> {
  checkGraphOptions(options);
  const { name, version = 1 } = options;
  checkId("graph name", name);
  const defaults = toDefaultPolicy(name, options.defaults ?? {});
  checkCount(`graph "${name}"`, { version });
  return {
    nodes: (nodes) => {
      checkDeclaredObject(name, "nodes", nodes);
      const declaredNodes = readNodes(nodes as Readonly<Record<string, unknown>>, defaults);
      return {
        edges: (edges) => {
          checkDeclaredObject(name, "edges", edges);
          const expanded = expandModelRoutes(edges as Readonly<Record<string, unknown>>, declaredNodes.records);
          const declaredEdges = readEdges(expanded.edges as Record<string, DeclaredEdge>, expanded.nodes);
          const definition = createDefinition(options, expanded.nodes, declaredEdges.records);
          checkDefinition(definition, [...declaredNodes.problems, ...expanded.problems, ...declaredEdges.problems]);
          return addMachine(definition);
        },
      };
    },
  };
}

/** Records of the declared nodes or edges by name, and the problems of their declarations. */
interface Declared<Entry> {
  readonly records: ReadonlyMap<string, Entry>;
  readonly problems: readonly GraphProblem[];
}

/** Reads the nodes of a graph. A node with an invalid declaration gets a record whose body throws. */
function readNodes(nodes: Readonly<Record<string, unknown>>, defaults: DeclaredPolicy): Declared<NodeRecord> {
  const problems = Object.entries(nodes).flatMap(([node, declared]) => findNodeProblems(node, declared));
  const invalid = new Set(problems.map(({ node }) => node));
  const records = Object.entries(nodes).map(
    ([node, declared], index) =>
      [node, createNodeRecord(node, invalid.has(node) ? rejectBody : declared, index, defaults)] as const,
  );
  return { records: new Map(records), problems };
}

/** Reads the edges of a graph. An invalid edge may lead to every node, so that no node is reported as unreachable. */
function readEdges(
  edges: Readonly<Record<string, DeclaredEdge>>,
  nodes: ReadonlyMap<string, NodeRecord>,
): Declared<EdgeRecord> {
  const problems = Object.entries(edges).flatMap(([source, declared]) => findEdgeProblems(source, declared));
  const invalid = new Set(problems.map(({ node }) => node));
  const records = Object.entries(edges).map(
    ([source, declared]) =>
      [source, toEdgeRecord(invalid.has(source) ? commandTargets(...nodes.keys()) : declared)] as const,
  );
  return { records: new Map(records), problems };
}

type DefinitionParts = Pick<GraphDefinition, "name" | "state"> & {
  readonly [Part in "version" | "context" | "interrupts" | "input" | "output" | "inbox" | "middleware"]?:
    | GraphDefinition[Part]
    | undefined;
} & ModelsOption & {
    readonly private?: readonly string[] | undefined;
    readonly defaults?: { readonly tools?: ToolDefaults | undefined } | undefined;
  };

function createDefinition(
  { name, version = 1, state, context, input, output, inbox = "all", ...parts }: DefinitionParts,
  nodes: GraphDefinition["nodes"],
  edges: GraphDefinition["edges"],
): GraphDefinition {
  const tools = [...nodes.values()]
    .flatMap((node) => node.logic.listTools(node))
    .flatMap(({ registry }) => registry.names().flatMap((tool) => registry.get(tool) ?? []));
  return {
    name,
    version,
    state,
    context,
    interrupts: parts.interrupts ?? {},
    input,
    output,
    private: new Set(parts.private ?? []),
    nodes,
    edges,
    tools,
    inbox,
    middleware: parts.middleware ?? [],
    models: readGraphModels(parts),
    toolTimeoutMs: parts.defaults?.tools?.timeoutMs,
  };
}

/** Adds the XState machine of a graph, compiled on first access. */
function addMachine(definition: GraphDefinition): Graph<never> {
  let machine: GraphMachine | undefined;
  return Object.freeze({
    ...definition,
    get machine() {
      machine ??= compileMachine(definition);
      return machine;
    },
  });
}

type DeclaredEdge =
  | string
  | readonly string[]
  | Route<never, string, never>
  | FanOut<never, string, unknown, string, never>
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
  { retry, timeoutMs, idleTimeoutMs, effect, defer, cache, onError, interrupts, writes }: OwnPolicy,
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
    ...copyDeclarations(name, { interrupts, writes }),
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
    throw invalidOption({ where: owner, option, expected: "a number of milliseconds > 0", got: value });
  }
  if (effect === "once" && (retry?.attempts ?? 1) > 1)
    throw invalidOption({
      where: owner,
      option: "retry",
      expected: 'absent for a node with effect "once"',
      got: retry,
      fix: 'Remove the retry, or declare effect "idempotent" if the external system honors the idempotency key',
    });
}

function toEdgeRecord(declared: DeclaredEdge): EdgeRecord {
  if (typeof declared === "string") return { kind: "to", targets: [declared] };
  if (!("kind" in declared)) return { kind: "to", targets: declared };
  switch (declared.kind) {
    case "route":
      return { kind: "route", targets: declared.targets, choose: declared.choose, many: declared.many };
    case "fanOut": {
      const { target, select, otherwise } = declared;
      return {
        kind: "fanOut",
        targets: otherwise === undefined ? [target] : [target, otherwise],
        target,
        select,
        otherwise,
      };
    }
    case "commandTargets":
      return { kind: "commandTargets", targets: declared.targets };
    case "join":
      return { kind: "join", targets: [declared.target] };
  }
}
