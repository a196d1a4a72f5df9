/** Where control stands on a path, and where it goes when a superstep has ended: what runs, what joins wait, what is deferred. */
import { END, type GraphDefinition, START } from "@statewright/core";
import type { NodeOutcome } from "./path-event.ts";

/** Where control stands between two supersteps. */
export interface Control {
  /** The nodes at work, in the order of declaration; nothing when the run has ended. */
  readonly pending: readonly string[];
  /** Who has come to each join that is not full. */
  readonly joins: Readonly<Record<string, readonly string[]>>;
  readonly deferred: readonly string[];
  /** The call that a model has made and that a tool node answers. */
  readonly called: string | undefined;
  readonly failed: boolean;
}

/** Where every path begins. */
export const beginning: Control = { pending: [START], joins: {}, deferred: [], called: undefined, failed: false };

/** Whether nothing happens any more. */
export function isOver({ pending, failed }: Control): boolean {
  return failed || pending.length === 0;
}

/** Where control goes after these outcomes. */
export function nextControl(graph: GraphDefinition, before: Control, outcomes: readonly NodeOutcome[]): Control {
  const called = outcomes.flatMap((outcome) => (outcome.how === "calls" ? [outcome.tool] : []))[0];
  if (outcomes.some(({ how }) => how === "fails")) return { ...before, called, failed: true };
  const wanted = new Set<string>();
  const joins: Record<string, readonly string[]> = { ...before.joins };
  for (const { node, to } of outcomes)
    for (const target of to) {
      if (target === END) continue;
      if (graph.edges.get(node)?.kind === "join") joins[target] = [...new Set([...(joins[target] ?? []), node])].sort();
      else wanted.add(target);
    }
  for (const [target, come] of Object.entries(joins)) {
    if (come.length < joiningIn(graph, target)) continue;
    delete joins[target];
    wanted.add(target);
  }
  const all = [...graph.nodes.keys()].filter((name) => wanted.has(name) || before.deferred.includes(name));
  const isDeferred = (name: string): boolean => graph.nodes.get(name)?.policy.defer === true;
  const now = all.filter((name) => !isDeferred(name));
  return {
    pending: now.length > 0 ? now : all,
    joins,
    deferred: now.length > 0 ? all.filter(isDeferred) : [],
    called,
    // Nothing runs any more, and a join still waits: the engine fails such a superstep.
    failed: all.length === 0 && Object.keys(joins).length > 0,
  };
}

function joiningIn(graph: GraphDefinition, target: string): number {
  return [...graph.edges.values()].filter(({ kind, targets }) => kind === "join" && targets.includes(target)).length;
}
