/**
 * Reads of lists without values: supersteps of a page, and namespaces. SQLite takes the length of a text from the
 * header of its row, so that the pages of the text are not read. Without the texts a checkpoint cannot be verified.
 */
import type {
  ChangeRow,
  EffectSummaryRow,
  EventRow,
  NamespaceSummary,
  SuperstepPage,
  SuperstepRow,
  TimelineEntry,
} from "@statewright/core/store";
import { storeRules } from "@statewright/core/store";
import {
  type CheckpointColumns,
  createCorruptError,
  decryptPayload,
  type EffectColumns,
  type EventColumns,
  encryptionBytes,
  type FoldedColumns,
  readEvent,
  readFoldedEffects,
  toCheckpointRow,
  toControlContext,
  toEffectRow,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import { mergeEffects } from "./effect-reader.ts";
import type { NamespaceReader } from "./namespace-reader.ts";
import type { ThreadCiphers } from "./thread-ciphers.ts";

/** Checkpoint without its hash, with the effects that it folded and the step of its parent. */
interface SuperstepColumns extends Omit<CheckpointColumns, "hash" | "parentHash">, FoldedColumns {
  readonly parentStep: number | null;
}

type ChangeColumns = Pick<ChangeRow, "channel" | "kind" | "bytes"> & {
  count: number | null;
  checkpoint: number;
  isEncrypted: 0 | 1;
};

type EffectSummaryColumns = Omit<EffectColumns, "args" | "outcome" | "sum"> & { checkpoint: number };

const superstepColumns =
  "SELECT c.key >> 24 AS namespace, c.key & 0xffffff AS id, b.name AS branch, c.step, c.parent, c.source, c.nodes, c.control," +
  " CASE typeof(c.run) WHEN 'integer' THEN (SELECT r.id FROM runs r WHERE r.key = c.run) ELSE c.run END AS run," +
  " c.at, c.duration, c.seq, c.bytes, c.effects, c.effects_sum, g.name AS graph, g.version, g.shape," +
  " (SELECT p.step FROM checkpoints p WHERE p.key = (CASE WHEN c.parent = b.origin THEN b.parent ELSE b.key END << 24) + c.parent) AS parentStep";

const superstepsOfNamespace =
  superstepColumns +
  " FROM checkpoints c CROSS JOIN branches b ON b.key = c.key >> 24 CROSS JOIN graphs g ON g.key = c.graph WHERE c.key BETWEEN ? AND ? ORDER BY c.key";

/** `parts` lists the namespaces of the branch with their last checkpoint id and sequence number; null for all. */
const superstepsOfChildren =
  superstepColumns +
  " FROM child_checkpoints x CROSS JOIN checkpoints c ON c.key = (x.branch << 24) + (x.key & 0xffffff)" +
  " CROSS JOIN branches b ON b.key = x.branch CROSS JOIN graphs g ON g.key = c.graph WHERE x.key BETWEEN @from AND @until" +
  " AND (@parts IS NULL OR EXISTS (SELECT 1 FROM json_each(@parts) p WHERE x.key & 0xffffff <= p.value ->> 1" +
  " AND substr(b.name, 1, length(p.value ->> 0) + 1) = (p.value ->> 0) || '/')) ORDER BY x.key";

const eventsOfBranches =
  "SELECT e.seq, b.name AS branch, e.at, e.sum, e.text FROM events e CROSS JOIN branches b ON b.key = e.branch" +
  " WHERE e.thread = @thread AND e.seq > @after AND e.seq < @before AND (@parts IS NULL OR EXISTS" +
  " (SELECT 1 FROM json_each(@parts) p WHERE b.name = p.value ->> 0 AND e.seq <= p.value ->> 2)) ORDER BY e.seq";

type ChildPage = { from: number; until: number; parts: string | null; limit: number };
type EventPage = { thread: number; after: number; before: number; parts: string | null; limit: number };

function prepareStatements(db: Database) {
  const addLimit = (sql: string, order: "" | " DESC", limit: "?" | "@limit") => `${sql}${order} LIMIT ${limit}`;
  return {
    threadKey: db.prepare<[string], number>("SELECT key FROM threads WHERE id = ?").pluck(),
    branchKeys: db
      .prepare<[number], number>(
        "SELECT key FROM branches INDEXED BY branches_of_thread WHERE thread = ? AND instr(name, '/') = 0",
      )
      .pluck(),
    seqOfCheckpoint: db.prepare<[number], number>("SELECT seq FROM checkpoints WHERE key = ?").pluck(),
    firstFrom: db.prepare<[number, number], { key: number; seq: number }>(
      "SELECT key, seq FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1",
    ),
    firstChildFrom: db.prepare<[number, number], { key: number; seq: number }>(
      "SELECT x.key, (SELECT c.seq FROM checkpoints c WHERE c.key = (x.branch << 24) + (x.key & 0xffffff)) AS seq" +
        " FROM child_checkpoints x WHERE x.key BETWEEN ? AND ? ORDER BY x.key LIMIT 1",
    ),
    newest: db.prepare<[number, number, number], SuperstepColumns>(addLimit(superstepsOfNamespace, " DESC", "?")),
    oldest: db.prepare<[number, number, number], SuperstepColumns>(addLimit(superstepsOfNamespace, "", "?")),
    newestOfChildren: db.prepare<[ChildPage], SuperstepColumns>(addLimit(superstepsOfChildren, " DESC", "@limit")),
    oldestOfChildren: db.prepare<[ChildPage], SuperstepColumns>(addLimit(superstepsOfChildren, "", "@limit")),
    newestEvents: db.prepare<[EventPage], EventColumns>(addLimit(eventsOfBranches, " DESC", "@limit")),
    oldestEvents: db.prepare<[EventPage], EventColumns>(addLimit(eventsOfBranches, "", "@limit")),
    changes: db.prepare<[string], ChangeColumns>(
      "SELECT p.value ->> 1 AS checkpoint, n.name AS channel, d.kind, d.count, octet_length(d.text) AS bytes," +
        " typeof(d.text) = 'blob' AS isEncrypted FROM json_each(?) p" +
        " CROSS JOIN channels n ON n.branch = p.value ->> 0 CROSS JOIN deltas d ON d.key = (n.key << 24) + (p.value ->> 1)" +
        " ORDER BY p.key, n.key",
    ),
    effects: db.prepare<[string], EffectSummaryColumns>(
      "SELECT p.value ->> 1 AS checkpoint, e.step, e.task, e.call, e.kind, e.name, e.effect, e.state, e.attempts, e.idempotency," +
        " e.started, e.ended, e.stage, e.processes, e.attempt_log, e.usage FROM json_each(?) p CROSS JOIN effects e ON e.branch = p.value ->> 0" +
        " AND e.step = p.value ->> 2 ORDER BY p.key, e.key",
    ),
    branches: db.prepare<[string], NamespaceColumns>(
      namespaceColumns +
        " FROM threads t CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key" +
        " LEFT JOIN checkpoints c ON c.key BETWEEN b.key << 24 AND (b.key << 24) + 0xffffff" +
        " WHERE t.id = ? AND instr(b.name, '/') = 0 GROUP BY b.key ORDER BY b.key",
    ),
    children: db.prepare<[string], NamespaceColumns>(
      namespaceColumns +
        " FROM threads t CROSS JOIN branches b ON b.thread = t.key" +
        " LEFT JOIN checkpoints c ON c.key BETWEEN b.key << 24 AND (b.key << 24) + 0xffffff" +
        " WHERE t.id = ? AND instr(b.name, '/') > 0 GROUP BY b.key ORDER BY b.key",
    ),
  };
}

/** Changes and effects of the supersteps of a page, by checkpoint id. */
interface SuperstepContents {
  readonly changes: ReadonlyMap<number, readonly ChangeColumns[]>;
  readonly effects: ReadonlyMap<number, readonly EffectSummaryRow[]>;
}

interface NamespaceColumns {
  readonly key: number;
  readonly name: string;
  readonly from: number | null;
  readonly checkpoints: number;
  readonly bytes: number;
}

const namespaceColumns =
  'SELECT b.key, b.name, b.origin AS "from", count(c.key) AS checkpoints, coalesce(sum(c.bytes), 0) AS bytes';

/** Part of a branch: a namespace with its last relevant checkpoint id and sequence number. */
interface BranchPart {
  readonly key: number;
  readonly name: string;
  readonly until: number;
  readonly untilSeq: number;
}

/** Page with its limits resolved. */
interface ResolvedPage {
  readonly thread: number;
  readonly after: number;
  readonly before: number;
  readonly isNewestFirst: boolean;
  readonly limit: number;
  /** Parts of the branch as JSON; null for all branches. */
  readonly parts: string | null;
}

/** Reads supersteps and namespaces without their values. */
export class SuperstepReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #ciphers: ThreadCiphers;
  readonly #namespaces: NamespaceReader;

  constructor(
    db: Database,
    { ciphers, namespaces }: { readonly ciphers: ThreadCiphers; readonly namespaces: NamespaceReader },
  ) {
    this.#sql = prepareStatements(db);
    this.#ciphers = ciphers;
    this.#namespaces = namespaces;
  }

  /** Lists supersteps and durable events of a thread, by sequence number. */
  list(thread: string, { branch, before, after, limit }: SuperstepPage): readonly TimelineEntry[] {
    const threadKey = this.#sql.threadKey.get(thread);
    if (threadKey === undefined) return [];
    const parts = branch === undefined ? undefined : this.#listParts(thread, branch);
    if (parts?.length === 0) return [];
    const page: ResolvedPage = {
      thread: threadKey,
      after: after ?? -1,
      before: before ?? Number.MAX_SAFE_INTEGER,
      isNewestFirst: after === undefined,
      limit,
      parts:
        parts === undefined ? null : JSON.stringify(parts.map(({ name, until, untilSeq }) => [name, until, untilSeq])),
    };
    const own = (parts ?? this.#listBranchParts(threadKey)).flatMap((part) => this.#listSteps(part, page));
    const steps = [...own, ...this.#listChildSteps(page)].map((step) => ({ seq: step.seq, step }));
    const events = this.#listEvents(thread, page).map((event) => ({ seq: event.seq, event }));
    const rows = [...steps, ...events]
      .sort((one, other) => (page.isNewestFirst ? other.seq - one.seq : one.seq - other.seq))
      .slice(0, limit);
    const contents = this.#readContents(
      thread,
      rows.flatMap((row) => ("step" in row ? [row.step] : [])),
    );
    return rows.map((row) =>
      "event" in row ? { durableEvent: row.event } : { superstep: this.#toSuperstep(thread, row.step, contents) },
    );
  }

  /** Lists the branches or the child namespaces of a thread. */
  listNamespaces(thread: string, kind: "branch" | "child"): readonly NamespaceSummary[] {
    const found = kind === "branch" ? this.#sql.branches.all(thread) : this.#sql.children.all(thread);
    return found.map(({ key, name, from, checkpoints, bytes }) => {
      const [head] = this.#sql.newest.all(toRowKey(key, 0), toRowKey(key, maxCheckpointId), 1);
      return {
        name,
        from: from ?? undefined,
        head: head === undefined ? undefined : this.#toCheckpoint(thread, head),
        writtenBy: head === undefined ? undefined : { graph: head.graph, version: head.version, shape: head.shape },
        checkpoints,
        bytes,
      };
    });
  }

  #listParts(thread: string, branch: string): readonly BranchPart[] {
    const start = this.#namespaces.find(thread, branch);
    if (start === undefined) return [];
    let untilSeq = Number.MAX_SAFE_INTEGER;
    return this.#namespaces
      .listAncestors(start, maxCheckpointId)
      .map(({ namespace: { key, name, parent, origin }, until }) => {
        const part = { key, name, until, untilSeq };
        const forkSeq = this.#sql.seqOfCheckpoint.get(toRowKey(parent ?? 0, origin ?? 0)) ?? 0;
        untilSeq = Math.min(untilSeq, forkSeq);
        return part;
      });
  }

  #listBranchParts(thread: number): readonly Pick<BranchPart, "key" | "until">[] {
    return this.#sql.branchKeys.all(thread).map((key) => ({ key, until: maxCheckpointId }));
  }

  #listSteps({ key, until }: Pick<BranchPart, "key" | "until">, page: ResolvedPage): readonly SuperstepColumns[] {
    const first = (from: number, last: number) => this.#sql.firstFrom.get(from, last);
    const [from, last] = findKeyRange(first, [toRowKey(key, 0), toRowKey(key, until)], page);
    return this.#sql[page.isNewestFirst ? "newest" : "oldest"].all(from, last, page.limit);
  }

  #listChildSteps(page: ResolvedPage): readonly SuperstepColumns[] {
    const { thread, isNewestFirst, limit, parts } = page;
    const first = (from: number, last: number) => this.#sql.firstChildFrom.get(from, last);
    const [from, until] = findKeyRange(first, [toRowKey(thread, 0), toRowKey(thread, maxCheckpointId)], page);
    return this.#sql[isNewestFirst ? "newestOfChildren" : "oldestOfChildren"].all({ from, until, parts, limit });
  }

  #listEvents(
    thread: string,
    { thread: key, after, before, parts, limit, isNewestFirst }: ResolvedPage,
  ): readonly EventRow[] {
    const cipher = this.#ciphers.get(thread);
    return this.#sql[isNewestFirst ? "newestEvents" : "oldestEvents"]
      .all({ thread: key, after, before, parts, limit })
      .map((columns) => readEvent(cipher, thread, columns));
  }

  #readContents(thread: string, steps: readonly SuperstepColumns[]): SuperstepContents {
    const places = JSON.stringify(
      steps.map((step) => [
        step.namespace,
        step.id,
        storeRules.getReducedStep({ ...step, parent: step.parent ?? undefined }, step.parentStep ?? undefined) ?? null,
      ]),
    );
    const effects = new Map<number, readonly EffectSummaryRow[]>(
      steps.map((step) => [step.id, readFoldedEffects({ thread, namespace: step.branch, checkpoint: step.id }, step)]),
    );
    for (const [id, rows] of groupByCheckpoint(this.#sql.effects.all(places)))
      effects.set(id, mergeEffects(effects.get(id) ?? [], rows.map(toEffectSummary)));
    return { changes: groupByCheckpoint(this.#sql.changes.all(places)), effects };
  }

  #toSuperstep(thread: string, step: SuperstepColumns, { changes, effects }: SuperstepContents): SuperstepRow {
    // A part of an encrypted value cannot be read without the whole: the key is that of the control state. While a
    // rotation is at work, both may have keys with ids of different lengths.
    const keyBytes = typeof step.control === "string" ? 0 : (step.control[1] ?? 0);
    return {
      checkpoint: this.#toCheckpoint(thread, step),
      changes: (changes.get(step.id) ?? []).map(({ channel, kind, count, bytes, isEncrypted }) => ({
        channel,
        kind,
        count: count ?? 1,
        bytes: isEncrypted === 0 ? bytes : bytes - encryptionBytes - keyBytes,
      })),
      effects: effects.get(step.id) ?? [],
    };
  }

  #toCheckpoint(thread: string, columns: SuperstepColumns) {
    const { branch, id } = columns;
    try {
      const control = decryptPayload(this.#ciphers.get(thread), thread, columns.control, () =>
        toControlContext(branch, id),
      );
      return toCheckpointRow({ ...columns, hash: "", parentHash: null, control });
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause;
      throw createCorruptError(`checkpoint ${id} holds invalid nodes`, { thread, branch }, cause);
    }
  }
}

function groupByCheckpoint<Row extends { readonly checkpoint: number }>(
  rows: readonly Row[],
): ReadonlyMap<number, readonly Row[]> {
  const groups = new Map<number, Row[]>();
  for (const row of rows) {
    const group = groups.get(row.checkpoint);
    if (group === undefined) groups.set(row.checkpoint, [row]);
    else group.push(row);
  }
  return groups;
}

function toEffectSummary({ checkpoint: _checkpoint, ...columns }: EffectSummaryColumns): EffectSummaryRow {
  return toEffectRow({ ...columns, args: null, outcome: null, sum: null });
}

/**
 * Returns the keys of the checkpoints of a page as a range. Binary search: keys and sequence numbers of a namespace
 * increase together.
 */
function findKeyRange(
  first: (from: number, until: number) => { readonly key: number; readonly seq: number } | undefined,
  [from, until]: readonly [number, number],
  { after, before }: ResolvedPage,
): readonly [number, number] {
  const findFirst = (minSeq: number): number => {
    let [low, high] = [from, until + 1];
    while (low < high) {
      const middle = low + Math.floor((high - low) / 2);
      const found = first(middle, until);
      if (found === undefined || found.seq >= minSeq) high = middle;
      else low = found.key + 1;
    }
    return low;
  };
  return [after < 0 ? from : findFirst(after + 1), before === Number.MAX_SAFE_INTEGER ? until : findFirst(before) - 1];
}
