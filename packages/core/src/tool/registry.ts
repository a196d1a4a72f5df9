/** The registry: tools by canonical name, in one stable order. */
import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import type { ModelTool } from "../model/model.ts";
import { checkToolName, modelToolOf } from "./model-tool.ts";
import { isTool, type Tool } from "./tool.ts";

/** Tools by name. `register` refuses a name that is taken, `replace` is the other word. */
export interface ToolRegistry<State = unknown, Context = unknown> {
  register(tool: Tool<State, Context>): ToolRegistry<State, Context>;
  replace(tool: Tool<State, Context>): ToolRegistry<State, Context>;
  unregister(name: string): boolean;
  get(name: string): Tool<State, Context> | undefined;
  /** Sorted, so that what the model sees has one order and prompt caches hold. */
  names(): readonly string[];
  /** What the model sees, sorted by name. */
  forModel(): readonly ModelTool[];
}

/** A registry with these tools; throws `invalid_tool` for a bad or doubled name or a schema that cannot be shown to a model. */
export function toolRegistry<State = unknown, Context = unknown>(
  tools: readonly Tool<State, Context>[] = [],
): ToolRegistry<State, Context> {
  const byName = new Map<string, Tool<State, Context>>();
  const put = (tool: Tool<State, Context>): void => {
    if (!isTool(tool)) throw noTool(tool);
    checkToolName(tool.spec.name);
    modelToolOf(tool.spec);
    byName.set(tool.spec.name, tool);
  };
  const registry: ToolRegistry<State, Context> = {
    register: (tool) => {
      if (!isTool(tool)) throw noTool(tool);
      if (byName.has(tool.spec.name)) throw taken(tool.spec.name);
      put(tool);
      return registry;
    },
    replace: (tool) => {
      put(tool);
      return registry;
    },
    unregister: (name) => byName.delete(name),
    get: (name) => byName.get(name),
    names: () => [...byName.keys()].sort(),
    forModel: () =>
      registry
        .names()
        .flatMap((name) => byName.get(name)?.spec ?? [])
        .map(modelToolOf),
  };
  if (!Array.isArray(tools)) {
    throw new StatewrightError("invalid_tool", {
      what: `the tools are ${describeValue(tools)}, not a list`,
      next: "Give [tool, …] of tools that defineTool made",
    });
  }
  for (const tool of tools) registry.register(tool);
  return registry;
}

function noTool(given: unknown): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `${describeValue(given)} stands among the tools and is none`,
    next: "Make it with defineTool",
  });
}

function taken(name: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `two tools are named "${name}"`,
    next: "Rename one of them, or use replace to put the new one in the place of the old one",
    place: { tool: name },
  });
}
