/** Which node of which graph asked a question, and what its answer is parsed by. */
import { isPlainObject } from "../../base/json.ts";
import { type ParseResult, parseWith, type Schema, type SchemaIssue } from "../../base/schema.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { Plan } from "../../compile/plan.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { innerGraphOf } from "../../define/inner-graph.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import { parseArgs } from "../../tool/arguments/parse-args.ts";
import { clientAnswer } from "../../tool/definition/client-tool.ts";
import { approval, inDoubtAnswer, inDoubtKey, nodeInDoubtAnswer } from "../../tool/policy/approval.ts";
import { answerSchema, type InterruptDeclaration } from "../../tool/policy/interrupt.ts";
import { isStartInDoubt } from "../task/once.ts";
import { withoutHidden } from "../tool-call/call-args.ts";

/** The asking node, in the graph that it is a node of, and the key that it asked under there. */
export interface Asked {
  readonly graph: GraphDefinition;
  /** The graphs around it, innermost first. */
  readonly around: readonly GraphDefinition[];
  readonly node: string;
  readonly key: string;
}

/** The graph that asked, through the nodes and tools that lead to it; undefined when they are not there any more. */
export function askedBy({ graph: outermost }: Plan, { node, key }: InterruptRow): Asked | undefined {
  const path = node.split(".");
  let graph: GraphDefinition | undefined = outermost;
  const around: GraphDefinition[] = [];
  for (const outer of path.slice(0, -1)) {
    if (graph !== undefined) around.unshift(graph);
    graph = graph === undefined ? undefined : innerGraphOf(graph, outer);
  }
  const asked = path[path.length - 1] ?? "";
  return graph === undefined ? undefined : { graph, around, node: asked, key: key.slice(node.length - asked.length) };
}

/** A question about a tool call or a start has a schema of its own, whatever the graph declares under the same key. */
export function schemaOfAnswer(plan: Plan, row: InterruptRow): Schema | undefined {
  const asked = askedBy(plan, row);
  if (asked === undefined) return undefined;
  const { graph, node, key } = asked;
  const tools = graph.nodes.get(node)?.tools;
  if (tools !== undefined) return key === inDoubtKey ? inDoubtAnswer : (clientSchema(tools, key) ?? approval);
  if (isStartInDoubt(row)) return nodeInDoubtAnswer;
  const declared = declaredQuestion(asked);
  return declared === undefined ? undefined : answerSchema(declared);
}

/**
 * An answer as its question takes it. Other arguments for a call must fit its tool: an answer that would end as a call that
 * was refused is none.
 */
export function readAnswer(plan: Plan, row: InterruptRow, value: unknown): ParseResult<unknown> {
  const schema = schemaOfAnswer(plan, row);
  const parsed: ParseResult<unknown> = schema === undefined ? { ok: true, value } : parseWith(schema, value);
  const issues = parsed.ok ? unfitArgs(plan, row, parsed.value) : [];
  return issues.length === 0 ? parsed : { ok: false, issues };
}

function unfitArgs(plan: Plan, row: InterruptRow, answer: unknown): readonly SchemaIssue[] {
  if (row.tool === undefined || !isPlainObject(answer) || answer["approved"] !== true) return [];
  const { args } = answer;
  const asked = args === undefined ? undefined : askedBy(plan, row);
  const tool = asked?.graph.nodes.get(asked.node)?.tools?.registry.get(row.tool);
  if (tool === undefined || !isPlainObject(args)) return [];
  const parsed = parseArgs(tool.spec, withoutHidden(tool.spec, args));
  if (parsed.ok) return [];
  return parsed.issues.map(({ path, message }) => ({ path: path === "" ? "args" : `args.${path}`, message }));
}

/** The answer of a tool without a body, whose name is its question's key. */
function clientSchema({ registry }: ToolNode<never, never>, key: string): Schema | undefined {
  const tool = registry.get(key);
  return tool?.spec.client === true ? clientAnswer(tool.spec) : undefined;
}

/** What the graph declares under the key, or one around it, whose middleware stands around it too. */
export function declaredQuestion({ graph, around, key }: Asked): InterruptDeclaration | undefined {
  return [graph, ...around].find(({ interrupts }) => Object.hasOwn(interrupts, key))?.interrupts[key];
}
