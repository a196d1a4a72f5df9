/**
 * A node declared `once`: its start is durable before its body begins. A body that started and has no result, be it by a
 * crash, a failure or a cancel, is not run again before a person has said whether it happened.
 */
import { StatewrightError } from "../base/errors.ts";
import type { Task } from "../checkpoint/checkpoint.ts";
import type { EffectRow, InterruptRow } from "../checkpoint/journal.ts";
import { goto } from "../define/command.ts";
import { inDoubtKey, type NodeInDoubtAnswer, nodeInDoubtAnswer } from "../tool/approval.ts";
import { jsonSchemaOf } from "../tool/model-tool.ts";
import { callOff, inFlight } from "./journal.ts";
import type { TaskScope } from "./scope.ts";
import { journalKey, placeOf, recordNow, type Saved, type Session, taskKey } from "./session.ts";

/** Run a `once` body, or hand back what a person said that it did. */
export async function runOnce(session: Session, saved: Saved, scope: TaskScope, body: () => unknown): Promise<unknown> {
  const row = saved.journal.get(journalKey(session.step, scope.task.id, taskKey));
  if (row !== undefined && (row.state === "error" || inFlight(row))) {
    const asked = scope.consult({
      id: doubtId(scope.task, row.attempts),
      key: inDoubtKey,
      payload: doubt(session, scope.task, row),
      schema: jsonSchemaOf(nodeInDoubtAnswer),
    });
    if ("open" in asked) return scope.suspend([asked.open]);
    const { happened, update, goto: target } = asked.answer as NodeInDoubtAnswer;
    if (happened) return [update, target === undefined ? undefined : goto(target)];
  }
  if (!(await saveStart(session, saved, scope, (row?.attempts ?? 0) + 1))) return new Promise(() => undefined);
  return body();
}

/** Whether a question is about the start of a `once` node: its answer has a schema of its own, whatever the graph declares. */
export function isStartInDoubt({ id }: InterruptRow): boolean {
  return startInDoubt.test(id);
}

const startInDoubt = new RegExp(`/start\\d+:${inDoubtKey}$`);

/** A body that asks starts again with the answer: a `once` node leaves that to the node before it. */
export function onceMayNotAsk(session: Session, task: Task, key: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the node "${task.node}" is declared once and asked "${key}": its body would start again with the answer`,
    next: 'Ask in a node before it, or put what must not repeat in step(key, fn, { effect: "once" })',
    place: placeOf(session, { node: task.node, task: task.id }),
  });
}

function doubt({ control }: Session, { node, input }: Task, { startedAt }: EffectRow): unknown {
  return { node, startedAt, ...(input === undefined ? {} : { input: control.inputs[input] }) };
}

/** Each start has a question of its own: that the first did not happen says nothing of the second. */
function doubtId(task: Task, starts: number): string {
  return `${task.id}/start${starts}:${inDoubtKey}`;
}

/** Whether the body may begin: its start is durable, and nobody has given the attempt up meanwhile. */
function saveStart(session: Session, saved: Saved, { task, ended }: TaskScope, attempts: number): Promise<boolean> {
  const row: EffectRow = {
    step: session.step,
    task: task.id,
    key: taskKey,
    kind: "task",
    name: task.node,
    effect: "once",
    state: "started",
    attempts,
    idempotencyKey: "",
    startedAt: session.world.clock.now(),
  };
  return new Promise((resolve, reject) => {
    const start = new Promise<void>((isTold) => {
      recordNow(session, saved, {
        row,
        encode: undefined,
        told: (failure) => {
          isTold();
          saved.starts.delete(start);
          const mayBegin = failure === undefined && !ended();
          if (failure !== undefined) reject(failure);
          else if (!mayBegin) callOff(session, saved, row);
          resolve(mayBegin);
        },
      });
    });
    saved.starts.add(start);
  });
}
