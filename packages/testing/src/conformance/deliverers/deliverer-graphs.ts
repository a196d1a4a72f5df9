/** Graphs that the workers of a deliverer under test serve. */
import { channel, defineGraph, defineState, END, type Graph, route, START } from "@statewright/core";
import { listEffects, performEffect } from "./external-effects.ts";

/** Schema that accepts every value of a type, without a schema library. */
function accept<Value>(parse: (value: unknown) => Value | undefined, expected: string) {
  return {
    "~standard": {
      version: 1 as const,
      vendor: "statewright-testing",
      validate: (value: unknown) => {
        const parsed = parse(value);
        return parsed === undefined ? { issues: [{ message: `expected ${expected}` }] } : { value: parsed };
      },
    },
  };
}

const text = accept((value) => (typeof value === "string" ? value : undefined), "a string");

const State = defineState({ log: channel.list(text), messages: channel.messages() });

/** Wait of an interrupt of the graph `desk`, in milliseconds. */
export const askExpiresMs: number = 3_600_000;

/**
 * Graphs of a worker; their effects are lines of a file in `folder`. `calls` has three effects at once, of which one may
 * be in doubt; `transfer` has one that it can look up; `desk` asks, and expires after an hour; `pass` has one effect;
 * `chat` has one, and one more for each message.
 */
export function createDelivererGraphs(folder: string, version: 1 | 2 = 1): readonly Graph[] {
  const perform =
    (name: string) =>
    ({ idempotencyKey }: { readonly idempotencyKey: string }): Promise<string> =>
      performEffect(folder, name, idempotencyKey);
  const calls = defineGraph({ name: "calls", version, state: State })
    .nodes({
      think: async (_state, { step }) => ({ log: [await step("model", perform("model"))] }),
      act: async (_state, { step }) => ({
        log: await Promise.all([
          step("done", perform("done"), { effect: "once" }),
          step("send", perform("send")),
          step("pay", perform("pay"), { effect: "once" }),
        ]),
      }),
    })
    .edges({ [START]: "think", think: "act", act: END });
  const transfer = defineGraph({ name: "transfer", version, state: State })
    .nodes({
      pay: async (_state, { step }) => {
        const reconcile = (): undefined => undefined;
        return { log: [await step("pay", perform("pay"), { effect: "once", reconcile })] };
      },
    })
    .edges({ [START]: "pay", pay: END });
  const desk = defineGraph({
    name: "desk",
    version,
    state: State,
    interrupts: { confirm: { answer: text, expiresMs: askExpiresMs, onExpire: "expired" } },
  })
    .nodes({
      first: async (_state, { step }) => ({ log: [await step("first", perform("first"))] }),
      ask: async (_state, { interrupt }) => ({ log: [await interrupt("confirm")] }),
      last: async (_state, { step }) => ({ log: [await step("last", perform("last")), `version ${version}`] }),
    })
    .edges({ [START]: "first", first: "ask", ask: "last", last: END });
  const pass = defineGraph({ name: "pass", version, state: State })
    .nodes({ pass: async (_state, { step }) => ({ log: [await step("pass", perform("pass"))] }) })
    .edges({ [START]: "pass", pass: END });
  const chat = defineGraph({ name: "chat", version, state: State })
    .nodes({ reply: async (_state, { step }) => ({ log: [await step("reply", perform("reply"))] }) })
    .edges({
      [START]: "reply",
      reply: route(["reply", END], ({ log, messages }) => (messages.length < log.length ? END : "reply")),
    });
  return [calls, transfer, desk, pass, chat];
}

/** Returns true when each effect of a name has begun under the same key at most `times` times. */
export function hasEffectAtMost(folder: string, name: string, times: number): boolean {
  const keys = new Map<string, number>();
  for (const { key } of listEffects(folder, name)) keys.set(key, (keys.get(key) ?? 0) + 1);
  return [...keys.values()].every((count) => count <= times);
}
