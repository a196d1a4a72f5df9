/** The journal rows of a ledger: they keep what was entered across crashes, and go when the superstep of its graph is folded. */
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Plan } from "../../compile/plan.ts";
import { type Codec, encodeAround } from "../../state/codec.ts";
import type { Write } from "../session/returns.ts";
import { record, recordAround, type Session } from "../session/session.ts";
import { besideRow, besideTask } from "./auxiliary-row.ts";
import type { LedgerEntry } from "./ledger-registry.ts";

/**
 * Journal an entry in the graph that has the channel, `session` being the one at work. Of a graph around it an entry is durable
 * with what it tells of or before that: what is lost is done again under the same key.
 */
export function keepEntry(session: Session, home: Session, task: Task, place: string, { write }: LedgerEntry): void {
  const { saved } = home;
  if (saved === undefined) return;
  const row = besideRow(home, task, "ledger", place);
  const encode = (): string => encodeAround(saved.codec, write, `an entry in the ledger "${write.channel}"`);
  const kept = { row, encode, told: undefined };
  if (home === session) record(home, saved, kept);
  else recordAround(session, home, saved, kept);
}

/** What was entered in the superstep that is at work, as the journal has it. */
export function entriesKept({ saved, step, plan }: Session): Map<string, LedgerEntry> {
  const entered = new Map<string, LedgerEntry>();
  if (saved === undefined) return entered;
  for (const row of saved.journal.values()) {
    if (row.step !== step || row.outcome === undefined || !isEntry(row)) continue;
    const write = saved.codec.decode(row.outcome) as Write;
    if (isKept(plan, write)) entered.set(row.key, { task: row.task.slice(0, -ending.length), write });
  }
  return entered;
}

/** The entries that a journal holds of tasks that are not finished. */
export function entriesInJournal(
  plan: Plan,
  codec: Codec,
  journal: readonly EffectRow[],
  finished: readonly { readonly task: Task }[],
): readonly Write[] {
  const done = new Set(finished.map(({ task }) => besideTask(task.id, "ledger")));
  return journal
    .flatMap((row) =>
      isEntry(row) && row.outcome !== undefined && !done.has(row.task) ? [codec.decode(row.outcome) as Write] : [],
    )
    .filter((write) => isKept(plan, write));
}

/** What was entered into a channel that the graph has no more goes with the channel. */
function isKept({ graph }: Plan, { channel }: Write): boolean {
  return Object.hasOwn(graph.state.channels, channel);
}

const ending: string = besideTask("", "ledger");

function isEntry({ kind, task }: EffectRow): boolean {
  return kind === "task" && task.endsWith(ending);
}
