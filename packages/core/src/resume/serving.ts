/** Serving threads: the options of engine and recover, and the scan for claimable runs in a store. */

import { StatewrightError, toErrorRecord } from "../base/errors.ts";
import type { SecretSource } from "../base/injection.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount, checkOptions, listOptionNames } from "../base/options.ts";
import type { World } from "../base/world.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { ClaimableKind } from "../checkpoint/claimable.ts";
import { inQueue } from "../checkpoint/delayed-run.ts";
import type { Claim, ClaimingGraph, Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/graph.ts";
import type { Migration } from "../compile/migration.ts";
import { getPlan } from "../compile/plan.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import type { GraphDefinition } from "../define/graph.ts";
import { checkModels, copyModelsOption, type ModelsOption } from "../model/model-source.ts";
import type { Relay } from "../run/events/relay.ts";
import { launch } from "../run/launch.ts";
import type { CallerWithStore, RunHost } from "../run/queue.ts";
import { recoverRun } from "../run/recover-run.ts";
import {
  checkCodecOption,
  checkRelayOption,
  checkStoreOption,
  checkVersions,
} from "../run/session/options/check-run-options.ts";
import type { RunHandle } from "../run/session/options/options.ts";
import { getWorld } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";
import { readUnlessDamaged } from "./read-unless-damaged.ts";

/** Options of a process that serves threads. */
export interface ServingOptions extends ModelsOption {
  /** Store of the thread. */
  readonly store: Store;
  /**
   * Graphs by name; runs of other graphs are skipped. With several versions of a graph the newest is used: a run
   * written by an older version and incompatible with the newest continues under the older version.
   */
  readonly graphs: readonly Graph[];
  /** Migrations of threads written by older versions of the graphs. */
  readonly migrations?: readonly Migration[];
  /** Creates the context of a run resumed or started by this process. */
  readonly context?: (run: RunRow) => unknown;
  /** Source of the secrets that tools inject. Default: none. */
  readonly secrets?: SecretSource;
  /**
   * Carries the text and the progress of the runs to readers of their threads, also in other processes. Default: the
   * relay of the store in this process.
   */
  readonly relay?: Relay;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec;
  /** Number of process deaths without a new checkpoint after which a run is parked. Default 5. */
  readonly parkAfter?: number;
}

/** Names of the serving options. */
export const servingNames: readonly string[] = listOptionNames<ServingOptions>({
  store: true,
  graphs: true,
  migrations: true,
  context: true,
  secrets: true,
  relay: true,
  world: true,
  codec: true,
  parkAfter: true,
  models: true,
});

/** Throws `invalid_option` for invalid serving options. */
export function checkServing(call: string, options: ServingOptions, known: readonly string[]): void {
  checkOptions(call, options, known);
  checkStoreOption(call, options.store);
  checkCodecOption(call, options.codec);
  checkRelayOption(call, options.relay);
  if (options.store === undefined)
    throw new StatewrightError("missing_store", {
      what: `${call}: expected a store, got undefined`,
      next: "Pass the store that holds the threads",
    });
  if (call !== "deliver") checkOwnership(call, options.store);
  if (!Array.isArray(options.graphs))
    throw invalidOption({ where: call, option: "graphs", expected: "a list of graphs", got: options.graphs });
  for (const graph of options.graphs) checkGraphOption(call, graph);
  checkVersions(call, options);
  checkModels(call, options.models);
  checkCount(call, { parkAfter: options.parkAfter });
}

/** Throws `store_mixed` for a store whose threads an orchestrator owns: no engine serves them. */
export function checkOwnership(call: string, { ownership }: Pick<Store, "ownership">): void {
  if (ownership !== "orchestrator") return;
  throw new StatewrightError("store_mixed", {
    what: `${call}: expected a store that owns its threads, got a store whose threads an orchestrator owns`,
    next: "Run its threads with deliver, or pass another store",
    details: { ownership: "orchestrator" },
  });
}

/** Claimable runs of a store. */
export interface ClaimableRuns {
  /** First queued run of each thread. */
  readonly queued: readonly RunRow[];
  /** Crashed and drained runs, oldest first, except runs pre-empted by a queued run. */
  readonly orphaned: readonly RunRow[];
  /** Runs parked as incompatible with an earlier version of the code. */
  readonly parked: readonly RunRow[];
  /** Waiting and paused runs with an undelivered event. */
  readonly notified: readonly RunRow[];
}

/** Rows per turn of the event loop. */
const pageSize = 500;

/** Finds all claimable runs, page by page; other rows, such as paused runs, are not read. */
export async function findClaimableRuns(store: Store, world: World): Promise<ClaimableRuns> {
  const { schedule } = world;
  const listAll = async (kind: ClaimableKind): Promise<readonly RunRow[]> => {
    const rows: RunRow[] = [];
    for (let page = await store.claimable({ kind, limit: pageSize }); ; ) {
      rows.push(...page);
      if (page.length < pageSize) return rows;
      await new Promise<void>((resolve) => schedule.soon(resolve));
      page = await store.claimable({ kind, limit: pageSize, after: page.at(-1) });
    }
  };
  const queued = await listAll("queued");
  const orphaned = [...(await listAll("crashed")), ...(await listAll("drained"))];
  return {
    queued,
    orphaned: await excludePreempted({ store, world }, queued, orphaned),
    parked: await listAll("incompatible"),
    notified: await listAll("notified"),
  };
}

/**
 * Incremental scan for claimable runs with a bounded number of rows per call; each call continues after the previous
 * call.
 */
export interface ClaimableScanner {
  /** Returns the next rows of each kind; `more` is true when further rows may exist. */
  readonly next: () => Promise<ClaimableRuns & { readonly more: boolean }>;
}

export function createScanner(store: Store, world: World, limit: number = pageSize): ClaimableScanner {
  const cursors = new Map<ClaimableKind, RunRow>();
  return {
    next: async () => {
      let more = false;
      const loadPage = async (kind: ClaimableKind): Promise<readonly RunRow[]> => {
        const rows = await store.claimable({ kind, limit, after: cursors.get(kind) });
        const last = rows.length < limit ? undefined : rows.at(-1);
        more ||= last !== undefined;
        if (last === undefined) cursors.delete(kind);
        else cursors.set(kind, last);
        return rows;
      };
      const queued = await loadPage("queued");
      const orphaned = [...(await loadPage("crashed")), ...(await loadPage("drained"))];
      const parked = await loadPage("incompatible");
      const notified = await loadPage("notified");
      return { queued, orphaned: await excludePreempted({ store, world }, queued, orphaned), parked, notified, more };
    },
  };
}

/** Removes runs that a queued run pre-empts, and runs whose queue cannot be read. */
async function excludePreempted(
  { store, world }: { readonly store: Store; readonly world: World },
  queued: readonly RunRow[],
  orphaned: readonly RunRow[],
): Promise<readonly RunRow[]> {
  const threads = new Set(queued.map(({ thread }) => thread));
  const isRetained = await Promise.all(
    orphaned.map(async ({ thread, id }) => {
      if (!threads.has(thread)) return true;
      const queuedRuns = await readUnlessDamaged(world, thread, () => store.runs({ thread, ...inQueue }));
      return queuedRuns?.some(({ stops }) => stops?.run === id) === false;
    }),
  );
  return orphaned.filter((_, nth) => isRetained[nth]);
}

/** Lists the served versions of a graph, newest first. */
export function listVersions(graphs: readonly Graph[], name: string): readonly Graph[] {
  return graphs.filter((graph) => graph.name === name).sort((one, other) => other.version - one.version);
}

/** Returns the other served versions of a graph and the migrations to the graph. */
export function getVersionOptions(
  { graphs, migrations = [] }: ServingOptions,
  graph: GraphDefinition,
): { readonly older: readonly Graph[]; readonly migrations: readonly Migration[] } {
  const older = listVersions(graphs, graph.name).filter((each) => each !== graph);
  return { older, migrations: migrations.filter(({ to }) => to.name === graph.name) };
}

/** Returns the options that every run of a serving process shares. */
export function getSharedOptions({
  store,
  secrets,
  relay,
  world,
  codec,
}: ServingOptions): Pick<ServingOptions, "store" | "secrets" | "relay" | "world" | "codec"> {
  return {
    store,
    ...(secrets === undefined ? {} : { secrets }),
    ...(relay === undefined ? {} : { relay }),
    ...(world === undefined ? {} : { world }),
    ...(codec === undefined ? {} : { codec }),
  };
}

/** Creates the run host of a serving process. */
export function createHost(
  options: ServingOptions,
  { canStart, onLaunch, requestRuns }: Omit<RunHost, "getCaller">,
): RunHost {
  const { graphs, context } = options;
  const sharedOptions = { ...getSharedOptions(options), ...copyModelsOption(options) };
  const host: RunHost = {
    canStart,
    onLaunch,
    requestRuns,
    getCaller: (row) => {
      const [graph] = listVersions(graphs, row.graph);
      // A run of a newer version is left to processes that serve the newer version.
      if (graph === undefined || row.version > graph.version) return undefined;
      const contextOption = context === undefined ? {} : { context: context(row) };
      return { graph, options: { ...sharedOptions, ...getVersionOptions(options, graph), ...contextOption }, host };
    },
  };
  return host;
}

/**
 * Creates the caller of a run. A graph that is not served and a context callback that throws are logged, and the run
 * is skipped.
 */
export function createCaller(options: ServingOptions, host: RunHost, row: RunRow): CallerWithStore | undefined {
  const { log } = getWorld(options);
  const fields = { thread: row.thread, run: row.id, graph: row.graph, version: row.version };
  try {
    const caller = host.getCaller(row);
    if (caller === undefined) log("warn", "a run is skipped: its graph is not served here", fields);
    return caller as CallerWithStore | undefined;
  } catch (error) {
    log("warn", "a run is skipped: the context callback threw", {
      ...fields,
      error: toErrorRecord(error),
    });
    return undefined;
  }
}

/** Continues a crashed or drained run, after `before` has finished or with a claim of its thread. */
export function continueRun(
  caller: CallerWithStore,
  row: RunRow,
  { parkAfter, before, heldClaim }: ContinueOptions,
): RunHandle<object> {
  return launch<object, unknown>(caller.options, row.thread, row.id, async (events, stops) => {
    if (before !== undefined) await Promise.allSettled([before]);
    return await recoverRun(caller, row, events, { stops, parkAfter, heldClaim });
  });
}

/** Options of `continueRun`. */
interface ContinueOptions {
  readonly parkAfter: number | undefined;
  readonly before?: Promise<unknown> | undefined;
  /** Claim of the thread by `claimRuns`. */
  readonly heldClaim?: Claim | undefined;
}

/** Graph in requests for claims of runs and timers. */
export interface ServedGraph extends ClaimingGraph {
  readonly graph: Graph;
}

/** Lists the newest version of each served graph. */
export function listClaimingGraphs(graphs: readonly Graph[]): readonly ServedGraph[] {
  const names = new Set(graphs.map(({ name }) => name));
  return [...names].flatMap((name) => {
    const [graph] = listVersions(graphs, name);
    if (graph === undefined) return [];
    const { shape, outline } = getPlan(graph);
    return [{ name, version: graph.version, shape, outline, graph }];
  });
}
