/**
 * Notifications: outbox messages about runs that need a person. The commit that fails or parks a run, or that raises
 * an interrupt about an effect in doubt, writes the message; an engine delivers it.
 */
import type { ErrorRecord } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { createSha256 } from "../base/sha256.ts";
import type { Clock } from "../base/time.ts";
import { inDoubtKey } from "../tool/policy/approval.ts";
import type { RunRow } from "./checkpoint.ts";
import type { InterruptRow, OpenInterruptRow } from "./journal.ts";
import { isOpen } from "./journal.ts";
import type { OutboxRow, OutboxWrite, ThreadOutboxWrite } from "./outbox.ts";
import { isChildNamespace } from "./rules.ts";
import type { Claim, Commit } from "./store.ts";

/** Consumer of the notifications of engines. */
export const notificationConsumer = "notify";

/**
 * Kind of a notification. `run.failed` and `run.parked`: the run ended with an error, and only a resume continues it.
 * `run.in_doubt`: an effect that may have happened waits for the answer of a person. `run.waiting`: an interrupt is
 * open for longer than the time of the engine.
 */
export type NotificationKind = (typeof notificationKinds)[number];

/** All kinds of notifications. */
export const notificationKinds = ["run.failed", "run.parked", "run.in_doubt", "run.waiting"] as const;

/** Error of a failed or parked run. */
export type NotificationError = Pick<ErrorRecord, "name" | "message" | "code">;

/** Open interrupt of a notification, without its payload. */
export interface NotificationInterrupt {
  readonly id: string;
  readonly key: string;
  readonly node: string;
  /** Time when the interrupt was raised, in milliseconds since the epoch. */
  readonly raisedAt: number;
  readonly expiresAt?: number | undefined;
}

/** Fields common to all notifications. */
export interface NotificationBase {
  /** The same in every attempt to deliver the notification. */
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
  readonly run: string;
  readonly graph: string;
  readonly tenant?: string | undefined;
  readonly owner?: string | undefined;
  /** Metadata of the run. */
  readonly metadata?: JsonObject | undefined;
  /** Time of the event, in milliseconds since the epoch; of `run.waiting` the time when the engine found it. */
  readonly at: number;
}

/** Notification about a run that needs a person. */
export type Notification =
  | (NotificationBase & { readonly kind: "run.failed" | "run.parked"; readonly error: NotificationError })
  | (NotificationBase & { readonly kind: "run.in_doubt" | "run.waiting"; readonly interrupt: NotificationInterrupt });

type NotifiedRun = Pick<RunRow, "id" | "thread" | "graph" | "tenant" | "owner" | "metadata">;

/** Parts of a commit that notifications are about. */
export type NotifiedWrite = Pick<Commit, "run" | "interrupts"> & { readonly namespace: string };

/** Writer of a commit. */
export interface NoticeSource {
  readonly claim: Pick<Claim, "epoch" | "keySalt">;
  /** Row of the run, for a commit without a row. */
  readonly run: RunRow;
  readonly clock: Clock;
}

/** Returns true if a commit may need a notification. */
export function mayNotify({ run, interrupts }: Pick<Commit, "run" | "interrupts">): boolean {
  return interrupts !== undefined || run?.status === "failed" || run?.status === "parked";
}

/**
 * Returns the messages of a commit: about its failed or parked run, and about each of its open interrupts in doubt.
 * Undefined for other commits.
 */
export function listNotices(
  write: NotifiedWrite,
  { run, claim, clock }: NoticeSource,
): readonly OutboxWrite[] | undefined {
  const notices = [...listEndNotices(write, claim, clock), ...listDoubtNotices(write, claim, write.run ?? run)];
  return notices.length === 0 ? undefined : notices;
}

/** A run that fails again after a resume has another epoch, and another notification. */
function listEndNotices(
  { run }: NotifiedWrite,
  { epoch, keySalt }: NoticeSource["claim"],
  clock: Clock,
): OutboxWrite[] {
  if (run?.error === undefined || (run.status !== "failed" && run.status !== "parked")) return [];
  const { name, message, code } = run.error;
  const kind = run.status === "failed" ? "run.failed" : "run.parked";
  const id = createNoticeId(keySalt, run.thread, kind, run.id, epoch);
  const at = run.endedAt ?? clock.now();
  const error: NotificationError = { name, message, ...(code === undefined ? {} : { code }) };
  return [toWrite({ ...pickRunFields(run), id, at, kind, branch: run.branch, error })];
}

function listDoubtNotices(
  { interrupts = [], namespace }: NotifiedWrite,
  { keySalt }: NoticeSource["claim"],
  run: RunRow,
): OutboxWrite[] {
  if (isChildNamespace(namespace)) return [];
  return interrupts.filter(isInDoubt).map((row) => {
    const id = createNoticeId(keySalt, run.thread, "run.in_doubt", namespace, row.id);
    const about = { id, at: row.raisedAt, branch: namespace, interrupt: toNotificationInterrupt(row) };
    return { ...toWrite({ ...pickRunFields(run), ...about, kind: "run.in_doubt" }), interrupt: row.id };
  });
}

/** Returns true for an open interrupt about an effect that may have happened. */
function isInDoubt(row: InterruptRow): boolean {
  const isDoubtKey = row.key === inDoubtKey || row.key.endsWith(`.${inDoubtKey}`);
  return isDoubtKey && isOpen(row) && !row.id.endsWith(`prior_effect:${inDoubtKey}`);
}

/** Returns the message about an interrupt that is open for too long; each interrupt has one. */
export function createOverdueNotice(row: OpenInterruptRow, run: NotifiedRun, at: number): ThreadOutboxWrite {
  const { thread, branch } = row;
  const id = createNoticeId("", thread, "run.waiting", branch, row.id);
  const interrupt = toNotificationInterrupt(row);
  const write = toWrite({ ...pickRunFields(run), id, at, kind: "run.waiting", branch, interrupt });
  return { ...write, thread, branch, interrupt: row.id };
}

/** Returns the notification of an outbox row. */
export function parseNotification({ payload }: Pick<OutboxRow, "payload">): Notification {
  return JSON.parse(payload) as Notification;
}

function toWrite(notification: Notification): OutboxWrite {
  const { id, kind, at } = notification;
  return { id, topic: kind, payload: JSON.stringify(notification), at };
}

function pickRunFields({
  id: run,
  thread,
  graph,
  tenant,
  owner,
  metadata,
}: NotifiedRun): Omit<NotificationBase, "id" | "branch" | "at"> {
  return {
    ...{ thread, run, graph },
    ...(tenant === undefined ? {} : { tenant }),
    ...(owner === undefined ? {} : { owner }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

function toNotificationInterrupt({ id, key, node, raisedAt, expiresAt }: InterruptRow): NotificationInterrupt {
  return { id, key, node, raisedAt, ...(expiresAt === undefined ? {} : { expiresAt }) };
}

/** Creates the id of a notification from its subject: the same after a crash, and in every process. */
function createNoticeId(...subject: readonly (string | number)[]): string {
  const hash = createSha256();
  hash.add(new TextEncoder().encode(JSON.stringify(subject)));
  return `note_${hash.finish().slice(0, 32)}`;
}
