/** Context of a delivery: serving options, the caller of each run, and what the delivery has done so far. */
import { isStatewrightError, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import { followStoreClock } from "../../base/world.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Graph } from "../../compile/graph.ts";
import type { CallerWithStore } from "../../run/queue.ts";
import { getWorld } from "../../run/task/open-session.ts";
import { createHost, listVersions, type ServingOptions } from "../serving.ts";
import type { Delivery, DeliveryBase } from "./delivery.ts";
import { createDeliveryStop, type DeliveryStop } from "./delivery-stop.ts";

export interface DeliveryContext {
  readonly serving: ServingOptions;
  readonly delivery: Delivery;
  readonly store: Store;
  readonly world: World;
  readonly stop: DeliveryStop;
  /** Ids of the runs that this delivery has started or continued: each at most once. */
  readonly tried: Set<string>;
  /** Run that the delivery is about; undefined for a delivery about the thread. */
  run: string | undefined;
  /** Error of a run that could not be started or continued, and whose row is unchanged. */
  failure: StatewrightError | undefined;
  /** Returns the caller of a run. Throws `graph_changed`, `needs_migration`, `invalid_context`. */
  readonly getCaller: (row: RunRow) => CallerWithStore;
}

/** Creates the context of a delivery. Without a clock of the store, due times follow the time of the delivery. */
export function createDeliveryContext(given: ServingOptions, delivery: Delivery): DeliveryContext {
  const { store } = given;
  const ownWorld = getWorld(given);
  const { world } = followStoreClock(ownWorld, { at: store.now === undefined ? delivery.at : undefined });
  const serving = { ...given, world };
  const host = createHost(serving, { canStart: () => false, onLaunch: () => undefined });
  return {
    serving,
    delivery,
    store,
    world,
    stop: createDeliveryStop(ownWorld, delivery),
    tried: new Set(),
    run: undefined,
    failure: undefined,
    getCaller: (row) => {
      try {
        const caller = host.getCaller(row) as CallerWithStore | undefined;
        if (caller !== undefined) return { ...caller, claim: delivery.claim };
      } catch (error) {
        throw createContextError(row, error);
      }
      throw createOlderCodeError(row, getServedGraph({ serving, delivery }, row.graph));
    },
  };
}

/** Returns the newest served version of a graph. Throws `graph_changed`. */
export function getServedGraph(
  { serving: { graphs }, delivery: { thread } }: Pick<DeliveryContext, "serving" | "delivery">,
  name: string,
): Graph {
  const [graph] = listVersions(graphs, name);
  if (graph === undefined) throw createNotServedError(name, thread);
  return graph;
}

/** Returns true for an error of the store, which a later delivery may not meet: it is thrown, and never a value. */
export function isThrown(error: unknown): boolean {
  return !isStatewrightError(error) || (error.kind === "store" && error.code !== "unencodable_value");
}

/** Returns the branch of a delivery; undefined for an unknown thread. */
export async function findBranch(
  { store }: Pick<DeliveryContext, "store">,
  { thread, branch }: Pick<DeliveryBase, "thread" | "branch">,
): Promise<string | undefined> {
  return branch ?? (await store.thread(thread))?.headBranch;
}

function createNotServedError(graph: string, thread: string): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `deliver: expected a served graph, got "${graph}"`,
    next: "Add the graph, in the version of the run or a newer one, to graphs",
    place: { thread },
  });
}

function createOlderCodeError({ thread, version }: RunRow, graph: Graph): StatewrightError {
  return new StatewrightError("needs_migration", {
    what: `deliver: expected version ${version} of the graph "${graph.name}" or a newer one, got version ${graph.version}`,
    next: "Deliver again to a process with the newer code",
    place: { graph: graph.name, thread },
  });
}

function createContextError({ thread, graph }: RunRow, thrown: unknown): StatewrightError {
  return new StatewrightError("invalid_context", {
    what: `deliver: the function context threw for a run of the graph "${graph}"`,
    next: "Fix the function context of the serving options",
    place: { graph, thread },
    details: toErrorRecord(thrown),
    cause: thrown,
  });
}
