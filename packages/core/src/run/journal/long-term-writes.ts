/**
 * The long-term store inside a run. What a task puts waits with its result: it becomes true in the transaction of the
 * superstep that takes the result in, or never. Until then the task itself sees it, and nobody else.
 *
 * A call of a tool, and a recorded step, are not done again when their task is: what they put stands in the journal beside
 * their outcome, in a row that goes when the superstep is folded.
 */
import { StatewrightError } from "../../base/errors.ts";
import type { LongTerm, OpenLongTerm } from "../../base/long-term.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import { type LongTermPort, longTermHandle } from "../../long-term/handle.ts";
import { overlaid } from "../../long-term/overlay.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { type Codec, encodeAround } from "../../state/codec.ts";
import type { ToolResult } from "../../tool/result.ts";
import { callKey } from "../conversation/pending-calls.ts";
import type { TaskOutcome } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import { journalKey, placeOf, record, type Session } from "../session/session.ts";
import type { Finished } from "../superstep/superstep.ts";
import type { CallAtWork } from "../tool-call/context.ts";
import { besideRow, besideTask } from "./auxiliary-row.ts";

/** The long-term store for the body of a task. */
export function longTermOfTask(session: Session, scope: TaskScope, ids: readonly string[]): LongTerm {
  const port = (): LongTermPort =>
    portOf(session, scope, changesOf(scope), {
      isOver: scope.ended,
      refuse: (changes) => {
        if (scope.stepsAtWork > 0 && changes.some((change) => !("touch" in change))) throw besideStep(session, scope);
      },
    });
  return longTermHandle(port, ids);
}

/** The long-term store for a recorded step, whose changes are kept apart until it has ended well. */
export function longTermOfStep(
  session: Session,
  scope: TaskScope,
  ids: readonly string[],
  changes: LongTermChange[],
  isOver: () => boolean,
): LongTerm {
  return longTermHandle(() => portOf(session, scope, changes, { isOver }), ids);
}

/** The long-term store for the attempt of a call of a tool that is at work now, or is when it is used. */
export function longTermOfCall(call: CallAtWork): OpenLongTerm {
  const attempt = call.longTerm;
  const port = (): LongTermPort => {
    const changes = attempt ?? call.longTerm ?? [];
    return portOf(call.session, call.scope, changes, { isOver: () => call.longTerm !== changes });
  };
  return (...ids) => longTermHandle(port, ids);
}

/** Let the calls of a task that begin now see what a call has put that has ended. */
export function seeChanges({ session, scope, key }: CallAtWork): void {
  const changes = recordedChanges(session, scope.task, key);
  if (changes.length > 0) changesOf(scope).push(...changes);
}

/** What the calls of a task have put, by their order, as all of them counts, and not by that in which they ended. */
export function takeChanges(session: Session, scope: TaskScope, results: readonly ToolResult[]): void {
  if (scope.longTerm === undefined) return;
  scope.longTerm = results.flatMap(({ callId }) => recordedChanges(session, scope.task, callKey(callId)));
}

/** What a task has put so far, which its result takes along. */
export function changesOf(scope: TaskScope): LongTermChange[] {
  scope.longTerm ??= [];
  return scope.longTerm;
}

function portOf(
  session: Session,
  scope: TaskScope,
  changes: LongTermChange[],
  { isOver, refuse }: { readonly isOver: () => boolean; readonly refuse?: (made: readonly LongTermChange[]) => void },
): LongTermPort {
  const { longTerm, codec, world } = session;
  const ofTask = changesOf(scope);
  const below = longTerm === undefined || ofTask === changes ? longTerm?.reader : overlaid(longTerm.reader, ofTask);
  const reader = below === undefined ? undefined : overlaid(below, changes);
  const change = (made: readonly LongTermChange[]): void => {
    refuse?.(made);
    if (!isOver()) changes.push(...made);
    else
      world.log("warn", `a late write of "${scope.task.node}" to the long-term store was dropped`, {
        task: scope.task.id,
        attempt: scope.attempt,
      });
  };
  return {
    codec,
    now: () => world.clock.now(),
    reader: () => {
      if (reader === undefined) throw noStore(session, scope);
      return reader;
    },
    change,
    // That somebody has read is true at once, whatever becomes of the superstep.
    refresh: async (touches) => {
      const became = (await reader?.refresh(touches)) ?? [];
      const held = touches.filter((_, nth) => became[nth] === "held");
      if (held.length > 0) change(held.map((touch) => ({ touch })));
      return became.map((each) => each !== "gone");
    },
  };
}

/** The outcome of a task with what it has put. */
export function withChanges(outcome: TaskOutcome, { longTerm }: TaskScope): TaskOutcome {
  return longTerm === undefined || longTerm.length === 0 ? outcome : { ...outcome, longTerm };
}

/** What finished tasks have put, in the order in which their results are folded; nothing when none has. */
export function changesIn(finished: readonly Finished[]): readonly LongTermChange[] | undefined {
  let changes: readonly LongTermChange[] | undefined;
  for (const { outcome } of finished) {
    if (outcome.longTerm === undefined) continue;
    changes = changes === undefined ? outcome.longTerm : [...changes, ...outcome.longTerm];
  }
  return changes;
}

// What a call or a step has put, beside its outcome.

/** Journal what a call or a step has put, before its outcome: a row without an outcome is written over when it is done again. */
export function recordChanges(session: Session, task: Task, key: string, changes: readonly LongTermChange[]): void {
  const { saved, step } = session;
  const place = journalKey(step, besideTask(task.id, "longTerm"), key);
  if (changes.length === 0 && saved?.journal.has(place) !== true) return;
  session.outcomes.set(place, { value: changes });
  if (saved === undefined) return;
  const row = besideRow(session, task, "longTerm", key);
  const encode = (): string => encodeAround(saved.codec, changes, `what "${key}" put into the long-term store`);
  record(session, saved, { row, encode, told: undefined });
}

/** What a call or a step has put that is not done again. */
export function recordedChanges(session: Session, task: Task, key: string): readonly LongTermChange[] {
  const place = journalKey(session.step, besideTask(task.id, "longTerm"), key);
  const known = session.outcomes.get(place);
  if (known !== undefined && "value" in known) return known.value as readonly LongTermChange[];
  return decoded(session.codec, session.saved?.journal.get(place));
}

/** Let the result of a task take along what the hooks around one of its effects have put. */
export function takeHookChanges(session: Session, scope: TaskScope, effect: string): void {
  const changes = recordedChanges(session, scope.task, effect);
  if (changes.length > 0) changesOf(scope).push(...changes);
}

/** The same, from rows of a journal. */
export function changesInJournal(
  codec: Codec,
  journal: readonly EffectRow[],
  task: string,
  key: string,
): readonly LongTermChange[] {
  const beside = besideTask(task, "longTerm");
  return decoded(
    codec,
    journal.find((row) => row.task === beside && row.key === key),
  );
}

function decoded(codec: Codec, row: EffectRow | undefined): readonly LongTermChange[] {
  return row?.outcome === undefined ? [] : (codec.decode(row.outcome) as readonly LongTermChange[]);
}

function noStore(session: Session, { task }: TaskScope): StatewrightError {
  return new StatewrightError("missing_store", {
    what: `the node "${task.node}" asked for the long-term store in a run without a store`,
    next: "Give the run a store: memoryStore() or sqliteStore(path)",
    place: placeOf(session, { node: task.node, task: task.id }),
  });
}

function besideStep(session: Session, { task }: TaskScope): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the node "${task.node}" wrote to its long-term store while one of its recorded steps was at work`,
    next: "Write through the step's own, step(key, ({ longTerm }) => …): what a step writes is recorded with it, and not lost when the step is not done again",
    place: placeOf(session, { node: task.node, task: task.id }),
  });
}
