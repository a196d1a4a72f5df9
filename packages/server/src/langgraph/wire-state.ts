/** States of threads in the shape of LangGraph. */
import type { RunView, StateView } from "../service/caller-service.ts";
import { getInterruptNode, groupInterrupts, toWireInterrupt } from "./to-wire-interrupts.ts";
import type { WireObject } from "./to-wire-message.ts";
import { toWireValues } from "./to-wire-values.ts";
import { rootBranchPrefix, rootCheckpoint, toCheckpointId, toWireCheckpoint } from "./wire-checkpoint.ts";

/** Options of a state: shape of interrupts, and the run whose failure belongs to the state. */
export interface WireStateOptions {
  readonly hitl: boolean;
  readonly run?: RunView | undefined;
}

const sources: Readonly<Record<string, string>> = { step: "loop" };

/** Returns the source of a checkpoint as LangGraph names it. */
export function toWireSource(source: string): string {
  return sources[source] ?? source;
}

/** Converts a state of a thread. */
export function toWireState(state: StateView, options: WireStateOptions): WireObject {
  const { thread, checkpoint, step, source, at, run } = state;
  const isRoot = source === "fork" && state.branch.startsWith(rootBranchPrefix);
  const parent = isRoot ? rootCheckpoint : (state.parent ?? rootCheckpoint);
  return {
    values: isRoot ? {} : toWireValues(state.values),
    next: state.next,
    tasks: listTasks(state, options),
    checkpoint: toWireCheckpoint(thread, checkpoint),
    parent_checkpoint: toWireCheckpoint(thread, parent),
    metadata: {
      ...{ source: toWireSource(source), step, parents: {}, thread_id: thread, graph_id: state.graph },
      ...(run === undefined ? {} : { run_id: run }),
    },
    created_at: new Date(at).toISOString(),
    interrupts: listWireInterrupts(state, options),
  };
}

/** Returns the state at the root checkpoint: the thread before its first input. */
export function createRootState({ thread, graph, at }: StateView): WireObject {
  return {
    ...{ values: {}, next: ["__start__"], tasks: [], interrupts: [] },
    checkpoint: toWireCheckpoint(thread, rootCheckpoint),
    parent_checkpoint: null,
    metadata: { source: "input", step: -1, parents: {}, thread_id: thread, graph_id: graph },
    created_at: new Date(at).toISOString(),
  };
}

/** Lists the open interrupts of a state as clients receive them. */
export function listWireInterrupts({ interrupts }: StateView, { hitl }: WireStateOptions): readonly WireObject[] {
  return groupInterrupts(interrupts, { hitl }).map(toWireInterrupt);
}

/** Lists the pending tasks: one for each next node, with its interrupts and the failure of the run. */
function listTasks(
  { next, checkpoint, interrupts }: StateView,
  { hitl, run }: WireStateOptions,
): readonly WireObject[] {
  const groups = groupInterrupts(interrupts, { hitl });
  const error = run?.error === undefined ? null : formatError(run.error);
  return next.map((name, index) => {
    // Interrupts of inner graphs belong to the last task: their nodes are no nodes of this graph.
    const isLast = index === next.length - 1;
    const own = groups.filter((group) => {
      const node = getInterruptNode(group);
      return node === name || (isLast && !next.includes(node));
    });
    const id = `${toCheckpointId(checkpoint)}:${name}`;
    return {
      id,
      name,
      path: [],
      error,
      interrupts: own.map(toWireInterrupt),
      checkpoint: null,
      state: null,
      result: null,
    };
  });
}

/** Clients parse the error of a task: code and title. */
function formatError({ code, title }: { readonly code: string; readonly title: string }): string {
  return JSON.stringify({ error: code, message: title });
}
