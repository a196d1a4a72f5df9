/**
 * Ledgers at run time. The entries of a channel stand with the superstep of the graph that declares it, also those that graphs
 * inside it make: in memory, in the journal of its line, and in the result of its task.
 */
import { StatewrightError } from "../../base/errors.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Channel } from "../../state/channel.ts";
import type { Ledger } from "../../tool/policy/ledger.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { readUpdate, type TaskOutcome, type Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import { placeOf, type Session } from "../session/session.ts";
import { admitWrites } from "../session/validate-writes.ts";
import {
  dropReserved,
  type LedgerBook,
  type LedgerEntry,
  newBook,
  put,
  reserve,
  tell,
  valueIn,
} from "./ledger-registry.ts";
import { entriesKept, keepEntry } from "./ledger-rows.ts";

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
  const ofTask = `${session.line}/${session.step}/${scope.task.id}/`;
  const insideTask = `${session.line}/${scope.task.id}:`;
  const placesBeside = (beside: "inside" | "none", { entered, reserved }: LedgerBook): readonly string[] =>
    [...entered.keys(), ...reserved.keys()].filter(
      (place) => place.startsWith(ofTask) || (beside === "none" && place.startsWith(insideTask)),
    );
  return {
    has: (key) => bookOf(home).entered.has(placeFor(key)),
    value: ({ reserved = true, without = [], beside = "all" } = {}) => {
      const book = bookOf(home);
      const own = without.map(placeFor);
      return valueIn(home, book, name, reserved, beside === "all" ? own : [...own, ...placesBeside(beside, book)]);
    },
    reserve: (key, write) => {
      const book = bookOf(home);
      if (book.entered.has(placeFor(key))) return;
      reserve(book, placeFor(key), { task: task.id, write: parsed(write), by: held });
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
      keepEntry(session, home, task, place, entry);
      tell(book);
    },
    release,
    changed: () => new Promise((resolve) => bookOf(home).waiting.push(resolve)),
  };
}

interface Home {
  readonly home: Session;
  readonly task: Task;
  readonly name: string;
}

/**
 * The graph that declares a channel: for middleware that is inherited the outermost one in which the channel is not kept for
 * other middleware, else the one nearest to the task.
 */
function homeOf(session: Session, { task }: TaskScope, middleware: Middleware, channel: Channel): Home {
  let found: Home | undefined;
  for (let at: Session["around"] = { session, task }; at !== undefined; at = at.session.around) {
    const { channels } = at.session.plan.graph.state;
    const name = Object.keys(channels).find((each) => channels[each] === channel);
    if (name === undefined) continue;
    if (found === undefined || !isForOthers(at.session.plan, middleware, channel))
      found = { home: at.session, task: at.task, name };
    if (middleware.inherited !== true) break;
  }
  if (found !== undefined) return found;
  throw new StatewrightError("unknown_channel", {
    what: `a hook at the node "${task.node}" opened the ledger of a channel that neither graph "${session.plan.graph.name}" nor one around it has`,
    next: "Add the channels of the middleware to the state: defineState({ …, ...middleware.channels })",
    place: placeOf(session, { node: task.node }),
  });
}

/** Whether a graph has the channel for other middleware, which keeps facts of its own in it. */
function isForOthers({ graph }: Plan, middleware: Middleware, channel: Channel): boolean {
  const all = [...graph.middleware];
  for (const { tools } of graph.nodes.values())
    if (tools !== undefined) all.push(...(tools.middleware as Middleware[]));
  if (all.includes(middleware)) return false;
  return all.some(({ channels }) => channels !== undefined && Object.values(channels).includes(channel));
}

/** What was entered in the superstep that is at work; after a crash, as the journal has it. */
function bookOf(session: Session): LedgerBook {
  session.ledger ??= newBook(entriesKept(session));
  return session.ledger;
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
