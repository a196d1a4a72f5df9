/**
 * Parses the control state of a checkpoint. Store files are untrusted input: invalid control states are rejected
 * here.
 */
import { StatewrightError } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";
import type { Codec } from "../state/codec.ts";
import type { CheckpointRow, Control } from "./checkpoint.ts";
import { checkList, checkOptional, isCount } from "./codec/row-shapes.ts";

/** Decodes the control state of a checkpoint. Throws `store_corrupt` for an invalid control state. */
export function parseControl(
  codec: Codec,
  { id, branch, control }: Pick<CheckpointRow, "id" | "branch" | "control">,
): Control {
  const data = codec.decode(control);
  if (isControl(data)) return data;
  throw new StatewrightError("store_corrupt", {
    what: `checkpoint ${id} holds an invalid control state`,
    next: "Restore the file from a backup, or fork from the last good checkpoint",
    place: { branch },
  });
}

type Check = (value: unknown) => boolean;

function isControl(data: unknown): data is Control {
  if (!isPlainObject(data)) return false;
  const { machine, tasks, free, inputs, joins, deferred, steps, startedAgents, turns, caller, pending, writers } = data;
  return (
    machine !== undefined &&
    Array.isArray(inputs) &&
    checkList(checkTask(inputs))(tasks) &&
    checkRecord(isTextList)(joins) &&
    checkOptional(isCount)(free) &&
    checkOptional(isCount)(steps) &&
    checkOptional(isTextList)(startedAgents) &&
    checkOptional(checkRecord(isCount))(turns) &&
    checkOptional(checkList(checkObject({ node: isText, from: isTextList, sent: checkOptional(isPlainObject) })))(
      deferred,
    ) &&
    checkOptional(
      checkObject({ task: isText, checkpoint: checkOptional(isCount), nesting: isText, graph: checkOptional(isText) }),
    )(caller) &&
    checkOptional(checkObject({ children: isTextList, actors: checkList(isActor), timers: checkList(isTimer) }))(
      pending,
    ) &&
    checkOptional(checkRecord((value) => isCount(value) || checkList(isWriter)(value)))(writers)
  );
}

const isText: Check = (value) => typeof value === "string";
const isTextList = checkList(isText);
const isWriter: Check = (value) => {
  if (!Array.isArray(value)) return false;
  const [task, part, call] = value;
  return isText(task) && (isCount(part) || isTextList(part)) && checkOptional(isText)(call);
};
const isNumber: Check = (value) => typeof value === "number";
const isEvent = checkObject({ type: isText });
const isActor = checkObject({ task: isText, owner: isText, id: isText, src: isText });
const isTimer = checkObject({ armed: isText, owner: isText, id: isText, to: isText, event: isEvent, dueAt: isNumber });

function checkTask(inputs: readonly unknown[]): Check {
  const input = checkOptional((value) => isCount(value) && (value as number) < inputs.length);
  return checkObject({ id: isText, node: isText, from: checkOptional(isTextList), input });
}

function checkObject(fields: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(fields);
  return (value) =>
    isPlainObject(value) &&
    checks.every(([field, check]) => check(Object.hasOwn(value, field) ? value[field] : undefined));
}

function checkRecord(check: Check): Check {
  return (value) => isPlainObject(value) && Object.values(value).every(check);
}

/** Control state of a thread without checkpoints. */
export const emptyControl: Control = { machine: null, tasks: [], inputs: [], joins: {} };
