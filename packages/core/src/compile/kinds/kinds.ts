/** The kinds of declared nodes: resolves the kind of a declaration, and checks the declaration's form. */
import { checkSyncSchema } from "../../base/async-schema.ts";
import { StatewrightError } from "../../base/errors.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import { isSchema } from "../../base/schema.ts";
import type { NodeKind, NodeRecord } from "../../define/graph.ts";
import { policyOptionNames } from "../../define/node.ts";
import type { GraphProblem } from "../../define/problem.ts";
import { getSubgraph } from "../../define/subgraph.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import { functionKind } from "./function.ts";
import { createInputKind } from "./input.ts";
import { subgraphKind } from "./subgraph.ts";
import { toolKind } from "./tools.ts";

/**
 * Key of the kind in a declared node whose kind is defined outside of this folder: `{ [nodeKind]: kind, run, … }`. A
 * node without `run` has no body.
 */
export const nodeKind: unique symbol = Symbol.for("statewright.nodeKind") as never;

/** Declaration of a node, without its policy. `options` holds the policy; undefined for a node without own policy. */
export interface NodeDeclaration {
  readonly parts: Pick<NodeRecord, "logic" | "body" | "input" | "tools" | "subgraph">;
  readonly options: object | undefined;
  readonly hasPolicy: boolean;
}

/** Reads a valid declaration of a node. */
export function readNodeDeclaration(declared: unknown): NodeDeclaration {
  if (typeof declared === "function") return { parts: readBody(declared), options: undefined, hasPolicy: true };
  const { kind, input, run, [nodeKind]: logic, ...options } = declared as DeclaredObject;
  if (logic !== undefined)
    return { parts: { ...readBody(run === undefined ? rejectBody : run), logic }, options, hasPolicy: true };
  if (kind === "tools") {
    const parts = { logic: toolKind, body: rejectBody, tools: declared as ToolNode<never, never> } as const;
    return { parts, options: undefined, hasPolicy: false };
  }
  const parts = readBody(run);
  if (kind === undefined) return { parts, options, hasPolicy: true };
  return { parts: { ...parts, logic: createInputKind(parts.logic), input }, options, hasPolicy: true };
}

interface DeclaredObject {
  readonly kind?: unknown;
  readonly input?: NodeRecord["input"];
  readonly run?: unknown;
  readonly [nodeKind]?: NodeKind;
}

function readBody(run: unknown): Pick<NodeRecord, "logic" | "body" | "subgraph"> {
  const body = run as NodeRecord["body"];
  const subgraph = getSubgraph(body);
  return subgraph === undefined ? { logic: functionKind, body } : { logic: subgraphKind, body, subgraph };
}

/** Body of a node whose kind does not call a body. */
export function rejectBody(): never {
  throw new StatewrightError("machine_failed", {
    what: "the body of a tool node was called",
    next: "Report this bug: the engine runs tool nodes itself",
  });
}

/** Options of every node with a policy. */
const nodeOptions: readonly string[] = ["run", ...policyOptionNames];

type DeclaredParts = Readonly<Record<string, unknown>>;

/** Returns the problems of a declared node; empty if the engine can run the node. */
export function findNodeProblems(node: string, declared: unknown): readonly GraphProblem[] {
  if (typeof declared === "function") return [];
  if (!isPlainObject(declared)) {
    const hint = "pass a function, { run, … }, inputNode(…), toolNode(…) or subgraph(…)";
    return [createProblem(node, `the node "${node}" is ${describeValue(declared)}`, hint)];
  }
  if (nodeKind in declared)
    return [
      ...(declared["run"] === undefined ? [] : findRunProblems(node, declared)),
      ...findUnknownOptions(node, declared),
    ];
  if (declared["kind"] === "tools") return findToolNodeProblems(node, declared);
  if ("nodes" in declared && "edges" in declared) {
    const hint = "pass subgraph(graph, { input, output })";
    return [createProblem(node, `the node "${node}" is the graph ${describeValue(declared["name"])}`, hint)];
  }
  const inputProblems = findInputProblems(node, declared);
  return [...findRunProblems(node, declared), ...inputProblems, ...findUnknownOptions(node, declared)];
}

function createProblem(node: string, message: string, hint: string): GraphProblem {
  return { code: "not_a_node", node, message, hint };
}

function findToolNodeProblems(node: string, { registry, middleware }: DeclaredParts): readonly GraphProblem[] {
  return isPlainObject(registry) && Array.isArray(middleware)
    ? []
    : [createProblem(node, `the tool node "${node}" was not created by toolNode`, "use toolNode({ tools })")];
}

function findRunProblems(node: string, { run }: DeclaredParts): readonly GraphProblem[] {
  return typeof run === "function"
    ? []
    : [createProblem(node, `the run of the node "${node}" is ${describeValue(run)}`, "pass a function")];
}

/** Returns the problems of `kind` and `input`. Throws for an asynchronous schema. */
function findInputProblems(node: string, { kind, input }: DeclaredParts): readonly GraphProblem[] {
  if (kind === undefined) return [];
  if (kind !== "input") {
    const message = `the node "${node}" has the unknown kind ${describeValue(kind)}`;
    return [createProblem(node, message, "create the node with inputNode or toolNode")];
  }
  const owner = `the input of the input node "${node}"`;
  checkSyncSchema(input, owner, { node });
  return isSchema(input) ? [] : [createProblem(node, `${owner} is ${describeValue(input)}`, "pass a zod schema")];
}

function findUnknownOptions(node: string, declared: DeclaredParts): readonly GraphProblem[] {
  const known = declared["kind"] === undefined ? nodeOptions : [...nodeOptions, "kind", "input"];
  const unknown = Object.keys(declared).filter((key) => !known.includes(key));
  if (unknown.length === 0) return [];
  return [
    {
      code: "unknown_option",
      node,
      message: `the node "${node}" has no option ${unknown.map((key) => `"${key}"`).join(", ")}`,
      hint: `options are ${nodeOptions.join(", ")}`,
    },
  ];
}
