/** Rows of timelines: supersteps without values, and durable events. */
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import type { CheckpointSource } from "../../checkpoint/checkpoint.ts";
import { parseControl } from "../../checkpoint/control.ts";
import { isInFlight } from "../../checkpoint/journal.ts";
import type { ChangeRow, EffectSummaryRow, SuperstepRow, TimelineEntry } from "../../checkpoint/superstep.ts";
import { END } from "../../define/edge.ts";
import type { DurableEventBody } from "../../run/session/durable-event.ts";
import { parseDurableEvent } from "../../run/session/stored-events.ts";
import type { Codec } from "../../state/codec.ts";
import type { ThreadReader } from "./thread-reader.ts";

/** Saved superstep without its values. */
export interface SuperstepSummary {
  /** Checkpoint id. */
  readonly id: number;
  /** Sequence number among the durable events of the thread. */
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly branch: string;
  /** In an inner graph: path of nodes and tools, such as `outer.research`. */
  readonly within?: string;
  /** With `within`: name of the namespace below its branch, shared by all supersteps of a call. */
  readonly withinId?: string;
  readonly step: number;
  readonly parent?: number;
  readonly source: CheckpointSource;
  readonly run: string;
  /** Nodes whose results are in the checkpoint. */
  readonly nodes: readonly string[];
  /** Nodes that run next; `END` if the graph has finished. */
  readonly next: readonly string[];
  readonly durationMs: number;
  /** Bytes of the saved changes, as counted by the run. */
  readonly bytes: number;
  readonly changes: readonly ChangeRow[];
  readonly effects: EffectCounts;
}

/** Counts of the recorded effects of a superstep: model calls, tool calls and steps of nodes. */
export interface EffectCounts {
  readonly calls: number;
  readonly attempts: number;
  /** Effects that more than one process began. */
  readonly repeated: number;
  /** Effects in doubt: started, without outcome. */
  readonly open: number;
}

/** Durable event in a timeline. */
export interface TimelineEvent {
  readonly seq: number;
  readonly at: number;
  readonly branch: string;
  readonly event: DurableEventBody;
}

/** Row of a timeline: a superstep, or a durable event that belongs to no superstep. */
export type TimelineRow = SuperstepSummary | TimelineEvent;

/** Returns true for a superstep of a timeline. */
export function isSuperstep(row: TimelineRow): row is SuperstepSummary {
  return isPlainObject(row) && !Object.hasOwn(row, "event");
}

export function toTimelineRow({ codec, redact }: ThreadReader, entry: TimelineEntry): TimelineRow {
  if ("superstep" in entry) return toSuperstepSummary(codec, entry.superstep);
  const { seq, at, branch } = entry.durableEvent;
  return { seq, at, branch, event: deepFreeze(redact(parseDurableEvent(codec, entry.durableEvent))) };
}

export function toSuperstepSummary(codec: Codec, { checkpoint, changes, effects }: SuperstepRow): SuperstepSummary {
  const { id, seq, at, step, parent, source, run, nodes, durationMs, bytes } = checkpoint;
  const { tasks, caller } = parseControl(codec, checkpoint);
  const { branch, namespace } = splitNamespace(checkpoint.branch);
  const next = [...new Set(tasks.map(({ node }) => node))];
  return {
    id,
    seq,
    at,
    branch,
    ...(caller === undefined ? {} : { within: caller.nesting, withinId: namespace }),
    step,
    ...(parent === undefined ? {} : { parent }),
    source,
    run,
    nodes,
    next: next.length === 0 ? [END] : next,
    durationMs,
    bytes,
    changes,
    effects: countEffects(effects),
  };
}

/** Splits the name of a namespace into its branch and the rest; `""` for the branch itself. */
export function splitNamespace(name: string): { readonly branch: string; readonly namespace: string } {
  const slash = name.indexOf("/");
  return slash === -1
    ? { branch: name, namespace: "" }
    : { branch: name.slice(0, slash), namespace: name.slice(slash + 1) };
}

function countEffects(effects: readonly EffectSummaryRow[]): EffectCounts {
  const calls = effects.filter(({ kind }) => kind !== "task");
  return {
    calls: calls.length,
    attempts: calls.reduce((sum, { attempts }) => sum + attempts, 0),
    repeated: calls.filter(isRepeated).length,
    open: effects.filter(isInFlight).length,
  };
}

/** Returns true for an effect that more than one process began. */
function isRepeated({ processes = 1 }: EffectSummaryRow): boolean {
  return processes > 1;
}
