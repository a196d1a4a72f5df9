/**
 * In-memory book of a ledger: entries and reservations in the channels of a graph since the start of its superstep,
 * and the resulting channel values.
 */

import type { LedgerBook, LedgerEntry, Reservation, Sum } from "../session/ledger-book.ts";
import type { Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { reduceEdit } from "../session/reduce-writes.ts";
import type { Write } from "../session/returns.ts";

/** Creates a book with existing entries. */
export function createLedgerBook(entered: Map<string, LedgerEntry>): LedgerBook {
  return { entered, reserved: new Map(), sums: new Map(), reservedSums: new Map(), listeners: [] };
}

/** Reserves a write; replaces the reservation in the same slot. */
export function reserve({ reserved, reservedSums }: LedgerBook, slot: string, reservation: Reservation): void {
  const { channel } = reservation.write;
  if (reserved.has(slot)) reservedSums.delete(channel);
  else reservedSums.get(channel)?.writes.push(reservation.write);
  reserved.set(slot, reservation);
}

/** Enters a write; replaces the entry in the same slot. */
export function putEntry(book: LedgerBook, slot: string, entry: LedgerEntry): void {
  const { channel } = entry.write;
  // Replacing an entry invalidates the reduced sum.
  if (book.entered.has(slot)) book.sums.delete(channel);
  else book.sums.get(channel)?.writes.push(entry.write);
  book.entered.set(slot, entry);
}

/** Removes a reservation of this hook pass. Returns true when one was removed. */
export function dropReservation(
  { reserved, reservedSums }: LedgerBook,
  slot: string,
  owner: object | undefined,
): boolean {
  const reservation = reserved.get(slot);
  if (reservation === undefined || reservation.owner !== owner) return false;
  reservedSums.delete(reservation.write.channel);
  return reserved.delete(slot);
}

/** Notifies listeners of a change. */
export function notifyListeners(book: LedgerBook): void {
  const { listeners } = book;
  if (listeners.length === 0) return;
  book.listeners = [];
  for (const resolve of listeners) resolve();
}

/** Options of `computeValue`. */
interface ComputeValueOptions {
  readonly name: string;
  readonly includeReserved: boolean;
  readonly excluded: readonly string[];
}

/** Computes the value of a channel with the entries and reservations of the book, except for excluded slots. */
export function computeValue(
  position: Position,
  progress: Progress,
  book: LedgerBook,
  { name, includeReserved, excluded }: ComputeValueOptions,
): unknown {
  const excludedSlots = new Set(excluded);
  const includesAllEntries = excluded.every((place) => !book.entered.has(place));
  const sum = includesAllEntries
    ? getSum(position, progress, book, name)
    : reduceEntries(position, progress, name, { value: progress.state[name], entries: book.entered, excludedSlots });
  if (!includeReserved || book.reserved.size === 0) return sum;
  const includesAll = includesAllEntries && excluded.every((place) => !book.reserved.has(place));
  return includesAll
    ? getReservedSum(position, progress, book, { name, from: sum })
    : reduceEntries(position, progress, name, { value: sum, entries: book.reserved, excludedSlots });
}

/** Returns the channel value with all entries. Each write is reduced only once. */
function getSum(position: Position, progress: Progress, { entered, sums }: LedgerBook, name: string): unknown {
  let sum = sums.get(name);
  if (sum === undefined) {
    const writes = [...entered.values()].flatMap(({ write }) => (write.channel === name ? [write] : []));
    sum = { writes, reducedCount: 0, value: progress.state[name] };
    sums.set(name, sum);
  }
  return reduceRest(position, progress, name, sum);
}

function getReservedSum(
  position: Position,
  progress: Progress,
  { reserved, reservedSums }: LedgerBook,
  { name, from }: { readonly name: string; readonly from: unknown },
): unknown {
  let sum = reservedSums.get(name);
  if (sum === undefined || sum.from !== from) {
    const writes = [...reserved.values()].flatMap(({ write }) => (write.channel === name ? [write] : []));
    sum = { writes, reducedCount: 0, value: from, from };
    reservedSums.set(name, sum);
  }
  return reduceRest(position, progress, name, sum);
}

function reduceRest(position: Position, progress: Progress, name: string, sum: Sum): unknown {
  if (sum.reducedCount < sum.writes.length) {
    sum.value = reduceWrites(position, progress, name, {
      value: sum.value,
      writes: sum.writes.slice(sum.reducedCount),
    });
    sum.reducedCount = sum.writes.length;
  }
  return sum.value;
}

/** Options of `reduceEntries`. */
interface ReduceEntriesOptions {
  readonly value: unknown;
  readonly entries: ReadonlyMap<string, LedgerEntry>;
  readonly excludedSlots: ReadonlySet<string>;
}

function reduceEntries(
  position: Position,
  progress: Progress,
  name: string,
  { value, entries, excludedSlots }: ReduceEntriesOptions,
): unknown {
  const writes: Write[] = [];
  for (const [slot, { write }] of entries) if (write.channel === name && !excludedSlots.has(slot)) writes.push(write);
  return reduceWrites(position, progress, name, { value, writes });
}

function reduceWrites(
  { plan }: Position,
  { state }: Progress,
  name: string,
  { value, writes }: { readonly value: unknown; readonly writes: readonly Write[] },
): unknown {
  return writes.length === 0 ? value : reduceEdit(plan, { ...state, [name]: value }, writes).state[name];
}
