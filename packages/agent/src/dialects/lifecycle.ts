/**
 * The life of an agent as other systems tell it: agent, turn, message and call, each with a beginning and an end. A call
 * that was refused before it started begins and ends too, so that a reader pairs what it sees.
 */
import {
  type AssistantMessage,
  callsOf,
  type OpenInterrupt,
  type RunEvent,
  type ToolOutput,
  type ToolResult,
} from "@statewright/core";

/** How an agent stopped, for good or for now. */
export type AgentStop =
  | { readonly status: "completed" }
  | { readonly status: "failed"; readonly error: string }
  | { readonly status: "cancelled" | "paused"; readonly reason: string }
  | { readonly status: "waiting"; readonly interrupts: readonly OpenInterrupt[] };

interface OfCall {
  readonly callId: string;
  readonly tool: string;
}

/** One moment of an agent's life. */
export type Moment =
  | { readonly kind: "agent.start" }
  | { readonly kind: "turn.start" }
  | { readonly kind: "message.start" }
  | { readonly kind: "message.delta"; readonly part: "text" | "reasoning"; readonly text: string }
  | { readonly kind: "message.end"; readonly message: AssistantMessage }
  | ({ readonly kind: "call.start"; readonly args: unknown } & OfCall)
  | ({ readonly kind: "call.update"; readonly partial: ToolOutput } & OfCall)
  | ({ readonly kind: "call.progress"; readonly text: string } & OfCall)
  | ({ readonly kind: "call.end"; readonly result: ToolResult } & OfCall)
  | { readonly kind: "turn.end" }
  | ({ readonly kind: "agent.end" } & AgentStop);

/** Translate the events of one run, in their order, into moments; what happens inside inner graphs is left out. */
export function lifecycle(): (event: RunEvent) => readonly Moment[] {
  /** The arguments of the calls that wait for their end, by id: a call that is refused has no event that tells them. */
  const asked = new Map<string, unknown>();
  const begun = new Set<string>();
  let inTurn = false;
  let inMessage = false;

  function closeTurn(): Moment[] {
    const ended: Moment[] = inTurn ? [{ kind: "turn.end" }] : [];
    inTurn = false;
    inMessage = false;
    return ended;
  }

  function openMessage(): Moment[] {
    const started: Moment[] = inMessage ? [] : [{ kind: "message.start" }];
    inMessage = true;
    return started;
  }

  function openCall({ callId, tool }: OfCall, args: unknown): Moment[] {
    if (begun.has(callId)) return [];
    begun.add(callId);
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
      case "message.voided":
        // The message begins anew: a reader that keeps the deltas since the last beginning keeps no void ones.
        inMessage = false;
        return [];
      case "message.completed": {
        for (const { id, args } of callsOf(event.message)) asked.set(id, args);
        const moments: Moment[] = [...openMessage(), { kind: "message.end", message: event.message }];
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
        const moments: Moment[] = [...openCall(event, asked.get(callId)), { kind: "call.end", callId, tool, result }];
        asked.delete(callId);
        begun.delete(callId);
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

/** How yoagent and pi name a call. */
export interface CallNames {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** A call by those names. */
export function namesOf({ callId, tool }: OfCall): CallNames {
  return { toolCallId: callId, toolName: tool };
}
