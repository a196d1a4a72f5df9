/** Tool calls as wire events: a call is shown as running when the body of its tool begins. */
import type { OpenWork, RunEvent, ToolResult } from "@statewright/core";
import { toWireContent, type WireObject } from "../to-wire-message.ts";
import type { LegacyEvent } from "./legacy-event.ts";
import { type EventPlace, getGraphMemory, type LegacyMemory } from "./legacy-memory.ts";

interface CallPlace extends EventPlace {
  readonly callId: string;
  readonly tool: string;
}

/** Maps an event of a tool call; nothing for other events. */
export function mapTool(event: RunEvent, memory: LegacyMemory): readonly LegacyEvent[] {
  switch (event.type) {
    case "tool.body_started":
      return startTool(event, memory, event.args);
    case "tool.progress":
      return createToolEvent(event, memory, { event: "on_tool_event", data: event.text });
    case "tool.update":
      return createToolEvent(event, memory, { event: "on_tool_event", data: event.partial });
    case "tool.completed":
    case "tool.failed":
      return endTool(event, memory, event.result);
    default:
      return [];
  }
}

/** Maps the tools that are at work when a reader joins. */
export function mapOpenTools({ tools }: OpenWork, memory: LegacyMemory): readonly LegacyEvent[] {
  return tools.flatMap((tool) => {
    if (tool.status !== "running" || memory.runningTools.has(toToolKey(tool))) return [];
    const line = tool.update ?? tool.progress.at(-1);
    return [
      ...startTool(tool, memory, null),
      ...(line === undefined ? [] : createToolEvent(tool, memory, { event: "on_tool_event", data: line })),
    ];
  });
}

function startTool(place: CallPlace, memory: LegacyMemory, input: unknown): readonly LegacyEvent[] {
  memory.runningTools.add(toToolKey(place));
  return createToolEvent(place, memory, { event: "on_tool_start", input });
}

/** A call whose body never began, because it was denied or reused, was never shown as running: its end is not either. */
function endTool(place: CallPlace, memory: LegacyMemory, result: ToolResult): readonly LegacyEvent[] {
  if (!memory.runningTools.delete(toToolKey(place))) return [];
  const content = toWireContent(result.content);
  const end = result.isError ? { event: "on_tool_error", error: content } : { event: "on_tool_end", output: content };
  return createToolEvent(place, memory, end);
}

function toToolKey({ withinId = "", callId }: CallPlace): string {
  return `${withinId} ${callId}`;
}

function createToolEvent(place: CallPlace, memory: LegacyMemory, fields: WireObject): readonly LegacyEvent[] {
  const { namespace } = getGraphMemory(memory, place);
  const { event, ...rest } = fields;
  const data = { event, toolCallId: place.callId, name: place.tool, ...rest };
  return [{ event: "tools", mode: "tools", namespace, data }];
}
