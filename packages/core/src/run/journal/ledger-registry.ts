/** The book of a ledger: what was entered and reserved in the channels of a graph since its superstep began, and what that makes of them. */

import type { Write } from "../session/returns.ts";
import type { Session } from "../session/session.ts";
import { foldEdit } from "../superstep/superstep.ts";

/** What was entered and reserved, by place. */
export interface LedgerBook {
  readonly entered: Map<string, LedgerEntry>;
  readonly reserved: Map<string, Reservation>;
  /** By channel, what was entered, and its value with as much of that as was folded by now. */
  readonly sums: Map<string, Sum>;
  /** By channel, the same with what is reserved. */
  readonly reservedSums: Map<string, ReservedSum>;
  /** Called at the next change. */
  waiting: (() => void)[];
}

/** A write that a task has entered. */
export interface LedgerEntry {
  readonly task: string;
  readonly write: Write;
}

/** Belongs to the pass of hooks that made it: one that was given up gives back no other's. */
interface Reservation extends LedgerEntry {
  readonly by: object | undefined;
}

interface Sum {
  readonly writes: Write[];
  folded: number;
  value: unknown;
}

interface ReservedSum extends Sum {
  /** The value with what was entered, that it begins with. */
  readonly from: unknown;
}

/** A book that holds what was entered before. */
export function newBook(entered: Map<string, LedgerEntry>): LedgerBook {
  return { entered, reserved: new Map(), sums: new Map(), reservedSums: new Map(), waiting: [] };
}

/** Reserve a write, in place of one at the same place. */
export function reserve({ reserved, reservedSums }: LedgerBook, place: string, reservation: Reservation): void {
  const { channel } = reservation.write;
  if (reserved.has(place)) reservedSums.delete(channel);
  else reservedSums.get(channel)?.writes.push(reservation.write);
  reserved.set(place, reservation);
}

/** Enter a write, in place of one at the same place. */
export function put(book: LedgerBook, place: string, entry: LedgerEntry): void {
  const { channel } = entry.write;
  // In place of another: what was folded holds that one.
  if (book.entered.has(place)) book.sums.delete(channel);
  else book.sums.get(channel)?.writes.push(entry.write);
  book.entered.set(place, entry);
}

/** Take a reservation away that this pass has made; tells whether there was one. */
export function dropReserved({ reserved, reservedSums }: LedgerBook, place: string, by: object | undefined): boolean {
  const known = reserved.get(place);
  if (known === undefined || known.by !== by) return false;
  reservedSums.delete(known.write.channel);
  return reserved.delete(place);
}

/** Tell those who wait for a change. */
export function tell(book: LedgerBook): void {
  const { waiting } = book;
  if (waiting.length === 0) return;
  book.waiting = [];
  for (const resolve of waiting) resolve();
}

/** A channel of the graph with what the book holds, save what stands at places that do not count. */
export function valueIn(
  home: Session,
  book: LedgerBook,
  name: string,
  withReserved: boolean,
  without: readonly string[],
): unknown {
  const left = new Set(without);
  const isWhole = without.every((place) => !book.entered.has(place));
  const sum = isWhole ? sumOf(home, book, name) : folded(home, name, home.state[name], book.entered, left);
  if (!withReserved || book.reserved.size === 0) return sum;
  const isAll = isWhole && without.every((place) => !book.reserved.has(place));
  return isAll ? reservedSumOf(home, book, name, sum) : folded(home, name, sum, book.reserved, left);
}

/** The channel with all that was entered: what was folded once is not folded again. */
function sumOf(home: Session, { entered, sums }: LedgerBook, name: string): unknown {
  let sum = sums.get(name);
  if (sum === undefined) {
    const writes = [...entered.values()].flatMap(({ write }) => (write.channel === name ? [write] : []));
    sum = { writes, folded: 0, value: home.state[name] };
    sums.set(name, sum);
  }
  return foldRest(home, name, sum);
}

function reservedSumOf(home: Session, { reserved, reservedSums }: LedgerBook, name: string, from: unknown): unknown {
  let sum = reservedSums.get(name);
  if (sum === undefined || sum.from !== from) {
    const writes = [...reserved.values()].flatMap(({ write }) => (write.channel === name ? [write] : []));
    sum = { writes, folded: 0, value: from, from };
    reservedSums.set(name, sum);
  }
  return foldRest(home, name, sum);
}

function foldRest(home: Session, name: string, sum: Sum): unknown {
  if (sum.folded < sum.writes.length) {
    sum.value = withWrites(home, name, sum.value, sum.writes.slice(sum.folded));
    sum.folded = sum.writes.length;
  }
  return sum.value;
}

function folded(
  home: Session,
  name: string,
  value: unknown,
  entries: ReadonlyMap<string, LedgerEntry>,
  without: ReadonlySet<string>,
): unknown {
  const writes: Write[] = [];
  for (const [place, { write }] of entries) if (write.channel === name && !without.has(place)) writes.push(write);
  return withWrites(home, name, value, writes);
}

function withWrites({ plan, state }: Session, name: string, value: unknown, writes: readonly Write[]): unknown {
  return writes.length === 0 ? value : foldEdit(plan, { ...state, [name]: value }, writes).state[name];
}
