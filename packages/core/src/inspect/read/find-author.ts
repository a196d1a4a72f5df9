/** Finds the task, the tool call and the person behind a written value. */
import { isPlainObject } from "../../base/json.ts";
import { findPart } from "../../base/json-pointer.ts";
import type { CheckpointRow, Task } from "../../checkpoint/checkpoint.ts";
import { parseControl } from "../../checkpoint/control.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { getReducedStep } from "../../checkpoint/rules.ts";
import type { ThreadReader } from "./thread-reader.ts";

/** Author of a value: each part is absent when it is not certain. */
export interface Author {
  readonly task?: string;
  readonly call?: string;
  readonly by?: string;
}

/** Work of a superstep: the tasks that it reduced, with their journal rows and interrupts. */
export interface SuperstepWork {
  readonly parent: CheckpointRow | undefined;
  readonly tasks: readonly Task[];
  /** Inputs of sent tasks, by {@link Task.input}. */
  readonly inputs: readonly unknown[];
  readonly effects: readonly EffectRow[];
  readonly interrupts: readonly InterruptRow[];
}

/** Loads the work of a superstep; empty for a checkpoint that reduced no tasks, such as an input. */
export async function loadSuperstepWork(
  { reads, thread, codec }: ThreadReader,
  row: CheckpointRow,
): Promise<SuperstepWork> {
  const parent = row.parent === undefined ? undefined : await reads.checkpoint(thread, row.parent);
  const step = getReducedStep(row, parent?.step);
  if (step === undefined) return { parent, tasks: [], inputs: [], effects: [], interrupts: [] };
  const { tasks, inputs } = parent === undefined ? { tasks: [], inputs: [] } : parseControl(codec, parent);
  const interrupts = await reads.interrupts(thread, row.branch);
  return {
    parent,
    tasks: row.source === "step" ? tasks : [],
    inputs,
    effects: await reads.effects(thread, row.branch, step),
    interrupts: interrupts.filter((each) => each.step === step),
  };
}

/** Finds the author of the value at a path of a channel, written by this superstep. */
export async function findAuthor(
  reader: ThreadReader,
  row: CheckpointRow,
  written: { readonly value: unknown; readonly path: readonly string[] },
): Promise<Author> {
  const { tasks, effects, interrupts } = await loadSuperstepWork(reader, row);
  const [onlyTask] = tasks.length === 1 ? tasks : [];
  const calls = effects.filter(({ kind }) => kind === "tool");
  const known = findCallId(written);
  const effect =
    known === undefined
      ? calls.length === 1 && onlyTask !== undefined && calls[0]?.task === onlyTask.id
        ? calls[0]
        : undefined
      : calls.find(({ key }) => key === known);
  const task = effect?.task ?? onlyTask?.id;
  const call = known ?? effect?.key;
  const answered = interrupts.filter(
    (each) => each.answeredBy !== undefined && each.task === task && isAboutCall(each, call),
  );
  const people = new Set(answered.map(({ answeredBy }) => answeredBy));
  const [by] = people.size === 1 ? people : [];
  return {
    ...(task === undefined ? {} : { task }),
    ...(call === undefined ? {} : { call }),
    ...(by === undefined ? {} : { by }),
  };
}

/** An interrupt of a tool call has the call in its id. */
function isAboutCall({ id, tool }: InterruptRow, call: string | undefined): boolean {
  return tool === undefined || call === undefined || id.includes(`:${call}`);
}

/** Returns the call id of the tool message that holds the value. */
function findCallId({
  value,
  path,
}: {
  readonly value: unknown;
  readonly path: readonly string[];
}): string | undefined {
  for (let length = 0; length <= path.length; length++) {
    const { value: part } = findPart(value, path.slice(0, length));
    if (isPlainObject(part) && part["role"] === "tool" && typeof part["callId"] === "string") return part["callId"];
  }
  return undefined;
}
