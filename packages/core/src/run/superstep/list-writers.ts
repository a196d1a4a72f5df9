/** Writers of a superstep, saved for readers that look for the author of a value. */
import type { SavedWriter, SavedWriters, Task } from "../../checkpoint/checkpoint.ts";
import type { Plan } from "../../compile/plan.ts";
import { toExternalResult } from "../session/reduce-writes.ts";
import type { Write } from "../session/returns.ts";
import type { FinishedTask } from "../session/step-result.ts";

/** Superstep with its writers. */
export interface WrittenSuperstep {
  /** Tasks that the superstep began with. */
  readonly tasks: readonly Task[];
  readonly finished: readonly FinishedTask[];
  /** Writes from outside of the tasks, which are reduced last. */
  readonly externalWrites?: readonly Write[] | undefined;
}

/** Lists the writers by channel; undefined when a single task without several tool calls wrote everything. */
export function listWriters(
  plan: Plan,
  { tasks, finished, externalWrites = [] }: WrittenSuperstep,
): SavedWriters | undefined {
  const isCertain =
    finished.length === 1 &&
    externalWrites.length === 0 &&
    finished[0]?.outcome.writes.every(({ call }) => call === undefined) === true;
  if (isCertain || finished.length + externalWrites.length === 0) return undefined;
  const all = externalWrites.length === 0 ? finished : [...finished, toExternalResult(externalWrites)];
  const writers = new Map<string, SavedWriter[]>();
  for (const { task, outcome } of all) {
    for (const write of outcome.writes) {
      const part = describePart(plan, write);
      const ofChannel = writers.get(write.channel) ?? [];
      ofChannel.push(write.call === undefined ? [task.id, part] : [task.id, part, write.call]);
      writers.set(write.channel, ofChannel);
    }
  }
  if (writers.size === 0) return undefined;
  return Object.fromEntries([...writers].map(([channel, each]) => [channel, toShortForm(tasks, each)]));
}

/** Returns the number of items of a list, or the keys of a record. */
function describePart({ graph }: Plan, write: Write): SavedWriter[1] {
  const kind = graph.state.channels[write.channel]?.kind;
  if (write.kind !== "reduce" || !Array.isArray(write.value)) return 1;
  // A parsed write of a record is a list of entries.
  if (kind === "record") return write.value.map(([key]) => String(key));
  return kind === "list" || kind === "messages" ? write.value.length : 1;
}

/** Returns the common number of items when each task wrote once, in order. */
function toShortForm(tasks: readonly Task[], writers: readonly SavedWriter[]): number | readonly SavedWriter[] {
  const count = writers[0]?.[1];
  const isUniform =
    typeof count === "number" &&
    writers.length === tasks.length &&
    writers.every(([task, part, call], index) => task === tasks[index]?.id && part === count && call === undefined);
  return isUniform ? count : writers;
}
