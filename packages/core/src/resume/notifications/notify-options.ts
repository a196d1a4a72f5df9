/** Option `notify` of an engine. */
import { invalidOption } from "../../base/invalid-option.ts";
import { isPlainObject } from "../../base/json.ts";
import {
  checkCount,
  checkFunction,
  checkNumber,
  checkOptions,
  checkTime,
  listOptionNames,
} from "../../base/options.ts";
import type { Notification } from "../../checkpoint/notification.ts";

/**
 * Tells a person or another system about a run. A call that throws, or that takes longer than `timeoutMs`, is repeated
 * later. The same notification may come again: deduplicate by its `id`.
 */
export type Notify = (
  notification: Notification,
  call: {
    /** Fires at the timeout, and when the engine stops at once. */
    readonly signal: AbortSignal;
    /** Number of this attempt, from 1. */
    readonly attempt: number;
  },
) => unknown;

/** Options of notifications. */
export interface NotifyOptions {
  /** Called with each notification; a rejection delivers the notification again later. */
  readonly send: Notify;
  /** Also notifies of interrupts that are open for this many milliseconds. Default: none. */
  readonly waitingLongerThanMs?: number;
  /** Number of attempts before a notification is given up. Default 16, over about five hours. */
  readonly attempts?: number;
  /** Delay before the second attempt in milliseconds; each delay doubles the last, up to an hour. Default 1,000. */
  readonly initialMs?: number;
  /** Longest time of an attempt in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
  /** Time in milliseconds for which delivered and given up notifications are kept. Default: 7 days. */
  readonly keepMs?: number;
  /** Maximum number of concurrent attempts. Default 8. */
  readonly concurrency?: number;
}

/** Options with their defaults. */
export type ResolvedNotifyOptions = Required<Omit<NotifyOptions, "waitingLongerThanMs">> &
  Pick<NotifyOptions, "waitingLongerThanMs">;

const names = listOptionNames<NotifyOptions>({
  send: true,
  waitingLongerThanMs: true,
  attempts: true,
  initialMs: true,
  timeoutMs: true,
  keepMs: true,
  concurrency: true,
});

const defaults = {
  attempts: 16,
  initialMs: 1_000,
  timeoutMs: 30_000,
  keepMs: 7 * 24 * 3_600_000,
  concurrency: 8,
} as const;

/** Returns the options of notifications with their defaults. Throws `invalid_option`. */
export function resolveNotifyOptions(notify: Notify | NotifyOptions): ResolvedNotifyOptions {
  if (typeof notify === "function") return { ...defaults, send: notify };
  const where = "engine.notify";
  if (!isPlainObject(notify))
    throw invalidOption({ where: "engine", option: "notify", expected: "a function or its options", got: notify });
  checkOptions(where, notify, names);
  const { send, waitingLongerThanMs, attempts, initialMs, timeoutMs, keepMs, concurrency } = notify;
  if (send === undefined) throw invalidOption({ where, option: "send", expected: "a function", got: send });
  checkFunction(where, { send });
  checkTime(where, { waitingLongerThanMs, initialMs, timeoutMs });
  checkNumber(where, { keepMs }, 0);
  checkCount(where, { attempts, concurrency });
  return {
    send,
    attempts: attempts ?? defaults.attempts,
    initialMs: initialMs ?? defaults.initialMs,
    timeoutMs: timeoutMs ?? defaults.timeoutMs,
    keepMs: keepMs ?? defaults.keepMs,
    concurrency: concurrency ?? defaults.concurrency,
    ...(waitingLongerThanMs === undefined ? {} : { waitingLongerThanMs }),
  };
}
