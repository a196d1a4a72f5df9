/** Tool kind: a node that answers every pending tool call of the last assistant message. */
import { describeIssues, type Schema } from "../../base/schema.ts";
import type { GraphDefinition, NodeKind, NodeRecord, OutlineContext } from "../../define/graph.ts";
import { getToolGraph } from "../../define/graph-tool.ts";
import type { Outline, OutlineNode } from "../../define/outline.ts";
import type { GraphProblem } from "../../define/problem.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { ToolCallBlock } from "../../model/message.ts";
import { parseArgs, prepareArgs } from "../../tool/arguments/parse-args.ts";
import { clientAnswer } from "../../tool/definition/client-tool.ts";
import { approval, inDoubtAnswer, inDoubtKey } from "../../tool/policy/approval.ts";
import { functionKind } from "./function.ts";

/** Kind of a node created by `toolNode`. */
export const toolKind: NodeKind = Object.freeze({
  ...functionKind,
  shownAs: "tools",
  savedAs: "tools",
  execute: (engine, task) => engine.answerCalls(task, getTools(task.node)),
  // Its tool calls stop at the signal, and each call gets an answer.
  runsToEnd: true,
  answersCalls: true,
  raisesDeclared: false,
  listTools: (node) => [getTools(node)],
  getInterruptObstacle: () => "is a tool node",
  findProblems: (node, graph) => findToolNodeProblems(node.name, getTools(node), graph),
  outline: (node, path, context) => outlineTools(getTools(node), path, context),
  canRecord: ({ kind, key }) =>
    kind === "task" || kind === "tool" || isAfterAgentEffect(key) || (kind === "model" && key.includes("/")),
  findCallProblem: (node, name, call, checksArgs) => findCallProblem(getTools(node), name, call, checksArgs),
  findInterruptProblem: ({ key, isAboutCall }) =>
    isAboutCall || key === inDoubtKey ? undefined : "was raised by the node's body, but the node is a tool node now",
  getAnswerSchema: (node, key) =>
    key === inDoubtKey ? inDoubtAnswer : (getClientSchema(getTools(node), key) ?? approval),
} satisfies NodeKind);

/** Key of the `afterAgent` hooks that a tool node calls when its results would end the agent. */
export const afterCallsKey = "tools";

/** Returns true for the key of an `afterAgent` hook called by a tool node. */
function isAfterAgentEffect(key: string): boolean {
  return `${key}:`.startsWith(`${afterCallsKey}:afterAgent:`);
}

/** Returns true for a call of the node's final tool. */
export function isFinalCall(
  { final }: ToolNode<never, never>,
  { block }: { readonly block: Pick<ToolCallBlock, "name"> },
): boolean {
  return final !== undefined && block.name === final.tool.name;
}

function getTools({ tools }: NodeRecord): ToolNode<never, never> {
  return tools as ToolNode<never, never>;
}

function findToolNodeProblems(
  node: string,
  { registry, isDynamic, final }: ToolNode<never, never>,
  { state }: GraphDefinition,
): readonly GraphProblem[] {
  const problems: GraphProblem[] = [];
  if (state.channels["messages"]?.kind !== "messages")
    problems.push({
      code: "tools_without_messages",
      node,
      message: `the tool node "${node}" has no channel "messages" with tool calls`,
      hint: "add messages: channel.messages() to the state",
    });
  if (registry.names().length === 0 && !isDynamic && final === undefined)
    problems.push({
      code: "empty_tool_node",
      node,
      message: `the tool node "${node}" has no tools`,
      hint: "add at least one tool, or use a toolRegistry() that is filled later",
    });
  return problems;
}

/** Returns the tools with graphs. A recursive graph is included without its nested outline. */
function outlineTools(
  { initialTools }: ToolNode<never, never>,
  path: string,
  { describe, isEnclosing }: OutlineContext,
): Outline | undefined {
  const nodes = [...initialTools].flatMap(([name, tool]): readonly OutlineNode[] => {
    const graph = getToolGraph(tool)?.graph();
    if (graph === undefined) return [];
    const id = path + name;
    const inside = isEnclosing(graph) ? {} : { inside: describe(graph, `${id}.`) };
    return [{ id, name, kind: "body", deferred: false, ...inside }];
  });
  return nodes.length === 0 ? undefined : { nodes, edges: [] };
}

/** Checks a pending call: its tool, and its arguments when a person or a tool has seen them. */
function findCallProblem(
  tools: ToolNode<never, never>,
  name: string,
  block: ToolCallBlock,
  checksArgs: () => boolean,
): string | undefined {
  if (isFinalCall(tools, { block })) return undefined;
  const tool = tools.registry.get(block.name);
  if (tool === undefined)
    return `the call "${block.id}" is for the tool "${block.name}", which the node "${name}" does not have`;
  const prepared = checksArgs() ? prepareArgs(tool, block.args) : undefined;
  const parsed = prepared?.ok === true ? parseArgs(tool.spec, prepared.value) : prepared;
  if (parsed === undefined || parsed.ok) return undefined;
  return `the arguments of the call "${block.id}" do not match the tool "${block.name}": ${describeIssues(parsed.issues)}`;
}

/** Returns the answer schema of a client tool, whose name is the interrupt key. */
function getClientSchema({ registry }: ToolNode<never, never>, key: string): Schema | undefined {
  const tool = registry.get(key);
  return tool?.spec.client === true ? clientAnswer(tool.spec) : undefined;
}
