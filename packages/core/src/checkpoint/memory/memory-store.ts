/**
 * The store in memory: the reference for what every store must do, and what programs without a file run on.
 *
 * Writes wait in a queue and are applied together in the next microtask, so that `told` never runs inside `commit`.
 */
import type { StatewrightError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import { memoryLongTerm } from "../../long-term/memory-long-term.ts";
import { checkVectors } from "../../long-term/rules.ts";
import type { LongTermVectors } from "../../long-term/vectors.ts";
import type { CheckpointRow, DeltaRow, RunRow, RunStatus } from "../checkpoint.ts";
import { type ClaimablePage, claimableKind } from "../claimable.ts";
import type { WrittenBy } from "../export/thread-export.ts";
import type { LetterRow, LetterWrite } from "../inbox-message.ts";
import { type EffectRow, type InterruptRow, isOpen, type QuestionRow } from "../journal.ts";
import {
  busy,
  byDue,
  changeTime,
  checkClaimablePage,
  checkFilter,
  checkFollows,
  checkKeys,
  checkRunFilter,
  checkThreadFilter,
  closed,
  type ForkedLine,
  fenced,
  forkedLines,
  hasMetadata,
  isBase,
  isChildLine,
  latestTime,
  leavesGap,
  parentOfNewLine,
  questionFilterKeys,
  runExists,
  threadExists,
  unknownBranch,
  unknownCheckpoint,
  unknownThread,
} from "../rules.ts";
import type {
  BranchWrite,
  ChannelRows,
  CheckpointWithDeltas,
  CheckpointWrite,
  Claim,
  ClaimRequest,
  Commit,
  QueueWrite,
  Store,
  StoredEvent,
  ThreadRow,
} from "../store.ts";
import type { TimerChange } from "../timer.ts";
import { keptIn, putArtifact } from "./memory-artifacts.ts";
import { addImage, imageOf } from "./memory-export.ts";
import { lettersAfter, waitingIn } from "./memory-inbox.ts";
import { pruneThread } from "./memory-retention.ts";
import {
  endOf,
  type Line,
  newLine,
  newThread,
  type Owner,
  type Saved,
  type SavedRun,
  type Thread,
  type Threads,
} from "./memory-thread.ts";

/** A store in memory, and what tests need of it: more owners of the same threads, and their sudden death. */
export interface MemoryStore extends Store {
  /** Another owner of the same threads, as a second process would be. */
  peer(): MemoryStore;
  /** End this owner as a SIGKILL would: what waits in the queue is lost and nothing is released. Its peers go on. */
  crash(): void;
}

/** What a store in memory may be given. */
export interface MemoryStoreOptions {
  /** How vectors are made of what is put into its long-term side, so that it can be searched by nearness. */
  readonly longTerm?: LongTermVectors;
}

/** A store that lives as long as this process. Throws `invalid_option`. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkKeys("memoryStore", options, ["longTerm"]);
  checkVectors("memoryStore", options.longTerm);
  const threads = Object.assign(new Map<string, Thread>(), { runs: 0, questions: 0, longTerm: memoryLongTerm() });
  return ownerOf(threads, options.longTerm);
}

function ownerOf(threads: Threads, vectors: LongTermVectors | undefined): MemoryStore {
  const self: Owner = { alive: true };
  let queue: { work(): void; told(failure?: StatewrightError): void }[] = [];
  const kept = keptIn((thread) => {
    open();
    return threads.get(thread)?.artifacts;
  });

  function later(work: () => void, told: (failure?: StatewrightError) => void): void {
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
      later(
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
    local: true,
    longTerm: {
      ...(vectors === undefined ? {} : { vectors }),
      get: (place, at) => read(() => threads.longTerm.get(place, at)),
      page: (query) => read(() => threads.longTerm.page(query)),
      write: (changes, at) => write(() => threads.longTerm.apply(changes, at)),
      refresh: (touches) => write(() => threads.longTerm.refresh(touches)),
      sweep: (at, limit) => write(() => threads.longTerm.sweep(at, limit)),
    },
    claim: (request) => write(() => claim(threads, self, request)),
    commit: (commit, told) => {
      let queued: number | undefined;
      later(
        () => {
          open();
          queued = apply(threads, self, commit);
        },
        (failure) => told(failure, queued),
      );
    },
    enqueue: (put) => write(() => enqueue(threads, put)),
    dequeue: (id, run, { at, reason }) => write(() => dequeue(threads.get(id), run, at, reason)),
    post: (letter) => write(() => post(threads, letter)),
    branch: (fork) => write(() => branch(threads, fork)),
    thread: (id) => read(() => threadRow(threads.get(id))),
    threads: (filter = {}) =>
      read(() => {
        const wanted = checkThreadFilter(filter);
        const { graph, metadata, since = 0, until = Number.POSITIVE_INFINITY, before } = filter;
        const listed = [...threads.values()].reverse().sort((one, other) => other.updatedAt - one.updatedAt);
        const end = listed.findIndex(({ id }) => id === before?.id);
        return listed
          .filter(({ updatedAt }, place) => before === undefined || updatedAt < before.updatedAt || place > end)
          .filter(({ updatedAt }) => before === undefined || updatedAt <= before.updatedAt)
          .filter(({ updatedAt }) => updatedAt >= since && updatedAt < until)
          .filter(({ run, runs }) => metadata === undefined || hasMetadata(runs.get(run ?? "")?.row, metadata))
          .flatMap((thread) => threadRow(thread) ?? [])
          .filter((row) => matches(graph, row.graph) && isWanted(wanted, row.status))
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
        const wanted = checkRunFilter(filter);
        const { graph, key, metadata, since = 0, until = Number.POSITIVE_INFINITY, before } = filter;
        const end = before === undefined ? undefined : threads.get(before.thread)?.runs.get(before.id)?.nth;
        return threadsWanted(threads, filter.thread)
          .flatMap((thread) => [...thread.runs.values()].map((run) => ({ nth: run.nth, row: asRead(thread, run) })))
          .filter(({ nth, row }) => isWanted(wanted, row.status) && nth < (end ?? Number.POSITIVE_INFINITY))
          .filter(({ row }) => matches(graph, row.graph) && matches(key, row.key))
          .filter(({ row }) => row.startedAt >= since && row.startedAt < until)
          .filter(({ row }) => metadata === undefined || hasMetadata(row, metadata))
          .sort((one, other) => other.nth - one.nth)
          .slice(0, filter.limit)
          .map(({ row }) => row);
      }),
    checkpoint: (id, checkpoint) => read(() => rowOf(threads.get(id)?.checkpoints.get(checkpoint)?.checkpoint)),
    writtenBy: (id, checkpoint) => read(() => threads.get(id)?.checkpoints.get(checkpoint)?.writtenBy),
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
        return channelRows(changesTo(found.line, checkpoint));
      }),
    effects: (id, name, step) =>
      read(() =>
        [...(threads.get(id)?.lines.get(name)?.effects ?? [])]
          .filter(([each]) => matches(step, each))
          .sort(([one], [other]) => one - other)
          .flatMap(([, effects]) => [...effects.values()]),
      ),
    interrupts: (id, name) =>
      read(() => [...(threads.get(id)?.lines.get(name)?.interrupts.values() ?? [])].map(({ row }) => row)),
    questions: (filter = {}) =>
      read(() => {
        checkFilter("questions", filter, questionFilterKeys);
        const { thread, graph, key, at = Number.NEGATIVE_INFINITY, before } = filter;
        return threadsWanted(threads, thread)
          .flatMap(openQuestions)
          .filter((row) => matches(graph, row.graph) && matches(key, row.key))
          .filter(({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > at)
          .filter(({ place }) => before === undefined || place < before.place)
          .sort((one, other) => other.place - one.place)
          .slice(0, filter.limit);
      }),
    claimable: (page) =>
      read(() => {
        checkClaimablePage(page);
        return claimableIn(threads, page);
      }),
    inbox: (id, name) => read(() => waitingIn(threads.get(id)?.lines.get(name)?.letters ?? [])),
    events: (id, page) =>
      read(() => {
        checkFilter("events", page, ["after", "from"]);
        return eventsAfter(threads.get(id), page.after).slice(0, page.limit);
      }),
    timers: (filter = {}) =>
      read(() => {
        checkFilter("timers", filter, ["thread", "dueBy"]);
        const lines = threadsWanted(threads, filter.thread).flatMap((thread) => [...thread.lines.values()]);
        const rows = lines.flatMap(({ timers }) => [...timers.values()]);
        const { dueBy = Number.POSITIVE_INFINITY } = filter;
        return rows
          .filter(({ dueAt }) => dueAt <= dueBy)
          .sort(byDue)
          .slice(0, filter.limit);
      }),
    artifacts: kept,
    delete: (id) =>
      write(() => {
        if (knownThread(threads, id).owner?.alive === true) throw busy(id);
        threads.delete(id);
      }),
    image: (id) => read(() => imageOf(knownThread(threads, id))),
    insert: (image) =>
      write(() => {
        if (threads.has(image.id)) throw threadExists(image.id);
        addImage(threads, image);
      }),
    prune: (prune) => write(() => pruneThread(knownThread(threads, prune.thread), prune)),
    vacuum: () => read(() => undefined),
    close: () => {
      flush();
      for (const thread of threads.values()) if (thread.owner === self) thread.owner = undefined;
      self.alive = false;
    },
    peer: () => ownerOf(threads, vectors),
    crash: () => {
      queue = [];
      self.alive = false;
    },
  };
}

/** One thread, found by its id, or all. */
function threadsWanted(threads: Threads, id: string | undefined): readonly Thread[] {
  if (id === undefined) return [...threads.values()];
  const thread = threads.get(id);
  return thread === undefined ? [] : [thread];
}

function knownThread(threads: Threads, id: string): Thread {
  const thread = threads.get(id);
  if (thread === undefined) throw unknownThread(id);
  return thread;
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
    queued: thread.queued,
  };
}

function enqueue(threads: Threads, { thread: id, branch, run, stops }: QueueWrite): RunRow {
  checkId("run", run.id);
  const thread = threads.get(id);
  if (thread === undefined) throw unknownThread(id);
  const line = thread.lines.get(branch ?? thread.headBranch);
  if (line === undefined || isChildLine(line.name)) throw unknownBranch(id, branch ?? thread.headBranch);
  const known = run.key === undefined ? undefined : runOfKey(thread, run.key);
  if (known !== undefined) return known.row;
  const row: RunRow = {
    ...run,
    thread: id,
    branch: line.name,
    ...(stops === undefined || line.run === undefined ? {} : { stops: { run: line.run, how: stops } }),
  };
  if (thread.runs.has(row.id)) throw runExists(row);
  thread.runs.set(row.id, { row, nth: ++threads.runs, epoch: 0 });
  thread.queued += 1;
  return row;
}

function dequeue(thread: Thread | undefined, id: string, endedAt: number, reason: string): boolean {
  const run = thread?.runs.get(id);
  if (thread === undefined || run?.row.status !== "queued") return false;
  const { input: _, ...row } = run.row;
  thread.runs.set(id, { ...run, row: { ...row, status: "cancelled", endedAt, reason } });
  thread.queued -= 1;
  return true;
}

function post(threads: Threads, { thread: id, branch, ...letter }: LetterWrite): LetterRow {
  checkId("letter", letter.id);
  const thread = threads.get(id);
  if (thread === undefined) throw unknownThread(id);
  const line = thread.lines.get(branch ?? thread.headBranch);
  if (line === undefined || isChildLine(line.name)) throw unknownBranch(id, branch ?? thread.headBranch);
  const known = waitingIn(line.letters).find((waiting) => waiting.id === letter.id);
  if (known !== undefined) return known;
  const row = { ...letter, branch: line.name };
  line.letters = [...line.letters, row];
  return row;
}

function runOfKey({ runs }: Thread, key: string): SavedRun | undefined {
  for (const run of runs.values()) if (run.row.key === key) return run;
  return undefined;
}

/** In the order in which the runs began, or were queued. */
function claimableIn(threads: Threads, { kind, after, limit }: ClaimablePage): readonly RunRow[] {
  const start = after === undefined ? 0 : (threads.get(after.thread)?.runs.get(after.id)?.nth ?? 0);
  return [...threads.values()]
    .flatMap((thread) => {
      const found = [...thread.runs.values()]
        .map((run) => ({ nth: run.nth, row: asRead(thread, run) }))
        .filter(({ row }) => claimableKind(row) === kind);
      return kind !== "queued" ? found : thread.owner?.alive === true ? [] : found.slice(0, 1);
    })
    .filter(({ nth }) => nth > start)
    .sort((one, other) => one.nth - other.nth)
    .slice(0, limit)
    .map(({ row }) => row);
}

/** A run whose owner is dead, or gave the thread away without a word about it, has crashed. */
function asRead({ owner, epoch }: Thread, run: SavedRun): RunRow {
  const { row } = run;
  if (row.status !== "running" || (owner?.alive === true && run.epoch === epoch)) return row;
  return { ...row, status: "crashed" };
}

/** Everything is checked before anything is changed: a refused commit leaves no trace. Gives how many runs are queued. */
function apply(threads: Threads, self: Owner, commit: Commit): number {
  const thread = threads.get(commit.thread);
  if (thread === undefined || thread.owner !== self || thread.epoch !== commit.epoch) throw fenced(commit);
  if (thread.seq < (commit.after ?? 0)) throw leavesGap(commit);
  const line = thread.lines.get(commit.branch) ?? newChildLine(thread, commit);
  const head = line.checkpoints.at(-1)?.checkpoint;
  if (commit.checkpoint !== undefined) checkFollows(commit.checkpoint, endOf(line), thread.checkpoint, commit);
  if (commit.run !== undefined) checkRun(thread, line, commit.run);
  for (const around of commit.around ?? [])
    if (!thread.lines.has(around.line)) throw unknownBranch(thread.id, around.line);

  if (commit.run !== undefined) {
    const known = thread.runs.get(commit.run.id);
    const begins = known?.row.status === "queued";
    if (begins) thread.queued -= 1;
    if (known === undefined || begins) thread.run = line.run = commit.run.id;
    if (commit.run.status !== "waiting") line.awaited.clear();
    thread.runs.set(commit.run.id, { row: commit.run, nth: known?.nth ?? ++threads.runs, epoch: thread.epoch });
  }
  for (const effect of commit.effects ?? []) putEffect(line, effect);
  for (const around of commit.around ?? []) {
    const journal = thread.lines.get(around.line);
    if (journal !== undefined) for (const effect of around.effects) putEffect(journal, effect);
  }
  if (commit.checkpoint !== undefined) {
    if (head !== undefined && head.step !== commit.checkpoint.row.step) fold(line, head.step);
    thread.writtenBy = thread.writer;
    append(thread, line, commit.checkpoint);
  }
  for (const interrupt of commit.interrupts ?? []) putQuestion(threads, line, interrupt);
  thread.facts.push(...(commit.events ?? []));
  for (const artifact of commit.artifacts ?? []) putArtifact(thread.artifacts, artifact);
  for (const change of commit.timers ?? []) changeTimer(thread.id, line, change);
  if (line.letters.length > 0) line.letters = lettersAfter(line.letters, commit);
  if (commit.longTerm !== undefined) threads.longTerm.apply(commit.longTerm, latestTime(commit));
  thread.seq = Math.max(thread.seq, commit.seq);
  thread.updatedAt = Math.max(thread.updatedAt, changeTime(commit));
  if (commit.release === true) thread.owner = undefined;
  return thread.queued;
}

/** A new run has a key of its own, and one that was cancelled in the queue does not begin. */
function checkRun(thread: Thread, line: Line, run: RunRow): void {
  checkId("run", run.id);
  const known = thread.runs.get(run.id);
  const taken = known === undefined && run.key !== undefined && runOfKey(thread, run.key) !== undefined;
  const { queuedAt, status } = known?.row ?? {};
  const over = queuedAt !== undefined && status !== "queued" && line.run !== run.id;
  if (taken || over) throw runExists(run);
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

  const row = startLine(threads, thread, outer, write.interrupts);
  for (const line of inner) startLine(threads, thread, line, []);
  if (write.head === true) thread.headBranch = write.branch;
  return row;
}

function startLine(
  threads: Threads,
  thread: Thread,
  { line: name, from, origin, checkpoint }: ForkedLine<Saved>,
  interrupts: readonly InterruptRow[],
): CheckpointRow {
  const line = newLine(name, from, origin.line);
  const row = { ...checkpoint.row, id: thread.checkpoint + 1, branch: name, parent: from, seq: thread.seq + 1 };
  append(thread, line, { row, deltas: checkpoint.deltas }, origin.writtenBy);
  for (const interrupt of interrupts) putQuestion(threads, line, interrupt);
  thread.seq = row.seq;
  thread.updatedAt = Math.max(thread.updatedAt, row.at);
  return row;
}

function append(
  thread: Thread,
  line: Line,
  { row, deltas }: CheckpointWrite,
  writtenBy: WrittenBy = thread.writer,
): void {
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

function putQuestion(threads: Threads, line: Line, row: InterruptRow): void {
  const place = line.interrupts.get(row.id)?.place ?? ++threads.questions;
  line.interrupts.set(row.id, { row: { ...row, branch: line.name }, place });
  if (isOpen(row)) line.awaited.add(row.id);
  else line.awaited.delete(row.id);
}

/** What waits for a person on the branches of a thread. */
function openQuestions({ id, lines, runs }: Thread): readonly QuestionRow[] {
  return [...lines.values()].flatMap((line): readonly QuestionRow[] => {
    const run = runs.get(line.run ?? "")?.row;
    if (run?.status !== "waiting") return [];
    return [...line.awaited].flatMap((asked) => {
      const question = line.interrupts.get(asked);
      if (question === undefined) return [];
      return [{ ...question.row, thread: id, run: run.id, graph: run.graph, place: question.place }];
    });
  });
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
    if (effect.effect === "once") continue;
    if (effect.kind === "task") effects.delete(id);
    else effects.set(id, folded);
  }
}

/** Checkpoints of all lines and facts, by number. */
function eventsAfter(thread: Thread | undefined, after: number): readonly StoredEvent[] {
  const checkpoints = [...(thread?.checkpoints.values() ?? [])].map(({ checkpoint }) => ({ checkpoint }));
  const facts = (thread?.facts ?? []).map((fact) => ({ fact }));
  const seqOf = (event: StoredEvent): number => ("fact" in event ? event.fact.seq : event.checkpoint.seq);
  return [...checkpoints, ...facts]
    .filter((event) => seqOf(event) > after)
    .sort((one, other) => seqOf(one) - seqOf(other));
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

/** What changed on the way to a checkpoint, newest first: what retention left of those that are gone included. */
function changesTo(line: Line, checkpoint: number): readonly { readonly deltas: readonly DeltaRow[] }[] {
  const found: { readonly id: number; readonly deltas: readonly DeltaRow[] }[] = [...lineage(line)];
  let until = checkpoint;
  for (
    let each: Line | undefined = line;
    each !== undefined;
    until = Math.min(until, each.from ?? 0), each = each.origin
  ) {
    const left = each.cuts.flatMap(({ deltas }) => deltas).filter((delta) => delta.checkpoint <= until);
    for (const { checkpoint: id, ...delta } of left) found.push({ id, deltas: [delta] });
  }
  return found.filter(({ id }) => id <= checkpoint).sort((one, other) => other.id - one.id);
}

function channelRows(newestFirst: readonly { readonly deltas: readonly DeltaRow[] }[]): readonly ChannelRows[] {
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

function threadRow(thread: Thread | undefined): ThreadRow | undefined {
  if (thread === undefined) return undefined;
  const { id, createdAt, updatedAt, headBranch, writtenBy } = thread;
  const run = thread.runs.get(thread.run ?? "");
  const status = run === undefined ? undefined : asRead(thread, run).status;
  return { id, graph: writtenBy.graph, version: writtenBy.version, createdAt, updatedAt, headBranch, status };
}

function rowOf(checkpoint: CheckpointWithDeltas | undefined): CheckpointRow | undefined {
  if (checkpoint === undefined) return undefined;
  const { deltas: _, ...row } = checkpoint;
  return row;
}

function isWanted(wanted: readonly RunStatus[] | undefined, status: RunStatus | undefined): boolean {
  return wanted === undefined || (status !== undefined && wanted.includes(status));
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
