/** Acts that read states of threads. */
import { END, type Graph, StatewrightError } from "@statewright/core";
import { findInnerGraph, type LoadedState, loadState, loadStates } from "@statewright/core/adapter";
import type { CallerScope, OwnThread } from "./caller-scope.ts";
import type { CallerService, StateView } from "./caller-service.ts";
import type { Cursors } from "./cursors.ts";
import { omitUndefined } from "./omit-undefined.ts";
import { loadPage } from "./pages.ts";
import { toJsonObject } from "./to-json.ts";

/** Place of a state in a thread. */
export interface StatePlace {
  readonly at?: number | undefined;
  readonly branch?: string | undefined;
  readonly nesting?: string | undefined;
}

/** Creates the acts that read states of a caller. */
export function createStateActs(
  scope: CallerScope,
  cursors: Cursors,
): Pick<CallerService, "getState" | "listStates" | "listBranches"> {
  const { store, codec } = scope;
  return {
    getState: async (thread, place = {}) => {
      const own = await scope.requireThread(thread, { action: "thread.read" });
      return await loadStateView(scope, own, place);
    },
    listStates: async (thread, { branch = undefined, ...page }) => {
      const own = await scope.requireThread(thread, { action: "thread.read" });
      const followed = branch ?? own.row.headBranch;
      return await loadPage({ scope, cursors }, page, {
        name: `states ${own.stored} ${followed}`,
        load: async ({ before, limit }) => {
          if (own.row.graph === undefined) return [];
          const page = { store, thread: own.row, branch: followed, limit, codec };
          const last = before === undefined ? {} : { before: Number(before) };
          return await loadStates(scope.requireGraph(own.row.graph), { ...page, ...last });
        },
        getCursor: ({ row }) => String(row.id),
        toItem: (loaded) => toStateView(own, scope.requireGraph(own.row.graph ?? ""), loaded),
      });
    },
    listBranches: async (thread) => {
      const { stored } = await scope.requireThread(thread, { action: "thread.read" });
      const branches = await store.branches(stored);
      return branches.map(({ name, from, head }) => ({ name, ...omitUndefined({ from, head }) }));
    },
  };
}

/** Loads the state of a thread at a place, without private channels. Throws `unknown_checkpoint`, `unknown_branch`. */
export async function loadStateView(scope: CallerScope, own: OwnThread, place: StatePlace): Promise<StateView> {
  const { store, codec } = scope;
  if (own.row.graph === undefined) throw createNoStateError(own.wire);
  const outermost = scope.requireGraph(own.row.graph);
  const graph = findGraphAt(outermost, place.nesting);
  const loaded = await loadState(graph, { store, thread: own.stored, codec, ...omitUndefined(place) }, own.row);
  return toStateView(own, graph, loaded);
}

/** Returns a loaded state without private channels. */
function toStateView({ wire }: OwnThread, graph: Graph, { found, row }: LoadedState): StateView {
  const shown = Object.entries(found.state).filter(([channel]) => !graph.private.has(channel));
  return {
    thread: wire,
    graph: graph.name,
    checkpoint: found.checkpointId,
    ...omitUndefined({ parent: row.parent }),
    branch: found.branch,
    step: found.step,
    source: row.source,
    next: found.next.filter((node) => node !== END),
    values: toJsonObject(Object.fromEntries(shown)),
    interrupts: found.interrupts,
    answered: found.answered,
    ...omitUndefined({ status: found.status, run: row.run }),
    at: row.at,
  };
}

/** Returns the graph at a path of nodes and tools. Throws `unknown_checkpoint` for a path that the graph does not have. */
function findGraphAt(outermost: Graph, nesting: string | undefined): Graph {
  let graph: Graph = outermost;
  for (const name of nesting === undefined ? [] : nesting.split(".")) {
    const inner = findInnerGraph(graph, name);
    if (inner === undefined || !isGraph(inner))
      throw new StatewrightError("unknown_checkpoint", {
        what: `the graph "${outermost.name}" has no inner graph at "${nesting}"`,
        next: "Pass the path of a node or a tool that runs a graph",
      });
    graph = inner;
  }
  return graph;
}

function isGraph(graph: object): graph is Graph {
  return "machine" in graph;
}

export function createNoStateError(thread: string): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `the thread "${thread}" has no checkpoint: no run has saved its input`,
    next: "Start a run first",
    place: { thread },
  });
}
