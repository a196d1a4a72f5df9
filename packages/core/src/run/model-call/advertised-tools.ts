/**
 * Tools that the calls of a message may use: the tools that its request advertised to the model. The message holds
 * their names when they differ from the tools of the graph; the tool objects come from the registry as of the
 * request.
 */

import type { ToolNode } from "../../define/tool-node.ts";
import type { AssistantMessage } from "../../model/message.ts";
import type { ModelTool } from "../../model/model.ts";
import type { Tool } from "../../tool/definition/tool.ts";
import type { ToolRegistry } from "../../tool/registry.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import type { Position } from "../session/parts/position.ts";

type Tools = ReadonlyMap<string, Tool<never, never>>;

/** Registries changed since their graph was defined, with their tools. */
export type ChangedRegistries = ReadonlyMap<ToolRegistry<never, never>, Tools>;

/** Changed registries at the time of each model request. */
const registriesByMessage: WeakMap<AssistantMessage, ChangedRegistries> = new WeakMap();

/**
 * Returns the `offered` names of a message; empty when the request advertised exactly the tools that the graph was
 * defined with.
 */
export function getAdvertisedNames(
  position: Position,
  advertised: readonly ModelTool[],
): Pick<AssistantMessage, "offered"> {
  const [first, ...others] = position.plan.toolNodes;
  if (first === undefined) return unchangedTools;
  const defined =
    others.length === 0
      ? first.initialTools
      : new Set(position.plan.toolNodes.flatMap((node) => [...node.initialTools.keys()]));
  const isTool = ({ name }: ModelTool): boolean =>
    position.plan.toolNodes.every(({ final }) => final?.tool.name !== name);
  // The final call is not a tool, and is always advertised.
  const tools = position.plan.toolNodes.every(({ final }) => final === undefined)
    ? advertised
    : advertised.filter(isTool);
  if (tools.length === defined.size && tools.every(({ name }) => defined.has(name))) return unchangedTools;
  return { offered: advertised.map(({ name }) => name) };
}

const unchangedTools: Pick<AssistantMessage, "offered"> = {};

/** Returns the registries that have changed since the graph was defined. */
export function findChangedRegistries({ plan }: Position): ChangedRegistries {
  let changed: Map<ToolRegistry<never, never>, Tools> | undefined;
  for (const { registry, initialTools } of plan.toolNodes) {
    const tools = registry.tools();
    if (tools !== initialTools) changed = (changed ?? new Map()).set(registry, tools);
  }
  return changed ?? noChangedRegistries;
}

const noChangedRegistries: ChangedRegistries = new Map();

/**
 * Remembers the tools of a message's request, so that a tool replaced or removed meanwhile still answers its calls.
 */
export function rememberTools(message: AssistantMessage, registries: ChangedRegistries): void {
  registriesByMessage.set(message, registries);
}

/**
 * Returns the tool of a call; undefined when the tool does not exist or was removed in another process. For a message
 * loaded from the store, whose request is unknown, returns the current tool of that name.
 */
export function resolveTool(
  { registry, initialTools }: ToolNode<never, never>,
  { block, message }: PendingCall,
): Tool<never, never> | undefined {
  const registries = registriesByMessage.get(message);
  if (registries === undefined) return registry.get(block.name) ?? initialTools.get(block.name);
  return (registries.get(registry) ?? initialTools).get(block.name) ?? registry.get(block.name);
}

/** Returns true if the request advertised the called tool to the model. */
export function isAdvertised({ initialTools }: ToolNode<never, never>, { block, message }: PendingCall): boolean {
  return message.offered === undefined ? initialTools.has(block.name) : message.offered.includes(block.name);
}

/** Lists the advertised tools, in a sentence for the model. */
export function formatAdvertisedTools({ initialTools }: ToolNode<never, never>, { message }: PendingCall): string {
  const names = message.offered ?? [...initialTools.keys()].sort();
  return names.length === 0 ? "There are no tools." : `Tools are ${names.map((name) => `"${name}"`).join(", ")}.`;
}
