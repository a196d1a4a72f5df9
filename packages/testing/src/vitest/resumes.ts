/** The matcher for what another process would do: whether it goes on to the same end. */

import { standingIn } from "../node/state-names.ts";
import { firstDifference, textOfValue } from "../order/first-difference.ts";
import { account, listed } from "../run/explain-run.ts";
import { normalIds, withNormalIds } from "../run/normalize-ids.ts";
import type { TestRun } from "../run/test-run.ts";
import { calledTools, effectsIn, questions, type Trace, wayOf } from "../trace/trace.ts";
import { classOf } from "./effects.ts";
import { asRun, type Bound, type Verdict } from "./received.ts";

/** What `toResumeIdentically` takes. */
export interface ResumeIdenticallyOptions {
  /** What people answer to what the run asks now: in both processes the same. */
  readonly answers?: Readonly<Record<string, unknown>>;
}

/**
 * A process that finds what is saved now comes to the same end as this one: the same status, state, questions and calls, and
 * nothing that is declared `once` is done in both. The run goes on until it rests.
 */
export async function toResumeIdentically(
  this: Bound,
  received: unknown,
  { answers }: ResumeIdenticallyOptions = {},
): Promise<Verdict> {
  const t = asRun(received, "toResumeIdentically");
  if (t.status !== "held" && t.status !== "waiting")
    throw new TypeError(
      `toResumeIdentically looks at a run that is held or waits, and this one is ${t.status}: stop it on its way first, as with t.until("…")`,
    );
  const before = t.trace.entries.length;
  const here = standingIn(t.value).join(" + ");
  const asked = new Set(questions(t.trace).map(({ id }) => id));
  const twin = await t.twin();
  const done = effectsIn(t.trace);
  if (t.status === "waiting" && answers !== undefined) await settle(t.resume(answers as never));
  else if (t.status === "held") await settle(t.finish());
  await goOn(twin, answers);
  const [whole, resumed] = [endOf(t, before, asked), endOf(twin, 1, asked)];
  const again = repeatedOnce(
    t.trace,
    twin.trace,
    done.map(({ idempotencyKey }) => idempotencyKey),
  );
  const difference = firstDifference(whole, resumed, "");
  return {
    pass: difference === undefined && again.length === 0,
    message: () =>
      normalIds()(
        [
          difference === undefined && again.length === 0
            ? "a process that goes on from what was saved here comes to the same end, and should not."
            : "a process that goes on from what was saved here does not do the same as this one.",
          ...(again.length === 0 ? [] : [`Done in both, and declared "once": ${listed(again)}.`]),
          ...(difference === undefined
            ? []
            : [
                `First difference: ${placeText(difference.place)} is ${textOfValue(difference.one)} without a crash, and ${textOfValue(difference.other)} after it.`,
              ]),
          ...(difference === undefined ? [] : [whyDifferent(twin)]),
          `Without a crash: ${[here, ...wayOf(t.trace, before)].join(" → ")}`,
          `After a crash:   ${[here, "(crash)", ...wayOf(twin.trace, 2)].join(" → ")}`,
          account(t.trace),
        ].join("\n"),
      ),
    actual: resumed,
    expected: whole,
  };
}

function whyDifferent(twin: TestRun): string {
  const doubt = twin.interrupts.find(({ key }) => key === "in_doubt");
  return doubt === undefined
    ? "What was saved is the same for both: look for a variable outside of the state, for the clock or chance, or for an effect outside of step(key, fn) and tools."
    : `An effect of "${doubt.node}" may happen once, had begun, and has no saved outcome, so a person is asked: declare it "idempotent" when its other side honours the key, or give it a reconcile.`;
}

async function goOn(twin: TestRun, answers: Readonly<Record<string, unknown>> | undefined): Promise<void> {
  await settle(twin.resume((twin.interrupts.length === 0 ? undefined : answers) as never));
}

/** How it ends is compared; a failure is an end too. */
async function settle(going: Promise<void>): Promise<void> {
  await going.then(
    () => undefined,
    () => undefined,
  );
}

/** How a run ended, by what happened from this entry on; what was asked before that is no news. */
function endOf(
  { status, state, interrupts, error, trace }: TestRun,
  from: number,
  before: ReadonlySet<string>,
): object {
  const since = { ...trace, entries: trace.entries.slice(from) };
  const end = {
    status,
    ...(status === "failed" ? { error: error instanceof Error ? error.message : String(error) } : {}),
    asked: questions(since).flatMap(({ id, key, payload }) => (before.has(id) ? [] : [{ key, payload }])),
    waitsFor: interrupts.map(({ key, payload }) => ({ key, payload })),
    calls: calledTools(since),
    state,
  };
  return withNormalIds(end) as object;
}

function placeText(place: string): string {
  const words = place.replace(/^\./, "");
  return words.startsWith("asked") ? `what it ${words}` : words;
}

/** Names of what is declared `once` and was entered before, and again by the other process. */
function repeatedOnce(trace: Trace, other: Trace, before: readonly string[]): readonly string[] {
  const known = new Set(before);
  return effectsIn(other).flatMap(({ kind, name, idempotencyKey }) =>
    known.has(idempotencyKey) && kind === "tool" && classOf(trace, name) === "once" ? [name] : [],
  );
}
