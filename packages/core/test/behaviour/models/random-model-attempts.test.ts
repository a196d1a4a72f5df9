/** Models that randomly fail, hang and break off: the streamed text equals the text of the conversation. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { modelFailureKinds } from "../../../src/adapter.ts";
import { getMessageText, type ModelCallPolicy, type ModelFailureKind, type RunEvent, run } from "../../../src/index.ts";
import {
  type Act,
  answerWith,
  createActingModel,
  createAskingGraph,
  createUserInput,
  failWith,
  getLastAnswer,
  hangAfter,
} from "../../support/acting-model.ts";
import { collectEvents } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

interface Turn {
  readonly words: readonly string[];
  readonly end: "answers" | "fails" | "hangs" | "is cut";
  readonly kind: ModelFailureKind;
  readonly retryable: boolean;
  readonly retryAfterMs: number;
}

const turn: fc.Arbitrary<Turn> = fc.record({
  words: fc.array(fc.constantFrom("a ", "b ", "c "), { maxLength: 3 }),
  end: fc.constantFrom("answers", "fails", "fails", "hangs", "is cut"),
  kind: fc.constantFrom(...modelFailureKinds),
  retryable: fc.boolean(),
  retryAfterMs: fc.constantFrom(0, 50, 90_000),
});

function createAct({ words, end, kind, retryable, retryAfterMs }: Turn): Act {
  if (end === "answers") return answerWith(...words);
  if (end === "hangs") return hangAfter(...words);
  return failWith({ kind: end === "is cut" ? "broken_reply" : kind, retryable, retryAfterMs }, ...words);
}

const policy: fc.Arbitrary<Omit<ModelCallPolicy, "fallback">> = fc.record({
  retry: fc.record({ attempts: fc.integer({ min: 1, max: 4 }), initialMs: fc.constantFrom(0, 20) }),
  timeouts: fc.record({ firstTokenMs: fc.constant(500), idleMs: fc.constant(100) }),
});

/** Collects one text per message, as documented for stream readers. */
function collectTexts(events: readonly RunEvent[]): ReadonlyMap<string, string> {
  const view = new Map<string, string>();
  for (const event of events) {
    if (event.type === "message.delta") view.set(event.messageId, (view.get(event.messageId) ?? "") + event.text);
    if (event.type === "message.retracted") {
      expect(event.text).toBe(view.get(event.messageId) ?? "");
      view.set(event.messageId, "");
    }
    if (event.type === "message.completed") {
      const { message } = event;
      expect(getMessageText(message).startsWith(view.get(message.id) ?? "")).toBe(true);
      view.set(message.id, getMessageText(message));
    }
  }
  return view;
}

test("a stream reader ends with the text of the conversation, each model request is reported, and no request exceeds the limits", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(turn, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 3 }),
      policy,
      async (turns, said) => {
        const world = createVirtualWorld();
        const models = turns.map((each, index) => createActingModel(`m${index}`, ...each.map(createAct)));
        const [first, ...fallback] = models;
        if (first === undefined) return;
        const handle = run(createAskingGraph(first, { ...said, fallback }), { world, input: createUserInput("Go") });
        const events = collectEvents(handle);
        const texts: string[] = [];
        const reading = (async () => {
          for await (const text of handle.text({ formatRetracted: () => "|" })) texts.push(text);
        })().then(
          () => "ended",
          () => "failed",
        );
        const ending = handle.result.then(
          ({ state }) => getLastAnswer(state),
          () => undefined,
        );
        await world.advance(1_000_000);
        const answer = await ending;
        expect(await reading).toBe(answer === undefined ? "failed" : "ended");
        const requests = models.reduce((sum, { requests: made }) => sum + made.length, 0);
        expect(requests).toBeLessThanOrEqual((said.retry?.attempts ?? 1) + fallback.length);
        const view = collectTexts(events);
        const shown = texts.join("").split("|").at(-1) ?? "";
        if (answer === undefined) expect([...view.values()].every((text) => text === "")).toBe(true);
        else {
          expect(view.get(answer.id)).toBe(getMessageText(answer));
          expect(shown).toBe(getMessageText(answer));
          expect(answer.failedAttempts?.length ?? 0).toBe(requests - 1);
          expect(answer.answeredBy ?? "m0").toBe(models.findLast(({ requests: made }) => made.length > 0)?.id);
        }
        expect(world.timers).toBe(0);
      },
    ),
    { numRuns: 300, seed: 7 },
  );
});
