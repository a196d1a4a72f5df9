/** Finds the task, the tool call and the person behind a written value. */
import { isPlainObject } from "../../base/json.ts";
import { findPart } from "../../base/json-pointer.ts";
import type { CheckpointRow, DeltaRow, SavedWriter, SavedWriters, Task } from "../../checkpoint/checkpoint.ts";
import { parseControl } from "../../checkpoint/control.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { getReducedStep } from "../../checkpoint/rules.ts";
import type { ThreadReader } from "./thread-reader.ts";

/** Author of a value; each part is absent when it is not certain. */
export interface ValueAuthor {
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
  /** Absent when {@link tasks} and {@link effects} tell the writer. */
  readonly writers?: SavedWriters;
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
  const { writers } = parseControl(codec, row);
  const interrupts = await reads.interrupts(thread, row.branch);
  return {
    parent,
    tasks: row.source === "step" ? tasks : [],
    inputs,
    effects: await reads.effects(thread, row.branch, step),
    interrupts: interrupts.filter((each) => each.step === step),
    ...(writers === undefined ? {} : { writers }),
  };
}

/** Value that a superstep wrote. */
export interface WrittenValue {
  readonly channel: string;
  /** Path of the value in the channel. */
  readonly path: readonly string[];
  /** Value of the channel after the superstep, or before a removal. */
  readonly value: unknown;
  /** Saved change of the channel. */
  readonly delta: Pick<DeltaRow, "kind" | "count"> | undefined;
}

/** Finds the author of the value at a path of a channel, written by this superstep. */
export async function findAuthor(
  reader: ThreadReader,
  row: CheckpointRow,
  written: WrittenValue,
): Promise<ValueAuthor> {
  return identifyAuthor(await loadSuperstepWork(reader, row), written);
}

/** Identifies the author of a written value in the work of its superstep. */
export function identifyAuthor(
  { tasks, effects, interrupts, writers }: SuperstepWork,
  written: WrittenValue,
): ValueAuthor {
  const calls = effects.filter(({ kind }) => kind === "tool");
  const known = findCallId(written);
  const found =
    writers === undefined || tasks.length === 0 ? findOnlyWriter(tasks, calls) : findWriter(tasks, writers, written);
  const call = known ?? found.call;
  const task = calls.find(({ key }) => key === call)?.task ?? found.task;
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

/** Task and tool call of a write. */
type Writer = Pick<ValueAuthor, "task" | "call">;

/** Returns the task of a superstep with a single one, and its call if it has a single one. */
function findOnlyWriter(tasks: readonly Task[], calls: readonly EffectRow[]): Writer {
  const [task] = tasks.length === 1 ? tasks : [];
  if (task === undefined) return {};
  const [call] = calls.length === 1 && calls[0]?.task === task.id ? calls : [];
  return call === undefined ? { task: task.id } : { task: task.id, call: call.key };
}

/** Finds the writer in the saved list; a part that several writers could have written is absent. */
function findWriter(tasks: readonly Task[], writers: SavedWriters, written: WrittenValue): Writer {
  const saved = Object.hasOwn(writers, written.channel) ? (writers[written.channel] ?? []) : [];
  const all: readonly SavedWriter[] = typeof saved === "number" ? tasks.map(({ id }) => [id, saved] as const) : saved;
  const candidates = findAppender(all, written) ?? all.filter(([, part]) => couldWrite(part, written.path));
  const [task, otherTask] = new Set(candidates.map(([id]) => id));
  const [call, otherCall] = new Set(candidates.map(([, , id]) => id));
  // Writes from outside of the tasks, such as inbox messages, are of no task.
  if (task === undefined || otherTask !== undefined || !tasks.some(({ id }) => id === task)) return {};
  return { task, ...(call === undefined || otherCall !== undefined ? {} : { call }) };
}

function couldWrite(part: SavedWriter[1], [key]: readonly string[]): boolean {
  return typeof part === "number" || key === undefined || part.includes(key);
}

/** Finds the writer of an appended item by its position; undefined for another change. */
function findAppender(
  writers: readonly SavedWriter[],
  { path: [index], value, delta }: WrittenValue,
): readonly SavedWriter[] | undefined {
  if (delta?.kind !== "append" || index === undefined || !Array.isArray(value)) return undefined;
  let position = Number(index) - (value.length - (delta.count ?? 0));
  for (const writer of writers) {
    const [, part] = writer;
    if (typeof part !== "number") return undefined;
    if (position < part) return position < 0 ? [] : [writer];
    position -= part;
  }
  return [];
}

/** An interrupt of a tool call has the call in its id. */
function isAboutCall({ id, tool }: InterruptRow, call: string | undefined): boolean {
  return tool === undefined || call === undefined || id.includes(`:${call}`);
}

/** Returns the call id of the tool message that holds the value. */
function findCallId({ value, path }: Pick<WrittenValue, "value" | "path">): string | undefined {
  for (let length = 0; length <= path.length; length++) {
    const { value: part } = findPart(value, path.slice(0, length));
    if (isPlainObject(part) && part["role"] === "tool" && typeof part["callId"] === "string") return part["callId"];
  }
  return undefined;
}
