/** Rows to give to a store, and the few steps in which tests write and read them. */
import {
  type ArtifactRow,
  type ArtifactWrite,
  type CheckpointRow,
  type CheckpointWrite,
  type Claim,
  type ClaimRequest,
  type Commit,
  type DeltaRow,
  type EffectRow,
  type InterruptRow,
  keyOfBody,
  type LetterWrite,
  type RunRow,
  type StatewrightError,
  type Store,
  type TimerRow,
} from "@statewright/core";
import { holds } from "./assert.ts";

export function request(thread: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return { thread, graph: "g", version: 1, shape: "s1", at: 100, ...more };
}

/** A claimed thread with a run. */
export interface StartedThread {
  readonly claim: Claim;
  readonly request: ClaimRequest;
  /** The checkpoints that `step` wrote. */
  readonly rows: readonly CheckpointRow[];
  commit(write: Partial<Commit>): Promise<void>;
  /** Write the next checkpoint of the branch. */
  step(step: number, deltas?: readonly DeltaRow[]): Promise<void>;
}

/** A claimed thread with a run, written step by step. */
export async function start(
  store: Store,
  thread: string,
  options: Partial<ClaimRequest> & { readonly run?: boolean } = {},
): Promise<StartedThread> {
  const { run: withRun = true, ...more } = options;
  const claim = await store.claim(request(thread, more));
  let { nextSeq: seq, nextCheckpoint: id } = claim;
  let head = claim.head?.id;
  const rows: CheckpointRow[] = [];
  const commit = (write: Partial<Commit>): Promise<void> =>
    tell(store, { thread, branch: claim.branch, epoch: claim.epoch, seq: seq++, ...write });
  if (withRun && claim.run === undefined) await commit({ run: { ...run("r1"), thread, branch: claim.branch } });
  return {
    claim,
    request: request(thread, more),
    rows,
    commit,
    step: async (step: number, deltas: readonly DeltaRow[] = []): Promise<void> => {
      const write = checkpoint(id++, head, { step, branch: claim.branch, seq }, deltas);
      await commit({ checkpoint: write });
      head = write.row.id;
      rows.push(write.row);
    },
  };
}

export function tell(store: Store, commit: Commit): Promise<void> {
  return new Promise((resolve, reject) => {
    store.commit(commit, (failure?: StatewrightError) => (failure === undefined ? resolve() : reject(failure)));
  });
}

export function release(store: Store, thread: string, { branch, epoch, nextSeq }: Claim): Promise<void> {
  return tell(store, { thread, branch, epoch, seq: nextSeq, release: true });
}

export function fork(
  store: Store,
  thread: string,
  branch: string,
  from: number,
  deltas: readonly DeltaRow[],
  interrupts: readonly InterruptRow[] = [],
): Promise<CheckpointRow> {
  return store.branch({
    thread,
    branch,
    from,
    checkpoint: checkpoint(0, from, { branch, source: "fork", step: from }, deltas),
    interrupts,
  });
}

export async function stateOf(store: Store, thread: string, checkpoint: number): Promise<Record<string, string[]>> {
  const rows = await store.state(thread, checkpoint);
  holds(new Set(rows.map(({ channel }) => channel)).size === rows.length, "a channel stands twice in the state");
  return Object.fromEntries(
    rows.map(({ channel, deltas }) => [channel, deltas.map(({ kind, text }) => `${kind} ${text}`)]),
  );
}

export function checkpoint(
  id: number,
  parent: number | undefined,
  more: Partial<CheckpointRow> = {},
  deltas: readonly DeltaRow[] = [],
): CheckpointWrite {
  const row: CheckpointRow = {
    id,
    branch: "main",
    step: id,
    parent,
    source: "step",
    nodes: ["node"],
    control: "{}",
    run: "r1",
    at: 100 + id,
    durationMs: 1.5,
    seq: id,
    bytes: 10,
    ...more,
  };
  return { row, deltas };
}

export function delta(
  channel: string,
  kind: DeltaRow["kind"],
  text: string,
  base: boolean = kind === "replace" || kind === "clear",
): DeltaRow {
  return { channel, kind, base, text };
}

export function effect(more: Partial<EffectRow> & { readonly step: number }): EffectRow {
  return {
    task: `${more.step}:0`,
    key: "model",
    kind: "model",
    name: "model",
    effect: "pure",
    state: "ok",
    attempts: 1,
    idempotencyKey: "k",
    startedAt: 110,
    ...more,
  };
}

export function letter(more: Partial<LetterWrite>): Omit<LetterWrite, "thread"> {
  return { id: "l1", kind: "steer", messages: '["m"]', at: 300, ...more };
}

export function interrupt(more: Partial<InterruptRow>): InterruptRow {
  return {
    id: "i",
    branch: "main",
    step: 1,
    task: "1:0",
    node: "approve",
    key: "approve",
    payload: "{}",
    raisedAt: 120,
    ...more,
  };
}

export function timer(more: Partial<TimerRow>): Omit<TimerRow, "thread" | "branch"> {
  return { id: "id", kind: "after", generation: 1, dueAt: 1_000, about: "TICK", ...more };
}

export function run(id: string): RunRow {
  return { id, thread: "t", branch: "main", graph: "g", version: 1, status: "running", attempt: 1, startedAt: 100 };
}

/** An artifact of a call; its key is that of its body. */
export async function artifact(body: string | Uint8Array, more: Partial<ArtifactRow> = {}): Promise<ArtifactWrite> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const row: ArtifactRow = {
    key: await keyOfBody(bytes),
    name: "notes.txt",
    mimeType: "text/plain",
    bytes: bytes.length,
    text: true,
    redaction: "none",
    tool: "search",
    run: "r1",
    branch: "main",
    step: 1,
    task: "1:0",
    call: "c1",
    at: 110,
    ...more,
  };
  return { row, body: bytes };
}
