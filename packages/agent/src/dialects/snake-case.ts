/** What pi and bitop-dev/agent call alike: the agent, its turns and its messages. */
import type { AssistantMessage } from "@statewright/core";
import type { AgentStop, Moment } from "./lifecycle.ts";

/** An event that is about no call. */
export type SnakeCaseEvent =
  | { readonly type: "agent_start" | "turn_start" | "turn_end" | "message_start" }
  | { readonly type: "message_update"; readonly kind: "text" | "reasoning"; readonly delta: string }
  | { readonly type: "message_end"; readonly message: AssistantMessage }
  | ({ readonly type: "agent_end" } & AgentStop);

/** A moment that is about no call. */
type OutsideCalls = Exclude<Moment, { readonly kind: `call.${string}` }>;

/** Such a moment by its name there. */
export function inSnakeCase(moment: OutsideCalls): SnakeCaseEvent {
  switch (moment.kind) {
    case "agent.start":
      return { type: "agent_start" };
    case "turn.start":
      return { type: "turn_start" };
    case "turn.end":
      return { type: "turn_end" };
    case "message.start":
      return { type: "message_start" };
    case "message.delta":
      return { type: "message_update", kind: moment.part, delta: moment.text };
    case "message.end":
      return { type: "message_end", message: moment.message };
    case "agent.end": {
      const { kind: _, ...end } = moment;
      return { type: "agent_end", ...end };
    }
  }
}
