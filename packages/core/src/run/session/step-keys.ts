/** The keys under which a body and the hooks around its model calls record what they do: no two of a task are the same. */
import { StatewrightError } from "../../base/errors.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { TaskScope } from "./scope.ts";
import { journalKey, placeOf, type Session, taskKey } from "./session.ts";

/** Steps, model calls and questions of an error handler have keys of their own: no result of the body is taken for theirs. */
export const handlerKeys = "onError/";

/** Where what hooks do at the ends of an agent is recorded beside its model call, and what ends it at its limit of turns. */
const ofHooks = /:(beforeAgent|afterAgent|maxTurns)(?=:|$)/g;

/** A body records a step named `name`, or a model's answer, under this key; `space` stands before it. Gives the error for a key that it must not use. */
export function takeForBody(
  session: Session,
  scope: TaskScope,
  space: string,
  key: string,
  name: string | undefined,
): StatewrightError | undefined {
  const owner = keptFor(session, scope, space, key, name);
  scope.keys ??= new Map();
  if (owner !== undefined || key === "" || scope.keys.has(space + key))
    return unfitKey(session, scope.task, key, owner);
  scope.keys.set(space + key, "body");
  return undefined;
}

/** A hook asks a model under this key. Throws `repeated_step` where the body of its task has recorded something there. */
export function takeForHooks(session: Session, scope: TaskScope, key: string): void {
  scope.keys ??= new Map();
  if (scope.keys.get(key) === "body") throw unfitKey(session, scope.task, key, besideKeys);
  scope.keys.set(key, "hooks");
}

/** Whose place in the journal a key is that a body must not use; what a body has recorded there already goes on. */
function keptFor(
  session: Session,
  { task, keys }: TaskScope,
  space: string,
  key: string,
  name: string | undefined,
): string | undefined {
  if (keys?.get(space + key) === "hooks") return besideKeys;
  const owner = ownerOf(space, key);
  return owner === undefined || isOfBody(session, task, space + key, name) ? undefined : owner;
}

function ownerOf(space: string, key: string): string | undefined {
  if (space === "" && key.startsWith(handlerKeys)) return "error handlers";
  return key.search(ofHooks) === -1 ? undefined : "the hooks at the ends of an agent";
}

/** Whether a body has recorded this, before the key was kept. */
function isOfBody({ saved, step }: Session, task: Task, key: string, name: string | undefined): boolean {
  const row = (other: string): EffectRow | undefined => saved?.journal.get(journalKey(step, task.id, other));
  const known = row(key);
  if (known === undefined) return false;
  if (name !== undefined) return known.kind === "step" && known.name === name;
  if (known.kind !== "model") return false;
  // Where a handler has begun the failure of the task stands; where hooks have asked a model, what they do themselves.
  if (key.startsWith(handlerKeys) && row(taskKey) !== undefined) return false;
  return [...key.matchAll(ofHooks)].every(({ index, 0: end, 1: hook }) => {
    const around = row(key.slice(0, index + end.length));
    return around === known || around?.name !== hook;
  });
}

const besideKeys = "what a hook asks of another model";

function unfitKey(session: Session, task: Task, key: string, owner: string | undefined): StatewrightError {
  const twice = key === "" ? "used an empty step key" : `used the step key "${key}" twice in one task`;
  return new StatewrightError("repeated_step", {
    what: `the node "${task.node}" ${owner === undefined ? twice : `used the step key "${key}", which is kept for ${owner}`}`,
    next: "Give each step of a task a key of its own, such as one with the item's id",
    place: placeOf(session, { node: task.node, task: task.id }),
  });
}
