/** Checkpoints of a branch of a thread, with those before its forks and those of the graphs inside. */
import type { Store } from "@statewright/core";
import {
  applyDelta,
  type CheckpointRow,
  type CheckpointWithDeltas,
  type Codec,
  type Delta,
} from "@statewright/core/store";

/** A checkpoint on the line of a branch. */
export interface LineCheckpoint {
  readonly row: CheckpointWithDeltas;
  /** Namespace below the branch: empty for the outermost graph, with a leading slash for graphs inside. */
  readonly inside: string;
  /** Path of the nodes and tools that run the graph, such as `research.`; empty for the outermost graph. */
  readonly path: string;
  readonly changes: Readonly<Record<string, Delta>>;
  /** Values of the changed channels after this checkpoint. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** Part of a branch: the branch itself, or an ancestor up to the fork. */
interface LinePart {
  readonly branch: string;
  /** Last sequence number on the line. */
  readonly until: number;
  /** Superstep after the fork; infinite for the branch itself. */
  readonly step: number;
}

/** End of a line: a checkpoint of the branch, or undefined for its newest one. */
export interface LineEnd {
  readonly branch: string;
  readonly last: CheckpointRow | undefined;
}

/** Loads the checkpoints that lead to the end of a line, in the order in which they were saved. */
export async function loadLine(
  store: Store,
  thread: string,
  end: LineEnd,
  codec: Codec,
): Promise<readonly LineCheckpoint[]> {
  const parts = await listLineParts(store, thread, end);
  const found: LineCheckpoint[] = [];
  /** Channel values of each namespace below the branch. */
  const states = new Map<string, Record<string, unknown>>();
  for (let after = 0; ; ) {
    const page = await store.events(thread, { after, limit: 200 });
    for (const event of page) {
      after = "checkpoint" in event ? event.checkpoint.seq : event.durableEvent.seq;
      if (!("checkpoint" in event)) continue;
      const row = event.checkpoint;
      const inside = findNamespace(parts, row);
      if (inside === undefined) continue;
      const state = states.get(inside) ?? {};
      states.set(inside, state);
      const changes = Object.fromEntries(row.deltas.map((delta) => [delta.channel, decodeDelta(codec, delta)]));
      for (const [channel, delta] of Object.entries(changes)) state[channel] = applyDelta(state[channel], delta);
      const values = Object.fromEntries(Object.keys(changes).map((channel) => [channel, state[channel]]));
      found.push({ row, inside, path: readPath(codec, row), changes, values });
    }
    if (page.length < 200) return found;
  }
}

/** Lists the branches of a line, newest first, each with the last sequence number that counts. */
export async function listLineParts(
  store: Store,
  thread: string,
  { branch, last }: LineEnd,
): Promise<readonly LinePart[]> {
  const origins = new Map((await store.branches(thread)).map(({ name, from }) => [name, from]));
  const { seq: until, step } = last ?? { seq: Number.POSITIVE_INFINITY, step: Number.POSITIVE_INFINITY };
  const parts: LinePart[] = [{ branch, until, step }];
  for (let from = origins.get(branch); from !== undefined; ) {
    const origin = await store.checkpoint(thread, from);
    if (origin === undefined) return parts;
    parts.push({ branch: origin.branch, until: origin.seq, step: origin.step });
    from = origins.get(origin.branch);
  }
  return parts;
}

/** Returns the namespace of a checkpoint below its branch; undefined for a checkpoint of another line. */
function findNamespace(parts: readonly LinePart[], { branch, seq }: CheckpointWithDeltas): string | undefined {
  const part = parts.find((each) => branch === each.branch || branch.startsWith(`${each.branch}/`));
  return part === undefined || seq > part.until ? undefined : branch.slice(part.branch.length);
}

function decodeDelta(codec: Codec, { kind, text }: CheckpointWithDeltas["deltas"][number]): Delta {
  const data = codec.decode(text);
  switch (kind) {
    case "append":
      return { kind, items: data as readonly unknown[] };
    case "replace":
      return { kind, value: data };
    case "patch":
      return { kind, patches: data as Extract<Delta, { readonly kind: "patch" }>["patches"] };
    case "clear":
      return { kind };
  }
}

function readPath(codec: Codec, { control }: CheckpointWithDeltas): string {
  const { caller } = codec.decode(control) as { readonly caller?: { readonly nesting: string } };
  return caller === undefined ? "" : `${caller.nesting}.`;
}
