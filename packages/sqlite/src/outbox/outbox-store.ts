/** Outbox of the store interface. */

import type { Store } from "@statewright/core";
import { outboxRules } from "@statewright/core/store";
import { eraseSecurely } from "../file/erase-securely.ts";
import type { ReadSource } from "../read/read-source.ts";
import type { StoreParts } from "../store-parts.ts";

/** Reads of the outbox. */
export type OutboxReads = Pick<Store["outbox"], "subscriptions" | "list" | "overdue">;

export function createOutboxReads(transactions: Pick<ReadSource, "read">): OutboxReads {
  return {
    subscriptions: () => transactions.read((from) => from.outbox.listSubscriptions()),
    list: (filter = {}) =>
      transactions.read((from) => {
        outboxRules.checkOutboxFilter(filter);
        return from.outbox.list(filter);
      }, filter.thread),
    overdue: (page) =>
      transactions.read((from) => {
        outboxRules.checkOverduePage(page);
        return from.interrupts.listOverdue(page);
      }),
  };
}

export function createOutboxStore({
  db,
  transactions,
  writer,
}: Pick<StoreParts, "db" | "transactions" | "writer">): Store["outbox"] {
  const reads = createOutboxReads(transactions);
  return {
    ...reads,
    subscribe: async (subscription) => {
      outboxRules.checkSubscription(subscription);
      if (!hasTopics(await reads.subscriptions(), subscription))
        await transactions.write(undefined, () => eraseSecurely(db, () => writer.outbox.subscribe(subscription)));
    },
    add: async (writes) => {
      outboxRules.checkOutboxWrites(writes);
      if (writes.length > 0) await transactions.write(undefined, () => writer.outbox.add(writes));
    },
    claim: async (request) => {
      outboxRules.checkOutboxClaim(request);
      const due = await transactions.readStatus(
        (from, dead) => from.outbox.listDue({ ...request, limit: 1 }, dead),
        undefined,
        (from) => from.outbox.listOwners(request),
      );
      return due.length === 0 ? [] : await transactions.write(undefined, () => writer.outbox.claim(request));
    },
    finish: (position, outcome) => transactions.write(undefined, () => writer.outbox.finish(position, outcome)),
    retry: (position, at) => transactions.write(undefined, () => writer.outbox.retry(position, at)),
    sweep: async (sweep) => {
      outboxRules.checkOutboxSweep(sweep);
      return await transactions.write(undefined, () => eraseSecurely(db, () => writer.outbox.sweep(sweep)));
    },
  };
}

/** Returns true if a consumer has exactly the topics of a subscription. */
function hasTopics(
  current: readonly outboxRules.OutboxSubscription[],
  { consumer, topics }: outboxRules.OutboxSubscription,
): boolean {
  const known = current.find((each) => each.consumer === consumer)?.topics ?? [];
  const wanted = new Set(topics);
  return known.length === wanted.size && known.every((topic) => wanted.has(topic));
}
