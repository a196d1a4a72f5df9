/** Journal keys of a body and of the hooks around its model calls, unique within a task. */

import { StatewrightError } from "../../base/errors.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Journal } from "../session/parts/journal.ts";
import { taskKey, toJournalKey } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import { getTaskPlace } from "../session/parts/position.ts";
import type { TaskScope } from "../session/scope.ts";

/** Key prefix of the steps, model calls and interrupts of an error handler, separate from the body's results. */
export const handlerKeys = "onError/";

/** Matches keys of hooks at the ends of an agent, next to the model call, and of the turn limit. */
const hookKeyPattern = /:(beforeAgent|afterAgent|maxTurns)(?=:|$)/g;

/** Key of a recorded effect of a body; `name` is undefined for a model call. */
interface BodyKey {
  readonly keyPrefix: string;
  readonly key: string;
  readonly name: string | undefined;
}

/**
 * Claims a key for a step named `name`, or for a model call, of the body; `keyPrefix` precedes it. Returns the error
 * for a forbidden key.
 */
export function claimBodyKey(
  position: Position,
  journal: Journal,
  scope: TaskScope,
  { keyPrefix, key, name }: BodyKey,
): StatewrightError | undefined {
  const owner = findKeyOwner(position, journal, scope, { keyPrefix, key, name });
  scope.recordedKeys ??= new Map();
  if (owner !== undefined || key === "" || scope.recordedKeys.has(keyPrefix + key))
    return createKeyError(position, scope.task, key, owner);
  scope.recordedKeys.set(keyPrefix + key, "body");
  return undefined;
}

/**
 * Claims a key for a hook's auxiliary model call. Throws `repeated_step` when the task's body has recorded the key.
 */
export function claimHookKey(position: Position, scope: TaskScope, key: string): void {
  scope.recordedKeys ??= new Map();
  if (scope.recordedKeys.get(key) === "body") throw createKeyError(position, scope.task, key, auxiliaryCallOwner);
  scope.recordedKeys.set(key, "hooks");
}

/** Returns the owner of a key that a body must not use. A key that the body has already recorded stays usable. */
function findKeyOwner(
  position: Position,
  journal: Journal,
  { task, recordedKeys }: TaskScope,
  { keyPrefix, key, name }: BodyKey,
): string | undefined {
  if (recordedKeys?.get(keyPrefix + key) === "hooks") return auxiliaryCallOwner;
  const owner = findReservedOwner(keyPrefix, key);
  return owner === undefined || isRecordedByBody(position, journal, task, { key: keyPrefix + key, name })
    ? undefined
    : owner;
}

function findReservedOwner(keyPrefix: string, key: string): string | undefined {
  if (keyPrefix === "" && key.startsWith(handlerKeys)) return "error handlers";
  return key.search(hookKeyPattern) === -1 ? undefined : "the hooks at the start and end of an agent";
}

/** Returns true if the body recorded the key before the key became reserved. */
function isRecordedByBody(
  { step }: Position,
  { saved }: Journal,
  task: Task,
  { key, name }: { readonly key: string; readonly name: string | undefined },
): boolean {
  const findRow = (other: string): EffectRow | undefined => saved?.rows.get(toJournalKey(step, task.id, other));
  const known = findRow(key);
  if (known === undefined) return false;
  if (name !== undefined) return known.kind === "step" && known.name === name;
  if (known.kind !== "model") return false;
  // A started handler leaves the failure of the task in the journal; hooks with model calls leave their own rows.
  if (key.startsWith(handlerKeys) && findRow(taskKey) !== undefined) return false;
  return [...key.matchAll(hookKeyPattern)].every(({ index, 0: end, 1: hook }) => {
    const enclosing = findRow(key.slice(0, index + end.length));
    return enclosing === known || enclosing?.name !== hook;
  });
}

const auxiliaryCallOwner = "auxiliary model calls of hooks";

function createKeyError(position: Position, task: Task, key: string, owner: string | undefined): StatewrightError {
  const twice = key === "" ? "used an empty step key" : `used the step key "${key}" twice in one task`;
  return new StatewrightError("repeated_step", {
    what: `the node "${task.node}" ${owner === undefined ? twice : `used the step key "${key}", which is reserved for ${owner}`}`,
    next: "Use a unique key for each step of a task, such as a key with the item's id",
    place: getTaskPlace(position, task),
  });
}
