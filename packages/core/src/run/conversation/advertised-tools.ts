/**
 * Which tools the calls of a message may be of: those that its request showed the model. The names stand with the message
 * where they were not all of the graph's; the tools themselves are those of the registry as it was then.
 */
import type { ToolNode } from "../../define/tool-node.ts";
import type { AssistantMessage } from "../../model/message.ts";
import type { ModelTool } from "../../model/model.ts";
import type { Tool } from "../../tool/definition/tool.ts";
import type { ToolRegistry } from "../../tool/registry.ts";
import type { Session } from "../session/session.ts";
import type { OpenCall } from "../tool-call/context.ts";

type Tools = ReadonlyMap<string, Tool<never, never>>;

/** Registries that are not as they were when their graph was defined, with their tools. */
export type ChangedRegistries = ReadonlyMap<ToolRegistry<never, never>, Tools>;

/** As they were when a message was asked for. */
const atRequest: WeakMap<AssistantMessage, ChangedRegistries> = new WeakMap();

/** What a message has to say of the tools that its request showed: nothing, where they were those that the graph was defined with. */
export function offeredNote(session: Session, shown: readonly ModelTool[]): Pick<AssistantMessage, "offered"> {
  const [first, ...others] = session.plan.toolNodes;
  if (first === undefined) return nothingToSay;
  const defined =
    others.length === 0 ? first.defined : new Set(session.plan.toolNodes.flatMap((node) => [...node.defined.keys()]));
  const isTool = ({ name }: ModelTool): boolean =>
    session.plan.toolNodes.every(({ final }) => final?.tool.name !== name);
  // The final call is no tool, and stands with whatever tools there are.
  const tools = session.plan.toolNodes.every(({ final }) => final === undefined) ? shown : shown.filter(isTool);
  if (tools.length === defined.size && tools.every(({ name }) => defined.has(name))) return nothingToSay;
  return { offered: shown.map(({ name }) => name) };
}

const nothingToSay: Pick<AssistantMessage, "offered"> = {};

/** The registries that have changed by now. */
export function changedRegistries({ plan }: Session): ChangedRegistries {
  let changed: Map<ToolRegistry<never, never>, Tools> | undefined;
  for (const { registry, defined } of plan.toolNodes) {
    const tools = registry.tools();
    if (tools !== defined) changed = (changed ?? new Map()).set(registry, tools);
  }
  return changed ?? unchanged;
}

const unchanged: ChangedRegistries = new Map();

/** Remember the tools that a message was asked for with, so that one that is replaced or removed meanwhile answers its calls. */
export function rememberTools(message: AssistantMessage, registries: ChangedRegistries): void {
  atRequest.set(message, registries);
}

/**
 * The tool that a call is of; undefined when there is none, or when it was removed in another process. A message that comes
 * from the store is of a request that nobody remembers: the tool of that name is the one that there is now.
 */
export function toolFor(
  { registry, defined }: ToolNode<never, never>,
  { block, message }: OpenCall,
): Tool<never, never> | undefined {
  const asked = atRequest.get(message);
  if (asked === undefined) return registry.get(block.name) ?? defined.get(block.name);
  return (asked.get(registry) ?? defined).get(block.name) ?? registry.get(block.name);
}

/** Whether the model was shown the tool that it called. */
export function isOffered({ defined }: ToolNode<never, never>, { block, message }: OpenCall): boolean {
  return message.offered === undefined ? defined.has(block.name) : message.offered.includes(block.name);
}

/** The tools that a call may be of, told to the model. */
export function offeredText({ defined }: ToolNode<never, never>, { message }: OpenCall): string {
  const names = message.offered ?? [...defined.keys()].sort();
  return names.length === 0 ? "There are no tools." : `Tools are ${names.map((name) => `"${name}"`).join(", ")}.`;
}
