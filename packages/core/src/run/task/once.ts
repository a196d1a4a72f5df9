/**
 * Runs nodes declared `once`: the start is durable before the body begins. A body that started without a result,
 * because of a crash, a failure or a cancel, does not run again before a user has answered whether its effect
 * happened.
 */

import type { ErrorRecord, StatewrightError } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { deepFreeze } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type EffectRow, type InterruptRow, isInFlight } from "../../checkpoint/journal.ts";
import { getPlan } from "../../compile/plan.ts";
import { goto } from "../../define/command.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import { inDoubtKey, type NodeInDoubtAnswer, nodeInDoubtAnswer } from "../../tool/policy/approval.ts";
import { closeAttempt, restartRow } from "../journal/effect-attempts.ts";
import { commitStart, describeStart } from "../journal/journal.ts";
import {
  describePriorEffects,
  findPriorEffects,
  type PriorEffect,
  selectPriorEffect,
} from "../journal/prior-effects.ts";
import { createTaskRow } from "../journal/task-row.ts";
import { isSameWriter } from "../migration/thread-snapshot.ts";
import { type Persistence, taskKey, toJournalKey } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";
import type { TaskOutcome } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { findOutcomeIncompatibilities } from "../superstep/outcome-compatibility.ts";

/** Runs a `once` body, or returns its outcome from a user's answer or from another branch. */
export async function runOnce(
  session: Pick<Session, "env" | "position" | "progress">,
  saved: Persistence,
  scope: TaskScope,
  { body, read }: { readonly body: () => unknown; readonly read: (returned: unknown) => TaskOutcome },
): Promise<TaskOutcome> {
  const row = saved.rows.get(toJournalKey(session.position.step, scope.task.id, taskKey));
  if (row !== undefined && (row.state === "error" || isInFlight(row))) {
    const about = `${session.position.run.branch} ${describeStart(row)}`;
    const response = askInDoubt(scope, row.attempts, about, buildInDoubtPayload(session.progress, scope.task, row));
    if ("open" in response) return scope.suspend([response.open]);
    if (response.happened) return read(toReturned(response));
  }
  // Also checked when the effect is known not to have happened on this branch: another branch may have run it since.
  const journals = findPriorEffects(session.env, session.position, saved);
  const priorEffects = journals === undefined ? [] : (await journals).filter(matchTask(session.position, scope.task));
  const found = selectPriorEffect(priorEffects);
  if (found !== undefined) {
    const outcome = await decodePriorOutcome(session.env, session.position, saved, found);
    if (outcome !== undefined && session.env.onPriorEffect === "reuse") return outcome;
    const payload = {
      ...buildInDoubtPayload(session.progress, scope.task, found.row),
      ...describePriorEffect(saved, found),
    };
    const answer = askInDoubt(scope, 0, describePriorEffects(priorEffects), payload);
    if ("open" in answer) return scope.suspend([answer.open]);
    const hasAnsweredOutcome = answer.update !== undefined || answer.goto !== undefined;
    if (answer.happened) return outcome === undefined || hasAnsweredOutcome ? read(toReturned(answer)) : outcome;
  }
  const startedAt = session.env.world.clock.now();
  const { processes, attemptLog } = row === undefined ? noAttempts : restartRow(closeFailed(saved, row), startedAt);
  const start = {
    state: "started",
    attempts: (row?.attempts ?? 0) + 1,
    startedAt,
    ...(processes === undefined ? {} : { processes }),
    ...(attemptLog === undefined ? {} : { attemptLog }),
  } as const;
  return commitStart<TaskOutcome>(session.env.world, saved, {
    row: createTaskRow(session.position, scope.task, start),
    isAbandoned: scope.isEnded,
    begin: async () => read(await body()),
  });
}

const noAttempts: Pick<EffectRow, "processes" | "attemptLog"> = {};

/** Closes the attempt of a row with a recorded failure by the code of the failure. */
function closeFailed({ codec }: Persistence, row: EffectRow): EffectRow {
  const { state, outcome, endedAt } = row;
  if (state !== "error" || outcome === undefined) return row;
  return closeAttempt(row, { error: (codec.decode(outcome) as ErrorRecord).code ?? "error", endedAt });
}

/**
 * Raises the in-doubt interrupt of a start, or returns its answer. Each start has its own interrupt: an answer about
 * the first start says nothing about the second. Start 0 stands for another branch. `about` distinguishes starts with
 * the same number: a fork copies answers, and another branch may have started the node since.
 */
function askInDoubt(
  scope: TaskScope,
  start: number,
  about: string,
  payload: unknown,
): NodeInDoubtAnswer | { readonly open: InterruptRow } {
  const id = `${scope.task.id}/start${start}:${inDoubtKey}`;
  const response = scope.consult({ id, about, key: inDoubtKey, payload, schema: toJsonSchema(nodeInDoubtAnswer) });
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
): Promise<TaskOutcome | undefined> {
  const { state, outcome: text } = found.row;
  if (state !== "ok" || text === undefined) return undefined;
  const { longTerm: _, ...outcome } = saved.codec.decode(text) as TaskOutcome;
  const isCompatible =
    findOutcomeIncompatibilities(position.plan, outcome).length === 0 ||
    (await isFromCurrentVersion(env, position, saved, found));
  return isCompatible ? deepFreeze(outcome) : undefined;
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

/**
 * Describes the effect on the other branch for the interrupt payload: branch, and outcome or error as far as
 * recorded.
 */
function describePriorEffect({ codec }: Persistence, { branch, row: { state, outcome } }: PriorEffect): object {
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
    place: getErrorPlace(position, { node: task.node, task: task.id }),
  });
}

function buildInDoubtPayload(
  { control }: Progress,
  { node, input }: Task,
  { idempotencyKey, startedAt }: EffectRow,
): object {
  return { node, idempotencyKey, startedAt, ...(input === undefined ? {} : { input: control.inputs[input] }) };
}
