/** Folds the events of a run at work into its open messages and tool calls. */
import { getMessageText, listToolCalls } from "../../model/message.ts";
import type { OpenMessage, OpenToolCall, OpenWork } from "./open-message.ts";
import type { RelayFrame } from "./relay.ts";
import type { RunEvent } from "./run-event.ts";

/** Open messages and tool calls of a run at work. */
export interface OpenWorkFold {
  /** Applies a frame: its event, or the commit that makes open work durable. */
  readonly apply: (frame: Pick<RelayFrame, "event" | "committed">) => void;
  readonly isEmpty: () => boolean;
  /** Returns a copy that later frames do not change. */
  readonly read: () => OpenWork;
}

const maxProgressLines = 100;

type Mutable<Value> = { -readonly [Key in keyof Value]: Value[Key] };
type MessageDraft = Omit<Mutable<OpenMessage>, "calls"> & { calls: Mutable<OpenMessage["calls"][number]>[] };
type ToolDraft = Omit<Mutable<OpenToolCall>, "progress"> & { progress: string[] };
type TaskEvent = Extract<RunEvent, { readonly task: string }>;
type ToolEvent = Extract<RunEvent, { readonly type: `tool.${string}` }>;

/** Creates the fold from earlier open work; default: nothing is open. */
export function createOpenWork(from: OpenWork = { messages: [], tools: [] }): OpenWorkFold {
  const messages = new Map<string, MessageDraft>(
    from.messages.map((message) => [
      toKey(message, message.id),
      { ...message, calls: message.calls.map((call) => ({ ...call })) },
    ]),
  );
  const tools = new Map<string, ToolDraft>(
    from.tools.map((call) => [toKey(call, call.callId), { ...call, progress: [...call.progress] }]),
  );

  function openMessage(event: TaskEvent, id: string): MessageDraft {
    const key = toKey(event, id);
    let message = messages.get(key);
    if (message === undefined) {
      message = { id, ...getPlace(event), text: "", reasoning: "", calls: [], complete: false };
      messages.set(key, message);
    }
    return message;
  }

  function openTool(event: ToolEvent): ToolDraft {
    const key = toKey(event, event.callId);
    let call = tools.get(key);
    if (call === undefined) {
      const { callId, tool, label } = event;
      call = { callId, tool, label, ...getPlace(event), status: "started", progress: [] };
      tools.set(key, call);
    }
    return call;
  }

  function applyEvent(event: RunEvent): void {
    switch (event.type) {
      case "message.delta": {
        const message = openMessage(event, event.messageId);
        if (event.kind === "text") message.text += event.text;
        else message.reasoning += event.text;
        return;
      }
      case "message.call_delta": {
        const { calls } = openMessage(event, event.messageId);
        const call = calls.find(({ callId }) => callId === event.callId);
        if (call === undefined) calls.push({ callId: event.callId, tool: event.tool, argsText: event.argsText });
        else call.argsText += event.argsText;
        return;
      }
      case "message.retracted":
        messages.delete(toKey(event, event.messageId));
        return;
      case "message.completed":
        completeMessage(openMessage(event, event.message.id), event.message);
        return;
      case "tool.started":
        openTool(event).status = "started";
        return;
      case "tool.body_started":
        openTool(event).status = "running";
        return;
      case "tool.progress": {
        const { progress } = openTool(event);
        progress.push(event.text);
        if (progress.length > maxProgressLines) progress.shift();
        return;
      }
      case "tool.update":
        openTool(event).update = event.partial;
        return;
      case "tool.completed":
      case "tool.failed":
        openTool(event).status = event.type === "tool.completed" ? "completed" : "failed";
    }
  }

  return {
    apply: ({ event, committed }) => {
      if (event !== undefined) applyEvent(event);
      if (committed === undefined) return;
      for (const [key, message] of messages) if (isInNamespace(message, committed)) messages.delete(key);
      for (const [key, call] of tools) if (isInNamespace(call, committed)) tools.delete(key);
    },
    isEmpty: () => messages.size === 0 && tools.size === 0,
    read: () => ({
      messages: [...messages.values()].map((message) => ({
        ...message,
        calls: message.calls.map((call) => ({ ...call })),
      })),
      tools: [...tools.values()].map((call) => ({ ...call, progress: [...call.progress] })),
    }),
  };
}

function completeMessage(
  draft: MessageDraft,
  message: Extract<RunEvent, { readonly type: "message.completed" }>["message"],
): void {
  draft.text = getMessageText(message);
  draft.reasoning = message.content.flatMap((block) => (block.type === "reasoning" ? [block.text] : [])).join("");
  draft.calls = listToolCalls(message).map(({ id, name, args, raw }) => {
    const streamed = draft.calls.find(({ callId }) => callId === id)?.argsText;
    return { callId: id, tool: name, argsText: streamed ?? raw ?? JSON.stringify(args) };
  });
  draft.complete = true;
}

/** The same message id may occur in several calls of an inner graph. */
function toKey({ withinId = "" }: { readonly withinId?: string }, id: string): string {
  return `${withinId} ${id}`;
}

function getPlace({ branch, node, task, within, withinId }: TaskEvent): Pick<OpenMessage, "branch" | "node" | "task"> {
  return {
    branch,
    node,
    task,
    ...(within === undefined ? {} : { within }),
    ...(withinId === undefined ? {} : { withinId }),
  };
}

/** Returns true for work in the namespace and in the inner graphs that its finished tasks have called. */
function isInNamespace({ withinId = "" }: { readonly withinId?: string }, namespace: string): boolean {
  return namespace === "" || withinId === namespace || withinId.startsWith(`${namespace}/`);
}
