/**
 * Runs nodes declared `once`: the start is durable before the body begins. A body that started without a result,
 * because of a crash, a failure or a cancel, does not run again before a user has answered whether its effect
 * happened.
 */

import type { StatewrightError } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { deepFreeze } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { getPlan } from "../../compile/plan.ts";
import { goto } from "../../define/command.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import { inDoubtKey, type NodeInDoubtAnswer, nodeInDoubtAnswer } from "../../tool/policy/approval.ts";
import type { EffectDoubt, RecordedOutcome } from "../journal/decide-effect.ts";
import { runRecordedEffect } from "../journal/journal.ts";
import type { PriorEffect } from "../journal/prior-effects.ts";
import { isSameWriter } from "../migration/thread-snapshot.ts";
import { type Persistence, taskKey, toJournalKey } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import { getTaskPlace } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";
import type { TaskOutcome } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { findOutcomeIncompatibilities } from "../superstep/outcome-compatibility.ts";

/** Runs a `once` body, or returns its outcome from a user's answer or from another branch. */
export function runOnce(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  saved: Persistence,
  scope: TaskScope,
  { body, read }: { readonly body: () => unknown; readonly read: (returned: unknown) => TaskOutcome },
): Promise<TaskOutcome> {
  const { env, position, progress } = session;
  const { task } = scope;
  const row = saved.rows.get(toJournalKey(position.step, task.id, taskKey));
  return runRecordedEffect<TaskOutcome>(session, {
    task,
    key: taskKey,
    kind: "task",
    name: task.node,
    effect: "once",
    startNumber: (row?.attempts ?? 0) + 1,
    isAbandoned: scope.isEnded,
    execute: async () => read(await body()),
    consult: (doubt) => {
      const response = consultAboutTask(scope, doubt, {
        branch: position.run.branch,
        payload: { ...buildInDoubtPayload(progress, task, doubt.row), ...describePriorEffect(saved, doubt) },
      });
      if ("open" in response) return { open: scope.suspend([response.open]) };
      const { happened, update, goto: target } = response;
      const statesValue = update !== undefined || target !== undefined;
      return { happened, statesValue, getValue: () => read(toReturned(response)) };
    },
    priorEffects: {
      match: (found) => found.filter(matchTask(position, task)),
      decode: (found) => decodePriorOutcome(env, position, saved, found),
    },
    // The superstep records the outcome of a task.
    finish: (_, outcome) => outcome,
  });
}

/**
 * Raises the in-doubt interrupt of a start, or returns its answer. Each start has its own interrupt: an answer about
 * the first start says nothing about the second. Start 0 stands for another branch. The subject distinguishes starts
 * with the same number: a fork copies answers, and another branch may have started the node since.
 */
function consultAboutTask(
  scope: TaskScope,
  { row, about, prior }: EffectDoubt<TaskOutcome>,
  { branch, payload }: { readonly branch: string; readonly payload: unknown },
): NodeInDoubtAnswer | { readonly open: InterruptRow } {
  const response = scope.consult({
    id: `${scope.task.id}/start${prior === undefined ? row.attempts : 0}:${inDoubtKey}`,
    about: prior === undefined ? `${branch} ${about}` : about,
    key: inDoubtKey,
    payload,
    schema: toJsonSchema(nodeInDoubtAnswer),
  });
  return "open" in response ? response : (response.answer as NodeInDoubtAnswer);
}

function toReturned({ update, goto: target }: NodeInDoubtAnswer): readonly unknown[] {
  return [update, target === undefined ? undefined : goto(target)];
}

/**
 * Matches journal rows of the same task. A row of a node that the graph no longer has may belong to this node under
 * its former name.
 */
function matchTask({ plan }: Position, { id, node }: Task): (found: PriorEffect) => boolean {
  return ({ row: { task, key, kind, name } }) =>
    kind === "task" && key === taskKey && task === id && (name === node || !plan.nodes.has(name));
}

/**
 * Returns the outcome recorded on another branch if the current graph accepts it. Its long-term store changes are
 * already applied.
 */
async function decodePriorOutcome(
  env: RunEnvironment,
  position: Position,
  saved: Persistence,
  found: PriorEffect,
): Promise<RecordedOutcome<TaskOutcome> | undefined> {
  const { state, outcome: text } = found.row;
  if (state !== "ok" || text === undefined) return undefined;
  const { longTerm: _, ...outcome } = saved.codec.decode(text) as TaskOutcome;
  const isCompatible =
    findOutcomeIncompatibilities(position.plan, outcome).length === 0 ||
    (await isFromCurrentVersion(env, position, saved, found));
  return isCompatible ? { value: deepFreeze(outcome) } : undefined;
}

/**
 * Returns true if the current graph version wrote the checkpoint. Such an outcome is compatible even when a schema
 * rejects its own output.
 */
async function isFromCurrentVersion(
  { versions }: RunEnvironment,
  { run, step }: Position,
  { store }: Persistence,
  { namespace }: PriorEffect,
): Promise<boolean> {
  const { graph } = versions;
  const currentVersion = { graph: graph.name, version: graph.version, shape: getPlan(graph).shape };
  for (let before: number | undefined; ; ) {
    const page = await store.history(run.thread, { branch: namespace, before, limit: 50 });
    const row = page.find((each) => each.step === step);
    if (row !== undefined) return isSameWriter(await store.writtenBy(run.thread, row.id), currentVersion);
    before = page.at(-1)?.id;
    if (before === undefined || page.length < 50) return false;
  }
}

/** Describes the effect of another branch for the interrupt payload: branch, and outcome or error as far as recorded. */
function describePriorEffect(
  { codec }: Persistence,
  { row: { state, outcome }, prior }: EffectDoubt<TaskOutcome>,
): object {
  if (prior === undefined) return {};
  const { branch } = prior;
  if (outcome === undefined) return { alreadyOn: branch };
  if (state !== "ok") return { alreadyOn: branch, error: codec.decode(outcome) };
  const { writes } = codec.decode(outcome) as TaskOutcome;
  return { alreadyOn: branch, outcome: Object.fromEntries(writes.map(({ channel, value }) => [channel, value])) };
}

/** Error of a `once` node that raises an interrupt: its body would run again with the answer. */
export function createOnceInterruptError(position: Position, task: Task, key: string): StatewrightError {
  return invalidOption({
    where: `the node "${task.node}", declared once`,
    expected: "no interrupt, because its body would run again with the answer",
    found: `the interrupt "${key}"`,
    fix: 'Raise the interrupt in a node before it, or put the work that must not repeat in step(key, fn, { effect: "once" })',
    place: getTaskPlace(position, task),
  });
}

function buildInDoubtPayload(
  { control }: Progress,
  { node, input }: Task,
  { idempotencyKey, startedAt }: EffectRow,
): object {
  return { node, idempotencyKey, startedAt, ...(input === undefined ? {} : { input: control.inputs[input] }) };
}
