/**
 * Ledgers at run time. Entries belong to the superstep of the graph that declares the channel, including entries of
 * nested graphs. The entries are stored in memory, in the journal of the graph's namespace, and in the outcome of the
 * task. The journal has entries as auxiliary rows, a kind of rows beside the outcome of a task.
 */

import { StatewrightError } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Channel } from "../../state/channel.ts";
import { type Codec, encodeWrapper } from "../../state/codec.ts";
import type { Ledger } from "../../tool/policy/ledger.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import type { LedgerBook, LedgerEntry, Reservation, Sum } from "../session/ledger-book.ts";
import type { Journal } from "../session/parts/journal.ts";
import { type Persistence, recordInParent } from "../session/parts/persistence.ts";
import { getErrorPlace, type Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { reduceEdit } from "../session/reduce-writes.ts";
import { readUpdate, type TaskOutcome, type Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Lineage, Session } from "../session/session.ts";
import { validateWrites } from "../session/validate-writes.ts";

/** Options of `openLedger`. */
interface OpenLedgerOptions {
  readonly middleware: Middleware;
  readonly channel: Channel;
  readonly reservations: Set<() => void> | undefined;
}

/**
 * Opens the ledger of a channel for the hooks around an effect. `reservations` collects the release functions of open
 * reservations.
 */
export function openLedger(
  session: Pick<Session, "position" | "journal">,
  scope: TaskScope,
  effect: string,
  { middleware, channel, reservations }: OpenLedgerOptions,
): Ledger {
  const { declaring, task, name } = findDeclaration(scope, middleware, channel);
  const space = `${session.position.namespace}/${session.position.step}/${scope.task.id}/${effect}/${name}`;
  const getSlot = (key: string): string => `${space}:${key}`;
  const releases = new Map<string, () => void>();
  const parseWrite = (write: unknown): Write => {
    const writes = readUpdate(
      declaring.position.plan,
      task.node,
      { [name]: write },
      `a ledger of the node "${task.node}"`,
    );
    validateWrites(declaring.position.plan, declaring.env.codec, writes, {
      label: "what was entered into",
      node: task.node,
    });
    return writes[0] as Write;
  };
  const removeRelease = (key: string): void => {
    const release = releases.get(key);
    if (release === undefined) return;
    releases.delete(key);
    reservations?.delete(release);
  };
  const release = (key: string): void => {
    removeRelease(key);
    const book = getLedgerBook(declaring.position, declaring.journal);
    if (dropReservation(book, getSlot(key), reservations)) notifyListeners(book);
  };
  const taskPrefix = `${session.position.namespace}/${session.position.step}/${scope.task.id}/`;
  const nestedPrefix = `${session.position.namespace}/${scope.task.id}:`;
  const listOtherSlots = (mode: "inside" | "none", { entered, reserved }: LedgerBook): readonly string[] =>
    [...entered.keys(), ...reserved.keys()].filter(
      (place) => place.startsWith(taskPrefix) || (mode === "none" && place.startsWith(nestedPrefix)),
    );
  return {
    has: (key) => getLedgerBook(declaring.position, declaring.journal).entered.has(getSlot(key)),
    getValue: ({ reserved = true, excludedKeys = [], siblings = "all" } = {}) => {
      const book = getLedgerBook(declaring.position, declaring.journal);
      const ownSlots = excludedKeys.map(getSlot);
      return computeValue(declaring.position, declaring.progress, book, {
        name,
        includeReserved: reserved,
        excluded: siblings === "all" ? ownSlots : [...ownSlots, ...listOtherSlots(siblings, book)],
      });
    },
    reserve: (key, write) => {
      const book = getLedgerBook(declaring.position, declaring.journal);
      if (book.entered.has(getSlot(key))) return;
      reserve(book, getSlot(key), { task: task.id, write: parseWrite(write), owner: reservations });
      const releaseKey = (): void => release(key);
      releases.set(key, releaseKey);
      reservations?.add(releaseKey);
      notifyListeners(book);
    },
    enter: (key, write, { shared = false } = {}) => {
      const book = getLedgerBook(declaring.position, declaring.journal);
      const entry: LedgerEntry = { task: task.id, write: parseWrite(write) };
      const slot = shared
        ? `${declaring.position.namespace}/${declaring.position.step}/${task.id}//${name}:${key}`
        : getSlot(key);
      dropReservation(book, slot, reservations);
      putEntry(book, slot, entry);
      if (!shared) removeRelease(key);
      recordEntry(session.journal.saved, declaring.position, entry, { journal: declaring.journal, task, slot });
      notifyListeners(book);
    },
    release,
    waitForChange: () =>
      new Promise((resolve) => getLedgerBook(declaring.position, declaring.journal).listeners.push(resolve)),
  };
}

interface LedgerDeclaration {
  readonly declaring: Session;
  readonly task: Task;
  readonly name: string;
}

/**
 * Finds the graph that declares a channel. For inherited middleware this is the outermost graph, except for graphs
 * where the channel belongs to other middleware; otherwise the graph nearest to the task.
 */
function findDeclaration({ session, task }: TaskScope, middleware: Middleware, channel: Channel): LedgerDeclaration {
  let found: LedgerDeclaration | undefined;
  for (let level: Lineage["parent"] = { session, task }; level !== undefined; level = level.session.lineage.parent) {
    const { channels } = level.session.position.plan.graph.state;
    const name = Object.keys(channels).find((each) => channels[each] === channel);
    if (name === undefined) continue;
    if (found === undefined || !isUsedByOthers(level.session.position.plan, middleware, channel))
      found = { declaring: level.session, task: level.task, name };
    if (middleware.inherited !== true) break;
  }
  if (found !== undefined) return found;
  throw new StatewrightError("unknown_channel", {
    what: `a hook of the node "${task.node}" opened the ledger of a channel that neither graph "${session.position.plan.graph.name}" nor a parent graph declares`,
    next: "Add the channels of the middleware to the state: defineState({ …, ...middleware.channels })",
    place: getErrorPlace(session.position, { node: task.node }),
  });
}

/**
 * Returns true when the channel belongs to other middleware of the graph, which uses the channel for its own data.
 */
function isUsedByOthers({ graph }: Plan, middleware: Middleware, channel: Channel): boolean {
  const all = [...graph.middleware];
  for (const node of graph.nodes.values())
    for (const { middleware: ofNode } of node.logic.listTools(node)) all.push(...(ofNode as Middleware[]));
  if (all.includes(middleware)) return false;
  return all.some(({ channels }) => channels !== undefined && Object.values(channels).includes(channel));
}

/** Returns the book of the current superstep; loads its entries from the journal after a crash. */
function getLedgerBook(position: Position, journal: Journal): LedgerBook {
  journal.ledger ??= createLedgerBook(loadEntries(position, journal));
  return journal.ledger;
}

/** Adds the entries made during a task to its outcome. */
export function addEntries(outcome: TaskOutcome, position: Position, journal: Journal, task: Task): TaskOutcome {
  const writes = listEntries(position, journal, (id) => id === task.id);
  return writes.length === 0 ? outcome : { ...outcome, writes: [...outcome.writes, ...writes] };
}

/** Lists the entries of tasks without an outcome. Their effects happened and must be counted. */
export function listOrphanEntries(
  position: Position,
  journal: Journal,
  finished: readonly { readonly task: Task }[],
): readonly Write[] {
  return listEntries(position, journal, (id) => !finished.some(({ task }) => task.id === id));
}

function listEntries(position: Position, journal: Journal, isWanted: (task: string) => boolean): readonly Write[] {
  // Entries that exist only in the journal come from another process: they are loaded once, in the first superstep of
  // this process.
  if (journal.ledger === undefined && (journal.saved === undefined || position.stepsOfRun > 0)) return noWrites;
  const { entered } = getLedgerBook(position, journal);
  if (entered.size === 0) return noWrites;
  return [...entered.values()].flatMap(({ task, write }) => (isWanted(task) ? [write] : []));
}

const noWrites: readonly Write[] = [];

/** Creates a book with existing entries. */
function createLedgerBook(entered: Map<string, LedgerEntry>): LedgerBook {
  return { entered, reserved: new Map(), sums: new Map(), reservedSums: new Map(), listeners: [] };
}

/** Reserves a write; replaces the reservation in the same slot. */
function reserve({ reserved, reservedSums }: LedgerBook, slot: string, reservation: Reservation): void {
  const { channel } = reservation.write;
  if (reserved.has(slot)) reservedSums.delete(channel);
  else reservedSums.get(channel)?.writes.push(reservation.write);
  reserved.set(slot, reservation);
}

/** Enters a write; replaces the entry in the same slot. */
function putEntry(book: LedgerBook, slot: string, entry: LedgerEntry): void {
  const { channel } = entry.write;
  // Replacing an entry invalidates the reduced sum.
  if (book.entered.has(slot)) book.sums.delete(channel);
  else book.sums.get(channel)?.writes.push(entry.write);
  book.entered.set(slot, entry);
}

/** Removes a reservation of this hook pass. Returns true when one was removed. */
function dropReservation({ reserved, reservedSums }: LedgerBook, slot: string, owner: object | undefined): boolean {
  const reservation = reserved.get(slot);
  if (reservation === undefined || reservation.owner !== owner) return false;
  reservedSums.delete(reservation.write.channel);
  return reserved.delete(slot);
}

/** Notifies listeners of a change. */
function notifyListeners(book: LedgerBook): void {
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
function computeValue(
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
function recordEntry(
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

const taskSuffix: string = getAuxiliaryTaskId("", "ledger");

/** Loads the entries of the current superstep from the journal. */
function loadEntries({ step, plan }: Position, { saved }: Journal): Map<string, LedgerEntry> {
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

function isLedgerRow({ kind, task }: EffectRow): boolean {
  return kind === "task" && task.endsWith(taskSuffix);
}

/** Kind of an auxiliary row. */
export type AuxiliaryKind = "args" | "breakpoint" | "ledger" | "longTerm";

/** Returns the task id of auxiliary rows. No real task id has such a suffix. */
export function getAuxiliaryTaskId(id: string, auxiliary: AuxiliaryKind): string {
  return `${id}/${auxiliary}`;
}

/** Creates an auxiliary row of the current superstep. A repetition overwrites the row. */
export function createAuxiliaryRow(
  { step }: Position,
  world: World,
  task: Task,
  { auxiliary, key }: { readonly auxiliary: AuxiliaryKind; readonly key: string },
): EffectRow {
  const now = world.clock.now();
  return {
    step,
    task: getAuxiliaryTaskId(task.id, auxiliary),
    key,
    kind: "task",
    name: task.node,
    effect: "idempotent",
    state: "ok",
    attempts: 1,
    idempotencyKey: "",
    startedAt: now,
    endedAt: now,
  };
}
