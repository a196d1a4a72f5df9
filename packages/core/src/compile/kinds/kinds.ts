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

/** Key of the kind in a declared node that is of none of the kinds of this folder. */
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
  if (logic !== undefined) {
    const body = run === undefined ? rejectBody : (run as NodeRecord["body"]);
    return { parts: { logic, body }, options, hasPolicy: true };
  }
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

/** Returns the problems of a declared node; empty if the engine can run the node. */
export function findNodeProblems(node: string, declared: unknown): readonly GraphProblem[] {
  if (typeof declared === "function") return [];
  const createProblem = (message: string, hint: string): GraphProblem => ({ code: "not_a_node", node, message, hint });
  if (!isPlainObject(declared)) {
    const hint = "pass a function, { run, … }, inputNode(…), toolNode(…) or subgraph(…)";
    return [createProblem(`the node "${node}" is ${describeValue(declared)}`, hint)];
  }
  if (nodeKind in declared) return [];
  const { kind } = declared;
  if (kind === "tools") {
    const isToolNode = isPlainObject(declared["registry"]) && Array.isArray(declared["middleware"]);
    return isToolNode
      ? []
      : [createProblem(`the tool node "${node}" was not created by toolNode`, "use toolNode({ tools })")];
  }
  if (kind === "input") checkSyncSchema(declared["input"], `the input of the input node "${node}"`, { node });
  const problems: GraphProblem[] = [];
  if (typeof declared["run"] !== "function")
    problems.push(
      createProblem(`the run of the node "${node}" is ${describeValue(declared["run"])}`, "give a function"),
    );
  if (kind !== undefined && kind !== "input")
    problems.push(
      createProblem(
        `the node "${node}" has the unknown kind ${describeValue(kind)}`,
        "create the node with inputNode or toolNode",
      ),
    );
  if (kind === "input" && !isSchema(declared["input"]))
    problems.push(
      createProblem(
        `the input of the input node "${node}" is ${describeValue(declared["input"])}`,
        "pass a zod schema",
      ),
    );
  const known: readonly string[] = kind === undefined ? nodeOptions : [...nodeOptions, "kind", "input"];
  const unknown = Object.keys(declared).filter((key) => !known.includes(key));
  if (unknown.length > 0)
    problems.push({
      code: "unknown_option",
      node,
      message: `the node "${node}" has no option ${unknown.map((key) => `"${key}"`).join(", ")}`,
      hint: `options are ${nodeOptions.join(", ")}`,
    });
  return problems;
}
