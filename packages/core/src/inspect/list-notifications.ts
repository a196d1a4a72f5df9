/** Notifications of a store: list, retry, and stop. */
import { invalidOption } from "../base/invalid-option.ts";
import { checkChoice, checkCount, checkOptions, listOptionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import { parseCursor, toCursor } from "../checkpoint/cursor.ts";
import {
  type Notification,
  type NotificationKind,
  notificationConsumer,
  notificationKinds,
  parseNotification,
} from "../checkpoint/notification.ts";
import { type OutboxRow, type OutboxState, outboxStates } from "../checkpoint/outbox.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkStoreOption, checkWorldOption } from "../run/session/options/check-run-options.ts";
import type { WithCursor } from "./list-threads.ts";

/** Notification with the state of its delivery. */
export type ListedNotification = Notification &
  WithCursor & {
    /** `pending` until the delivery succeeds, or is given up after the attempts of the engine. */
    readonly state: OutboxState;
    /** Number of finished attempts. */
    readonly attempts: number;
    /** Time of the next attempt in milliseconds since the epoch; absent for a delivery that is due, or finished. */
    readonly nextAttemptAt?: number | undefined;
    /** Text of the last error. */
    readonly lastError?: string | undefined;
    /** Time when the notification was delivered or given up. */
    readonly finishedAt?: number | undefined;
    /** Position among the notifications of the store. */
    readonly position: number;
  };

/** Filter of `listNotifications`. */
export interface ListNotificationsOptions {
  /** Thread of the notifications. Default: all threads. */
  readonly thread?: string;
  /** Kind of the notifications. Default: all kinds. */
  readonly kind?: NotificationKind;
  /** State of the delivery. Default: all states. */
  readonly state?: OutboxState;
  /** Last row of the previous page, or the `cursor` of that row. */
  readonly before?: string | Pick<ListedNotification, "position"> | undefined;
  /** Maximum number of rows. Default: all. */
  readonly limit?: number;
}

const optionKeys = listOptionNames<ListNotificationsOptions>({
  thread: true,
  kind: true,
  state: true,
  before: true,
  limit: true,
});

/**
 * Returns the notifications of a store, newest first, with their attempts: those of `engine({ notify })`. Delivered and
 * given up notifications are kept for `keepMs` of the engine, and removed with their thread. Throws `invalid_option`
 * for an unknown filter or a foreign cursor.
 *
 * @example
 * ```ts
 * for (const { kind, run, attempts, lastError } of await listNotifications(store, { state: "given_up" }))
 *   console.log(`${kind} of ${run}: ${attempts} attempts, ${lastError}`);
 * ```
 */
export async function listNotifications(
  store: Store,
  filter: ListNotificationsOptions = {},
): Promise<readonly ListedNotification[]> {
  checkStoreOption("listNotifications", store ?? null);
  checkOptions("listNotifications", filter, optionKeys);
  const { kind: topic, before, limit, ...query } = filter;
  if (topic !== undefined) checkChoice("listNotifications", { kind: topic }, notificationKinds);
  if (query.state !== undefined) checkChoice("listNotifications", { state: query.state }, outboxStates);
  checkCount("listNotifications", { limit });
  const rows = await store.outbox.list({
    ...query,
    topic,
    consumer: notificationConsumer,
    before: toPosition(before),
    ...(limit === undefined ? {} : { limit }),
  });
  return rows.map(toListedNotification);
}

function toPosition(before: ListNotificationsOptions["before"]): Pick<OutboxRow, "position"> | undefined {
  if (typeof before !== "string") return before;
  const [position] = parseCursor("listNotifications", before);
  return { position };
}

function toListedNotification(row: OutboxRow): ListedNotification {
  const { state, attempts, dueAt, lastError, finishedAt, position } = row;
  return {
    ...parseNotification(row),
    ...{ state, attempts, position },
    ...(state === "pending" && attempts > 0 ? { nextAttemptAt: dueAt } : {}),
    ...(lastError === undefined ? {} : { lastError }),
    ...(finishedAt === undefined ? {} : { finishedAt }),
    cursor: toCursor("listNotifications", [position]),
  };
}

/** Options of `retryNotification`. */
export interface RetryNotificationOptions {
  /** Clock of a store without one. Default: that of the system. */
  readonly world?: World;
}

/**
 * Makes a delivered or given up notification pending again, without attempts: an engine with `notify` delivers it under
 * the same id. Returns false for a pending or removed notification. Throws `invalid_option`.
 */
export async function retryNotification(
  store: Store,
  notification: Pick<ListedNotification, "position">,
  { world = systemWorld() }: RetryNotificationOptions = {},
): Promise<boolean> {
  checkStoreOption("retryNotification", store ?? null);
  checkWorldOption("retryNotification", world);
  if (typeof notification?.position !== "number")
    throw invalidOption({
      where: "retryNotification",
      option: "notification",
      expected: "a row of listNotifications",
      got: notification,
    });
  return await store.outbox.retry(notification.position, await readStoreTime(store, world));
}

/**
 * Stops the notifications of a store that no engine with `notify` serves any more: later commits write none, and pending
 * ones are removed. The next start of an engine with `notify` starts them again.
 */
export async function stopNotifications(store: Store): Promise<void> {
  checkStoreOption("stopNotifications", store ?? null);
  await store.outbox.subscribe({ consumer: notificationConsumer, topics: [] });
}
