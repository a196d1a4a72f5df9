/** Serving threads: what a process is given to run them with, and what it finds to do in a store. */
import { StatewrightError, toErrorRecord } from "../base/errors.ts";
import type { SecretSource } from "../base/injection.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions } from "../base/options.ts";
import type { World } from "../base/world.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { ClaimableKind } from "../checkpoint/claimable.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import type { Migration } from "../compile/migration.ts";
import type { GraphDefinition } from "../define/graph.ts";
import { launch } from "../run/launch.ts";
import type { RunHost, SavingCaller } from "../run/queue.ts";
import { goOn } from "../run/recover-run.ts";
import { checkCodec, checkGraph, checkStore, checkVersions } from "../run/session/check-run-options.ts";
import type { RunHandle } from "../run/session/options.ts";
import { worldOf } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";

/** What a process that serves threads is given. */
export interface ServingOptions {
  readonly store: Store;
  /**
   * Each by its name; runs of any other are left alone. Of several versions of a graph the newest counts: a run that an older
   * one has written, and that does not fit the newest, goes on under that.
   */
  readonly graphs: readonly Graph[];
  /** How threads that older versions of the graphs have written become threads of the newest. */
  readonly migrations?: readonly Migration[];
  /** The context of a run that goes on or begins here without anybody who gives it. */
  readonly context?: (run: RunRow) => unknown;
  readonly secrets?: SecretSource;
  readonly world?: World;
  readonly codec?: Codec;
  /** So often a run's process may die without the run coming to a new checkpoint; then the run is parked. Default 5. */
  readonly parkAfter?: number;
}

/** Throws `invalid_option` for what cannot be meant. */
export function checkServing(call: "engine" | "recover", options: ServingOptions, known: readonly string[]): void {
  checkOptions(call, options, known);
  checkStore(call, options.store);
  checkCodec(call, options.codec);
  if (options.store === undefined)
    throw new StatewrightError("missing_store", {
      what: `${call} was called without a store`,
      next: "Give the store that holds the threads",
    });
  if (!Array.isArray(options.graphs))
    throw new StatewrightError("invalid_option", {
      what: `the graphs of ${call} are ${describeValue(options.graphs)}`,
      next: "Give a list of graphs",
    });
  for (const graph of options.graphs) checkGraph(call, graph);
  checkVersions(call, options);
  checkCount(call, "parkAfter", options.parkAfter);
}

/** Throws `invalid_option` for a number that is not a whole one from 1. */
export function checkCount(call: string, name: string, given: number | undefined): void {
  if (given === undefined || (Number.isInteger(given) && given >= 1)) return;
  throw new StatewrightError("invalid_option", {
    what: `${name} of ${call} is ${describeValue(given)}`,
    next: "Give a whole number from 1",
  });
}

/** What there is to do in a store without being asked. */
export interface Found {
  /** The first in the queue of each thread. */
  readonly queued: readonly RunRow[];
  /** Runs of dead processes, and those that an engine has stopped; the oldest first. Those that a queued one ends are not among them. */
  readonly left: readonly RunRow[];
  /** Runs that did not fit an earlier version of the code. */
  readonly parked: readonly RunRow[];
}

/** So many rows are read in one turn of the event loop. */
const pageSize = 500;

/** Find all of it, page by page: what a store holds besides, such as runs that people have paused, is not looked at. */
export async function findRuns(store: Store, { schedule }: World): Promise<Found> {
  const all = async (kind: ClaimableKind): Promise<readonly RunRow[]> => {
    const rows: RunRow[] = [];
    for (let page = await store.claimable({ kind, limit: pageSize }); ; ) {
      rows.push(...page);
      if (page.length < pageSize) return rows;
      await new Promise<void>((resolve) => schedule.soon(resolve));
      page = await store.claimable({ kind, limit: pageSize, after: page.at(-1) });
    }
  };
  const queued = await all("queued");
  const left = [...(await all("crashed")), ...(await all("drained"))];
  return { queued, left: await withoutEnded(store, queued, left), parked: await all("unfit") };
}

/** Finds what there is to do a bounded number of rows at a time: each look goes on where the one before it has stopped. */
export interface Finder {
  /** The next rows of each kind; `more` says that there may be others. */
  readonly next: () => Promise<Found & { readonly more: boolean }>;
}

export function createFinder(store: Store, limit: number = pageSize): Finder {
  const places = new Map<ClaimableKind, RunRow>();
  return {
    next: async () => {
      let more = false;
      const page = async (kind: ClaimableKind): Promise<readonly RunRow[]> => {
        const rows = await store.claimable({ kind, limit, after: places.get(kind) });
        const last = rows.length < limit ? undefined : rows.at(-1);
        more ||= last !== undefined;
        if (last === undefined) places.delete(kind);
        else places.set(kind, last);
        return rows;
      };
      const queued = await page("queued");
      const left = [...(await page("crashed")), ...(await page("drained"))];
      const parked = await page("unfit");
      return { queued, left: await withoutEnded(store, queued, left), parked, more };
    },
  };
}

/** Those that no queued run is to end. */
async function withoutEnded(
  store: Store,
  queued: readonly RunRow[],
  left: readonly RunRow[],
): Promise<readonly RunRow[]> {
  const threads = new Set(queued.map(({ thread }) => thread));
  const stays = await Promise.all(
    left.map(async ({ thread, id }) => {
      if (!threads.has(thread)) return true;
      const inLine = await store.runs({ thread, status: "queued" });
      return !inLine.some(({ stops }) => stops?.run === id);
    }),
  );
  return left.filter((_, nth) => stays[nth]);
}

/** The versions of a graph among those that are served, the newest first. */
export function versionsOf(graphs: readonly Graph[], name: string): readonly Graph[] {
  return graphs.filter((graph) => graph.name === name).sort((one, other) => other.version - one.version);
}

/** What is known here of a graph besides itself: its other versions, and how their threads become threads of it. */
export function besides(
  { graphs, migrations = [] }: ServingOptions,
  graph: GraphDefinition,
): { readonly older: readonly Graph[]; readonly migrations: readonly Migration[] } {
  const older = versionsOf(graphs, graph.name).filter((each) => each !== graph);
  return { older, migrations: migrations.filter(({ to }) => to.name === graph.name) };
}

/** What runs are run with here. */
export function callersOf(
  options: ServingOptions,
  { accepts, launched }: Pick<RunHost, "accepts" | "launched">,
): RunHost {
  const { graphs, context, store, secrets, world, codec } = options;
  const given = {
    store,
    ...(secrets === undefined ? {} : { secrets }),
    ...(world === undefined ? {} : { world }),
    ...(codec === undefined ? {} : { codec }),
  };
  const host: RunHost = {
    accepts,
    launched,
    callerOf: (row) => {
      const [graph] = versionsOf(graphs, row.graph);
      // An input for a version that is not here yet is for those who have it.
      if (graph === undefined || (row.status === "queued" && row.version > graph.version)) return undefined;
      const own = context === undefined ? {} : { context: context(row) };
      return { graph, options: { ...given, ...besides(options, graph), ...own }, host };
    },
  };
  return host;
}

/** What a run is run with here. A graph that is not served, and a context that throws, are logged: the run is left alone. */
export function callerOf(options: ServingOptions, host: RunHost, row: RunRow): SavingCaller | undefined {
  const { log } = worldOf(options);
  const fields = { thread: row.thread, run: row.id, graph: row.graph, version: row.version };
  try {
    const caller = host.callerOf(row);
    if (caller === undefined) log("warn", "a run is left alone: its graph is not served here", fields);
    return caller as SavingCaller | undefined;
  } catch (error) {
    log("warn", "a run is left alone: the context for it could not be made", {
      ...fields,
      error: toErrorRecord(error),
    });
    return undefined;
  }
}

/** Go on with a run that its process has left, when `before` has ended. */
export function continueRun(
  caller: SavingCaller,
  row: RunRow,
  parkAfter: number | undefined,
  before?: Promise<unknown>,
): RunHandle<object> {
  return launch<object, unknown>(caller.options, row.thread, row.id, async (events, stops) => {
    await Promise.allSettled([before]);
    return await goOn(caller, row, events, stops, parkAfter);
  });
}
