/** Reads of the store interface. */

import type { RunStatus, Store } from "@statewright/core";
import type { ArtifactExport, ThreadExport } from "@statewright/core/store";
import {
  type ClaimableKind,
  type RunCountFilter,
  storeRules,
  type ThreadCountFilter,
  type ThreadCounts,
  threadRules,
} from "@statewright/core/store";
import type { OutsideBody } from "../bodies/outside-bodies.ts";
import type { StoreParts } from "../store-parts.ts";
import type { ReadSource } from "./read-source.ts";
import type { Reader } from "./reader.ts";
import type { StatusCount } from "./status-counts.ts";

type ListReads = Pick<
  Store,
  "thread" | "threads" | "countThreads" | "run" | "runs" | "countRuns" | "openInterrupts" | "timers"
>;

type ThreadReads = Required<
  Pick<
    Store,
    | "branches"
    | "checkpoint"
    | "writtenBy"
    | "outline"
    | "head"
    | "history"
    | "state"
    | "effects"
    | "interrupts"
    | "events"
    | "inbox"
    | "inboxMessage"
    | "requests"
    | "namespaces"
    | "supersteps"
  >
>;

/** Parts of a store that its reads need. */
export interface ReadParts extends Pick<StoreParts, "exportThread" | "artifacts" | "readOutside"> {
  readonly transactions: Pick<StoreParts["transactions"], "read" | "readStatus" | "isInboxEmpty">;
  readonly snapshots: Pick<StoreParts["snapshots"], "read">;
  readonly claims: Pick<StoreParts["claims"], "hasFailedReleases" | "retryReleases">;
}

export function createStoreReads(
  parts: ReadParts,
): ListReads &
  ThreadReads &
  Pick<Store, "claimable" | "countInputs" | "exportThread"> &
  Required<Pick<Store, "snapshot">> {
  const { transactions, exportThread, snapshots, claims, artifacts, readOutside } = parts;
  return {
    ...createListReads(transactions),
    ...createThreadReads(transactions),
    claimable: async (page) => {
      storeRules.checkClaimablePage(page);
      if (claims.hasFailedReleases()) await claims.retryReleases();
      return await transactions.readStatus(
        (from, dead) => from.runs.listClaimable(page, dead),
        undefined,
        selectOwnerList(page.kind),
      );
    },
    countInputs: (threads) => transactions.read((from) => from.inputs.count(threads)),
    snapshot: (read) =>
      snapshots.read((source) => read({ name: "sqlite", ...createListReads(source), ...createThreadReads(source) })),
    exportThread: async (id, options) => {
      const { exported, outside } = await transactions.read(
        () => ({
          exported: exportThread(id, options?.bodies),
          outside: options?.bodies === "omit" ? [] : artifacts.listOutside(id),
        }),
        id,
      );
      return outside.length === 0 ? exported : await addBodies(exported, outside, readOutside);
    },
  };
}

/** Adds the bodies outside of the file to an export, each to the first artifact that has the body. */
async function addBodies(
  exported: ThreadExport,
  outside: readonly OutsideBody[],
  readOutside: StoreParts["readOutside"],
): Promise<ThreadExport> {
  const missing = new Map(outside.map((body) => [body.artifact, body]));
  const artifacts: ArtifactExport[] = [];
  for (const artifact of exported.artifacts) {
    const body = missing.get(artifact.row.key);
    missing.delete(artifact.row.key);
    artifacts.push(body === undefined ? artifact : { ...artifact, body: await readOutside(body) });
  }
  return { ...exported, artifacts };
}

function createListReads(transactions: ReadSource): ListReads {
  return {
    thread: (id) => transactions.readStatus((from, dead) => from.threads.get(id, dead), id),
    threads: async (filter = {}) => {
      const statuses = storeRules.checkThreadFilter(filter);
      return await transactions.readStatus((from, dead) => from.threads.list(filter, statuses, dead));
    },
    countThreads: async (filter = {}) => {
      storeRules.checkThreadCountFilter(filter);
      const counts = await transactions.readStatus((from, dead) =>
        isByTenantOnly(filter) ? from.counts.countThreads(filter.tenant, dead) : from.threads.count(filter, dead),
      );
      const { total, byStatus, withoutRun } = sumCounts(counts);
      return { total, byStatus, withoutRun };
    },
    run: (id, of = {}) =>
      transactions.readStatus(
        (from, dead) => from.runs.find({ id, ...of }, dead),
        undefined,
        (from) => from.threads.listOwnersOfRun(id),
      ),
    countRuns: async (filter = {}) => {
      storeRules.checkRunCountFilter(filter);
      const counts = await transactions.readStatus((from, dead) =>
        isByTenantOnly(filter) ? from.counts.countRuns(filter.tenant, dead) : from.runs.count(filter, dead),
      );
      const { total, byStatus } = sumCounts(counts);
      return { total, byStatus };
    },
    runs: async (filter = {}) => {
      const statuses = storeRules.checkRunFilter(filter);
      return await transactions.readStatus((from, dead) => from.runs.list(filter, statuses, dead), filter.thread);
    },
    openInterrupts: (filter = {}) =>
      transactions.read((from) => {
        storeRules.checkFilter("openInterrupts", filter, storeRules.openInterruptFilterKeys);
        return from.interrupts.listOpen(filter);
      }),
    timers: (filter = {}) =>
      transactions.read((from) => {
        storeRules.checkTimerFilter(filter);
        return from.timers.list(filter);
      }),
  };
}

/** Returns true for a filter that the counts of the whole file or of a tenant answer. */
function isByTenantOnly(filter: ThreadCountFilter | RunCountFilter): boolean {
  return Object.entries(filter).every(([name, value]) => name === "tenant" || value === undefined);
}

function sumCounts(counts: readonly StatusCount[]): ThreadCounts {
  const byStatus = new Map<RunStatus, number>();
  let total = 0;
  let withoutRun = 0;
  for (const { status, count } of counts) {
    total += count;
    if (status === null) withoutRun += count;
    else byStatus.set(status, (byStatus.get(status) ?? 0) + count);
  }
  return { total, byStatus: threadRules.toStatusCounts(byStatus), withoutRun };
}

function createThreadReads(transactions: ReadSource): ThreadReads {
  return {
    branches: (thread) => transactions.read((from) => from.namespaces.listBranches(thread), thread),
    checkpoint: (thread, id) => transactions.read((from) => from.checkpoints.get(thread, id), thread),
    writtenBy: (thread, checkpoint) =>
      transactions.read((from) => from.checkpoints.getGraphVersion(thread, checkpoint), thread),
    outline: (version) => transactions.read((from) => from.outlines.get(version)),
    head: (thread, branch) => transactions.read((from) => from.checkpoints.getHead(thread, branch), thread),
    history: (thread, page) =>
      transactions.read((from) => {
        storeRules.checkFilter("history", page, ["branch", "before"]);
        return from.checkpoints.getHistory(thread, page);
      }, thread),
    state: (thread, checkpoint) => transactions.read((from) => from.states.get(thread, checkpoint), thread),
    effects: (thread, branch, step) => transactions.read((from) => from.effects.list(thread, branch, step), thread),
    interrupts: (thread, branch) => transactions.read((from) => from.interrupts.list(thread, branch), thread),
    events: (thread, page) =>
      transactions.read((from) => {
        storeRules.checkFilter("events", page, ["after", "from"]);
        return from.events.list(thread, page);
      }),
    namespaces: (thread, kind) => transactions.read((from) => from.supersteps.listNamespaces(thread, kind), thread),
    supersteps: (thread, page) =>
      transactions.read((from) => {
        storeRules.checkSuperstepPage(page);
        return from.supersteps.list(thread, page);
      }, thread),
    requests: (thread) =>
      transactions.read((from) => from.requests.list({ id: thread, cipher: from.ciphers.get(thread) }), thread),
    inbox: async (thread, branch) =>
      transactions.isInboxEmpty(thread)
        ? []
        : await transactions.read((from) => from.inbox.listWaiting(thread, branch), thread),
    inboxMessage: async (thread, branch, id) =>
      transactions.isInboxEmpty(thread)
        ? undefined
        : await transactions.read((from) => from.inbox.find(thread, branch, id), thread),
  };
}

/** Selects the list of the owners that decide about claimable runs of a kind; undefined for the owners of active runs. */
function selectOwnerList(kind: ClaimableKind): ((from: Reader) => readonly number[]) | undefined {
  if (kind === "queued") return (from) => from.threads.listQueueOwners();
  if (kind === "requested") return (from) => from.threads.listRequestOwners();
  return kind === "notified" ? (from) => from.threads.listEventOwners() : undefined;
}
