/** Answers given again under the key of an earlier resume. */
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan } from "../../compile/plan.ts";
import type { GraphTypes } from "../../define/graph.ts";
import { createAnsweredError } from "../../run/conversation/answered-error.ts";
import { readAnswer } from "../../run/conversation/interrupt-schema.ts";
import type { EventStream } from "../../run/events/events.ts";
import { isSameArgs } from "../../run/journal/args-digest.ts";
import type { RunControls } from "../../run/launch.ts";
import { type CallerWithStore, getCurrentOutcome } from "../../run/queue.ts";
import { recoverRun } from "../../run/recover-run.ts";
import type { ResumeOptions, RunResult } from "../../run/session/options/options.ts";
import type { State } from "../../run/session/returns.ts";
import { getCodec } from "../../run/task/open-session.ts";
import type { KeyedEvents } from "../keyed-events.ts";

/** A resume that may repeat an earlier one. */
interface RepeatedResume {
  readonly caller: CallerWithStore & { readonly graph: Graph; readonly options: ResumeOptions<GraphTypes> };
  readonly thread: string;
  readonly answers: Readonly<Record<string, unknown>>;
  readonly events: EventStream;
  readonly stops: RunControls;
}

/**
 * Returns the outcome of the run that an earlier resume of this key has answered, and continues the run if its process
 * has crashed; undefined for a new key. Throws `already_answered` for other answers under the key.
 */
export async function findRepeatedOutcome(
  repeat: RepeatedResume,
): Promise<{ readonly outcome: Promise<RunResult<State>> } | undefined> {
  const run = await findAnsweredRun(repeat);
  return run === undefined ? undefined : continueOrLoad(repeat, run);
}

/**
 * Finds the run that an earlier resume of this key has answered. Throws `already_answered` for other answers under the
 * key.
 */
export async function findAnsweredRun(
  repeat: Pick<RepeatedResume, "caller" | "thread" | "answers">,
): Promise<RunRow | undefined> {
  const { caller, thread, answers } = repeat;
  const { store, key } = caller.options;
  if (key === undefined || Object.keys(answers).length === 0) return undefined;
  const branch = caller.options.branch ?? (await store.thread(thread))?.headBranch;
  if (branch === undefined) return undefined;
  const rows = (await store.interrupts(thread, branch)).filter(({ answerKey }) => answerKey === key);
  const id = rows[0]?.answeredRun;
  if (id === undefined) return undefined;
  const run = await findRun(caller, { thread, branch, id });
  if (run === undefined) return undefined;
  const different = rows.length === Object.keys(answers).length ? findDifferent(repeat, rows) : rows[0];
  if (different !== undefined) throw createAnsweredError(getCodec(caller.options), different, { thread, branch });
  return run;
}

/** Returns the outcome of a run that has taken the event of this key, and continues the run after a crash. */
export function findRunOutcome(
  repeat: RepeatedResume,
  keyed: KeyedEvents | undefined,
): { readonly outcome: Promise<RunResult<State>> } | undefined {
  return keyed === undefined || "posted" in keyed ? undefined : continueOrLoad(repeat, keyed.run);
}

function continueOrLoad(
  { caller, events, stops }: RepeatedResume,
  run: RunRow,
): { readonly outcome: Promise<RunResult<State>> } {
  events.announceRun?.(run.id);
  const outcome =
    run.status === "crashed" ? recoverRun(caller, run, events, { stops }) : getCurrentOutcome(caller, run);
  return { outcome };
}

async function findRun(
  { options: { store } }: CallerWithStore,
  { thread, branch, id }: Pick<RunRow, "thread" | "branch" | "id">,
): Promise<RunRow | undefined> {
  return (await store.runs({ thread, branch })).find((row) => row.id === id);
}

/** Finds an interrupt whose answer is not among the given answers. */
function findDifferent(
  { caller, answers }: Pick<RepeatedResume, "caller" | "answers">,
  rows: readonly InterruptRow[],
): InterruptRow | undefined {
  const codec = getCodec(caller.options);
  return rows.find((row) => {
    const name = [row.id, row.key].find((each) => Object.hasOwn(answers, each));
    if (name === undefined || row.answer === undefined) return true;
    const parsed = readAnswer(getPlan(caller.graph), row, answers[name]);
    return !parsed.ok || !isSameArgs(codec, parsed.value, codec.decode(row.answer));
  });
}
