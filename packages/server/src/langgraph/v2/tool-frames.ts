/** Tool calls as frames: a call is shown as running when the body of its tool begins. */
import type { OpenWork, RunEvent, ToolMessage, ToolResult } from "@statewright/core";
import { isMessage, toWireContent, type WireObject } from "../to-wire-message.ts";
import { hashIdentity } from "./hash-identity.ts";
import type { V2Frame } from "./v2-frame.ts";
import { getV2Graph, toWorkKey, type V2Graph, type V2Memory, type V2Place } from "./v2-memory.ts";

interface CallPlace extends V2Place {
  readonly node: string;
  readonly callId: string;
  readonly tool: string;
  readonly at: number;
}

/** Maps an event of a tool call; nothing for other events. */
export function mapTool(event: RunEvent, memory: V2Memory): readonly V2Frame[] {
  switch (event.type) {
    case "tool.body_started":
      return sendOnce(memory, createStart(memory, event, event.args));
    case "tool.progress":
      return [createOutput(memory, event, event.text)];
    case "tool.update":
      return [createOutput(memory, event, toText(event.partial))];
    case "tool.completed":
    case "tool.failed":
      return sendOnce(memory, createEnd(memory, event, event.result));
    default:
      return [];
  }
}

/** Maps the tools that are at work when a reader joins. */
export function mapOpenTools({ tools, at }: OpenWork & { readonly at: number }, memory: V2Memory): readonly V2Frame[] {
  return tools.flatMap((tool) => {
    if (tool.status === "started") return [];
    const place = { ...tool, at };
    const graph = getV2Graph(memory, tool);
    const lines = [...tool.progress, ...(tool.update === undefined ? [] : [toText(tool.update)])];
    const start = createStart(memory, place, findCallArgs(graph, tool.callId));
    return [...sendOnce(memory, start), ...lines.map((line) => createOutput(memory, place, line))];
  });
}

/** End of a call whose result a commit holds: for readers that have not seen the call end. */
export function mapToolMessage(
  message: ToolMessage,
  place: V2Place & { readonly node: string; readonly at: number },
  memory: V2Memory,
): readonly V2Frame[] {
  const { callId, name, isError } = message;
  const call = { ...place, callId, tool: name };
  const end = sendOnce(memory, createEnd(memory, call, message));
  // A call with an error was perhaps denied, and its tool never began.
  if (isError) return end;
  const args = findCallArgs(getV2Graph(memory, place), callId);
  return [...sendOnce(memory, createStart(memory, call, args)), ...end];
}

/** The start and the end of a call are sent once. */
function sendOnce({ sentCalls }: V2Memory, frame: V2Frame): readonly V2Frame[] {
  const id = frame.id ?? "";
  if (sentCalls.has(id)) return [];
  sentCalls.add(id);
  return [frame];
}

function findCallArgs({ values = {} }: V2Graph, callId: string): unknown {
  const messages = Object.values(values).flatMap((value) => (Array.isArray(value) ? value.filter(isMessage) : []));
  const calls = messages.flatMap((message) => (message.role === "assistant" ? message.content : []));
  const call = calls.findLast((block) => block.type === "call" && block.id === callId);
  return call?.type === "call" ? call.args : null;
}

function createStart(memory: V2Memory, place: CallPlace, input: unknown): V2Frame {
  return createToolFrame(memory, place, "s", { event: "tool-started", tool_name: place.tool, input });
}

/** Equal lines of a call are numbered, so that their frames differ. */
function createOutput(memory: V2Memory, place: CallPlace, delta: string): V2Frame {
  const graph = getV2Graph(memory, place);
  const line = `p.${hashIdentity(delta)}`;
  const key = `${toWorkKey(memory, graph, place.callId)} ${line}`;
  const count = (memory.progress.get(key) ?? 0) + 1;
  memory.progress.set(key, count);
  return createToolFrame(memory, place, `${line}.${count}`, { event: "tool-output-delta", delta });
}

function createEnd(
  memory: V2Memory,
  place: CallPlace,
  { isError, content }: Pick<ToolResult, "isError" | "content">,
): V2Frame {
  const output = toWireContent(content);
  return isError
    ? createToolFrame(memory, place, "x", { event: "tool-error", message: toText(output) })
    : createToolFrame(memory, place, "f", { event: "tool-finished", output });
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function createToolFrame(memory: V2Memory, place: CallPlace, part: string, fields: WireObject): V2Frame {
  const graph = getV2Graph(memory, place);
  const { event, ...rest } = fields;
  return {
    ...{ method: "tools", channel: "tools", namespace: graph.namespace, at: place.at, node: place.node },
    data: { event, tool_call_id: place.callId, ...rest },
    id: `t.${toWorkKey(memory, graph, place.callId)}.${part}`,
  };
}
