/** Which node of which graph asked a question, and what its answer is parsed by. */
import type { Schema } from "../base/schema.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import type { Plan } from "../compile/plan.ts";
import type { GraphDefinition } from "../define/graph.ts";
import { answerSchema, type InterruptDeclaration } from "../define/interrupt.ts";
import type { ToolNode } from "../define/tool-node.ts";
import { approval, inDoubtAnswer, inDoubtKey, nodeInDoubtAnswer } from "../tool/approval.ts";
import { clientAnswer } from "../tool/client-tool.ts";
import { isStartInDoubt } from "./once.ts";

/** The asking node, in the graph that it is a node of, and the key that it asked under there. */
export interface Asked {
  readonly graph: GraphDefinition;
  readonly node: string;
  readonly key: string;
}

/** The graph that asked, through the nodes of subgraphs; undefined when they are not there any more. */
export function askedBy({ graph: outermost }: Plan, { node, key }: InterruptRow): Asked | undefined {
  const path = node.split(".");
  let graph: GraphDefinition | undefined = outermost;
  for (const outer of path.slice(0, -1)) graph = graph?.nodes.get(outer)?.subgraph?.graph;
  const asked = path[path.length - 1] ?? "";
  return graph === undefined ? undefined : { graph, node: asked, key: key.slice(node.length - asked.length) };
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

/** The answer of a tool without a body, whose name is its question's key. */
function clientSchema({ registry }: ToolNode<never, never>, key: string): Schema | undefined {
  const tool = registry.get(key);
  return tool?.spec.client === true ? clientAnswer(tool.spec) : undefined;
}

/** What the graph declares under the key. */
export function declaredQuestion({ graph, key }: Asked): InterruptDeclaration | undefined {
  return Object.hasOwn(graph.interrupts, key) ? graph.interrupts[key] : undefined;
}
