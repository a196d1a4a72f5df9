/** Registry of the tools of a configuration. */
import { type ToolRegistry, toolRegistry } from "@statewright/core";
import { closeNewSources, type LoadedConfig, listTools } from "./config-sources.ts";
import type { ConfigChange } from "./tool-config-options.ts";
import type { ToolServer } from "./tool-server.ts";

/** Creates the registry of a configuration. Closes the started sources after a duplicate tool name. */
export async function createRegistry(loaded: LoadedConfig<ToolServer>): Promise<ToolRegistry> {
  try {
    return toolRegistry(listTools(loaded));
  } catch (error) {
    await closeNewSources(loaded, undefined);
    throw error;
  }
}

/** Updates a registry to the next configuration, atomically. Keeps tools registered by other code. */
export async function updateRegistry(
  registry: ToolRegistry,
  previous: LoadedConfig<ToolServer>,
  updated: LoadedConfig<ToolServer>,
): Promise<ConfigChange> {
  const oldTools = new Map(listTools(previous).map((tool) => [tool.spec.name, tool]));
  const newTools = new Map(listTools(updated).map((tool) => [tool.spec.name, tool]));
  const added = [...newTools.keys()].filter((name) => !oldTools.has(name));
  const registered: string[] = [];
  try {
    // Throws for duplicate tool names.
    toolRegistry(listTools(updated));
    for (const [name, tool] of newTools) {
      if (oldTools.has(name)) continue;
      registry.register(tool);
      registered.push(name);
    }
  } catch (error) {
    for (const name of registered) registry.unregister(name);
    await closeNewSources(updated, previous);
    throw error;
  }
  const isOurs = (name: string): boolean => registry.get(name) === oldTools.get(name);
  const replaced = [...newTools].filter(
    ([name, tool]) => oldTools.has(name) && oldTools.get(name) !== tool && isOurs(name),
  );
  for (const [, tool] of replaced) registry.replace(tool);
  const removed = [...oldTools.keys()].filter((name) => !newTools.has(name) && isOurs(name));
  for (const name of removed) registry.unregister(name);
  return { added, removed, replaced: replaced.map(([name]) => name) };
}
