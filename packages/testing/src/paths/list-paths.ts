/** Paths through a graph, found by `xstate/graph`, that a test can run. */

import { type Graph, type GraphTypes, type Json, START } from "@statewright/core";
import { applyMachineEvents, explorePaths } from "@statewright/core/adapter";
import type { TestRun } from "../run/test-run.ts";
import { listPathEvents, type OutcomeOptions } from "./outcomes.ts";
import { computeNextControl, initialControl, isPathFinished, type PathControl } from "./path-control.ts";
import type { PathEvent } from "./path-event.ts";
import { type PathRunOptions, runPath } from "./run-path.ts";

/** Options of `listPaths`. */
export interface PathsOptions extends OutcomeOptions {
  /**
   * `shortest` (default): every outcome of every node is on some path, each path as short as possible. `simple`:
   * every path without a repeated state.
   */
  readonly which?: "shortest" | "simple";
  /** Maximum number of paths; more paths are an error. Default 1,000. */
  readonly limit?: number;
}

/** Path through a graph, from the start to the end of the run. */
export interface GraphPath<Types extends GraphTypes = GraphTypes> {
  /** Outcomes as text: `model calls refund → refund error → model to the end`. */
  readonly name: string;
  readonly events: readonly PathEvent[];
  /** Nodes of each superstep. */
  readonly nodes: readonly (readonly string[])[];
  readonly end: "done" | "failed";
  /**
   * Runs the path with the real graph: models, tools and routes follow the path, interrupts are answered. Returns the
   * test run for further expectations. Rejects when the run leaves the path.
   */
  run(options?: PathRunOptions<Types>): Promise<TestRun<Types>>;
}

interface PathState extends PathControl {
  /** Event that led to this state; a state is reached once by each event. */
  readonly eventType: string;
  /** State value of the machine. */
  readonly value: Json;
}

/**
 * Lists the paths through the machine of a graph. The events of the `xstate/graph` traversal are the outcomes of
 * nodes, the replies and calls of a model, the results of a tool, and the answers to interrupts. All outcomes
 * of the nodes of a superstep are combined up to a limit; failures and expired interrupts occur in separate paths.
 *
 * ```ts
 * test.each(listPaths(shop))("$name", (path) => path.run({ input: "refund order 7" }));
 * ```
 *
 * Throws when there are more paths than `limit`.
 */
export function listPaths<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: PathsOptions = {},
): readonly GraphPath<Types>[] {
  const { which = "shortest", limit = 1_000 } = options;
  const found = explorePaths<PathState, PathEvent>({
    first: { ...initialControl, eventType: "", value: applyMachineEvents(graph, undefined, []) },
    events: (place) => listPathEvents(graph, place, options),
    next: (place, event) => {
      const next = computeNextControl(graph, place, event.outcomes);
      return {
        ...next,
        eventType: event.type,
        value: applyMachineEvents(graph, place.value, toMachineEvents(place, next)),
      };
    },
    isOver: isPathFinished,
    isGoal: (place) => isPathFinished(place) && !place.failed,
    which,
    limit: limit * 100,
  });
  const paths = removePrefixPaths(
    found.map(({ events: [startEvent, ...events], end }) => ({ startEvent, events, failed: end.failed })),
  );
  if (paths.length > limit)
    throw new Error(
      `listPaths: expected at most ${limit} paths, got ${paths.length} ${which} paths of the graph "${graph.name}". Use the shortest paths, or set a higher { limit }.`,
    );
  return paths.map(({ events, startEvent, failed }): GraphPath<Types> => {
    const name = events.map(({ type }) => type).join(" → ");
    const path = {
      name,
      events,
      nodes: events.map(({ outcomes }) => outcomes.map(({ node }) => node)),
      end: failed ? ("failed" as const) : ("done" as const),
    };
    return {
      ...path,
      run: (runOptions = {} as PathRunOptions<Types>) => runPath(graph, { ...path, startEvent }, runOptions),
    };
  });
}

/** Returns the machine events that the engine sends: the failed node, or the finished nodes and the next nodes. */
function toMachineEvents({ pending }: PathState, next: PathControl): readonly { readonly type: string }[] {
  if (next.failed) return [{ type: "task.failed", node: pending[0] } as { readonly type: string }];
  const finished = pending.filter((node) => node !== START).map((node) => ({ type: `xstate.done.actor.${node}` }));
  return [...finished, { type: "step.commit", to: next.pending } as { readonly type: string }];
}

interface FoundPath {
  readonly events: readonly PathEvent[];
  readonly startEvent: PathEvent | undefined;
  readonly failed: boolean;
}

/** Removes paths that are a prefix of another path. */
function removePrefixPaths(paths: readonly FoundPath[]): readonly FoundPath[] {
  const texts = paths.map(({ events }) => events.map(({ type }) => `${type}\n`).join(""));
  return paths.filter((_, index) => {
    const text = texts[index] ?? "";
    return !texts.some(
      (other, otherIndex) => other.startsWith(text) && (other.length > text.length || otherIndex < index),
    );
  });
}
