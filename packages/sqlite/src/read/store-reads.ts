/** Reads of the store interface. */

import type { Store } from "@statewright/core";
import { type ClaimableKind, storeRules } from "@statewright/core/store";
import type { StoreParts } from "../store-parts.ts";
import type { Reader } from "./reader.ts";

type ListReads = Pick<Store, "thread" | "threads" | "runs" | "claimable" | "openInterrupts" | "timers">;

type ThreadReads = Pick<
  Store,
  "branches" | "checkpoint" | "writtenBy" | "head" | "history" | "state" | "effects" | "interrupts" | "events" | "inbox"
>;

/** Parts of a store that its reads need. */
export interface ReadParts extends Pick<StoreParts, "exportThread"> {
  readonly transactions: Pick<StoreParts["transactions"], "read" | "readStatus" | "isInboxEmpty">;
  readonly claims: Pick<StoreParts["claims"], "hasFailedReleases" | "retryReleases">;
}

export function createStoreReads(parts: ReadParts): ListReads & ThreadReads & Pick<Store, "exportThread"> {
  const { transactions, exportThread } = parts;
  return {
    ...createListReads(parts),
    ...createThreadReads(parts),
    exportThread: (id, options) => transactions.read(() => exportThread(id, options?.bodies), id),
  };
}

function createListReads({ transactions, claims }: ReadParts): ListReads {
  return {
    thread: (id) => transactions.readStatus((from, dead) => from.threads.get(id, dead), id),
    threads: async (filter = {}) => {
      const statuses = storeRules.checkThreadFilter(filter);
      return await transactions.readStatus((from, dead) => from.threads.list(filter, statuses, dead));
    },
    runs: async (filter = {}) => {
      const statuses = storeRules.checkRunFilter(filter);
      return await transactions.readStatus((from, dead) => from.runs.list(filter, statuses, dead), filter.thread);
    },
    claimable: async (page) => {
      storeRules.checkClaimablePage(page);
      if (claims.hasFailedReleases()) await claims.retryReleases();
      return await transactions.readStatus(
        (from, dead) => from.runs.listClaimable(page, dead),
        undefined,
        selectOwnerList(page.kind),
      );
    },
    openInterrupts: (filter = {}) =>
      transactions.read((from) => {
        storeRules.checkFilter("openInterrupts", filter, storeRules.openInterruptFilterKeys);
        return from.interrupts.listOpen(filter);
      }),
    timers: (filter = {}) =>
      transactions.read((from) => {
        storeRules.checkFilter("timers", filter, ["thread", "dueBy"]);
        return from.timers.list(filter);
      }),
  };
}

function createThreadReads({ transactions }: ReadParts): ThreadReads {
  return {
    branches: (thread) => transactions.read((from) => from.namespaces.listBranches(thread), thread),
    checkpoint: (thread, id) => transactions.read((from) => from.checkpoints.get(thread, id), thread),
    writtenBy: (thread, checkpoint) =>
      transactions.read((from) => from.checkpoints.getGraphVersion(thread, checkpoint), thread),
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
    inbox: async (thread, branch) =>
      transactions.isInboxEmpty(thread)
        ? []
        : await transactions.read((from) => from.inbox.listWaiting(thread, branch), thread),
  };
}

/** Selects the list of the owners that decide about claimable runs of a kind; undefined for the owners of active runs. */
function selectOwnerList(kind: ClaimableKind): ((from: Reader) => readonly number[]) | undefined {
  if (kind === "queued") return (from) => from.threads.listQueueOwners();
  return kind === "notified" ? (from) => from.threads.listEventOwners() : undefined;
}
