/**
 * Ledgers at run time. The entries of a channel stand with the superstep of the graph that declares it, also those that graphs
 * inside it make: in memory, in the journal of its line, and in the result of its task.
 */
import { StatewrightError } from "../base/errors.ts";
import type { Task } from "../checkpoint/checkpoint.ts";
import type { EffectRow } from "../checkpoint/journal.ts";
import type { Plan } from "../compile/plan.ts";
import type { Channel } from "../state/channel.ts";
import type { Codec } from "../state/codec.ts";
import type { Ledger } from "../tool/ledger.ts";
import type { Middleware } from "../tool/middleware.ts";
import { admitWrites } from "./admission.ts";
import { readUpdate, type TaskOutcome, type Write } from "./returns.ts";
import type { TaskScope } from "./scope.ts";
import { placeOf, record, recordNow, type Session } from "./session.ts";
import { foldEdit } from "./superstep.ts";

/** What was entered and reserved in the channels of a graph since its superstep began, by place. */
export interface LedgerBook {
  readonly entered: Map<string, LedgerEntry>;
  readonly reserved: Map<string, Reservation>;
  /** By channel, what was entered, and its value with as much of that as was folded by now. */
  readonly sums: Map<string, Sum>;
  /** Called at the next change. */
  waiting: (() => void)[];
}

interface LedgerEntry {
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

/** Open the ledger of a channel for the hooks around an effect. `held` takes the keys that are reserved and not settled. */
export function openLedger(
  session: Session,
  scope: TaskScope,
  effect: string,
  middleware: Middleware,
  channel: Channel,
  held: Set<() => void> | undefined,
): Ledger {
  const { home, task, name } = homeOf(session, scope, middleware, channel);
  const space = `${session.line}/${session.step}/${scope.task.id}/${effect}/${name}`;
  const placeFor = (key: string): string => `${space}:${key}`;
  const releases = new Map<string, () => void>();
  const parsed = (write: unknown): Write => {
    const writes = readUpdate(home.plan, task.node, { [name]: write }, `a ledger of the node "${task.node}"`);
    admitWrites(home.plan, home.codec, writes, "what was entered into", task.node);
    return writes[0] as Write;
  };
  const settle = (key: string): void => {
    const release = releases.get(key);
    if (release === undefined) return;
    releases.delete(key);
    held?.delete(release);
  };
  const release = (key: string): void => {
    settle(key);
    const book = bookOf(home);
    if (dropReserved(book, placeFor(key), held)) tell(book);
  };
  return {
    has: (key) => bookOf(home).entered.has(placeFor(key)),
    value: ({ reserved = true, without = [] } = {}) => {
      const book = bookOf(home);
      const left = new Set(without.map(placeFor));
      const isWhole = without.every((key) => !book.entered.has(placeFor(key)));
      const sum = isWhole ? sumOf(home, book, name) : folded(home, name, home.state[name], book.entered, left);
      return reserved ? folded(home, name, sum, book.reserved, left) : sum;
    },
    reserve: (key, write) => {
      const book = bookOf(home);
      if (book.entered.has(placeFor(key))) return;
      book.reserved.set(placeFor(key), { task: task.id, write: parsed(write), by: held });
      const giveBack = (): void => release(key);
      releases.set(key, giveBack);
      held?.add(giveBack);
      tell(book);
    },
    enter: (key, write, { shared = false } = {}) => {
      const book = bookOf(home);
      const entry: LedgerEntry = { task: task.id, write: parsed(write) };
      const place = shared ? `${home.line}/${home.step}/${task.id}//${name}:${key}` : placeFor(key);
      dropReserved(book, place, held);
      put(book, place, entry);
      if (!shared) settle(key);
      keep(home, task, place, entry, home !== session);
      tell(book);
    },
    release,
    changed: () => new Promise((resolve) => bookOf(home).waiting.push(resolve)),
  };
}

function dropReserved({ reserved }: LedgerBook, place: string, by: object | undefined): boolean {
  return reserved.get(place)?.by === by && reserved.delete(place);
}

function put(book: LedgerBook, place: string, entry: LedgerEntry): void {
  const { channel } = entry.write;
  // In place of another: what was folded holds that one.
  if (book.entered.has(place)) book.sums.delete(channel);
  else book.sums.get(channel)?.writes.push(entry.write);
  book.entered.set(place, entry);
}

/** The channel with all that was entered: what was folded once is not folded again. */
function sumOf(home: Session, { entered, sums }: LedgerBook, name: string): unknown {
  let sum = sums.get(name);
  if (sum === undefined) {
    const writes = [...entered.values()].flatMap(({ write }) => (write.channel === name ? [write] : []));
    sum = { writes, folded: 0, value: home.state[name] };
    sums.set(name, sum);
  }
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

/** The graph that declares a channel: for middleware that is inherited the outermost one, else the one nearest to the task. */
function homeOf(
  session: Session,
  { task }: TaskScope,
  { inherited }: Middleware,
  channel: Channel,
): { readonly home: Session; readonly task: Task; readonly name: string } {
  let found: { readonly home: Session; readonly task: Task; readonly name: string } | undefined;
  for (let at: Session["around"] = { session, task }; at !== undefined; at = at.session.around) {
    const { channels } = at.session.plan.graph.state;
    const name = Object.keys(channels).find((each) => channels[each] === channel);
    if (name === undefined) continue;
    found = { home: at.session, task: at.task, name };
    if (inherited !== true) break;
  }
  if (found !== undefined) return found;
  throw new StatewrightError("unknown_channel", {
    what: `a hook at the node "${task.node}" opened the ledger of a channel that neither graph "${session.plan.graph.name}" nor one around it has`,
    next: "Add the channels of the middleware to the state: defineState({ …, ...middleware.channels })",
    place: placeOf(session, { node: task.node }),
  });
}

/** What was entered in the superstep that is at work; after a crash, as the journal has it. */
function bookOf(session: Session): LedgerBook {
  session.ledger ??= { entered: enteredIn(session), reserved: new Map(), sums: new Map(), waiting: [] };
  return session.ledger;
}

function enteredIn({ saved, step, plan }: Session): Map<string, LedgerEntry> {
  const entered = new Map<string, LedgerEntry>();
  if (saved === undefined) return entered;
  for (const row of saved.journal.values()) {
    if (row.step !== step || row.outcome === undefined || !isEntry(row)) continue;
    const write = saved.codec.decode(row.outcome) as Write;
    if (isKept(plan, write)) entered.set(row.key, { task: row.task.slice(0, -besideTask.length), write });
  }
  return entered;
}

/** What was entered into a channel that the graph has no more goes with the channel. */
function isKept({ graph }: Plan, { channel }: Write): boolean {
  return Object.hasOwn(graph.state.channels, channel);
}

/** No task has an id that ends so. */
const besideTask = "/ledger";

function isEntry({ kind, task }: EffectRow): boolean {
  return kind === "task" && task.endsWith(besideTask);
}

/** Of a graph around the one at work, an entry is durable before what it tells of: what is lost of the two is done again under the same key. */
function keep(home: Session, task: Task, place: string, { write }: LedgerEntry, isBefore: boolean): void {
  const { saved, world, step } = home;
  if (saved === undefined) return;
  const at = world.clock.now();
  const row: EffectRow = {
    step,
    task: `${task.id}${besideTask}`,
    key: place,
    kind: "task",
    name: task.node,
    effect: "idempotent",
    state: "ok",
    attempts: 1,
    idempotencyKey: "",
    startedAt: at,
    endedAt: at,
  };
  const encode = (): string => saved.codec.encode(write, `an entry in the ledger "${write.channel}"`);
  (isBefore ? recordNow : record)(home, saved, { row, encode, told: undefined });
}

function tell(book: LedgerBook): void {
  const { waiting } = book;
  if (waiting.length === 0) return;
  book.waiting = [];
  for (const resolve of waiting) resolve();
}

/** The outcome of a task with what was entered while it was at work. */
export function withEntries(outcome: TaskOutcome, session: Session, task: Task): TaskOutcome {
  const writes = entriesOf(session, (id) => id === task.id);
  return writes.length === 0 ? outcome : { ...outcome, writes: [...outcome.writes, ...writes] };
}

/** What was entered by tasks that have no outcome: it happened all the same. */
export function entriesWithout(session: Session, finished: readonly { readonly task: Task }[]): readonly Write[] {
  return entriesOf(session, (id) => !finished.some(({ task }) => task.id === id));
}

function entriesOf(session: Session, isWanted: (task: string) => boolean): readonly Write[] {
  // What stands in the journal alone is of another process: it is looked for once, in the first superstep of this one.
  if (session.ledger === undefined && (session.saved === undefined || session.stepsOfRun > 0)) return none;
  const { entered } = bookOf(session);
  if (entered.size === 0) return none;
  return [...entered.values()].flatMap(({ task, write }) => (isWanted(task) ? [write] : []));
}

const none: readonly Write[] = [];

/** The entries that a journal holds of tasks that are not finished. */
export function entriesInJournal(
  plan: Plan,
  codec: Codec,
  journal: readonly EffectRow[],
  finished: readonly { readonly task: Task }[],
): readonly Write[] {
  const done = new Set(finished.map(({ task }) => `${task.id}${besideTask}`));
  return journal
    .flatMap((row) =>
      isEntry(row) && row.outcome !== undefined && !done.has(row.task) ? [codec.decode(row.outcome) as Write] : [],
    )
    .filter((write) => isKept(plan, write));
}
