/**
 * Lifecycle of an agent as in other frameworks: agent, turn, message and tool call, each with a start and an end
 * event. A call refused before its start gets a start event too, so that readers can pair events.
 */
import {
  type AssistantMessage,
  type ContentBlock,
  listToolCalls,
  type OpenInterrupt,
  type RunEvent,
  type ToolOutput,
  type ToolResult,
} from "@statewright/core";

/** Final or intermediate status of an agent run. */
export type AgentStop =
  | { readonly status: "completed" }
  | { readonly status: "failed"; readonly error: string }
  | { readonly status: "cancelled" | "paused"; readonly reason: string }
  | { readonly status: "waiting"; readonly interrupts: readonly OpenInterrupt[] };

interface CallRef {
  readonly callId: string;
  readonly tool: string;
}

/** Partial result of a tool call, with content as a list of blocks, like the content of a result. */
export interface PartialToolResult extends Omit<ToolOutput, "content"> {
  readonly content: readonly ContentBlock[];
}

/** Converts an update of a tool, or a line of text. */
export function toPartialResult(partial: ToolOutput | string): PartialToolResult {
  const output = typeof partial === "string" ? { content: partial } : partial;
  const { content } = output;
  return { ...output, content: typeof content === "string" ? [{ type: "text", text: content }] : content };
}

/** Lifecycle event of an agent. */
export type LifecycleEvent =
  | { readonly kind: "agent.start" }
  | { readonly kind: "turn.start" }
  | { readonly kind: "message.start" }
  | { readonly kind: "message.delta"; readonly part: "text" | "reasoning"; readonly text: string }
  | { readonly kind: "message.end"; readonly message: AssistantMessage }
  | ({ readonly kind: "call.start"; readonly args: unknown } & CallRef)
  | ({ readonly kind: "call.update"; readonly partial: PartialToolResult } & CallRef)
  | ({ readonly kind: "call.progress"; readonly text: string } & CallRef)
  | ({ readonly kind: "call.end"; readonly result: ToolResult } & CallRef)
  | { readonly kind: "turn.end" }
  | ({ readonly kind: "agent.end" } & AgentStop);

/** Creates a translator from the events of a run, in order, to lifecycle events; skips events of inner graphs. */
export function createLifecycleTranslator(): (event: RunEvent) => readonly LifecycleEvent[] {
  const translator = new LifecycleTranslator();
  return (event) => (event.within === undefined ? translator.translate(event) : []);
}

/** State of the translation of a run: open turn, open message and started tool calls. */
class LifecycleTranslator {
  /** Arguments of unfinished tool calls, by call id: a refused call has no `tool.started` event with arguments. */
  readonly #pendingArgs = new Map<string, unknown>();
  readonly #startedCalls = new Set<string>();
  #inTurn = false;
  #inMessage = false;

  translate(event: RunEvent): readonly LifecycleEvent[] {
    switch (event.type) {
      case "run.started":
        return [{ kind: "agent.start" }];
      case "model.started": {
        const ended = this.#closeTurn();
        this.#inTurn = true;
        return [...ended, { kind: "turn.start" }];
      }
      case "message.delta":
        return [...this.#openMessage(), { kind: "message.delta", part: event.kind, text: event.text }];
      case "message.retracted":
        // The message restarts: readers that collect deltas since the last `message.start` drop the retracted deltas.
        this.#inMessage = false;
        return [];
      case "message.completed":
        return this.#closeMessage(event.message);
      case "tool.started":
        return this.#openCall(event, event.args);
      case "tool.update":
        return [
          { kind: "call.update", callId: event.callId, tool: event.tool, partial: toPartialResult(event.partial) },
        ];
      case "tool.progress":
        return [{ kind: "call.progress", callId: event.callId, tool: event.tool, text: event.text }];
      case "tool.completed":
      case "tool.failed":
        return this.#closeCall(event, event.result);
      default: {
        const stop = toAgentStop(event);
        return stop === undefined ? [] : [...this.#closeTurn(), { kind: "agent.end", ...stop }];
      }
    }
  }

  #closeTurn(): LifecycleEvent[] {
    const ended: LifecycleEvent[] = this.#inTurn ? [{ kind: "turn.end" }] : [];
    this.#inTurn = false;
    this.#inMessage = false;
    return ended;
  }

  #openMessage(): LifecycleEvent[] {
    const started: LifecycleEvent[] = this.#inMessage ? [] : [{ kind: "message.start" }];
    this.#inMessage = true;
    return started;
  }

  #openCall({ callId, tool }: CallRef, args: unknown): LifecycleEvent[] {
    if (this.#startedCalls.has(callId)) return [];
    this.#startedCalls.add(callId);
    return [{ kind: "call.start", callId, tool, args }];
  }

  #closeMessage(message: AssistantMessage): LifecycleEvent[] {
    for (const { id, args } of listToolCalls(message)) this.#pendingArgs.set(id, args);
    const ended: LifecycleEvent[] = [...this.#openMessage(), { kind: "message.end", message }];
    this.#inMessage = false;
    return ended;
  }

  #closeCall(call: CallRef, result: ToolResult): LifecycleEvent[] {
    const { callId, tool } = call;
    const started = this.#openCall(call, this.#pendingArgs.get(callId));
    this.#pendingArgs.delete(callId);
    this.#startedCalls.delete(callId);
    return [...started, { kind: "call.end", callId, tool, result }];
  }
}

/** Returns the status of an agent after an event that stops the run; undefined for other events. */
function toAgentStop(event: RunEvent): AgentStop | undefined {
  switch (event.type) {
    case "run.completed":
      return { status: "completed" };
    case "run.waiting":
      return { status: "waiting", interrupts: event.interrupts };
    case "run.failed":
      return { status: "failed", error: event.error.message };
    case "run.cancelled":
      return { status: "cancelled", reason: event.reason };
    case "run.paused":
      return { status: "paused", reason: event.cause.message };
    default:
      return undefined;
  }
}

/** Names of a tool call in yoagent and pi. */
export interface CallNames {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** Converts a call reference to the names of yoagent and pi. */
export function toCallNames({ callId, tool }: CallRef): CallNames {
  return { toolCallId: callId, toolName: tool };
}
