/**
 * The long-term store inside a run. Changes of a task wait with the outcome of the task and are committed in the
 * transaction of the superstep that includes the outcome, or never. Until then, only the task itself reads the changes.
 *
 * Tool calls and recorded steps are not repeated when a task is repeated: the changes of a call are journaled next to
 * the outcome of the call, in a row that is deleted when the superstep is committed.
 */

import { StatewrightError } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import type { LongTerm, OpenLongTerm } from "../../base/long-term.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import { createLongTermHandle, type LongTermPort } from "../../long-term/handle.ts";
import { createOverlay } from "../../long-term/overlay.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { type Codec, encodeWrapper } from "../../state/codec.ts";
import type { ToolResult } from "../../tool/result.ts";
import { toCallKey } from "../conversation/pending-calls.ts";
import type { Journal } from "../session/parts/journal.ts";
import { recordEffect, toJournalKey } from "../session/parts/persistence.ts";
import { getTaskPlace, type Position } from "../session/parts/position.ts";
import type { TaskOutcome } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { FinishedTask } from "../session/step-result.ts";
import { createAuxiliaryRow, getAuxiliaryTaskId } from "./ledger.ts";

/** Creates the long-term store for the body of a task. */
export function createTaskLongTerm(
  position: Position,
  journal: Journal,
  scope: TaskScope,
  ids: readonly string[],
): LongTerm {
  const port = (): LongTermPort =>
    createPort(
      position,
      journal,
      {
        isOver: scope.isEnded,
        refuse: (changes) => {
          if (scope.activeSteps > 0 && changes.some((change) => !("touch" in change)))
            throw createStepConflictError(position, scope);
        },
      },
      { scope, changes: getChanges(scope) },
    );
  return createLongTermHandle(port, ids);
}

/** Options of `createStepLongTerm`. */
interface CreateStepLongTermOptions {
  readonly ids: readonly string[];
  readonly changes: LongTermChange[];
  readonly isOver: () => boolean;
}

/** Creates the long-term store for a recorded step. Its changes are kept separate until the step succeeds. */
export function createStepLongTerm(
  position: Position,
  journal: Journal,
  scope: TaskScope,
  { ids, changes, isOver }: CreateStepLongTermOptions,
): LongTerm {
  return createLongTermHandle(() => createPort(position, journal, { isOver }, { scope, changes }), ids);
}

/** A tool call, as far as its changes to the long-term store are concerned. */
export interface CallChanges {
  readonly position: Position;
  readonly journal: Journal;
  readonly scope: TaskScope;
  readonly key: string;
  /** Changes of the active attempt; undefined when no attempt is active. */
  longTerm: LongTermChange[] | undefined;
}

/** Creates the long-term store for the active attempt of a tool call, now or at the time of use. */
export function createCallLongTerm(call: CallChanges): OpenLongTerm {
  const attempt = call.longTerm;
  const port = (): LongTermPort => {
    const changes = attempt ?? call.longTerm ?? [];
    return createPort(
      call.position,
      call.journal,
      {
        isOver: () => call.longTerm !== changes,
      },
      { scope: call.scope, changes },
    );
  };
  return (...ids) => createLongTermHandle(port, ids);
}

/** Makes the changes of a finished call visible to calls of the same task that start later. */
export function exposeCallChanges({ position, journal, scope, key }: Omit<CallChanges, "longTerm">): void {
  const changes = getRecordedChanges(position, journal, scope.task, key);
  if (changes.length > 0) getChanges(scope).push(...changes);
}

/** Collects the changes of a task's calls in call order, not in completion order. */
export function collectCallChanges(
  position: Position,
  journal: Journal,
  scope: TaskScope,
  results: readonly ToolResult[],
): void {
  if (scope.longTerm === undefined) return;
  scope.longTerm = results.flatMap(({ callId }) =>
    getRecordedChanges(position, journal, scope.task, toCallKey(callId)),
  );
}

/** Returns the changes of a task so far, committed with its outcome. */
export function getChanges(scope: TaskScope): LongTermChange[] {
  scope.longTerm ??= [];
  return scope.longTerm;
}

function createPort(
  position: Position,
  journal: Journal,
  {
    isOver: isFinished,
    refuse,
  }: { readonly isOver: () => boolean; readonly refuse?: (made: readonly LongTermChange[]) => void },
  { scope, changes }: { readonly scope: TaskScope; readonly changes: LongTermChange[] },
): LongTermPort {
  const { longTerm, codec, world } = journal;
  const taskChanges = getChanges(scope);
  const baseReader =
    longTerm === undefined || taskChanges === changes ? longTerm?.reader : createOverlay(longTerm.reader, taskChanges);
  const reader = baseReader === undefined ? undefined : createOverlay(baseReader, changes);
  const change = (added: readonly LongTermChange[]): void => {
    refuse?.(added);
    if (!isFinished()) changes.push(...added);
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
      if (reader === undefined) throw createNoStoreError(position, scope);
      return reader;
    },
    change,
    redact: journal.redactor.redactUncommon,
    // A read access counts immediately, independent of the superstep's commit.
    refresh: async (touches) => {
      const statuses = (await reader?.refresh(touches)) ?? [];
      const pending = touches.filter((_, index) => statuses[index] === "pending");
      if (pending.length > 0) change(pending.map((touch) => ({ touch })));
      return statuses.map((each) => each !== "missing");
    },
  };
}

/** Adds the long-term changes to the outcome of a task. */
export function addChanges(outcome: TaskOutcome, { longTerm }: TaskScope): TaskOutcome {
  return longTerm === undefined || longTerm.length === 0 ? outcome : { ...outcome, longTerm };
}

/**
 * Collects the changes of finished tasks in the order in which their outcomes are reduced; undefined without changes.
 */
export function collectChanges(finished: readonly FinishedTask[]): readonly LongTermChange[] | undefined {
  let changes: readonly LongTermChange[] | undefined;
  for (const { outcome } of finished) {
    if (outcome.longTerm === undefined) continue;
    changes = changes === undefined ? outcome.longTerm : [...changes, ...outcome.longTerm];
  }
  return changes;
}

// Journaled changes of a call or a step, next to its outcome.

/**
 * Journals the changes of a call or a step before its outcome. A repeated call overwrites a row without an outcome.
 */
export function recordChanges(
  position: Position,
  journal: Journal,
  task: Task,
  { key, changes }: { readonly key: string; readonly changes: readonly LongTermChange[] },
): void {
  const { saved } = journal;
  if (changes.length === 0 && saved === undefined) return;
  const rowKey = toJournalKey(position.step, getAuxiliaryTaskId(task.id, "longTerm"), key);
  if (changes.length === 0 && saved?.rows.has(rowKey) !== true) return;
  journal.outcomes.set(rowKey, { value: changes });
  if (saved === undefined) return;
  const row = createAuxiliaryRow(position, journal.world, task, { auxiliary: "longTerm", key });
  const encode = (): string => encodeWrapper(saved.codec, changes, `what "${key}" put into the long-term store`);
  recordEffect(saved, { row, encode, onCommitted: undefined });
}

/** Returns the recorded changes of a call or a step that is not repeated. */
export function getRecordedChanges(
  position: Position,
  journal: Journal,
  task: Task,
  key: string,
): readonly LongTermChange[] {
  const rowKey = toJournalKey(position.step, getAuxiliaryTaskId(task.id, "longTerm"), key);
  const outcome = journal.outcomes.get(rowKey);
  if (outcome !== undefined && "value" in outcome) return outcome.value as readonly LongTermChange[];
  return decodeChanges(journal.codec, journal.saved?.rows.get(rowKey));
}

/** Adds the changes of the hooks around an effect to the outcome of the task. */
export function collectHookChanges(position: Position, journal: Journal, scope: TaskScope, effect: string): void {
  const changes = getRecordedChanges(position, journal, scope.task, effect);
  if (changes.length > 0) getChanges(scope).push(...changes);
}

/** Finds the recorded changes in journal rows. */
export function findJournaledChanges(
  codec: Codec,
  journal: readonly EffectRow[],
  task: string,
  key: string,
): readonly LongTermChange[] {
  const auxiliaryTask = getAuxiliaryTaskId(task, "longTerm");
  return decodeChanges(
    codec,
    journal.find((row) => row.task === auxiliaryTask && row.key === key),
  );
}

function decodeChanges(codec: Codec, row: EffectRow | undefined): readonly LongTermChange[] {
  return row?.outcome === undefined ? [] : (codec.decode(row.outcome) as readonly LongTermChange[]);
}

function createNoStoreError(position: Position, { task }: TaskScope): StatewrightError {
  return new StatewrightError("missing_store", {
    what: `the node "${task.node}" used the long-term store in a run without a store`,
    next: "Pass a store to the run: memoryStore() or sqliteStore(path)",
    place: getTaskPlace(position, task),
  });
}

function createStepConflictError(position: Position, { task }: TaskScope): StatewrightError {
  return invalidOption({
    where: `the long-term store of the node "${task.node}"`,
    expected: "no write while a recorded step of the node is active",
    found: "a write",
    fix: "Write through the long-term store of the step, step(key, ({ longTerm }) => …); its writes are recorded with the step, and not lost when the step is not repeated",
    place: getTaskPlace(position, task),
  });
}
