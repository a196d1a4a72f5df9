/** Factories of store rows, and helpers to write and read rows in tests. */

import type { StatewrightError, Store } from "@statewright/core";
import { computeArtifactKey } from "@statewright/core/adapter";
import type {
  ArtifactRow,
  ArtifactWrite,
  CheckpointRow,
  CheckpointWrite,
  Claim,
  ClaimRequest,
  Commit,
  DeltaRow,
  EffectRow,
  InboxMessageWrite,
  InterruptRow,
  QueueWrite,
  RunRow,
  TimerRow,
} from "@statewright/core/store";
import { assertTrue } from "./assert.ts";

export function createClaimRequest(thread: string, more: Partial<ClaimRequest> = {}): ClaimRequest {
  return { thread, graph: "g", version: 1, shape: "s1", at: 100, ...more };
}

/** Creates a run to enqueue. */
export function createQueuedRun(id: string, more: Partial<RunRow> = {}): QueueWrite["run"] {
  const { thread: _, branch: __, ...row } = createRun(id);
  return { ...row, status: "queued", startedAt: 300, queuedAt: 300, input: `{"of":"${id}"}`, ...more };
}

/** Handle of a claimed thread with a run. */
export interface StartedThread {
  readonly claim: Claim;
  readonly request: ClaimRequest;
  /** Checkpoint rows written by `writeStep`. */
  readonly rows: readonly CheckpointRow[];
  commit(write: Partial<Commit>): Promise<void>;
  /** Commits the next checkpoint of the branch. */
  writeStep(step: number, deltas?: readonly DeltaRow[]): Promise<void>;
}

/** Claims a thread and starts the run `r1`, unless the thread has a run or `run` is false. */
export async function startThread(
  store: Store,
  thread: string,
  options: Partial<ClaimRequest> & { readonly run?: boolean } = {},
): Promise<StartedThread> {
  const { run: withRun = true, ...more } = options;
  const claim = await store.claim(createClaimRequest(thread, more));
  let { nextSeq: seq, nextCheckpoint: id } = claim;
  let head = claim.head?.id;
  const rows: CheckpointRow[] = [];
  const commit = (write: Partial<Commit>): Promise<void> =>
    commitWrite(store, { thread, branch: claim.branch, epoch: claim.epoch, seq: seq++, ...write });
  if (withRun && claim.run === undefined) await commit({ run: { ...createRun("r1"), thread, branch: claim.branch } });
  return {
    claim,
    request: createClaimRequest(thread, more),
    rows,
    commit,
    writeStep: async (step: number, deltas: readonly DeltaRow[] = []): Promise<void> => {
      const write = createCheckpoint(id++, head, { step, branch: claim.branch, seq }, deltas);
      await commit({ checkpoint: write });
      head = write.row.id;
      rows.push(write.row);
    },
  };
}

export function commitWrite(store: Store, commit: Commit): Promise<void> {
  return new Promise((resolve, reject) => {
    store.commit(commit, (failure?: StatewrightError) => (failure === undefined ? resolve() : reject(failure)));
  });
}

export function releaseThread(store: Store, thread: string, { branch, epoch, nextSeq }: Claim): Promise<void> {
  return commitWrite(store, { thread, branch, epoch, seq: nextSeq, release: true });
}

/** Fork of a thread from a checkpoint. */
interface ThreadFork {
  /** Default: `t`. */
  readonly thread?: string;
  /** Name of the new branch. */
  readonly branch: string;
  /** Id of the checkpoint. */
  readonly from: number;
  readonly deltas?: readonly DeltaRow[];
  readonly interrupts?: readonly InterruptRow[];
}

export function forkThread(store: Store, fork: ThreadFork): Promise<CheckpointRow> {
  const { thread = "t", branch, from, deltas = [], interrupts = [] } = fork;
  return store.branch({
    thread,
    branch,
    from,
    checkpoint: createCheckpoint(0, from, { branch, source: "fork", step: from }, deltas),
    interrupts,
  });
}

export async function readState(store: Store, thread: string, checkpoint: number): Promise<Record<string, string[]>> {
  const rows = await store.state(thread, checkpoint);
  assertTrue(new Set(rows.map(({ channel }) => channel)).size === rows.length, "the state contains a channel twice");
  return Object.fromEntries(
    rows.map(({ channel, deltas }) => [channel, deltas.map(({ kind, text }) => `${kind} ${text}`)]),
  );
}

export function createCheckpoint(
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

export function createDelta(
  channel: string,
  kind: DeltaRow["kind"],
  text: string,
  { base = kind === "replace" || kind === "clear" }: { readonly base?: boolean } = {},
): DeltaRow {
  return { channel, kind, base, text };
}

export function createEffect(more: Partial<EffectRow> & { readonly step: number }): EffectRow {
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

export function createInboxMessage(more: Partial<InboxMessageWrite>): Omit<InboxMessageWrite, "thread"> {
  return { id: "l1", kind: "steer", messages: '["m"]', at: 300, ...more };
}

export function createInterrupt(more: Partial<InterruptRow>): InterruptRow {
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

export function createTimer(more: Partial<TimerRow>): Omit<TimerRow, "thread" | "branch"> {
  return { id: "id", kind: "after", generation: 1, dueAt: 1_000, about: "TICK", ...more };
}

/** Returns a row of a list without its position, which depends on the store. */
export function removePosition<Row extends { readonly position: number }>({
  position: _,
  ...row
}: Row): Omit<Row, "position"> {
  return row;
}

export function createRun(id: string): RunRow {
  return { id, thread: "t", branch: "main", graph: "g", version: 1, status: "running", attempt: 1, startedAt: 100 };
}

/** Creates an artifact of a tool call. The key is computed from the body. */
export async function createArtifact(
  body: string | Uint8Array,
  more: Partial<ArtifactRow> = {},
): Promise<ArtifactWrite> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const row: ArtifactRow = {
    key: await computeArtifactKey(bytes),
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
