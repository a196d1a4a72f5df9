/** Finds the node and graph that raised an interrupt, and the schema of its answer. */
import { isPlainObject } from "../../base/json.ts";
import { type ParseResult, parseWith, type Schema, type SchemaIssue } from "../../base/schema.ts";
import { type InterruptRow, isStartInDoubt, isStepInDoubt } from "../../checkpoint/journal.ts";
import type { Plan } from "../../compile/plan.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { findInnerGraph, findTool } from "../../define/inner-graph.ts";
import { omitHiddenArgs, parseArgs } from "../../tool/arguments/parse-args.ts";
import { nodeInDoubtAnswer, stepInDoubtAnswer } from "../../tool/policy/approval.ts";
import { getAnswerSchema, type InterruptDeclaration } from "../../tool/policy/interrupt.ts";

/** Source of an interrupt: the node, its graph, and the interrupt key within this graph. */
export interface InterruptSource {
  readonly graph: GraphDefinition;
  /** Enclosing graphs, innermost first. */
  readonly parents: readonly GraphDefinition[];
  readonly node: string;
  readonly key: string;
}

/**
 * Finds the graph that raised an interrupt, through the nodes and tools of its path; undefined when the path no
 * longer exists.
 */
export function findInterruptSource(
  { graph: outermost }: Plan,
  { node, key }: InterruptRow,
): InterruptSource | undefined {
  const path = node.split(".");
  let graph: GraphDefinition | undefined = outermost;
  const around: GraphDefinition[] = [];
  for (const outer of path.slice(0, -1)) {
    if (graph !== undefined) around.unshift(graph);
    graph = graph === undefined ? undefined : findInnerGraph(graph, outer);
  }
  const nodeName = path[path.length - 1] ?? "";
  return graph === undefined
    ? undefined
    : { graph, parents: around, node: nodeName, key: key.slice(node.length - nodeName.length) };
}

/**
 * Returns the schema of an interrupt's answer. Interrupts of tool calls and `once` starts have fixed schemas,
 * whatever the graph declares under the same key.
 */
export function findAnswerSchema(plan: Plan, row: InterruptRow): Schema | undefined {
  const source = findInterruptSource(plan, row);
  if (source === undefined) return undefined;
  const node = source.graph.nodes.get(source.node);
  const fixed = node?.logic.getAnswerSchema(node, source.key);
  if (fixed !== undefined) return fixed;
  if (isStartInDoubt(row)) return isStepInDoubt(row) ? stepInDoubtAnswer : nodeInDoubtAnswer;
  const declared = findDeclaredInterrupt(source);
  return declared === undefined ? undefined : getAnswerSchema(declared);
}

/**
 * Parses an answer with the schema of its interrupt. Changed tool arguments must match the tool's schema: an answer
 * that would lead to a rejected call is invalid.
 */
export function readAnswer(plan: Plan, row: InterruptRow, value: unknown): ParseResult<unknown> {
  const schema = findAnswerSchema(plan, row);
  const parsed: ParseResult<unknown> = schema === undefined ? { ok: true, value } : parseWith(schema, value);
  const issues = parsed.ok ? findArgIssues(plan, row, parsed.value) : [];
  return issues.length === 0 ? parsed : { ok: false, issues };
}

function findArgIssues(plan: Plan, row: InterruptRow, answer: unknown): readonly SchemaIssue[] {
  if (row.tool === undefined || !isPlainObject(answer) || answer["approved"] !== true) return [];
  const { args } = answer;
  const source = args === undefined ? undefined : findInterruptSource(plan, row);
  const tool = findTool(source?.graph.nodes.get(source.node), row.tool);
  if (tool === undefined || !isPlainObject(args)) return [];
  const parsed = parseArgs(tool.spec, omitHiddenArgs(tool.spec, args));
  if (parsed.ok) return [];
  return parsed.issues.map(({ path, message }) => ({ path: path === "" ? "args" : `args.${path}`, message }));
}

/**
 * Finds the declaration of an interrupt in the graph or in an enclosing graph, whose middleware may raise interrupts
 * inside.
 */
export function findDeclaredInterrupt({ graph, parents, key }: InterruptSource): InterruptDeclaration | undefined {
  return [graph, ...parents].find(({ interrupts }) => Object.hasOwn(interrupts, key))?.interrupts[key];
}
