/**
 * Outbox: messages about saved events for receivers outside of the store. A message is written in the transaction of
 * its event, once for each consumer that has subscribed to its topic, and delivered at least once by a process of that
 * consumer. Nothing is written for a topic without a subscription.
 *
 * A row belongs to a thread: it is deleted with the thread, and is not part of an export. Forks have no rows.
 */
import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkChoice, checkCount, checkNumber, checkOptions, listOptionNames } from "../base/options.ts";
import { checkWellFormed } from "../base/well-formed.ts";
import type { OpenInterruptRow } from "./journal.ts";

/** Message to write in the transaction of its event. */
export interface OutboxWrite {
  /**
   * Stable id for deduplication by the receiver. A consumer has one row for each id of a thread: a repeated write has
   * no effect.
   */
  readonly id: string;
  /** Kind of the event, such as `run.failed`. */
  readonly topic: string;
  /** Encoded message. */
  readonly payload: string;
  /** Time of the event in milliseconds since the epoch. */
  readonly at: number;
  /** Id of the interrupt of the namespace that the message is about: the row is kept while the interrupt is open. */
  readonly interrupt?: string | undefined;
}

/** Message to write outside of a commit. */
export interface ThreadOutboxWrite extends OutboxWrite {
  readonly thread: string;
  /** Namespace of the event. */
  readonly branch: string;
}

/** Topics of a consumer. */
export interface OutboxSubscription {
  /** Name of a group of processes; each message is delivered by one of them. */
  readonly consumer: string;
  readonly topics: readonly string[];
}

/** State of a row: `pending` until the delivery succeeds, or is given up. */
export type OutboxState = (typeof outboxStates)[number];

/** All states of a row. */
export const outboxStates = ["pending", "delivered", "given_up"] as const;

/** Row of a message for a single consumer. */
export interface OutboxRow extends ThreadOutboxWrite {
  readonly consumer: string;
  /** Position among the rows of the store: later rows have higher positions. Never reused. */
  readonly position: number;
  readonly state: OutboxState;
  /** Number of finished attempts to deliver the message. */
  readonly attempts: number;
  /** Time of the next attempt; of a finished row the time of the last one. A new row is due at once, at 0. */
  readonly dueAt: number;
  /** Text of the last error. */
  readonly lastError?: string | undefined;
  /** Time when the row was delivered or given up. */
  readonly finishedAt?: number | undefined;
}

/**
 * Result of a claimed row. `failed` counts an attempt and sets the time of the next one; `released` returns the row
 * unchanged.
 */
export type OutboxOutcome =
  | { readonly kind: "delivered"; readonly at: number }
  | { readonly kind: "failed"; readonly error: string; readonly retryAt: number }
  | { readonly kind: "given_up"; readonly error: string; readonly at: number }
  | { readonly kind: "released" };

/** Filter of listed rows. */
export interface OutboxFilter {
  readonly consumer?: string | undefined;
  readonly thread?: string | undefined;
  readonly topic?: string | undefined;
  readonly state?: OutboxState | undefined;
  /** Cursor: the last row of the previous page. */
  readonly before?: Pick<OutboxRow, "position"> | undefined;
  readonly limit?: number;
}

/** Request for due rows. */
export interface OutboxClaim {
  readonly consumer: string;
  /** Current time: rows due at this time or earlier are claimed. */
  readonly at: number;
  readonly limit: number;
}

/** Rows to delete: finished before a time. A row whose interrupt is open is kept. */
export interface OutboxSweep {
  readonly consumer: string;
  readonly finishedBefore: number;
  readonly limit: number;
}

/** Page of overdue interrupts: open interrupts without a message of a topic. */
export interface OverduePage {
  readonly consumer: string;
  readonly topic: string;
  /** Last time of raising in milliseconds since the epoch. The page ends before the first interrupt raised later. */
  readonly raisedBy: number;
  /** Cursor: a row of an earlier page. The positions of deleted interrupts may be reused. */
  readonly after?: Pick<OpenInterruptRow, "position"> | undefined;
  readonly limit: number;
}

/** Outbox of a store. */
export interface StoreOutbox {
  /**
   * Sets the topics of a consumer, for all processes and all later events; without topics the consumer gets no more
   * rows, and its pending rows are deleted. Does not write if nothing changes.
   */
  subscribe(subscription: OutboxSubscription): Promise<void>;
  /** Lists the subscriptions, by consumer and topic. */
  subscriptions(): Promise<readonly OutboxSubscription[]>;
  /**
   * Writes messages outside of a commit, atomically; does not require ownership. Skips a message of a deleted thread,
   * and a message about an interrupt that is not open.
   */
  add(writes: readonly ThreadOutboxWrite[]): Promise<void>;
  /**
   * Claims due rows for this owner, the longest due first. A row stays claimed until `finish`, or until its owner has
   * died.
   */
  claim(request: OutboxClaim): Promise<readonly OutboxRow[]>;
  /** Saves the outcome of a claimed row and ends the claim. Returns false for a row that this owner has not claimed. */
  finish(position: number, outcome: OutboxOutcome): Promise<boolean>;
  /** Makes a finished row pending again, without attempts, due at `at`. Returns false for any other row. */
  retry(position: number, at: number): Promise<boolean>;
  /** Lists rows, newest first. */
  list(filter?: OutboxFilter): Promise<readonly OutboxRow[]>;
  /** Deletes finished rows and returns their number. */
  sweep(sweep: OutboxSweep): Promise<number>;
  /** Lists overdue interrupts in the order of their positions, by an index. */
  overdue(page: OverduePage): Promise<readonly OpenInterruptRow[]>;
}

const filterKeys = listOptionNames<OutboxFilter>({
  consumer: true,
  thread: true,
  topic: true,
  state: true,
  before: true,
  limit: true,
});

/** Throws `invalid_option` for an invalid filter of rows. */
export function checkOutboxFilter(filter: OutboxFilter): void {
  checkOptions("outbox.list", filter, filterKeys);
  const { state, before, limit } = filter;
  for (const option of ["consumer", "thread", "topic"] as const)
    if (filter[option] !== undefined && typeof filter[option] !== "string")
      throw invalidOption({ where: "outbox.list", option, expected: "a string", got: filter[option] });
  if (state !== undefined) checkChoice("outbox.list", { state }, outboxStates);
  checkCount("outbox.list", { limit });
  if (before !== undefined && typeof before?.position !== "number")
    throw invalidOption({
      where: "outbox.list",
      option: "before",
      expected: "a value from a page of the same list",
      got: before,
    });
}

/** Throws `invalid_option` or `invalid_id` for an invalid request for due rows. */
export function checkOutboxClaim({ consumer, at, limit }: OutboxClaim): void {
  checkId("outbox consumer", consumer);
  checkNumber("outbox.claim", { at: at ?? null }, 0);
  checkCount("outbox.claim", { limit: limit ?? null });
}

/** Throws `invalid_option` for an invalid page of overdue interrupts. */
export function checkOverduePage({ consumer, topic, raisedBy, limit }: OverduePage): void {
  checkId("outbox consumer", consumer);
  checkId("outbox topic", topic);
  checkNumber("outbox.overdue", { raisedBy: raisedBy ?? null }, Number.NEGATIVE_INFINITY);
  checkCount("outbox.overdue", { limit: limit ?? null });
}

/** Throws `invalid_option` for an invalid deletion of finished rows. */
export function checkOutboxSweep({ consumer, finishedBefore, limit }: OutboxSweep): void {
  checkId("outbox consumer", consumer);
  checkNumber("outbox.sweep", { finishedBefore: finishedBefore ?? null }, Number.NEGATIVE_INFINITY);
  checkCount("outbox.sweep", { limit: limit ?? null });
}

/** Throws `invalid_id` for a subscription with a name outside the grammar of ids. */
export function checkSubscription({ consumer, topics }: OutboxSubscription): void {
  checkId("outbox consumer", consumer);
  for (const topic of topics) checkId("outbox topic", topic);
}

/** Throws `invalid_id` for a message with a name outside the grammar of ids. */
export function checkOutboxWrites(writes: readonly OutboxWrite[]): void {
  for (const { id, topic, interrupt } of writes) {
    checkId("outbox message", id);
    checkId("outbox topic", topic);
    if (interrupt !== undefined) checkWellFormed(interrupt);
  }
}

/** Row fields that an outcome changes. */
export type OutboxChange = Pick<OutboxRow, "state" | "attempts" | "dueAt" | "lastError" | "finishedAt">;

/** Returns the changed fields of a row after an outcome. */
export function applyOutcome(row: OutboxChange, outcome: OutboxOutcome): OutboxChange {
  const { attempts, lastError } = row;
  switch (outcome.kind) {
    case "delivered":
      return { state: "delivered", attempts: attempts + 1, dueAt: outcome.at, lastError, finishedAt: outcome.at };
    case "failed":
      return { ...row, attempts: attempts + 1, dueAt: outcome.retryAt, lastError: outcome.error };
    case "given_up":
      return {
        state: "given_up",
        attempts: attempts + 1,
        dueAt: outcome.at,
        lastError: outcome.error,
        finishedAt: outcome.at,
      };
    case "released":
      return row;
  }
}
