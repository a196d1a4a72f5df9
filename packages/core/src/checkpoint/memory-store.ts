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
  busy,
  byDue,
  checkFilter,
  checkFollows,
  closed,
  type ForkedLine,
  fenced,
  forkedLines,
  isBase,
  isChildLine,
  latestTime,
  parentOfNewLine,
  unknownBranch,
  unknownCheckpoint,
  unknownThread,
} from "./store-rules.ts";
import type { TimerChange, TimerRow } from "./timer.ts";

/** A store in memory, and what tests need of it: more owners of the same threads, and their sudden death. */
export interface MemoryStore extends Store {
  /** Another owner of the same threads, as a second process would be. */
  peer(): MemoryStore;
  /** End this owner as a SIGKILL would: what waits in the queue is lost and nothing is released. Its peers go on. */
  crash(): void;
}

/** A store that lives as long as this process. */
export function memoryStore(): MemoryStore {
  return ownerOf(Object.assign(new Map<string, Thread>(), { runs: 0 }));
}

interface Owner {
  alive: boolean;
}

interface Shape {
  readonly graph: string;
  readonly version: number;
  readonly shape: string;
}

interface Saved {
  readonly checkpoint: CheckpointWithDeltas;
  readonly writtenBy: Shape;
  readonly line: Line;
}

interface Line {
  readonly name: string;
  readonly from: number | undefined;
  /** The line that `from` is on. */
  readonly origin: Line | undefined;
  readonly checkpoints: Saved[];
  /** The journal by step, so that a fold looks at its own step only. */
  readonly effects: Map<number, Map<string, EffectRow>>;
  readonly interrupts: Map<string, InterruptRow>;
  readonly timers: Map<string, TimerRow>;
  run: string | undefined;
}

interface Thread {
  readonly id: string;
  readonly createdAt: number;
  readonly headBranch: string;
  readonly lines: Map<string, Line>;
  /** The checkpoints of all lines, by id. */
  readonly checkpoints: Map<number, Saved>;
  /** Each with its number among all runs of all threads: a clock that was set back does not change their order. */
  readonly runs: Map<string, { readonly row: RunRow; readonly nth: number }>;
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

type Threads = Map<string, Thread> & { runs: number };

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
        [...(threads.get(id)?.lines.values() ?? [])]
          .filter(({ name }) => !isChildLine(name))
          .map((line) => ({ name: line.name, from: line.from, head: endOf(line) })),
      ),
    runs: (filter = {}) =>
      read(() => {
        checkFilter("runs", filter, ["thread", "status"]);
        const runs = [...threads.values()]
          .filter(({ id }) => matches(filter.thread, id))
          .flatMap((thread) => [...thread.runs.values()]);
        const found = runs.filter(({ row }) => matches(filter.status, row.status));
        return found
          .sort((one, other) => other.nth - one.nth)
          .slice(0, filter.limit)
          .map(({ row }) => row);
      }),
    checkpoint: (id, checkpoint) => read(() => rowOf(threads.get(id)?.checkpoints.get(checkpoint)?.checkpoint)),
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
        const found = threads.get(id)?.checkpoints.get(checkpoint);
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
    timers: (filter = {}) =>
      read(() => {
        checkFilter("timers", filter, ["thread", "dueBy"]);
        const lines = [...threads.values()]
          .filter(({ id }) => matches(filter.thread, id))
          .flatMap((thread) => [...thread.lines.values()]);
        const rows = lines.flatMap(({ timers }) => [...timers.values()]);
        const { dueBy = Number.POSITIVE_INFINITY } = filter;
        return rows
          .filter(({ dueAt }) => dueAt <= dueBy)
          .sort(byDue)
          .slice(0, filter.limit);
      }),
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
    run: line.run === undefined ? undefined : thread.runs.get(line.run)?.row,
    recovered,
  };
}

/** Everything is checked before anything is changed: a refused commit leaves no trace. */
function apply(threads: Threads, self: Owner, commit: Commit): void {
  const thread = threads.get(commit.thread);
  if (thread === undefined || thread.owner !== self || thread.epoch !== commit.epoch) throw fenced(commit);
  const line = thread.lines.get(commit.branch) ?? newChildLine(thread, commit);
  const head = line.checkpoints.at(-1)?.checkpoint;
  if (commit.checkpoint !== undefined) checkFollows(commit.checkpoint, endOf(line), thread.checkpoint, commit);
  if (commit.run !== undefined) checkId("run", commit.run.id);

  if (commit.run !== undefined) {
    const known = thread.runs.get(commit.run.id);
    if (known === undefined) thread.run = line.run = commit.run.id;
    thread.runs.set(commit.run.id, { row: commit.run, nth: known?.nth ?? ++threads.runs });
  }
  for (const effect of commit.effects ?? []) putEffect(line, effect);
  if (commit.checkpoint !== undefined) {
    if (head !== undefined) fold(line, head.step);
    thread.writtenBy = thread.writer;
    append(thread, line, commit.checkpoint);
  }
  for (const interrupt of commit.interrupts ?? [])
    line.interrupts.set(interrupt.id, { ...interrupt, branch: line.name });
  for (const change of commit.timers ?? []) changeTimer(thread.id, line, change);
  thread.seq = Math.max(thread.seq, commit.seq);
  thread.updatedAt = Math.max(thread.updatedAt, latestTime(commit));
  if (commit.release === true) thread.owner = undefined;
}

/** The line that the first checkpoint of a child line makes; the thread does not have it yet. */
function newChildLine(thread: Thread, commit: Commit): Line {
  const parent = parentOfNewLine(commit);
  if (!thread.lines.has(parent)) throw unknownBranch(thread.id, parent);
  const from = commit.checkpoint?.row.parent;
  const origin = from === undefined ? undefined : thread.checkpoints.get(from)?.line;
  return newLine(commit.branch, origin === undefined ? undefined : from, origin);
}

function branch(threads: Threads, write: BranchWrite): CheckpointRow {
  checkId("thread", write.thread);
  checkId("branch", write.branch);
  const thread = threads.get(write.thread);
  if (thread === undefined) throw unknownThread(write.thread);
  if (thread.owner?.alive === true) throw busy(write.thread);
  const [outer, ...inner] = forkedLines(write, {
    origin: (from) => thread.checkpoints.get(from),
    has: (line) => thread.lines.has(line),
  });

  const row = startLine(thread, outer, write.interrupts);
  for (const line of inner) startLine(thread, line, []);
  return row;
}

function startLine(
  thread: Thread,
  { line: name, from, origin, checkpoint }: ForkedLine<Saved>,
  interrupts: readonly InterruptRow[],
): CheckpointRow {
  const line = newLine(name, from, origin.line);
  const row = { ...checkpoint.row, id: thread.checkpoint + 1, branch: name, parent: from, seq: thread.seq + 1 };
  append(thread, line, { row, deltas: checkpoint.deltas }, origin.writtenBy);
  for (const interrupt of interrupts) line.interrupts.set(interrupt.id, { ...interrupt, branch: name });
  thread.seq = row.seq;
  thread.updatedAt = Math.max(thread.updatedAt, row.at);
  return row;
}

function append(thread: Thread, line: Line, { row, deltas }: CheckpointWrite, writtenBy: Shape = thread.writer): void {
  const bases = deltas.map((delta) => ({ ...delta, base: isBase(delta) }));
  const saved = { checkpoint: { ...row, branch: line.name, deltas: bases }, writtenBy, line };
  line.checkpoints.push(saved);
  thread.checkpoints.set(row.id, saved);
  thread.lines.set(line.name, line);
  thread.checkpoint = row.id;
}

function putEffect(line: Line, effect: EffectRow): void {
  const effects = line.effects.get(effect.step) ?? new Map<string, EffectRow>();
  line.effects.set(effect.step, effects.set(JSON.stringify([effect.task, effect.key]), effect));
}

function changeTimer(thread: string, line: Line, change: TimerChange): void {
  const { id, generation } = "arm" in change ? change.arm : change.drop;
  if ((line.timers.get(id)?.generation ?? 0) > generation) return;
  if ("arm" in change) line.timers.set(id, { ...change.arm, thread, branch: line.name });
  else line.timers.delete(id);
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

function lineOf(thread: Thread | undefined, name: string | undefined): Line | undefined {
  return thread?.lines.get(name ?? thread.headBranch);
}

/** The checkpoint that the next one of a line goes on from. */
function endOf(line: Line): number | undefined {
  return line.checkpoints.at(-1)?.checkpoint.id ?? line.from;
}

function newThread(id: string, headBranch: string, writer: Shape, at: number): Thread {
  return {
    id,
    createdAt: at,
    headBranch,
    lines: new Map(),
    checkpoints: new Map(),
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
  return {
    name,
    from,
    origin,
    checkpoints: [],
    effects: new Map(),
    interrupts: new Map(),
    timers: new Map(),
    run: undefined,
  };
}

function threadRow(thread: Thread | undefined): ThreadRow | undefined {
  if (thread === undefined) return undefined;
  const { id, createdAt, updatedAt, headBranch, run, writtenBy } = thread;
  const status = run === undefined ? undefined : thread.runs.get(run)?.row.status;
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
