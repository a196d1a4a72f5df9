/**
 * JSON Patch (RFC 6902) between two values. Values that JSON does not have, such as dates and maps, are compared and
 * replaced whole.
 */
import { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { deepFreeze, isPlainObject } from "../base/json.ts";
import { isIndex, parseJsonPointer, toJsonPointer } from "../base/json-pointer.ts";
import { isSameValue } from "../base/same-value.ts";
import { copyObject } from "./delta.ts";

/** Operation of a JSON Patch. */
export type JsonPatchOp =
  | { readonly op: "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

/** Operation with the value that it replaces or removes. */
export interface ValueChange {
  readonly op: JsonPatchOp;
  /** Undefined for an `add`. */
  readonly before: unknown;
}

/**
 * Lists the operations that turn `before` into `after`, in order. Lists are compared without moves: equal items at both
 * ends are kept, the items between are compared one by one.
 */
export function diffValues(before: unknown, after: unknown): readonly ValueChange[] {
  const changes: ValueChange[] = [];
  addChanges(changes, [], before, after);
  return changes;
}

type Path = readonly (string | number)[];

function addChanges(changes: ValueChange[], path: Path, before: unknown, after: unknown): void {
  if (Object.is(before, after)) return;
  if (Array.isArray(before) && Array.isArray(after)) addListChanges(changes, path, before, after);
  else if (isPlainObject(before) && isPlainObject(after)) addObjectChanges(changes, path, before, after);
  else if (!isSameValue(before, after))
    changes.push({ op: { op: "replace", path: toJsonPointer(path), value: after }, before });
}

function addObjectChanges(
  changes: ValueChange[],
  path: Path,
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): void {
  for (const key of Object.keys(before))
    if (!Object.hasOwn(after, key))
      changes.push({ op: { op: "remove", path: toJsonPointer([...path, key]) }, before: before[key] });
  for (const key of Object.keys(after))
    if (Object.hasOwn(before, key)) addChanges(changes, [...path, key], before[key], after[key]);
    else changes.push({ op: { op: "add", path: toJsonPointer([...path, key]), value: after[key] }, before: undefined });
}

function addListChanges(
  changes: ValueChange[],
  path: Path,
  before: readonly unknown[],
  after: readonly unknown[],
): void {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isSameValue(before[start], after[start])) start += 1;
  let end = 0;
  while (end < shorter - start && isSameValue(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const common = shorter - end;
  for (let index = start; index < common; index++) addChanges(changes, [...path, index], before[index], after[index]);
  const at = toJsonPointer([...path, common]);
  for (let index = common; index < before.length - end; index++)
    changes.push({ op: { op: "remove", path: at }, before: before[index] });
  for (let index = common; index < after.length - end; index++)
    changes.push({
      op: { op: "add", path: toJsonPointer([...path, index]), value: after[index] },
      before: undefined,
    });
}

/**
 * Applies a JSON Patch of `add`, `replace` and `remove` to a value and returns the frozen result; the value is
 * unchanged. Throws `invalid_option` for a path that the value does not have, and for a patch that is no list.
 */
export function applyJsonPatch(value: unknown, patch: readonly JsonPatchOp[]): unknown {
  if (!Array.isArray(patch))
    throw invalidOption({ where: "applyJsonPatch", option: "patch", expected: "a list of operations", got: patch });
  return deepFreeze(
    patch.reduce((current, op) => applyOp(current, parseJsonPointer("applyJsonPatch", op.path), op), value),
  );
}

function applyOp(value: unknown, path: readonly string[], op: JsonPatchOp): unknown {
  const [token, ...rest] = path;
  if (token === undefined) return op.op === "remove" ? undefined : op.value;
  const isLast = rest.length === 0;
  if (Array.isArray(value)) return applyToList(value, token, rest, op);
  if (!isPlainObject(value)) throw createMissingPartError(op);
  if (!Object.hasOwn(value, token) && !(isLast && op.op === "add")) throw createMissingPartError(op);
  const copy = copyObject(value);
  if (isLast && op.op === "remove") delete copy[token];
  else
    Object.defineProperty(copy, token, {
      value: applyOp(Object.hasOwn(value, token) ? value[token] : undefined, rest, op),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  return copy;
}

function applyToList(
  list: readonly unknown[],
  token: string,
  rest: readonly string[],
  op: JsonPatchOp,
): readonly unknown[] {
  const index = token === "-" ? list.length : Number(token);
  const isAdd = rest.length === 0 && op.op === "add";
  if (!(token === "-" || isIndex(token)) || index > list.length - (isAdd ? 0 : 1)) throw createMissingPartError(op);
  const copy = [...list];
  if (isAdd) copy.splice(index, 0, op.value);
  else if (rest.length === 0 && op.op === "remove") copy.splice(index, 1);
  else copy[index] = applyOp(list[index], rest, op);
  return copy;
}

function createMissingPartError({ op, path }: JsonPatchOp): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `applyJsonPatch: expected a value with the part "${path}", got a value without it for "${op}"`,
    next: "Apply the patch to the value that it was made for",
  });
}
