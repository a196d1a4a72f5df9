/** `getSuperstep`: a single superstep with everything that the store holds about it, read without the graph. */

import { deepFreeze, type Json } from "../../base/json.ts";
import { parseJsonPointer } from "../../base/json-pointer.ts";
import { checkCount } from "../../base/options.ts";
import type { ChannelRows } from "../../checkpoint/channel-rows.ts";
import type { CheckpointRow, DeltaRow } from "../../checkpoint/checkpoint.ts";
import { applySavedDelta, applySavedDeltas } from "../../checkpoint/codec/saved-state.ts";
import { parseControl } from "../../checkpoint/control.ts";
import type { GraphVersion } from "../../checkpoint/export/thread-export.ts";
import { type EffectRow, isOpen } from "../../checkpoint/journal.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Graph } from "../../compile/graph.ts";
import type { OpenInterrupt } from "../../run/events/run-event.ts";
import type { GuardResult } from "../../run/kernel/kernel.ts";
import { toOpenInterrupt } from "../../run/session/run-row.ts";
import { parseDurableEvent } from "../../run/session/stored-events.ts";
import { diffValues, type JsonPatchOp } from "../../state/json-patch.ts";
import { type ClosedInterrupt, toClosedInterrupt } from "../get-state.ts";
import { identifyAuthor, loadSuperstepWork, type SuperstepWork, type ValueAuthor } from "./find-author.ts";
import { getSuperstepRow, listTimeline } from "./list-timeline.ts";
import { recomputeGuards } from "./recompute-guards.ts";
import { type SuperstepSummary, toSuperstepSummary } from "./superstep-summary.ts";
import { type ReadOptions, readThread, type ThreadReader } from "./thread-reader.ts";

/** Options of `getSuperstep`. */
export interface GetSuperstepOptions extends ReadOptions {
  /** Checkpoint id of the superstep, of any branch or inner graph. */
  readonly checkpoint: number;
  /** Graph of the superstep: adds the guards of the transition, and the redaction policies of the tools. */
  readonly graph?: Graph;
}

/** Effect with its decoded outcome. */
export interface SuperstepEffect extends Omit<EffectRow, "outcome"> {
  /** Decoded outcome; only `once` effects keep the outcome after their superstep. */
  readonly outcome?: unknown;
}

/** Superstep with its values. */
export interface SuperstepDetail extends SuperstepSummary {
  /** Operations that turn the previous state into the state of this superstep. */
  readonly patch: readonly JsonPatchOp[];
  /** Values that the operations of `patch` replace or remove, by index; undefined for an `add`. */
  readonly before: readonly unknown[];
  /** Authors of the operations of `patch`, by index; empty for several tasks, an input or an inbox message. */
  readonly authors: readonly ValueAuthor[];
  /** State value of the machine before and after; `guards` only with a graph of nodes. */
  readonly machine: { readonly from: Json; readonly to: Json; readonly guards?: readonly GuardResult[] };
  /** Tasks that the superstep reduced; `input` of a task that was started by a send. */
  readonly tasks: readonly { readonly id: string; readonly node: string; readonly input?: unknown }[];
  readonly effectRows: readonly SuperstepEffect[];
  /** Answered and expired interrupts of these tasks. */
  readonly asked: readonly ClosedInterrupt[];
  /** Unanswered interrupts: of these tasks, and for the newest checkpoint of a namespace of its pending tasks. */
  readonly open: readonly OpenInterrupt[];
  /** Events that a durable machine received with this superstep. Other inbox messages are in the messages of the state. */
  readonly inbox: readonly { readonly id: string; readonly key: string; readonly by?: string }[];
  /** Absent for a checkpoint without a recorded writer. */
  readonly writtenBy?: GraphVersion;
}

/**
 * Returns a superstep with its changes, tasks, effects, interrupts and machine; undefined for an unknown checkpoint.
 * Without its predecessor, which retention may have removed, the whole value of a replaced channel is shown as added.
 *
 * @throws `unknown_thread`, `invalid_option`, and errors of the store.
 * @example
 * const detail = await getSuperstep(store, { thread: "support-7", checkpoint: 4 });
 * for (const op of detail?.patch ?? []) console.log(op.op, op.path);
 */
export async function getSuperstep(store: Store, options: GetSuperstepOptions): Promise<SuperstepDetail | undefined> {
  checkCount("getSuperstep", { checkpoint: options?.checkpoint ?? null }, 0);
  return await readThread(
    { call: "getSuperstep", store, options, optionNames: ["checkpoint", "graph"] },
    async (reader) => {
      const row = await reader.reads.checkpoint(reader.thread, options.checkpoint);
      return row === undefined ? undefined : deepFreeze(await loadDetail(reader, row, options.graph));
    },
  );
}

async function loadDetail(
  reader: ThreadReader,
  row: CheckpointRow,
  graph: Graph | undefined,
): Promise<SuperstepDetail> {
  const { reads, thread, codec, redact } = reader;
  const work = await loadSuperstepWork(reader, row);
  const superstep = await getSuperstepRow(reads, thread, row);
  const { before, after, deltas } = await loadChangedChannels(reader, row, work.parent);
  const changes = diffValues(before, after);
  const from = work.parent === undefined ? null : parseControl(codec, work.parent).machine;
  const { machine: to } = parseControl(codec, row);
  const guards = graph === undefined ? undefined : recomputeGuards(graph, { from, row, codec });
  const writtenBy = await reads.writtenBy(thread, row.id);
  return {
    ...toSuperstepSummary(codec, superstep ?? { checkpoint: row, changes: [], effects: [] }),
    patch: changes.map(({ op }) => op),
    before: changes.map((change) => change.before),
    authors: changes.map(({ op: { op, path } }) => {
      const [channel = "", ...rest] = parseJsonPointer("getSuperstep", path);
      const delta = deltas.find((each) => each.channel === channel);
      const value = (op === "remove" ? before : after)[channel];
      return redact(identifyAuthor(work, { channel, path: rest, value, delta }));
    }),
    machine: { from, to, ...(guards === undefined ? {} : { guards }) },
    tasks: work.tasks.map(({ id, node, input }) => ({
      id,
      node,
      ...(input === undefined ? {} : { input: redact(work.inputs[input]) }),
    })),
    effectRows: work.effects.map((effect) => toEffect(reader, effect)),
    ...(await listInterrupts(reader, row, work)),
    inbox: await listReceived(reader, row, work.parent),
    ...(writtenBy === undefined ? {} : { writtenBy }),
  };
}

/** Returns the channels changed by a superstep, before and after; redacted. */
async function loadChangedChannels(
  { reads, thread, codec, redact }: ThreadReader,
  row: CheckpointRow,
  parent: CheckpointRow | undefined,
): Promise<{
  readonly before: Readonly<Record<string, unknown>>;
  readonly after: Readonly<Record<string, unknown>>;
  readonly deltas: readonly DeltaRow[];
}> {
  const [found] = await reads.history(thread, { branch: row.branch, before: row.id + 1, limit: 1 });
  const deltas = found?.id === row.id ? found.deltas : [];
  const saved = await loadSavedBefore(reads, thread, row, parent);
  const before: Record<string, unknown> = {};
  const after: Record<string, unknown> = {};
  for (const delta of deltas) {
    const { channel } = delta;
    const value = applySavedDeltas(codec, saved.find((each) => each.channel === channel)?.deltas ?? []);
    const next = applySavedDelta(codec, value, delta);
    if (value !== undefined) before[channel] = value;
    if (next !== undefined) after[channel] = next;
  }
  return { before: redact(before), after: redact(after), deltas };
}

/** Returns the saved rows before a superstep; without its parent, the rows that its own changes depend on. */
async function loadSavedBefore(
  reads: ThreadReader["reads"],
  thread: string,
  row: CheckpointRow,
  parent: CheckpointRow | undefined,
): Promise<readonly ChannelRows[]> {
  if (parent !== undefined) return await reads.state(thread, parent.id);
  if (row.parent === undefined) return [];
  return (await reads.state(thread, row.id)).map(({ channel, deltas }) => ({ channel, deltas: deltas.slice(0, -1) }));
}

function toEffect({ codec, redact, redactOutcome }: ThreadReader, { outcome, ...row }: EffectRow): SuperstepEffect {
  if (outcome === undefined) return redact(row);
  const decoded = codec.decode(outcome);
  return { ...redact(row), outcome: row.kind === "tool" ? redactOutcome(row.name, decoded) : redact(decoded) };
}

async function listInterrupts(
  { reads, thread, codec, redact }: ThreadReader,
  row: CheckpointRow,
  { interrupts }: SuperstepWork,
): Promise<Pick<SuperstepDetail, "asked" | "open">> {
  const head = await reads.head(thread, row.branch);
  const pending =
    head?.id === row.id
      ? (await reads.interrupts(thread, row.branch)).filter((each) => each.step === row.step && isOpen(each))
      : [];
  const open = [...interrupts.filter(isOpen), ...pending];
  return {
    asked: redact(interrupts.filter((each) => !isOpen(each)).map((each) => toClosedInterrupt(codec, each))),
    open: redact(open.map((each) => toOpenInterrupt({ codec }, each))),
  };
}

/** Maximum number of rows between two supersteps of a machine that are searched for received events. */
const maxReceived = 200;

/** Lists the events that a user-written machine received between the parent of a superstep and the superstep. */
async function listReceived(
  { reads, thread, codec, redact }: ThreadReader,
  row: CheckpointRow,
  parent: CheckpointRow | undefined,
): Promise<SuperstepDetail["inbox"]> {
  // Only machines have pending actors and timers; a final state has none.
  if (parent === undefined || parseControl(codec, parent).pending === undefined) return [];
  const { branch, seq } = row;
  const entries = await listTimeline(reads, thread, { branch, before: seq, limit: maxReceived });
  return entries.toReversed().flatMap((entry) => {
    if ("superstep" in entry || entry.durableEvent.seq < parent.seq) return [];
    const body = parseDurableEvent(codec, entry.durableEvent);
    if (body.type !== "event.received") return [];
    const { inboxMessageId: id, key, by } = body;
    return [{ id, key, ...(by === undefined ? {} : { by: redact(by) }) }];
  });
}
