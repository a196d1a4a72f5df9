/** Who wrote a thread: with the channels of another graph its state would be read as something that it is not. */
import { StatewrightError } from "../base/errors.ts";
import type { Codec } from "../state/codec.ts";
import type { CheckpointRow } from "./checkpoint.ts";
import { controlOf } from "./control.ts";
import type { ThreadRow } from "./store.ts";

/** Throws `graph_changed` where another graph has written this checkpoint: one of the outermost line, or of a graph inside. */
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
  const { caller } = controlOf(codec, { id, branch, control });
  if (caller?.graph !== undefined && caller.graph !== name) throw writtenInside(thread, id, { ...caller, name });
}

function writtenInside(
  thread: string,
  id: number,
  { graph, within, name }: { readonly graph?: string; readonly within: string; readonly name: string },
): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the checkpoint ${id} of the thread "${thread}" was written by the graph "${graph}", which stands in "${within}"`,
    next: "Read it with that graph",
    place: { graph: name, thread },
  });
}

/** Throws `graph_changed` where a thread is one of another graph. */
export function checkThread(
  { id: thread, graph: writer }: Pick<ThreadRow, "id" | "graph">,
  { name }: { readonly name: string },
): void {
  if (writer === name) return;
  throw new StatewrightError("graph_changed", {
    what: `the thread "${thread}" was written by the graph "${writer}"`,
    next: `Use that graph; to read what a "${name}" in it has written, say with within where that stands`,
    place: { graph: name, thread },
  });
}
