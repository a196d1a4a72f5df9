/**
 * A node declared `once`: its start is durable before its body begins. A body that started and has no result, be it by a
 * crash, a failure or a cancel, is not run again before a person has said whether it happened.
 */
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type EffectRow, type InterruptRow, inFlight } from "../../checkpoint/journal.ts";
import { planOf } from "../../compile/plan.ts";
import { goto } from "../../define/command.ts";
import { jsonSchemaOf } from "../../tool/definition/model-tool.ts";
import { inDoubtKey, type NodeInDoubtAnswer, nodeInDoubtAnswer } from "../../tool/policy/approval.ts";
import { aboutStart, callOff } from "../journal/journal.ts";
import { aboutElsewhere, bestOf, type Elsewhere, onceElsewhere } from "../journal/prior-effects.ts";
import { sameWriter } from "../migration/thread-snapshot.ts";
import type { TaskOutcome } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import { journalKey, placeOf, recordNow, type Saved, type Session, taskKey } from "../session/session.ts";
import { unfitOf } from "../superstep/outcome-compatibility.ts";

/** Run a `once` body, or hand back what a person said that it did, or what it did on another branch. */
export async function runOnce(
  session: Session,
  saved: Saved,
  scope: TaskScope,
  body: () => unknown,
  read: (returned: unknown) => TaskOutcome,
): Promise<TaskOutcome> {
  const row = saved.journal.get(journalKey(session.step, scope.task.id, taskKey));
  if (row !== undefined && (row.state === "error" || inFlight(row))) {
    const about = `${session.run.branch} ${aboutStart(row)}`;
    const asked = ask(scope, row.attempts, about, doubt(session, scope.task, row));
    if ("open" in asked) return scope.suspend([asked.open]);
    if (asked.happened) return read(returnedOf(asked));
  }
  // Also where it is known that it did not happen here: another branch may have done it since.
  const journals = onceElsewhere(session, saved);
  const others = journals === undefined ? [] : (await journals).filter(isOf(session, scope.task));
  const found = bestOf(others);
  if (found !== undefined) {
    const outcome = await outcomeOf(session, saved, found);
    if (outcome !== undefined && session.onceElsewhere === "reuse") return outcome;
    const payload = { ...doubt(session, scope.task, found.row), ...there(saved, found) };
    const asked = ask(scope, 0, aboutElsewhere(others), payload);
    if ("open" in asked) return scope.suspend([asked.open]);
    const told = asked.update !== undefined || asked.goto !== undefined;
    if (asked.happened) return outcome === undefined || told ? read(returnedOf(asked)) : outcome;
  }
  if (!(await saveStart(session, saved, scope, (row?.attempts ?? 0) + 1))) return new Promise(() => undefined);
  return read(await body());
}

/**
 * Each start has a question of its own: that the first did not happen says nothing of the second. Number 0 is another branch's.
 * `about` tells starts of one number apart: a fork takes answers over, and another branch may have started it since.
 */
function ask(
  scope: TaskScope,
  start: number,
  about: string,
  payload: unknown,
): NodeInDoubtAnswer | { readonly open: InterruptRow } {
  const id = `${scope.task.id}/start${start}:${inDoubtKey}`;
  const asked = scope.consult({ id, about, key: inDoubtKey, payload, schema: jsonSchemaOf(nodeInDoubtAnswer) });
  return "open" in asked ? asked : (asked.answer as NodeInDoubtAnswer);
}

function returnedOf({ update, goto: target }: NodeInDoubtAnswer): readonly unknown[] {
  return [update, target === undefined ? undefined : goto(target)];
}

/** A node that the graph does not have any more may be this one, under the name that it had then. */
function isOf({ plan }: Session, { id, node }: Task): (found: Elsewhere) => boolean {
  return ({ row: { task, key, kind, name } }) =>
    kind === "task" && key === taskKey && task === id && (name === node || !plan.nodes.has(name));
}

/** What the body gave on another branch, where the graph can take it as it is now. What it put into the long-term store is there already. */
async function outcomeOf(session: Session, saved: Saved, found: Elsewhere): Promise<TaskOutcome | undefined> {
  const { state, outcome: text } = found.row;
  if (state !== "ok" || text === undefined) return undefined;
  const { longTerm: _, ...outcome } = saved.codec.decode(text) as TaskOutcome;
  const fits = unfitOf(session.plan, outcome).length === 0 || (await isOfThisVersion(session, saved, found));
  return fits ? deepFreeze(outcome) : undefined;
}

/** Whether the graph as it is now gave it: then it fits, also where a schema does not take again what it has made. */
async function isOfThisVersion(
  { run, step, versions }: Session,
  { store }: Saved,
  { line }: Elsewhere,
): Promise<boolean> {
  const { graph } = versions;
  const now = { graph: graph.name, version: graph.version, shape: planOf(graph).shape };
  for (let before: number | undefined; ; ) {
    const page = await store.history(run.thread, { branch: line, before, limit: 50 });
    const row = page.find((each) => each.step === step);
    if (row !== undefined) return sameWriter(await store.writtenBy(run.thread, row.id), now);
    before = page.at(-1)?.id;
    if (before === undefined || page.length < 50) return false;
  }
}

/** Where it happened, and what came of it: as far as it is known, or how it failed. */
function there({ codec }: Saved, { branch, row: { state, outcome } }: Elsewhere): object {
  if (outcome === undefined) return { alreadyOn: branch };
  if (state !== "ok") return { alreadyOn: branch, error: codec.decode(outcome) };
  const { writes } = codec.decode(outcome) as TaskOutcome;
  return { alreadyOn: branch, outcome: Object.fromEntries(writes.map(({ channel, value }) => [channel, value])) };
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

function doubt({ control }: Session, { node, input }: Task, { startedAt }: EffectRow): object {
  return { node, startedAt, ...(input === undefined ? {} : { input: control.inputs[input] }) };
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
