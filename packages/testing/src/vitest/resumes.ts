/** Matcher that compares this process with another process resumed from the same saved state. */

import { listActiveStates } from "../node/state-names.ts";
import { findFirstDifference, formatValue } from "../order/first-difference.ts";
import { explainRun, formatNames } from "../run/explain-run.ts";
import { createIdNormalizer, normalizeIds } from "../run/normalize-ids.ts";
import type { TestRun } from "../run/test-run.ts";
import { formatPathParts, listEffects, listTracedCalls, listTracedInterrupts, type Trace } from "../trace/trace.ts";
import { getEffectClass } from "./effects.ts";
import { type MatcherContext, type MatcherResult, requireTestRun } from "./received.ts";

/** Options of `toResumeIdentically`. */
export interface ResumeIdenticallyOptions {
  /** Answers to the open interrupts, equal in both processes. */
  readonly answers?: Readonly<Record<string, unknown>>;
}

/**
 * Passes when another process, resumed from the currently saved state, has the same status, state, interrupts and
 * calls as this process, and no `once` effect is executed in both. The run advances until it rests.
 */
export async function toResumeIdentically(
  this: MatcherContext,
  received: unknown,
  { answers }: ResumeIdenticallyOptions = {},
): Promise<MatcherResult> {
  const t = requireTestRun(received, "toResumeIdentically");
  if (t.status !== "held" && t.status !== "waiting")
    throw new TypeError(
      `toResumeIdentically: expected a run that is held or waits, got a run that is ${t.status}. Use t.until("…") to stop the run first.`,
    );
  const entryCount = t.trace.entries.length;
  const startStates = listActiveStates(t.value).join(" + ");
  const knownInterrupts = new Set(listTracedInterrupts(t.trace).map(({ id }) => id));
  const twin = await t.twin();
  const effects = listEffects(t.trace);
  if (t.status === "waiting" && answers !== undefined) await awaitRun(t.resume(answers as never));
  else if (t.status === "held") await awaitRun(t.finish());
  await resumeTwin(twin, answers);
  const [uninterruptedEnd, resumedEnd] = [
    describeEnd(t, entryCount, knownInterrupts),
    describeEnd(twin, 1, knownInterrupts),
  ];
  const repeatedTools = listRepeatedTools(
    t.trace,
    twin.trace,
    effects.map(({ idempotencyKey }) => idempotencyKey),
  );
  const difference = findFirstDifference(uninterruptedEnd, resumedEnd, "");
  return {
    pass: difference === undefined && repeatedTools.length === 0,
    message: () =>
      createIdNormalizer()(
        [
          difference === undefined && repeatedTools.length === 0
            ? "a process that resumes from the saved state produces the same result, and should not."
            : "a process that resumes from the saved state does not produce the same result as this process.",
          ...(repeatedTools.length === 0
            ? []
            : [`Executed in both processes, and declared "once": ${formatNames(repeatedTools)}.`]),
          ...(difference === undefined
            ? []
            : [
                `First difference: ${formatDifferencePath(difference.path)} is ${formatValue(difference.first)} without a crash, and ${formatValue(difference.second)} after it.`,
              ]),
          ...(difference === undefined ? [] : [explainDifference(twin)]),
          `Without a crash: ${[startStates, ...formatPathParts(t.trace, entryCount)].join(" → ")}`,
          `After a crash:   ${[startStates, "(crash)", ...formatPathParts(twin.trace, 2)].join(" → ")}`,
          explainRun(t.trace),
        ].join("\n"),
      ),
    actual: resumedEnd,
    expected: uninterruptedEnd,
  };
}

function explainDifference(twin: TestRun): string {
  const inDoubt = twin.interrupts.find(({ key }) => key === "in_doubt");
  return inDoubt === undefined
    ? "The saved state is the same for both processes. Look for a variable outside of the state, for the clock or random values, or for an effect outside of step(key, fn) and tools."
    : `An effect of "${inDoubt.node}" is declared "once", had started, and has no saved outcome, so an interrupt asks for it. Declare it "idempotent" when the external system honours the key, or add a reconcile.`;
}

async function resumeTwin(twin: TestRun, answers: Readonly<Record<string, unknown>> | undefined): Promise<void> {
  await awaitRun(twin.resume((twin.interrupts.length === 0 ? undefined : answers) as never));
}

/** Awaits the run and ignores its error: a failure is compared as a result too. */
async function awaitRun(run: Promise<void>): Promise<void> {
  await run.then(
    () => undefined,
    () => undefined,
  );
}

/** Describes the end of a run from the entries after `from`; interrupts raised before are excluded. */
function describeEnd(
  { status, state, interrupts, error, trace }: TestRun,
  from: number,
  knownInterrupts: ReadonlySet<string>,
): object {
  const laterTrace = { ...trace, entries: trace.entries.slice(from) };
  const end = {
    status,
    ...(status === "failed" ? { error: error instanceof Error ? error.message : String(error) } : {}),
    asked: listTracedInterrupts(laterTrace).flatMap(({ id, key, payload }) =>
      knownInterrupts.has(id) ? [] : [{ key, payload }],
    ),
    waitsFor: interrupts.map(({ key, payload }) => ({ key, payload })),
    calls: listTracedCalls(laterTrace),
    state,
  };
  return normalizeIds(end) as object;
}

function formatDifferencePath(path: string): string {
  const words = path.replace(/^\./, "");
  return words.startsWith("asked") ? `interrupts ${words}` : words;
}

/** Lists the `once` tools entered before, and again by the other process. */
function listRepeatedTools(trace: Trace, other: Trace, executedKeys: readonly string[]): readonly string[] {
  const known = new Set(executedKeys);
  return listEffects(other).flatMap(({ kind, name, idempotencyKey }) =>
    known.has(idempotencyKey) && kind === "tool" && getEffectClass(trace, name) === "once" ? [name] : [],
  );
}
