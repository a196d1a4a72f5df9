/** The control state of a checkpoint, read back. A file may come from a stranger: what is no control state is refused here. */
import { StatewrightError } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";
import type { Codec } from "../state/codec.ts";
import type { CheckpointRow, Control } from "./checkpoint.ts";
import { count, list, maybe } from "./codec/row-shapes.ts";

/** What a checkpoint says of where control stands. Throws `store_corrupt`. */
export function controlOf(
  codec: Codec,
  { id, branch, control }: Pick<CheckpointRow, "id" | "branch" | "control">,
): Control {
  const data = codec.decode(control);
  if (isControl(data)) return data;
  throw new StatewrightError("store_corrupt", {
    what: `what stands in the checkpoint ${id} as its control state is none`,
    next: "Restore the file from a backup, or fork from the last good checkpoint",
    place: { branch },
  });
}

type Check = (value: unknown) => boolean;

function isControl(data: unknown): data is Control {
  if (!isPlainObject(data)) return false;
  const { machine, tasks, free, inputs, joins, held, steps, begun, turns, caller, pending } = data;
  return (
    machine !== undefined &&
    Array.isArray(inputs) &&
    list(taskAmong(inputs))(tasks) &&
    recordOf(names)(joins) &&
    maybe(count)(free) &&
    maybe(count)(steps) &&
    maybe(names)(begun) &&
    maybe(recordOf(count))(turns) &&
    maybe(list(object({ node: text, from: names, sent: maybe(isPlainObject) })))(held) &&
    maybe(object({ task: text, checkpoint: maybe(count), within: text, graph: maybe(text) }))(caller) &&
    maybe(object({ children: names, actors: list(actor), timers: list(timer) }))(pending)
  );
}

const text: Check = (value) => typeof value === "string";
const names = list(text);
const number: Check = (value) => typeof value === "number";
const event = object({ type: text });
const actor = object({ task: text, owner: text, id: text, src: text });
const timer = object({ armed: text, owner: text, id: text, to: text, event, dueAt: number });

function taskAmong(inputs: readonly unknown[]): Check {
  const input = maybe((value) => count(value) && (value as number) < inputs.length);
  return object({ id: text, node: text, from: maybe(names), input });
}

function object(fields: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(fields);
  return (value) =>
    isPlainObject(value) &&
    checks.every(([field, check]) => check(Object.hasOwn(value, field) ? value[field] : undefined));
}

function recordOf(check: Check): Check {
  return (value) => isPlainObject(value) && Object.values(value).every(check);
}
