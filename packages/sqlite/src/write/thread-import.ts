/** Import of threads from their exports. */

import {
  delayedRunRules,
  type NamespaceExport,
  type RunRow,
  storeRules,
  type ThreadExport,
  threadRules,
} from "@statewright/core/store";
import { hashRemainingDeltas } from "@statewright/store-kit";
import type { Reader } from "../read/reader.ts";
import type { Artifacts } from "./artifacts.ts";
import type { ClaimedThread, NamespaceState } from "./claimed-thread.ts";
import type { PrunedRanges } from "./pruned-ranges.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Imported thread. */
type ImportedThread = Pick<ClaimedThread, "id" | "key" | "run" | "cipher">;

/** Inserts threads; call inside a transaction. */
export class ThreadImport {
  readonly #rows: WriterRows;
  readonly #reader: Reader;
  readonly #prunedRanges: PrunedRanges;
  readonly #artifacts: Artifacts;

  constructor(
    rows: WriterRows,
    {
      reader,
      prunedRanges,
      artifacts,
    }: { readonly reader: Reader; readonly prunedRanges: PrunedRanges; readonly artifacts: Artifacts },
  ) {
    this.#rows = rows;
    this.#reader = reader;
    this.#prunedRanges = prunedRanges;
    this.#artifacts = artifacts;
  }

  /** Inserts a thread from its export. */
  insert(threadExport: ThreadExport): void {
    const { threads, graphs, events, runs } = this.#rows;
    const { id, headBranch, createdAt } = threadExport;
    if (threads.find(id) !== undefined) throw storeRules.createThreadExistsError(id);
    const { writtenBy } = threadExport;
    const details = threadRules.toThreadDetails(threadExport);
    const { key } = threads.create({
      id,
      salt: threadExport.keySalt,
      head: headBranch,
      graph: writtenBy === undefined ? null : graphs.getWriter(writtenBy).key,
      at: createdAt,
      details,
    });
    for (const version of threadExport.outlines ?? []) graphs.getWriter(version, version.outline);
    const thread: ImportedThread = { id, key, run: undefined, cipher: this.#reader.ciphers.get(id) };
    this.#rows.details.put({ key, id }, thread.cipher, details);
    const states = this.#insertNamespaces(key, threadExport);
    const runKeys = this.#insertRuns(thread, threadExport, states);
    for (const namespace of threadExport.namespaces) {
      const state = states.get(namespace.name);
      if (state === undefined) continue;
      this.#insertRows(thread, state, namespace);
      const run = namespace.run === undefined ? undefined : runKeys.get(namespace.run);
      if (run !== undefined) runs.setNewestOfNamespace(state.key, run);
    }
    this.#insertPrunedRangesAndCheckpoints(thread, threadExport, states);
    for (const { row, body } of threadExport.artifacts) this.#artifacts.put(thread, { row, body });
    for (const event of threadExport.events) {
      const state = states.get(event.branch);
      if (state !== undefined) events.write(thread, state.key, event);
    }
    const run = threadExport.run === undefined ? undefined : runKeys.get(threadExport.run);
    if (run !== undefined) runs.setNewestOfThread(key, run);
    const isQueued = (row: RunRow): boolean => row.status === "queued" && !delayedRunRules.isDelayed(row);
    const queued = threadExport.runs.filter(isQueued);
    for (const branch of new Set(queued.map((each) => each.branch))) {
      const state = states.get(branch);
      if (state !== undefined) runs.refreshTurn(key, state.key);
    }
    threads.countOwn(key, "queued", queued.length);
    const inboxes = threadExport.namespaces.flatMap(({ inbox }) => inbox);
    threads.countOwn(key, "messages", inboxes.filter(({ deliveredTo }) => deliveredTo === undefined).length);
    this.#insertRequests(thread, threadExport, { states, runKeys });
    const { seq, checkpoint, updatedAt: updated } = threadExport;
    threads.advance(key, { seq, checkpoint, updated });
  }

  /** Inserts the rows of namespaces; returns their states by name. */
  #insertNamespaces(thread: number, { namespaces }: ThreadExport): Map<string, NamespaceState> {
    const states = new Map<string, NamespaceState>();
    const namespaceOfCheckpoint = new Map(
      namespaces.flatMap(({ name, checkpoints }) => checkpoints.map(({ row }) => [row.id, name])),
    );
    for (const { name, from } of namespaces) {
      const origin = from === undefined ? undefined : states.get(namespaceOfCheckpoint.get(from) ?? "");
      const key = this.#rows.namespaces.add(thread, name, {
        origin: { namespace: origin?.key ?? null, id: from ?? null },
      });
      states.set(name, { ...this.#rows.namespaces.createEmpty(name, key), hasAllChannels: false });
    }
    return states;
  }

  /** Inserts the rows of runs; returns their row keys by id. */
  #insertRuns(
    { id, key, cipher }: ImportedThread,
    { runs }: ThreadExport,
    states: ReadonlyMap<string, NamespaceState>,
  ): ReadonlyMap<string, number> {
    const keys = new Map<string, number>();
    for (const run of runs) {
      const state = states.get(run.branch);
      if (state === undefined) continue;
      const preempts = run.stops === undefined ? undefined : keys.get(run.stops.run);
      const row = { ...run, thread: id };
      keys.set(run.id, this.#rows.runs.insert({ key, cipher }, state.key, row, { epoch: 0, preempts }));
    }
    return keys;
  }

  #insertRequests(
    { key, cipher }: ImportedThread,
    { requests = [] }: ThreadExport,
    found: {
      readonly states: ReadonlyMap<string, NamespaceState>;
      readonly runKeys: ReadonlyMap<string, number>;
    },
  ): void {
    for (const request of requests) {
      const branch = found.states.get(request.branch)?.key;
      const run = found.runKeys.get(request.run);
      if (branch !== undefined && run !== undefined) this.#rows.requests.insert(cipher, request, { branch, run });
    }
    this.#rows.threads.countOwn(key, "requests", requests.filter(({ handled }) => handled !== true).length);
  }

  /** Inserts the rows of a namespace: effects, interrupts, timers and inbox messages. */
  #insertRows({ id, cipher }: ImportedThread, state: NamespaceState, namespace: NamespaceExport): void {
    const { journal, interrupts, timers, inboxMessages } = this.#rows;
    for (const effect of namespace.effects) journal.put(cipher, state, effect);
    for (const interrupt of namespace.interrupts) interrupts.write(cipher, state, interrupt);
    interrupts.clearAwaited(state.key);
    for (const awaited of namespace.awaited) interrupts.setAwaited(state.key, awaited);
    for (const timer of namespace.timers) timers.change(state.key, { arm: timer });
    for (const message of namespace.inbox)
      inboxMessages.write({ thread: id, key: state.key, name: namespace.name, cipher }, message);
  }

  /** Inserts the checkpoints of all namespaces in id order: each parent is an earlier checkpoint or a pruned range. */
  #insertPrunedRangesAndCheckpoints(
    thread: ImportedThread,
    { namespaces }: ThreadExport,
    states: ReadonlyMap<string, NamespaceState>,
  ): void {
    const hashes = new Map<number, string>();
    for (const namespace of namespaces) {
      const state = states.get(namespace.name);
      if (state !== undefined) this.#insertPrunedRanges(thread, state, namespace, hashes);
    }
    const all = namespaces.flatMap(({ name, checkpoints }) => checkpoints.map((checkpoint) => ({ name, checkpoint })));
    for (const { name, checkpoint } of all.sort((left, right) => left.checkpoint.row.id - right.checkpoint.row.id)) {
      const { row, deltas, writtenBy } = checkpoint;
      const end = states.get(name);
      if (end === undefined) continue;
      const hash = row.parent === undefined ? undefined : hashes.get(row.parent);
      const head = row.parent === undefined || hash === undefined ? undefined : { id: row.parent, hash };
      const writer = this.#rows.graphs.getWriter(writtenBy);
      const written = this.#rows.checkpoints.write({ ...thread, writer }, { ...end, head }, { row, deltas });
      hashes.set(row.id, written.head?.hash ?? "");
    }
  }

  /** Inserts the pruned ranges of a namespace; adds their hashes by checkpoint id. */
  #insertPrunedRanges(
    { id: thread, cipher }: ImportedThread,
    { key }: NamespaceState,
    { name, prunedRanges }: NamespaceExport,
    hashes: Map<number, string>,
  ): void {
    const at = { thread, namespace: { key, name }, cipher };
    let after = 0;
    for (const range of prunedRanges) {
      // The original hash is unknown: the chain starts at the hash of the remaining deltas.
      const hash = hashRemainingDeltas(cipher, name, range.deltas);
      this.#prunedRanges.put(at, after, range, { hash, before: [] });
      hashes.set(range.id, hash);
      after = range.id;
    }
  }
}
