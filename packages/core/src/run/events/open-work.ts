/** Folds the events of a run at work into its open messages and tool calls. */
import { getMessageText, listToolCalls } from "../../model/message.ts";
import type { OpenMessage, OpenToolCall, OpenWork, RetriedMessage } from "./open-message.ts";
import type { RelayFrame } from "./relay.ts";
import type { RunEvent } from "./run-event.ts";

/** Open messages and tool calls of a run at work. */
export interface OpenWorkFold {
  /** Applies a frame: its event, or the commit that makes open work durable. */
  apply(frame: Pick<RelayFrame, "event" | "committed">): void;
  /** Returns true if nothing is open. */
  isEmpty(): boolean;
  /** Returns a copy that later frames do not change. */
  read(): OpenWork;
}

const maxProgressLines = 100;

type Mutable<Value> = { -readonly [Key in keyof Value]: Value[Key] };
type MessageDraft = Omit<Mutable<OpenMessage>, "calls"> & { calls: Mutable<OpenMessage["calls"][number]>[] };
type ToolDraft = Omit<Mutable<OpenToolCall>, "progress"> & { progress: string[] };
type TaskEvent = Extract<RunEvent, { readonly task: string }>;
type RetryEvent = Extract<RunEvent, { readonly type: "message.retracted" | "model.retried" }>;
type ToolEvent = Extract<RunEvent, { readonly type: `tool.${string}` }>;

/** Creates the fold from earlier open work; default: nothing is open. */
export function createOpenWork(from: OpenWork = { messages: [], tools: [] }): OpenWorkFold {
  return new Fold(from);
}

/** Most readers of a thread have no open work: the maps exist from the first entry on. */
class Fold implements OpenWorkFold {
  #messages: Map<string, MessageDraft> | undefined;
  #tools: Map<string, ToolDraft> | undefined;
  #retried: Map<string, RetriedMessage> | undefined;

  constructor({ messages, tools, retried }: OpenWork) {
    if (messages.length > 0)
      this.#messages = new Map(messages.map((message) => [toKey(message, message.id), copyMessage(message)]));
    if (tools.length > 0) this.#tools = new Map(tools.map((call) => [toKey(call, call.callId), copyTool(call)]));
    if (retried !== undefined) this.#retried = new Map(retried.map((message) => [toKey(message, message.id), message]));
  }

  apply({ event, committed }: Pick<RelayFrame, "event" | "committed">): void {
    if (event !== undefined && "task" in event) this.#applyEvent(event);
    if (committed === undefined) return;
    for (const open of [this.#messages, this.#tools, this.#retried])
      for (const [key, work] of open ?? []) if (isInNamespace(work, committed)) open?.delete(key);
  }

  isEmpty(): boolean {
    return [this.#messages, this.#tools, this.#retried].every((open) => (open?.size ?? 0) === 0);
  }

  read(): OpenWork {
    const retried = [...(this.#retried?.values() ?? [])];
    return {
      messages: [...(this.#messages?.values() ?? [])].map(copyMessage),
      tools: [...(this.#tools?.values() ?? [])].map(copyTool),
      ...(retried.length === 0 ? {} : { retried }),
    };
  }

  #applyEvent(event: TaskEvent): void {
    switch (event.type) {
      case "message.delta": {
        const message = this.#openMessage(event, event.messageId);
        if (event.kind === "text") message.text += event.text;
        else message.reasoning += event.text;
        return;
      }
      case "message.call_delta": {
        const { calls } = this.#openMessage(event, event.messageId);
        const call = calls.find(({ callId }) => callId === event.callId);
        if (call === undefined) calls.push({ callId: event.callId, tool: event.tool, argsText: event.argsText });
        else call.argsText += event.argsText;
        return;
      }
      case "message.retracted": {
        const key = toKey(event, event.messageId);
        this.#messages?.delete(key);
        this.#noteRetry(event, (this.#retried?.get(key)?.failedRequests ?? 0) + 1);
        return;
      }
      case "model.retried":
        this.#noteRetry(event, event.attempt);
        return;
      case "message.completed":
        completeMessage(this.#openMessage(event, event.message.id), event.message);
        return;
      case "tool.started":
        this.#openTool(event).status = "started";
        return;
      case "tool.body_started":
        this.#openTool(event).status = "running";
        return;
      case "tool.progress":
        addProgress(this.#openTool(event), event.text);
        return;
      case "tool.update":
        this.#openTool(event).update = event.partial;
        return;
      case "tool.completed":
      case "tool.failed":
        this.#openTool(event).status = event.type === "tool.completed" ? "completed" : "failed";
    }
  }

  #openMessage(event: TaskEvent, id: string): MessageDraft {
    const key = toKey(event, id);
    this.#messages ??= new Map();
    const known = this.#messages.get(key);
    if (known !== undefined) return known;
    const message = { id, ...getPlace(event), text: "", reasoning: "", calls: [], complete: false };
    this.#messages.set(key, message);
    return message;
  }

  #noteRetry(event: RetryEvent, failedRequests: number): void {
    const { messageId: id } = event;
    this.#retried ??= new Map();
    this.#retried.set(toKey(event, id), { id, ...getPlace(event), failedRequests });
  }

  #openTool(event: ToolEvent): ToolDraft {
    const key = toKey(event, event.callId);
    this.#tools ??= new Map();
    const known = this.#tools.get(key);
    if (known !== undefined) return known;
    const { callId, tool, label } = event;
    const call: ToolDraft = { callId, tool, label, ...getPlace(event), status: "started", progress: [] };
    this.#tools.set(key, call);
    return call;
  }
}

function copyMessage(message: OpenMessage): MessageDraft {
  return { ...message, calls: message.calls.map((call) => ({ ...call })) };
}

function copyTool(call: OpenToolCall): ToolDraft {
  return { ...call, progress: [...call.progress] };
}

function addProgress({ progress }: ToolDraft, line: string): void {
  progress.push(line);
  if (progress.length > maxProgressLines) progress.shift();
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
