/** Snapshots for the readers of a single branch. */
import type { RunEvent } from "@statewright/core";

/** Event with everything that is open in the run at work. */
export type Snapshot = Extract<RunEvent, { readonly type: "snapshot" }>;

/** Returns the snapshot for the readers of a branch. */
export function selectBranch(snapshot: Snapshot, branch: string | undefined): Snapshot {
  if (branch === undefined) return snapshot;
  const { run, messages, tools } = snapshot;
  return {
    ...snapshot,
    branch,
    run: snapshot.branch === branch ? run : undefined,
    messages: messages.filter((message) => message.branch === branch),
    tools: tools.filter((call) => call.branch === branch),
  };
}
