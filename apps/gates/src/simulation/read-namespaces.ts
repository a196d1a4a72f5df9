/** Checkpoints of a simulated thread, as read from the store after the end. */
import type { Store } from "@statewright/core";
import type { StoredEvent } from "@statewright/core/store";
import { formatCheckpoint } from "./invariants/checkpoint-log.ts";
import type { Invariants } from "./invariants/invariants.ts";
import { simulatedThread } from "./simulated-program.ts";

/**
 * Reads the checkpoints of each namespace; checks that they equal the written rows and that sequence numbers have no
 * gap.
 */
export async function readNamespaces(store: Store, invariants: Invariants): Promise<Record<string, string[]>> {
  const namespaces: Record<string, string[]> = {};
  if ((await store.head(simulatedThread)) === undefined) return namespaces;
  let next = 1;
  let found = 0;
  for await (const event of readEvents(store)) {
    const seq = "checkpoint" in event ? event.checkpoint.seq : event.durableEvent.seq;
    if (seq !== next) invariants.addViolation("I4", `expected the durable event ${next}, got ${seq}`);
    next = seq + 1;
    if (!("checkpoint" in event)) continue;
    found += 1;
    const { deltas, ...row } = event.checkpoint;
    if (invariants.checkpoints.get(row.id) !== formatCheckpoint(row, deltas))
      invariants.addViolation("I5", `the checkpoint ${row.id} differs from its written row`);
    const { caller: _, ...control } = JSON.parse(row.control) as { readonly caller?: unknown };
    const checkpoints = namespaces[row.branch] ?? [];
    namespaces[row.branch] = checkpoints;
    checkpoints.push(`${row.step} ${row.source} ${row.nodes.join(" ")} ${JSON.stringify(control)}`);
  }
  if (found !== invariants.checkpoints.size) invariants.addViolation("I5", "a checkpoint is missing");
  return namespaces;
}

async function* readEvents(store: Store): AsyncGenerator<StoredEvent> {
  for (let after = 0; ; ) {
    const page = await store.events(simulatedThread, { after, limit: 100 });
    if (page.length === 0) return;
    for (const event of page) {
      yield event;
      after = "checkpoint" in event ? event.checkpoint.seq : event.durableEvent.seq;
    }
  }
}
