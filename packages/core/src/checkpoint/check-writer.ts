/** Checks that a graph wrote a thread: the channels of another graph would misread its state. */
import { StatewrightError } from "../base/errors.ts";
import type { Codec } from "../state/codec.ts";
import type { CheckpointRow } from "./checkpoint.ts";
import { parseControl } from "./control.ts";
import type { ThreadRow } from "./store.ts";

/**
 * Throws `graph_changed` when another graph wrote this checkpoint, either the root graph of the thread or an inner
 * graph.
 */
export function checkWriter(
  { id: thread, graph: outermost }: Pick<ThreadRow, "id" | "graph">,
  { id, branch, control }: Pick<CheckpointRow, "id" | "branch" | "control">,
  codec: Codec,
  { name }: { readonly name: string },
): void {
  if (!branch.includes("/")) {
    checkThread({ id: thread, graph: outermost }, { name });
    return;
  }
  const { caller } = parseControl(codec, { id, branch, control });
  if (caller?.graph !== undefined && caller.graph !== name)
    throw createInnerWriterError(thread, id, { ...caller, name });
}

function createInnerWriterError(
  thread: string,
  id: number,
  { graph, nesting, name }: { readonly graph?: string; readonly nesting: string; readonly name: string },
): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `checkpoint ${id} of thread "${thread}" was written by graph "${graph}" at "${nesting}"`,
    next: "Read the checkpoint with that graph",
    place: { graph: name, thread },
  });
}

/** Throws `graph_changed` when a thread belongs to another graph. A thread without a run belongs to no graph yet. */
export function checkThread(
  { id: thread, graph: writer }: Pick<ThreadRow, "id" | "graph">,
  { name }: { readonly name: string },
): void {
  if (writer === undefined || writer === name) return;
  throw new StatewrightError("graph_changed", {
    what: `thread "${thread}" was written by graph "${writer}"`,
    next: `Use that graph; to read an inner graph "${name}", pass its position in nesting`,
    place: { graph: name, thread },
  });
}
