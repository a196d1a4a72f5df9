/** `pathsOf`: the paths through a graph, found by xstate/graph, each of which a test can run. */
import { type Graph, type GraphTypes, type Json, machineAfter, START, walkPaths } from "@statewright/core";
import type { TestRun } from "../run/test-run.ts";
import { eventsAt, type OutcomeOptions } from "./outcomes.ts";
import { beginning, type Control, isOver, nextControl } from "./path-control.ts";
import type { PathEvent } from "./path-event.ts";
import { type PathRunOptions, runPath } from "./run-path.ts";

/** What `pathsOf` takes besides the graph. */
export interface PathsOptions extends OutcomeOptions {
  /**
   * `shortest` (default): every outcome of every node is on some path, each as short as can be. `simple`: every path that
   * comes to no place twice in the same way.
   */
  readonly which?: "shortest" | "simple";
  /** More paths than this are an error. Default 1,000. */
  readonly limit?: number;
}

/** A path through a graph, from its start to where nothing happens any more. */
export interface GraphPath<Types extends GraphTypes = GraphTypes> {
  /** The outcomes in words: `model calls refund → refund error → model to the end`. */
  readonly name: string;
  readonly events: readonly PathEvent[];
  /** The nodes of each superstep. */
  readonly nodes: readonly (readonly string[])[];
  readonly end: "done" | "failed";
  /**
   * Take the path with the real graph: models and tools do what it says, questions are answered, chosen routes are chosen. Gives
   * the run for what else is to be expected. Rejects when the run goes another way.
   */
  run(options?: PathRunOptions<Types>): Promise<TestRun<Types>>;
}

interface Place extends Control {
  /** The event that led here: a path comes to a place by each of them. */
  readonly by: string;
  /** Where the machine stands. */
  readonly value: Json;
}

/**
 * The paths through the machine of a graph: how each node may end, what a model may say or call, how a tool may answer, and
 * whether a question is answered are the events that `xstate/graph` walks by. In one superstep all choices of its nodes are taken
 * together where they are few; failures and questions whose time is over come one at a time.
 *
 * ```ts
 * test.each(pathsOf(shop))("$name", (path) => path.run({ input: "refund order 7" }));
 * ```
 *
 * Throws when there are more paths than `limit`.
 */
export function pathsOf<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: PathsOptions = {},
): readonly GraphPath<Types>[] {
  const { which = "shortest", limit = 1_000 } = options;
  const found = walkPaths<Place, PathEvent>({
    first: { ...beginning, by: "", value: machineAfter(graph, undefined, []) },
    events: (place) => eventsAt(graph, place, options),
    next: (place, event) => {
      const next = nextControl(graph, place, event.outcomes);
      return { ...next, by: event.type, value: machineAfter(graph, place.value, told(place, next)) };
    },
    isOver,
    isGoal: (place) => isOver(place) && !place.failed,
    which,
    limit: limit * 100,
  });
  const paths = withoutPrefixes(
    found.map(({ events: [begins, ...events], end }) => ({ begins, events, failed: end.failed })),
  );
  if (paths.length > limit)
    throw new Error(
      `the graph "${graph.name}" has ${paths.length} ${which} paths, more than ${limit}: ask for the shortest, or raise { limit }`,
    );
  return paths.map(({ events, begins, failed }): GraphPath<Types> => {
    const name = events.map(({ type }) => type).join(" → ");
    const path = {
      name,
      events,
      nodes: events.map(({ outcomes }) => outcomes.map(({ node }) => node)),
      end: failed ? ("failed" as const) : ("done" as const),
    };
    return { ...path, run: (given = {} as PathRunOptions<Types>) => runPath(graph, { ...path, begins }, given) };
  });
}

/** The machine is told what the engine tells it: which node failed, or which have ended and which are next. */
function told({ pending }: Place, next: Control): readonly { readonly type: string }[] {
  if (next.failed) return [{ type: "task.failed", node: pending[0] } as { readonly type: string }];
  const ended = pending.filter((node) => node !== START).map((node) => ({ type: `xstate.done.actor.${node}` }));
  return [...ended, { type: "step.commit", to: next.pending } as { readonly type: string }];
}

interface Found {
  readonly events: readonly PathEvent[];
  readonly begins: PathEvent | undefined;
  readonly failed: boolean;
}

/** What another path begins with needs no path of its own. */
function withoutPrefixes(paths: readonly Found[]): readonly Found[] {
  const texts = paths.map(({ events }) => events.map(({ type }) => `${type}\n`).join(""));
  return paths.filter((_, index) => {
    const text = texts[index] ?? "";
    return !texts.some((other, place) => other.startsWith(text) && (other.length > text.length || place < index));
  });
}
