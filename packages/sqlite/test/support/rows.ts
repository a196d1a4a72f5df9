/** Small rows to write, and promises for commits. */

import type { Store } from "@statewright/core";
import { computeArtifactKey } from "@statewright/core/adapter";
import type {
  ArtifactWrite,
  CheckpointWrite,
  Claim,
  Commit,
  DeltaRow,
  EffectRow,
  InterruptRow,
  RunRow,
} from "@statewright/core/store";

export const graph = { graph: "g", version: 1, shape: "s1", at: 1_000 };

export function saveCommit(store: Store, commit: Commit): Promise<void> {
  return new Promise((resolve, reject) => {
    store.commit(commit, (failure) => (failure === undefined ? resolve() : reject(failure)));
  });
}

/** Creates the commit of the next superstep of a thread: checkpoint `id` appends one item. */
export function createSuperstep(
  thread: string,
  { epoch, branch }: Pick<Claim, "epoch" | "branch">,
  id: number,
  item: string = String(id),
): Commit {
  return {
    thread,
    branch,
    epoch,
    seq: id,
    checkpoint: createCheckpoint(id, [append("items", [item])]),
    effects: [createEffectRow(id - 1, "once", item)],
  };
}

export function createCheckpoint(id: number, deltas: readonly DeltaRow[] = []): CheckpointWrite {
  const row = {
    id,
    branch: "main",
    step: id,
    parent: id === 1 ? undefined : id - 1,
    source: "step",
    nodes: ["node"],
    control: JSON.stringify({ machine: "running", note: `control of ${id}` }),
    run: "r1",
    at: 1_000 + id,
    durationMs: 1,
    seq: id,
    bytes: 1,
  } as const;
  return { row, deltas };
}

export function append(channel: string, items: readonly string[]): DeltaRow {
  return { channel, kind: "append", base: false, text: JSON.stringify(items) };
}

export function createEffectRow(step: number, kind: EffectRow["effect"] = "once", outcome: string = "done"): EffectRow {
  return {
    step,
    task: `${step}:0`,
    key: "call",
    kind: "tool",
    name: "tool",
    effect: kind,
    state: "ok",
    attempts: 1,
    idempotencyKey: "k",
    startedAt: 1_000,
    endedAt: 1_001,
    outcome: JSON.stringify(outcome),
  };
}

export function createInterruptRow(id: string, answer: string): InterruptRow {
  const asked = { id, branch: "main", step: 1, task: "1:0", node: "approve", key: "approve", raisedAt: 1_000 };
  return { ...asked, payload: JSON.stringify({ ask: id }), answer: JSON.stringify(answer), answeredAt: 1_001 };
}

export function createRunRow(id: string, thread: string): RunRow {
  return { id, thread, branch: "main", graph: "g", version: 1, status: "running", attempt: 1, startedAt: 1_000 };
}

/** Folds the deltas of a thread; returns its items. */
export async function readItems(store: Store, thread: string): Promise<readonly string[]> {
  const head = await store.head(thread);
  const rows = head === undefined ? [] : await store.state(thread, head.id);
  return rows.flatMap(({ deltas }) => deltas.flatMap(({ text }) => JSON.parse(text) as string[]));
}

/** Creates the artifact of a call, with text or bytes. */
export async function createArtifactWrite(body: string | Uint8Array, name = "notes.txt"): Promise<ArtifactWrite> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const row = {
    key: await computeArtifactKey(bytes),
    name,
    mimeType: "text/plain",
    bytes: bytes.length,
    text: typeof body === "string",
    redaction: "none",
    tool: "search",
    run: "r1",
    branch: "main",
    step: 1,
    task: "1:0",
    call: "c1",
    at: 1_000,
  } as const;
  return { row, body: bytes };
}
