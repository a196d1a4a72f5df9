/** Events with the same names in pi and bitop-dev/agent: agent, turns and messages. */
import type { AssistantMessage } from "@statewright/core";
import type { AgentStop, LifecycleEvent } from "./lifecycle.ts";

/** Event other than a tool call event. */
export type SnakeCaseEvent =
  | { readonly type: "agent_start" | "turn_start" | "turn_end" | "message_start" }
  | { readonly type: "message_update"; readonly kind: "text" | "reasoning"; readonly delta: string }
  | { readonly type: "message_end"; readonly message: AssistantMessage }
  | ({ readonly type: "agent_end" } & AgentStop);

/** Lifecycle event other than a tool call event. */
type NonCallEvent = Exclude<LifecycleEvent, { readonly kind: `call.${string}` }>;

/** Converts a lifecycle event to its snake_case format. */
export function toSnakeCaseEvent(event: NonCallEvent): SnakeCaseEvent {
  switch (event.kind) {
    case "agent.start":
      return { type: "agent_start" };
    case "turn.start":
      return { type: "turn_start" };
    case "turn.end":
      return { type: "turn_end" };
    case "message.start":
      return { type: "message_start" };
    case "message.delta":
      return { type: "message_update", kind: event.part, delta: event.text };
    case "message.end":
      return { type: "message_end", message: event.message };
    case "agent.end": {
      const { kind: _, ...end } = event;
      return { type: "agent_end", ...end };
    }
  }
}
