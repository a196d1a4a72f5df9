/**
 * Journal rows of a ledger. The rows preserve entries across crashes and are deleted when the superstep of the graph
 * is committed.
 */

import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Plan } from "../../compile/plan.ts";
import { type Codec, encodeWrapper } from "../../state/codec.ts";
import type { LedgerEntry } from "../session/ledger-book.ts";
import type { Journal } from "../session/parts/journal.ts";
import { type Persistence, recordInParent } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import type { Write } from "../session/returns.ts";
import { createAuxiliaryRow, getAuxiliaryTaskId } from "./auxiliary-row.ts";

/** Options of `recordEntry`. */
interface RecordEntryOptions {
  readonly journal: Journal;
  readonly task: Task;
  readonly slot: string;
}

/**
 * Journals an entry in the graph that declares the channel; `saved` belongs to the active graph. An entry in a
 * parent graph becomes durable no later than the recorded effect: a lost entry is repeated under the same key.
 */
export function recordEntry(
  saved: Persistence | undefined,
  position: Position,
  { write }: LedgerEntry,
  { journal, task, slot }: RecordEntryOptions,
): void {
  const { saved: declaringSaved } = journal;
  if (declaringSaved === undefined) return;
  const row = createAuxiliaryRow(position, journal.world, task, { auxiliary: "ledger", key: slot });
  const encode = (): string => encodeWrapper(declaringSaved.codec, write, `an entry in the ledger "${write.channel}"`);
  recordInParent(saved, declaringSaved, { row, encode, onCommitted: undefined });
}

/** Loads the entries of the current superstep from the journal. */
export function loadEntries({ step, plan }: Position, { saved }: Journal): Map<string, LedgerEntry> {
  const entered = new Map<string, LedgerEntry>();
  if (saved === undefined) return entered;
  for (const row of saved.rows.values()) {
    if (row.step !== step || row.outcome === undefined || !isLedgerRow(row)) continue;
    const write = saved.codec.decode(row.outcome) as Write;
    if (hasChannel(plan, write)) entered.set(row.key, { task: row.task.slice(0, -taskSuffix.length), write });
  }
  return entered;
}

/** Lists the journaled entries of unfinished tasks. */
export function listUnfinishedEntries(
  plan: Plan,
  codec: Codec,
  journal: readonly EffectRow[],
  finished: readonly { readonly task: Task }[],
): readonly Write[] {
  const finishedTasks = new Set(finished.map(({ task }) => getAuxiliaryTaskId(task.id, "ledger")));
  return journal
    .flatMap((row) =>
      isLedgerRow(row) && row.outcome !== undefined && !finishedTasks.has(row.task)
        ? [codec.decode(row.outcome) as Write]
        : [],
    )
    .filter((write) => hasChannel(plan, write));
}

/** Returns false for an entry in a channel that the graph no longer has; such an entry is dropped. */
function hasChannel({ graph }: Plan, { channel }: Write): boolean {
  return Object.hasOwn(graph.state.channels, channel);
}

const taskSuffix: string = getAuxiliaryTaskId("", "ledger");

function isLedgerRow({ kind, task }: EffectRow): boolean {
  return kind === "task" && task.endsWith(taskSuffix);
}
