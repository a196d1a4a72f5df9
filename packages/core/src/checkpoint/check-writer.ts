/** Who wrote a thread: with the channels of another graph its state would be read as something that it is not. */
import { StatewrightError } from "../base/errors.ts";
import type { CheckpointRow } from "./checkpoint.ts";
import type { ThreadRow } from "./store.ts";

/** Throws `graph_changed` where another graph has written this checkpoint of the outermost line; of lines inside nobody notes it. */
export function checkWriter(
  { id: thread, graph: writer }: Pick<ThreadRow, "id" | "graph">,
  { branch }: Pick<CheckpointRow, "branch">,
  { name }: { readonly name: string },
): void {
  if (branch.includes("/") || writer === name) return;
  throw new StatewrightError("graph_changed", {
    what: `the thread "${thread}" was written by the graph "${writer}"`,
    next: `Read it with that graph, or say with within where a "${name}" stands in it`,
    place: { graph: name, thread },
  });
}
