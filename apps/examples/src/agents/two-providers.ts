/** Two providers: where one is overloaded, slow or down, the other answers. */
import { type AnyModel, createAgent, type Store } from "statewright";

/** An assistant with a model of one provider, and one of another that stands in for it. */
export function assistant(first: AnyModel, second: AnyModel, store?: Store) {
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
