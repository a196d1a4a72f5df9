/**
 * Lifecycle of an agent as in other frameworks: agent, turn, message and tool call, each with a start and an end
 * event. A call refused before its start gets a start event too, so that readers can pair events.
 */
import {
  type AssistantMessage,
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

/** Lifecycle event of an agent. */
export type LifecycleEvent =
  | { readonly kind: "agent.start" }
  | { readonly kind: "turn.start" }
  | { readonly kind: "message.start" }
  | { readonly kind: "message.delta"; readonly part: "text" | "reasoning"; readonly text: string }
  | { readonly kind: "message.end"; readonly message: AssistantMessage }
  | ({ readonly kind: "call.start"; readonly args: unknown } & CallRef)
  | ({ readonly kind: "call.update"; readonly partial: ToolOutput } & CallRef)
  | ({ readonly kind: "call.progress"; readonly text: string } & CallRef)
  | ({ readonly kind: "call.end"; readonly result: ToolResult } & CallRef)
  | { readonly kind: "turn.end" }
  | ({ readonly kind: "agent.end" } & AgentStop);

/** Creates a translator from the events of one run, in order, to lifecycle events; skips events of inner graphs. */
export function createLifecycleTranslator(): (event: RunEvent) => readonly LifecycleEvent[] {
  /**
   * Arguments of tool calls not yet finished, by call id; a refused call has no `tool.started` event with its
   * arguments.
   */
  const pendingArgs = new Map<string, unknown>();
  const startedCalls = new Set<string>();
  let inTurn = false;
  let inMessage = false;

  function closeTurn(): LifecycleEvent[] {
    const ended: LifecycleEvent[] = inTurn ? [{ kind: "turn.end" }] : [];
    inTurn = false;
    inMessage = false;
    return ended;
  }

  function openMessage(): LifecycleEvent[] {
    const started: LifecycleEvent[] = inMessage ? [] : [{ kind: "message.start" }];
    inMessage = true;
    return started;
  }

  function openCall({ callId, tool }: CallRef, args: unknown): LifecycleEvent[] {
    if (startedCalls.has(callId)) return [];
    startedCalls.add(callId);
    return [{ kind: "call.start", callId, tool, args }];
  }

  return (event) => {
    if (event.within !== undefined) return [];
    switch (event.type) {
      case "run.started":
        return [{ kind: "agent.start" }];
      case "model.started": {
        const ended = closeTurn();
        inTurn = true;
        return [...ended, { kind: "turn.start" }];
      }
      case "message.delta":
        return [...openMessage(), { kind: "message.delta", part: event.kind, text: event.text }];
      case "message.retracted":
        // The message restarts: readers that collect deltas since the last `message.start` drop the retracted deltas.
        inMessage = false;
        return [];
      case "message.completed": {
        for (const { id, args } of listToolCalls(event.message)) pendingArgs.set(id, args);
        const moments: LifecycleEvent[] = [...openMessage(), { kind: "message.end", message: event.message }];
        inMessage = false;
        return moments;
      }
      case "tool.started":
        return openCall(event, event.args);
      case "tool.update":
        return [{ kind: "call.update", callId: event.callId, tool: event.tool, partial: event.partial }];
      case "tool.progress":
        return [{ kind: "call.progress", callId: event.callId, tool: event.tool, text: event.text }];
      case "tool.completed":
      case "tool.failed": {
        const { callId, tool, result } = event;
        const moments: LifecycleEvent[] = [
          ...openCall(event, pendingArgs.get(callId)),
          { kind: "call.end", callId, tool, result },
        ];
        pendingArgs.delete(callId);
        startedCalls.delete(callId);
        return moments;
      }
      case "run.completed":
        return [...closeTurn(), { kind: "agent.end", status: "completed" }];
      case "run.waiting":
        return [...closeTurn(), { kind: "agent.end", status: "waiting", interrupts: event.interrupts }];
      case "run.failed":
        return [...closeTurn(), { kind: "agent.end", status: "failed", error: event.error.message }];
      case "run.cancelled":
        return [...closeTurn(), { kind: "agent.end", status: "cancelled", reason: event.reason }];
      case "run.paused":
        return [...closeTurn(), { kind: "agent.end", status: "paused", reason: event.cause.message }];
      default:
        return [];
    }
  };
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
