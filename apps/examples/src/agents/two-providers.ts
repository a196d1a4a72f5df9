/** Fallback between two providers: if the first is overloaded, slow or unavailable, the second answers. */
import { type AnyModel, createAgent, type Store } from "statewright";

/** Creates an assistant with a model of one provider, and a fallback model of another provider. */
export function createAssistant(first: AnyModel, second: AnyModel, store?: Store) {
  return createAgent({
    name: "assistant",
    model: first,
    timeouts: { firstTokenMs: 20_000, idleMs: 15_000, totalMs: 120_000 },
    retry: { attempts: 2, initialMs: 500 },
    fallback: {
      models: [second],
      on: ["rate_limit", "overloaded", "server_error", "connection", "timeout", "broken_reply"],
    },
    ...(store && { store }),
  });
}
