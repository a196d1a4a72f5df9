/** Reads of the store: every row is verified by its checksum, and only the rows needed for the answer are read. */

import type { StatewrightError } from "@statewright/core";
import {
  type ChannelRows,
  type CheckpointExport,
  type CheckpointRow,
  type CheckpointWithDeltas,
  type DeltaRow,
  type EffectRow,
  type EventRow,
  type InboxMessage,
  type InterruptRow,
  type OpenInterruptFilter,
  type OpenInterruptRow,
  type StoredEvent,
  storeRules,
  type TimerRow,
} from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import { decryptPayload, type Payload, type StoreCipher, type ThreadCipher } from "../encryption/cipher.ts";
import {
  readDelta,
  readEffect,
  readEvent,
  readInboxMessage,
  readInterrupt,
  toControlContext,
} from "../encryption/encrypted-rows.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import { createCorruptError } from "../file/store-errors.ts";
import { type FoldedColumns, readFoldedEffects } from "../rows/folded-effects.ts";
import { listReadableRows } from "../rows/readable-rows.ts";
import {
  type CheckpointColumns,
  computeTimerSum,
  type DeltaColumns,
  type EffectColumns,
  type EventColumns,
  type GraphVersion,
  hashCheckpoint,
  type InboxMessageColumns,
  type InterruptColumns,
  type OpenInterruptColumns,
  type TimerColumns,
  toCheckpointRow,
  toInterruptRow,
  toOpenInterruptRow,
  toTimerRow,
} from "../rows/rows.ts";
import { createLists, type Lists } from "./lists.ts";
import { threadHeadCheckpoint } from "./thread-head.ts";

/** Row of a namespace: a branch, or a child namespace, with its origin. */
export interface NamespaceRow {
  readonly key: number;
  readonly name: string;
  readonly parent: number | null;
  readonly origin: number | null;
  readonly run: number | null;
}

export interface Reader extends Lists {
  /** Returns the cipher of a thread; undefined in a store without encryption and for an unknown thread. */
  getCipher(thread: string): ThreadCipher | undefined;
  /** Returns the encrypted secret of a thread; null in a plain thread, undefined for an unknown thread. */
  getSecret(thread: string): Payload | null | undefined;
  /** Discards the cached cipher: keys may have changed. */
  forgetCipher(): void;
  listBranches(
    thread: string,
  ): readonly { readonly name: string; readonly from: number | undefined; readonly head: number | undefined }[];
  getCheckpoint(thread: string, id: number): CheckpointRow | undefined;
  getGraphVersion(thread: string, id: number): GraphVersion | undefined;
  getHead(thread: string, branch?: string): CheckpointRow | undefined;
  /** Returns the newest checkpoint of a namespace as columns, verified. */
  getNamespaceHead(thread: string, namespaceKey: number): CheckpointColumns | undefined;
  /** Returns a checkpoint of any namespace of a thread as columns, verified. */
  findCheckpoint(thread: string, id: number): CheckpointColumns | undefined;
  findNamespace(thread: string, branch?: string): NamespaceRow | undefined;
  /** Lists all namespaces of a thread, including child namespaces, in order of creation. */
  listNamespaces(thread: string): readonly NamespaceRow[];
  /** Lists the checkpoints of a namespace itself, oldest first, after a checkpoint id; verified. */
  listCheckpoints(thread: string, namespace: NamespaceRow, after: number, limit: number): readonly CheckpointExport[];
  /** Lists the checkpoint ids of a namespace itself, oldest first. */
  listCheckpointIds(namespace: NamespaceRow): readonly number[];
  /** Iterates over the checkpoint ids of a namespace and of its ancestors, newest first. */
  iterateAncestorIds(namespace: NamespaceRow): Iterable<number>;
  /** Lists the ids of the interrupts awaited by the run of a namespace. */
  listAwaited(namespace: NamespaceRow): readonly string[];
  /** Lists the durable events of a thread that are not derived from checkpoints. */
  listDurableEvents(thread: string): readonly EventRow[];
  getHistory(
    thread: string,
    page: { readonly branch?: string | undefined; readonly before?: number | undefined; readonly limit: number },
  ): readonly CheckpointWithDeltas[];
  getState(thread: string, checkpoint: number): readonly ChannelRows[];
  listEffects(thread: string, branch: string, step?: number): readonly EffectRow[];
  listInterrupts(thread: string, branch: string): readonly InterruptRow[];
  listOpenInterrupts(filter: OpenInterruptFilter): readonly OpenInterruptRow[];
  /** Returns true if any inbox message is stored, for any branch: called often, and mostly false. */
  hasInboxMessages(): boolean;
  /** Lists the waiting messages of a branch in the order of posting. */
  listWaitingMessages(thread: string, branch: string): readonly InboxMessage[];
  /** Lists all messages of a branch, including messages taken by a run that may still restore them. */
  listInboxMessages(thread: string, branch: string): readonly InboxMessage[];
  listEvents(
    thread: string,
    page: { readonly after: number; readonly from?: number | undefined; readonly limit: number },
  ): readonly StoredEvent[];
  listTimers(filter: {
    readonly thread?: string;
    readonly dueBy?: number;
    readonly limit?: number;
  }): readonly TimerRow[];
}

/** `run` is the key of a run with a row, or the id of a run without a row, as text. */
const checkpointColumns =
  "SELECT c.key >> 24 AS namespace, c.key & 0xffffff AS id, b.name AS branch, c.step, c.parent, c.source, c.nodes, c.control," +
  " CASE typeof(c.run) WHEN 'integer' THEN (SELECT r.id FROM runs r WHERE r.key = c.run) ELSE c.run END AS run," +
  " c.at, c.duration, c.seq, c.bytes, c.hash, g.name AS graph, g.version, g.shape," +
  " coalesce((SELECT p.hash FROM checkpoints p WHERE p.key = (CASE WHEN c.parent = b.origin THEN b.parent ELSE b.key END << 24) + c.parent)," +
  " (SELECT a.hash FROM anchors a WHERE a.key = (b.key << 24) + c.parent)) AS parentHash" +
  " FROM checkpoints c JOIN branches b ON b.key = c.key >> 24 JOIN graphs g ON g.key = c.graph";

const effectColumns =
  "SELECT step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, sum, outcome FROM effects";

const openInterruptColumns =
  "SELECT i.key AS position, t.id AS thread, b.name AS branch, r.id AS run, r.graph, i.id, i.step, i.task, i.node, i.name, i.payload," +
  " i.schema, i.raised, i.expires, i.answer, i.answered, i.more, i.sum FROM ";

const openInterruptFilter =
  " AND i.awaited = 1 AND i.key < @before AND (@graph IS NULL OR r.graph = @graph) AND (@name IS NULL OR i.name = @name)" +
  " AND (i.expires IS NULL OR i.expires > @at) ORDER BY i.key DESC LIMIT @limit";

/** Reads in the order of the index of awaited interrupts, up to the limit. */
const openInterruptList =
  openInterruptColumns +
  "interrupts i INDEXED BY awaited_interrupts CROSS JOIN branches b ON b.key = i.branch CROSS JOIN threads t ON t.key = b.thread" +
  " CROSS JOIN runs r ON r.key = b.run WHERE r.status = 'waiting'" +
  openInterruptFilter;

const openInterruptListOfThread =
  openInterruptColumns +
  "threads t CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key AND instr(b.name, '/') = 0" +
  " CROSS JOIN runs r ON r.key = b.run CROSS JOIN interrupts i INDEXED BY awaited_interrupts_of_branch ON i.branch = b.key" +
  " WHERE t.id = @thread AND r.status = 'waiting'" +
  openInterruptFilter;

const inboxMessageList =
  "SELECT m.id, m.kind, m.at, m.run, m.sum, m.messages FROM threads t CROSS JOIN branches b ON b.thread = t.key AND b.name = ?" +
  " CROSS JOIN inbox_messages m ON m.branch = b.key WHERE t.id = ?";

interface OpenInterruptParameters {
  readonly graph: string | null;
  readonly name: string | null;
  readonly at: number;
  readonly before: number;
  readonly limit: number;
}

const timerColumns = "SELECT t.id AS thread, b.name AS branch, m.id, m.kind, m.generation, m.due, m.about, m.sum FROM ";

/** Reads due timers in the order of their index, up to the limit. */
const timerList =
  timerColumns +
  "timers m CROSS JOIN branches b ON b.key = m.branch CROSS JOIN threads t ON t.key = b.thread" +
  " WHERE m.due <= ? ORDER BY m.due, m.id, t.id, b.name LIMIT ?";

const timerListOfThread =
  timerColumns +
  "threads t CROSS JOIN branches b ON b.thread = t.key CROSS JOIN timers m ON m.branch = b.key" +
  " WHERE t.id = ? AND m.due <= ? ORDER BY m.due, m.id, b.name LIMIT ?";

/** Creates a reader. `onFault` is called for damaged rows that are skipped by lists over many threads. */
export function createReader(
  db: Database,
  storeCipher?: StoreCipher,
  onFault: (fault: StatewrightError) => void = () => undefined,
): Reader {
  const secretOfThread = db.prepare<[string], Payload | null>("SELECT secret FROM threads WHERE id = ?").pluck();
  let current: { readonly thread: string; readonly cipher: ThreadCipher | undefined } | undefined;

  const namespaceByName = db.prepare<[string, string | null], NamespaceRow>(
    "SELECT b.key, b.name, b.parent, b.origin, b.run FROM branches b JOIN threads t ON t.key = b.thread WHERE t.id = ? AND b.name = coalesce(?, t.head)",
  );
  const namespaceByKey = db.prepare<[number], NamespaceRow>(
    "SELECT key, name, parent, origin, run FROM branches WHERE key = ?",
  );
  const branchList = db.prepare<[string], { name: string; from: number | null; head: number | null }>(
    'SELECT b.name, b.origin AS "from", (SELECT max(c.key) & 0xffffff FROM checkpoints c WHERE c.key BETWEEN b.key << 24 AND (b.key << 24) + 0xffffff) AS head' +
      " FROM threads t CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key" +
      " WHERE t.id = ? AND instr(b.name, '/') = 0 ORDER BY b.key",
  );
  const namespacesOfThread = db.prepare<[string], NamespaceRow>(
    "SELECT b.key, b.name, b.parent, b.origin, b.run FROM threads t JOIN branches b ON b.thread = t.key WHERE t.id = ? ORDER BY b.key",
  );
  const awaitedOfNamespace = db
    .prepare<[number], string>("SELECT id FROM interrupts WHERE branch = ? AND awaited = 1 ORDER BY key")
    .pluck();
  const idsOfNamespace = db
    .prepare<[number, number], number>("SELECT key & 0xffffff FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key")
    .pluck();
  const oldestBetween = db.prepare<[number, number, number], CheckpointColumns>(
    checkpointColumns + " WHERE c.key BETWEEN ? AND ? ORDER BY c.key LIMIT ?",
  );
  const newestBetween = db.prepare<[number, number, number], CheckpointColumns>(
    checkpointColumns + " WHERE c.key BETWEEN ? AND ? ORDER BY c.key DESC LIMIT ?",
  );
  const checkpointOfThread = db.prepare<[{ thread: string; id: number }], CheckpointColumns>(
    checkpointColumns +
      " WHERE c.key IN (SELECT (x.branch << 24) + @id FROM threads t JOIN child_checkpoints x ON x.key = (t.key << 24) + @id WHERE t.id = @thread" +
      " UNION ALL SELECT (x.key << 24) + @id FROM threads t CROSS JOIN branches x INDEXED BY branches_of_thread ON x.thread = t.key" +
      " WHERE t.id = @thread AND instr(x.name, '/') = 0)",
  );
  const channelsOfNamespace = db.prepare<[number], { key: number; name: string }>(
    "SELECT key, name FROM channels WHERE branch = ? ORDER BY key",
  );
  const deltasOfCheckpoint = db.prepare<[number, number], DeltaColumns>(
    "SELECT n.name AS channel, d.kind, d.base, d.sum, d.text FROM channels n JOIN deltas d ON d.key = (n.key << 24) + ? WHERE n.branch = ? ORDER BY n.key",
  );
  const deltasFromBase = db.prepare<
    [{ from: number; until: number }],
    Omit<DeltaColumns, "channel"> & { checkpoint: number }
  >(
    "SELECT kind, base, sum, text, key & 0xffffff AS checkpoint FROM deltas WHERE key <= @until AND key >= coalesce(" +
      "(SELECT key FROM deltas WHERE key BETWEEN @from AND @until AND base = 1 ORDER BY key DESC LIMIT 1), @from) ORDER BY key",
  );
  const effectsOfNamespace = db.prepare<[number], EffectColumns>(
    effectColumns + " WHERE branch = ? ORDER BY step, key",
  );
  const effectsOfStep = db.prepare<[number, number], EffectColumns>(
    effectColumns + " WHERE branch = ? AND step = ? ORDER BY key",
  );
  const foldedOfNamespace = db.prepare<[number, number], FoldedColumns & { checkpoint: number }>(
    "SELECT key & 0xffffff AS checkpoint, effects, effects_sum FROM checkpoints WHERE key BETWEEN ? AND ?" +
      " AND (effects IS NOT NULL OR effects_sum IS NOT NULL) ORDER BY key",
  );
  const newestStep = db.prepare<[number, number], { key: number; step: number }>(
    "SELECT key, step FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
  );
  const interruptList = db.prepare<[number], Omit<InterruptColumns, "branch">>(
    "SELECT id, step, task, node, name, payload, schema, raised, expires, answer, answered, more, sum FROM interrupts" +
      " WHERE branch = ? ORDER BY key",
  );

  const nextOnBranches = db
    .prepare<[{ thread: string; id: number }], number | null>(
      "SELECT min((SELECT c.key & 0xffffff FROM checkpoints c WHERE c.key BETWEEN (b.key << 24) + @id AND (b.key << 24) + 0xffffff ORDER BY c.key LIMIT 1))" +
        " FROM threads t JOIN branches b ON b.thread = t.key AND instr(b.name, '/') = 0 WHERE t.id = @thread",
    )
    .pluck();
  const nextOnChildNamespaces = db
    .prepare<[{ thread: string; id: number }], number | null>(
      "SELECT x.key & 0xffffff FROM threads t JOIN child_checkpoints x ON x.key BETWEEN (t.key << 24) + @id AND (t.key << 24) + 0xffffff" +
        " WHERE t.id = @thread ORDER BY x.key LIMIT 1",
    )
    .pluck();
  const lastOfThread = db
    .prepare<[string], number>("SELECT " + threadHeadCheckpoint + " FROM threads t WHERE t.id = ?")
    .pluck();
  const eventsBetween = db.prepare<[string, number, number, number], EventColumns>(
    "SELECT e.seq, b.name AS branch, e.at, e.sum, e.text FROM threads t JOIN events e ON e.thread = t.key JOIN branches b ON b.key = e.branch" +
      " WHERE t.id = ? AND e.seq > ? AND e.seq < ? ORDER BY e.seq LIMIT ?",
  );
  const anyMessage = db.prepare<[], number>("SELECT 1 FROM inbox_messages LIMIT 1").pluck();
  const allMessages = db.prepare<[string, string], Omit<InboxMessageColumns, "branch">>(
    inboxMessageList + " ORDER BY m.key",
  );
  const waitingMessages = db.prepare<[string, string], Omit<InboxMessageColumns, "branch">>(
    inboxMessageList + " AND m.run = '' ORDER BY m.key",
  );
  const readMessages = (
    rows: readonly Omit<InboxMessageColumns, "branch">[],
    thread: string,
    branch: string,
  ): readonly InboxMessage[] => {
    if (rows.length === 0) return [];
    const cipher = getCipher(thread);
    return rows.map((row) => readInboxMessage(cipher, thread, { ...row, branch }));
  };
  const openInterrupts = db.prepare<[OpenInterruptParameters], OpenInterruptColumns>(openInterruptList);
  const openInterruptsOfThread = db.prepare<[OpenInterruptParameters & { thread: string }], OpenInterruptColumns>(
    openInterruptListOfThread,
  );
  const timersByDue = db.prepare<[number, number], TimerColumns>(timerList);
  const timersOfThread = db.prepare<[string, number, number], TimerColumns>(timerListOfThread);

  /** Returns the cipher of a thread; cached until `forgetCipher`, so that a page of rows loads the keys once. */
  function getCipher(thread: string): ThreadCipher | undefined {
    if (storeCipher === undefined) return undefined;
    const secret = secretOfThread.get(thread);
    if (secret === undefined) return undefined;
    if (current?.thread !== thread) current = { thread, cipher: storeCipher.getThreadCipher(thread, secret) };
    return current.cipher;
  }

  /** Returns a verified checkpoint with its deltas. */
  function verifyCheckpoint(thread: string, columns: CheckpointColumns): CheckpointWithDeltas {
    const cipher = getCipher(thread);
    const row = parseCheckpoint(thread, columns, cipher);
    const deltas = deltasOfCheckpoint
      .all(columns.id, columns.namespace)
      .map((delta) => readDelta(cipher, { thread, namespace: columns.branch, checkpoint: columns.id }, delta));
    if (hashCheckpoint(row, columns, deltas, columns.parentHash ?? undefined, cipher) === columns.hash)
      return { ...row, deltas };
    throw createHashError(thread, columns.id);
  }

  function parseCheckpoint(
    thread: string,
    columns: CheckpointColumns,
    cipher: ThreadCipher | undefined,
  ): CheckpointRow {
    const { branch, id } = columns;
    const control = decryptPayload(cipher, thread, columns.control, () => toControlContext(branch, id));
    try {
      return toCheckpointRow({ ...columns, control });
    } catch (cause) {
      throw createHashError(thread, columns.id, cause);
    }
  }

  function verifyColumns(thread: string, columns: CheckpointColumns | undefined): CheckpointColumns | undefined {
    return columns === undefined ? undefined : { ...columns, control: verifyCheckpoint(thread, columns).control };
  }

  /** Returns a namespace and its ancestors, each with the newest relevant checkpoint id. */
  function listAncestors(
    namespace: NamespaceRow,
    until: number,
  ): readonly { readonly namespace: NamespaceRow; readonly until: number }[] {
    const parent = namespace.parent === null ? undefined : namespaceByKey.get(namespace.parent);
    return parent === undefined
      ? [{ namespace, until }]
      : [{ namespace, until }, ...listAncestors(parent, Math.min(until, namespace.origin ?? 0))];
  }

  /**
   * Returns the deltas of the channels of one namespace up to a checkpoint, by channel; skips channels in `based`,
   * which already have a base.
   */
  function listSegmentDeltas(
    thread: string,
    namespace: NamespaceRow,
    until: number,
    based: ReadonlySet<string>,
  ): readonly (readonly [string, readonly DeltaRow[]])[] {
    const cipher = getCipher(thread);
    return channelsOfNamespace
      .all(namespace.key)
      .filter(({ name }) => !based.has(name))
      .map(({ key, name }) => {
        const rows = deltasFromBase.all({ from: toRowKey(key, 0), until: toRowKey(key, until) });
        return [
          name,
          rows.map(({ checkpoint, kind, base, sum, text }) =>
            readDelta(
              cipher,
              { thread, namespace: namespace.name, checkpoint },
              { channel: name, kind, base, sum, text },
            ),
          ),
        ];
      });
  }

  function findCheckpoint(thread: string, id: number): CheckpointColumns | undefined {
    return verifyColumns(thread, checkpointOfThread.get({ thread, id }));
  }

  /** Lists the folded effects of a namespace: of all checkpoints, or of one step. */
  function listFoldedEffects(thread: string, namespace: NamespaceRow, step: number | undefined): readonly EffectRow[] {
    const found =
      step === undefined
        ? [toRowKey(namespace.key, 0), toRowKey(namespace.key, maxCheckpointId)]
        : findFoldRange(namespace, step);
    const [from, until] = found;
    if (from === undefined || until === undefined) return [];
    return foldedOfNamespace
      .all(from, until)
      .flatMap((row) => readFoldedEffects({ thread, namespace: namespace.name, checkpoint: row.checkpoint }, row))
      .filter((row) => step === undefined || row.step === step);
  }

  /**
   * Returns the key of the checkpoint that folded a step, twice, as a range. Binary search: steps increase along a
   * namespace.
   */
  function findFoldRange({ key: namespaceKey }: NamespaceRow, step: number): readonly number[] {
    const newest = newestStep.get(toRowKey(namespaceKey, 0), toRowKey(namespaceKey, maxCheckpointId));
    if (newest === undefined || newest.step <= step) return [];
    let [low, high] = [toRowKey(namespaceKey, 0), newest.key];
    while (low < high) {
      const middle = low + Math.floor((high - low) / 2);
      const found = newestStep.get(low, middle);
      if (found === undefined || found.step <= step) low = middle + 1;
      else high = found.key;
    }
    return [high, high];
  }

  /** Returns the first checkpoint id of a thread from an id on, in any namespace. */
  function getNextId(thread: string, id: number): number | undefined {
    const found = [nextOnBranches.get({ thread, id }), nextOnChildNamespaces.get({ thread, id })].filter(
      (next) => next != null,
    );
    return found.length === 0 ? undefined : Math.min(...found);
  }

  /** Returns the first checkpoint id whose event number can exceed `after`: both numbers increase together. */
  function findFirstIdAfter(thread: string, after: number): number {
    let low = 1;
    let high = after <= 0 ? 1 : (lastOfThread.get(thread) ?? 0) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const id = getNextId(thread, middle);
      const seq = id === undefined ? undefined : checkpointOfThread.get({ thread, id })?.seq;
      if (seq === undefined || seq > after) high = middle;
      else low = (id ?? middle) + 1;
    }
    return low;
  }

  function getNamespaceHead(thread: string, namespaceKey: number): CheckpointColumns | undefined {
    return verifyColumns(
      thread,
      newestBetween.get(toRowKey(namespaceKey, 0), toRowKey(namespaceKey, maxCheckpointId), 1),
    );
  }

  return {
    ...createLists(db, getCipher, onFault),
    getCipher,
    getSecret: (thread) => secretOfThread.get(thread),
    forgetCipher: () => {
      current = undefined;
    },
    findNamespace: (thread, branch) => namespaceByName.get(thread, branch ?? null),
    findCheckpoint,
    getNamespaceHead,
    listNamespaces: (thread) => namespacesOfThread.all(thread),
    listCheckpoints: (thread, namespace, after, limit) =>
      oldestBetween
        .all(toRowKey(namespace.key, after + 1), toRowKey(namespace.key, maxCheckpointId), limit)
        .map((columns) => {
          const { deltas, ...row } = verifyCheckpoint(thread, columns);
          const { graph, version, shape } = columns;
          return { row, deltas, writtenBy: { graph, version, shape } };
        }),
    listCheckpointIds: (namespace) =>
      idsOfNamespace.all(toRowKey(namespace.key, 0), toRowKey(namespace.key, maxCheckpointId)),
    iterateAncestorIds: function* (namespace) {
      for (const { namespace: each, until } of listAncestors(namespace, maxCheckpointId))
        for (let id = until; ; id--) {
          const found = newestBetween.get(toRowKey(each.key, 0), toRowKey(each.key, id), 1);
          if (found === undefined) break;
          id = found.id;
          yield id;
        }
    },
    listAwaited: (namespace) => awaitedOfNamespace.all(namespace.key),
    listDurableEvents: (thread) =>
      eventsBetween
        .all(thread, -1, Number.MAX_SAFE_INTEGER, -1)
        .map((row) => readEvent(getCipher(thread), thread, row)),
    listBranches: (thread) =>
      branchList
        .all(thread)
        .map(({ name, from, head }) => ({ name, from: from ?? undefined, head: head ?? from ?? undefined })),
    getCheckpoint: (thread, id) => {
      const found = findCheckpoint(thread, id);
      return found === undefined ? undefined : toCheckpointRow(found);
    },
    getGraphVersion: (thread, id) => {
      const found = findCheckpoint(thread, id);
      if (found === undefined) return undefined;
      const { graph, version, shape } = found;
      return { graph, version, shape };
    },
    getHead: (thread, branch) => {
      const namespace = namespaceByName.get(thread, branch ?? null);
      const found = namespace === undefined ? undefined : getNamespaceHead(thread, namespace.key);
      return found === undefined ? undefined : toCheckpointRow(found);
    },
    getHistory: (thread, { branch, before, limit }) => {
      const start = namespaceByName.get(thread, branch ?? null);
      const found: CheckpointWithDeltas[] = [];
      const newest = before === undefined ? maxCheckpointId : before - 1;
      for (const { namespace, until } of start === undefined ? [] : listAncestors(start, newest)) {
        const rows = newestBetween.all(
          toRowKey(namespace.key, 0),
          toRowKey(namespace.key, until),
          limit - found.length,
        );
        for (const row of rows) found.push(verifyCheckpoint(thread, row));
        if (found.length === limit) break;
      }
      return found;
    },
    getState: (thread, checkpoint) => {
      const at = findCheckpoint(thread, checkpoint);
      const start = at === undefined ? undefined : namespaceByKey.get(at.namespace);
      if (start === undefined) throw storeRules.createUnknownCheckpointError(thread, checkpoint);
      const channels = new Map<string, readonly DeltaRow[]>();
      const based = new Set<string>();
      for (const { namespace, until } of listAncestors(start, checkpoint)) {
        for (const [name, rows] of listSegmentDeltas(thread, namespace, until, based)) {
          channels.set(name, [...rows, ...(channels.get(name) ?? [])]);
          if (rows[0]?.base === true) based.add(name);
        }
      }
      return [...channels]
        .filter(([, deltas]) => deltas.length > 0)
        .map(([channel, deltas]) => ({ channel, deltas: deltas.map(({ kind, text }) => ({ kind, text })) }));
    },
    listEffects: (thread, branch, step) => {
      const namespace = namespaceByName.get(thread, branch);
      if (namespace === undefined) return [];
      const rows = step === undefined ? effectsOfNamespace.all(namespace.key) : effectsOfStep.all(namespace.key, step);
      const cipher = getCipher(thread);
      const rowEffects = rows.map((columns) => readEffect(cipher, { thread, namespace: namespace.name }, columns));
      const foldedEffects = listFoldedEffects(thread, namespace, step);
      return foldedEffects.length === 0 ? rowEffects : mergeEffects(foldedEffects, rowEffects);
    },
    listInterrupts: (thread, branch) => {
      const namespace = namespaceByName.get(thread, branch);
      if (namespace === undefined) return [];
      const cipher = getCipher(thread);
      return interruptList
        .all(namespace.key)
        .map((row) => toInterruptRow(readInterrupt(cipher, thread, { ...row, branch })));
    },
    hasInboxMessages: () => anyMessage.get() !== undefined,
    listWaitingMessages: (thread, branch) => readMessages(waitingMessages.all(branch, thread), thread, branch),
    listInboxMessages: (thread, branch) => readMessages(allMessages.all(branch, thread), thread, branch),
    listEvents: (thread, { after, from, limit }) => {
      const checkpoints: CheckpointWithDeltas[] = [];
      let id = getNextId(thread, from === undefined ? findFirstIdAfter(thread, after) : from + 1);
      for (; id !== undefined && checkpoints.length < limit; id = getNextId(thread, id + 1)) {
        const found = checkpointOfThread.get({ thread, id });
        if (found !== undefined && found.seq > after) checkpoints.push(verifyCheckpoint(thread, found));
      }
      const until = id === undefined ? Number.MAX_SAFE_INTEGER : (checkpoints[checkpoints.length - 1]?.seq ?? 0);
      const durableEvents = eventsBetween
        .all(thread, after, until, limit)
        .map((columns): StoredEvent => ({ fact: readEvent(getCipher(thread), thread, columns) }));
      const getSeq = (event: StoredEvent): number => ("fact" in event ? event.fact.seq : event.checkpoint.seq);
      return [...durableEvents, ...checkpoints.map((checkpoint) => ({ checkpoint }))]
        .sort((left, right) => getSeq(left) - getSeq(right))
        .slice(0, limit);
    },
    listOpenInterrupts: ({ thread, graph, key, at, before, limit }) => {
      const wanted: OpenInterruptParameters = {
        graph: graph ?? null,
        name: key ?? null,
        at: at ?? Number.NEGATIVE_INFINITY,
        before: before?.position ?? Number.MAX_SAFE_INTEGER,
        limit: limit ?? -1,
      };
      return listReadableRows(
        thread,
        wanted,
        (wider) =>
          thread === undefined ? openInterrupts.all(wider) : openInterruptsOfThread.all({ ...wider, thread }),
        (row) => toOpenInterruptRow(readInterrupt(getCipher(row.thread), row.thread, row)),
        onFault,
      );
    },
    listTimers: ({ thread, dueBy = Number.POSITIVE_INFINITY, limit = -1 }) => {
      return listReadableRows(
        thread,
        { limit },
        ({ limit: maxRows }) =>
          thread === undefined ? timersByDue.all(dueBy, maxRows) : timersOfThread.all(thread, dueBy, maxRows),
        (columns) => {
          const row = toTimerRow(columns);
          if (computeTimerSum(row) === columns.sum) return row;
          throw createCorruptError(`the timer "${row.id}" does not match its checksum`, {
            thread: row.thread,
            branch: row.branch,
          });
        },
        onFault,
      );
    },
  };
}

/** Merges folded effects and effect rows, ordered by step; the last of several effects with one key counts. */
function mergeEffects(folded: readonly EffectRow[], rows: readonly EffectRow[]): readonly EffectRow[] {
  const effects = new Map<string, EffectRow>();
  for (const row of [...folded, ...rows]) effects.set(JSON.stringify([row.step, row.task, row.key]), row);
  return [...effects.values()].sort((left, right) => left.step - right.step);
}

function createHashError(thread: string, checkpoint: number, cause?: unknown) {
  return createCorruptError(`checkpoint ${checkpoint} does not match its hash`, { thread }, cause);
}
