/**
 * The store in memory: the reference for what every store must do, and what programs without a file run on.
 *
 * Writes wait in a queue and are applied together in the next microtask, so that `told` never runs inside `commit`.
 */
import type { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import type { CheckpointRow, DeltaRow, RunRow } from "./checkpoint.ts";
import type { EffectRow, InterruptRow } from "./journal.ts";
import type {
  BranchWrite,
  ChannelRows,
  CheckpointWithDeltas,
  CheckpointWrite,
  Claim,
  ClaimRequest,
  Commit,
  Store,
  ThreadRow,
} from "./store.ts";
import {
  branchExists,
  busy,
  checkFilter,
  checkFollows,
  closed,
  fenced,
  isBase,
  latestTime,
  unknownBranch,
  unknownCheckpoint,
  unknownThread,
} from "./store-rules.ts";

/** A store in memory, and what tests need of it: more owners of the same threads, and their sudden death. */
export interface MemoryStore extends Store {
  /** Another owner of the same threads, as a second process would be. */
  peer(): MemoryStore;
  /** End this owner as a SIGKILL would: what waits in the queue is lost and nothing is released. Its peers go on. */
  crash(): void;
}

/** A store that lives as long as this process. */
export function memoryStore(): MemoryStore {
  return ownerOf(new Map());
}

interface Owner {
  alive: boolean;
}

interface Shape {
  readonly graph: string;
  readonly version: number;
  readonly shape: string;
}

interface Line {
  readonly name: string;
  readonly from: number | undefined;
  /** The branch that `from` is on. */
  readonly origin: Line | undefined;
  readonly checkpoints: { readonly checkpoint: CheckpointWithDeltas; readonly writtenBy: Shape }[];
  /** The journal by step, so that a fold looks at its own step only. */
  readonly effects: Map<number, Map<string, EffectRow>>;
  readonly interrupts: Map<string, InterruptRow>;
  run: string | undefined;
}

interface Thread {
  readonly id: string;
  readonly createdAt: number;
  readonly headBranch: string;
  readonly lines: Map<string, Line>;
  readonly runs: Map<string, RunRow>;
  owner: Owner | undefined;
  /** What the owner runs: checkpoints are written by it. */
  writer: Shape;
  writtenBy: Shape;
  epoch: number;
  seq: number;
  checkpoint: number;
  run: string | undefined;
  updatedAt: number;
}

type Threads = Map<string, Thread>;

function ownerOf(threads: Threads): MemoryStore {
  const self: Owner = { alive: true };
  let queue: { work(): void; told(failure?: StatewrightError): void }[] = [];

  function enqueue(work: () => void, told: (failure?: StatewrightError) => void): void {
    queue.push({ work, told });
    if (queue.length === 1) queueMicrotask(flush);
  }

  function flush(): void {
    const group = queue;
    queue = [];
    const outcomes = group.map(({ work }) => failureOf(work));
    group.forEach(({ told }, index) => {
      told(outcomes[index]);
    });
  }

  function write<Value>(work: () => Value): Promise<Value> {
    return new Promise((resolve, reject) => {
      let value: Value;
      enqueue(
        () => {
          open();
          value = work();
        },
        (failure) => (failure === undefined ? resolve(value) : reject(failure)),
      );
    });
  }

  function open(): void {
    if (!self.alive) throw closed("memory");
  }

  /** Reads are asynchronous by contract, so that what they throw is a rejection. */
  async function read<Value>(work: () => Value): Promise<Value> {
    open();
    return work();
  }

  return {
    name: "memory",
    claim: (request) => write(() => claim(threads, self, request)),
    commit: (commit, told) => {
      enqueue(() => {
        open();
        apply(threads, self, commit);
      }, told);
    },
    branch: (fork) => write(() => branch(threads, fork)),
    thread: (id) => read(() => threadRow(threads.get(id))),
    threads: (filter = {}) =>
      read(() => {
        checkFilter("threads", filter, ["graph", "status"]);
        const rows = [...threads.values()].map((thread) => threadRow(thread)).filter((row) => row !== undefined);
        const found = rows.filter((row) => matches(filter.graph, row.graph) && matches(filter.status, row.status));
        return found
          .reverse()
          .sort((one, other) => other.updatedAt - one.updatedAt)
          .slice(0, filter.limit);
      }),
    branches: (id) =>
      read(() =>
        [...(threads.get(id)?.lines.values() ?? [])].map(({ name, from, checkpoints }) => ({
          name,
          from,
          head: checkpoints.at(-1)?.checkpoint.id ?? from,
        })),
      ),
    runs: (filter = {}) =>
      read(() => {
        checkFilter("runs", filter, ["thread", "status"]);
        const runs = [...threads.values()]
          .filter(({ id }) => matches(filter.thread, id))
          .flatMap((thread) => [...thread.runs.values()]);
        const found = runs.filter(({ status }) => matches(filter.status, status));
        return found
          .reverse()
          .sort((one, other) => other.startedAt - one.startedAt)
          .slice(0, filter.limit);
      }),
    checkpoint: (id, checkpoint) => read(() => rowOf(find(threads.get(id), checkpoint)?.checkpoint)),
    head: (id, name) => read(() => rowOf(lineOf(threads.get(id), name)?.checkpoints.at(-1)?.checkpoint)),
    history: (id, page) =>
      read(() => {
        checkFilter("history", page, ["branch", "before"]);
        const before = page.before ?? Number.POSITIVE_INFINITY;
        return lineage(lineOf(threads.get(id), page.branch))
          .filter((checkpoint) => checkpoint.id < before)
          .slice(0, page.limit);
      }),
    state: (id, checkpoint) =>
      read(() => {
        const found = find(threads.get(id), checkpoint);
        if (found === undefined) throw unknownCheckpoint(id, checkpoint);
        return channelRows(lineage(found.line).filter((each) => each.id <= checkpoint));
      }),
    effects: (id, name, step) =>
      read(() =>
        [...(threads.get(id)?.lines.get(name)?.effects ?? [])]
          .filter(([each]) => matches(step, each))
          .sort(([one], [other]) => one - other)
          .flatMap(([, effects]) => [...effects.values()]),
      ),
    interrupts: (id, name) => read(() => [...(threads.get(id)?.lines.get(name)?.interrupts.values() ?? [])]),
    close: () => {
      flush();
      for (const thread of threads.values()) if (thread.owner === self) thread.owner = undefined;
      self.alive = false;
    },
    peer: () => ownerOf(threads),
    crash: () => {
      queue = [];
      self.alive = false;
    },
  };
}

function claim(threads: Threads, self: Owner, request: ClaimRequest): Claim {
  const { graph, version, shape, at } = request;
  checkId("thread", request.thread);
  if (request.branch !== undefined) checkId("branch", request.branch);
  const known = threads.get(request.thread);
  if (known === undefined && request.mustExist === true) throw unknownThread(request.thread);
  if (known?.owner?.alive === true) throw busy(request.thread);
  const writer = { graph, version, shape };
  const thread = known ?? newThread(request.thread, request.branch ?? "main", writer, at);
  const name = request.branch ?? thread.headBranch;
  let line = thread.lines.get(name);
  if (line === undefined) {
    if (known !== undefined && request.mustExist === true) throw unknownBranch(request.thread, name);
    line = newLine(name, undefined, undefined);
    thread.lines.set(name, line);
  }
  threads.set(thread.id, thread);
  const recovered = thread.owner !== undefined;
  thread.owner = self;
  thread.writer = writer;
  thread.epoch += 1;
  const head = line.checkpoints.at(-1);
  return {
    epoch: thread.epoch,
    branch: name,
    nextSeq: thread.seq + 1,
    nextCheckpoint: thread.checkpoint + 1,
    writtenBy: head?.writtenBy ?? writer,
    head: rowOf(head?.checkpoint),
    run: line.run === undefined ? undefined : thread.runs.get(line.run),
    recovered,
  };
}

/** Everything is checked before anything is changed: a refused commit leaves no trace. */
function apply(threads: Threads, self: Owner, commit: Commit): void {
  const thread = threads.get(commit.thread);
  if (thread === undefined || thread.owner !== self || thread.epoch !== commit.epoch) throw fenced(commit);
  const line = thread.lines.get(commit.branch);
  if (line === undefined) throw unknownBranch(commit.thread, commit.branch);
  const head = line.checkpoints.at(-1)?.checkpoint;
  if (commit.checkpoint !== undefined) checkFollows(commit.checkpoint, head, thread.checkpoint, commit);
  if (commit.run !== undefined) checkId("run", commit.run.id);

  if (commit.run !== undefined) {
    if (!thread.runs.has(commit.run.id)) thread.run = line.run = commit.run.id;
    thread.runs.set(commit.run.id, commit.run);
  }
  for (const effect of commit.effects ?? []) putEffect(line, effect);
  if (commit.checkpoint !== undefined) {
    if (head !== undefined) fold(line, head.step);
    thread.writtenBy = thread.writer;
    append(thread, line, commit.checkpoint);
  }
  for (const interrupt of commit.interrupts ?? [])
    line.interrupts.set(interrupt.id, { ...interrupt, branch: line.name });
  thread.seq = Math.max(thread.seq, commit.seq);
  thread.updatedAt = Math.max(thread.updatedAt, latestTime(commit));
  if (commit.release === true) thread.owner = undefined;
}

function branch(threads: Threads, write: BranchWrite): CheckpointRow {
  checkId("thread", write.thread);
  checkId("branch", write.branch);
  const thread = threads.get(write.thread);
  if (thread === undefined) throw unknownThread(write.thread);
  if (thread.owner?.alive === true) throw busy(write.thread);
  const found = find(thread, write.from);
  if (found === undefined) throw unknownCheckpoint(write.thread, write.from);
  if (thread.lines.has(write.branch)) throw branchExists(write.thread, write.branch);
  const line = newLine(write.branch, write.from, found.line);
  const row = {
    ...write.checkpoint.row,
    id: thread.checkpoint + 1,
    branch: write.branch,
    parent: write.from,
    seq: thread.seq + 1,
  };
  thread.lines.set(write.branch, line);
  append(thread, line, { row, deltas: write.checkpoint.deltas }, found.writtenBy);
  for (const interrupt of write.interrupts) line.interrupts.set(interrupt.id, { ...interrupt, branch: write.branch });
  thread.seq = row.seq;
  thread.updatedAt = Math.max(thread.updatedAt, row.at);
  return row;
}

function append(thread: Thread, line: Line, { row, deltas }: CheckpointWrite, writtenBy: Shape = thread.writer): void {
  line.checkpoints.push({
    checkpoint: { ...row, branch: line.name, deltas: deltas.map((delta) => ({ ...delta, base: isBase(delta) })) },
    writtenBy,
  });
  thread.checkpoint = row.id;
}

function putEffect(line: Line, effect: EffectRow): void {
  const effects = line.effects.get(effect.step) ?? new Map<string, EffectRow>();
  line.effects.set(effect.step, effects.set(JSON.stringify([effect.task, effect.key]), effect));
}

function fold(line: Line, step: number): void {
  const effects = line.effects.get(step) ?? new Map<string, EffectRow>();
  for (const [id, effect] of effects) {
    const { outcome: _, ...folded } = effect;
    if (effect.kind === "task") effects.delete(id);
    else if (effect.effect !== "once") effects.set(id, folded);
  }
}

/** All checkpoints that lead to the end of a line, newest first. */
function lineage(line: Line | undefined): readonly CheckpointWithDeltas[] {
  const found: CheckpointWithDeltas[] = [];
  let until = Number.POSITIVE_INFINITY;
  for (let each = line; each !== undefined; until = each.from ?? 0, each = each.origin) {
    for (const { checkpoint } of each.checkpoints.toReversed()) if (checkpoint.id <= until) found.push(checkpoint);
  }
  return found;
}

function channelRows(newestFirst: readonly CheckpointWithDeltas[]): readonly ChannelRows[] {
  const rows = new Map<string, DeltaRow[]>();
  for (const { deltas } of newestFirst) {
    for (const delta of deltas) {
      const known = rows.get(delta.channel) ?? [];
      if (known[0]?.base !== true) rows.set(delta.channel, [delta, ...known]);
    }
  }
  return [...rows].map(([channel, deltas]) => ({ channel, deltas: deltas.map(({ kind, text }) => ({ kind, text })) }));
}

function find(thread: Thread | undefined, checkpoint: number) {
  for (const line of thread?.lines.values() ?? []) {
    const found = line.checkpoints.find((each) => each.checkpoint.id === checkpoint);
    if (found !== undefined) return { ...found, line };
  }
  return undefined;
}

function lineOf(thread: Thread | undefined, name: string | undefined): Line | undefined {
  return thread?.lines.get(name ?? thread.headBranch);
}

function newThread(id: string, headBranch: string, writer: Shape, at: number): Thread {
  return {
    id,
    createdAt: at,
    headBranch,
    lines: new Map(),
    runs: new Map(),
    owner: undefined,
    writer,
    writtenBy: writer,
    epoch: 0,
    seq: 0,
    checkpoint: 0,
    run: undefined,
    updatedAt: at,
  };
}

function newLine(name: string, from: number | undefined, origin: Line | undefined): Line {
  return { name, from, origin, checkpoints: [], effects: new Map(), interrupts: new Map(), run: undefined };
}

function threadRow(thread: Thread | undefined): ThreadRow | undefined {
  if (thread === undefined) return undefined;
  const { id, createdAt, updatedAt, headBranch, run, writtenBy } = thread;
  const status = run === undefined ? undefined : thread.runs.get(run)?.status;
  return { id, graph: writtenBy.graph, version: writtenBy.version, createdAt, updatedAt, headBranch, status };
}

function rowOf(checkpoint: CheckpointWithDeltas | undefined): CheckpointRow | undefined {
  if (checkpoint === undefined) return undefined;
  const { deltas: _, ...row } = checkpoint;
  return row;
}

function matches<Value>(wanted: Value | undefined, value: Value | undefined): boolean {
  return wanted === undefined || wanted === value;
}

function failureOf(work: () => void): StatewrightError | undefined {
  try {
    work();
    return undefined;
  } catch (thrown) {
    return thrown as StatewrightError;
  }
}
