/** Journal rows: each external effect of a superstep with its start and outcome, and each interrupt. */
import type { EffectClass, EffectKind } from "../base/effect.ts";
import type { Json } from "../base/json.ts";
import type { Usage } from "../model/message.ts";
import { inDoubtKey } from "../tool/policy/approval.ts";

/**
 * Progress of an effect. After a crash, `started` without an outcome means in doubt for `once`, and a new attempt for
 * the other effect classes.
 */
export type EffectState = "started" | "ok" | "error";

/** Journal row of an effect. Within a branch, step, task and key identify the row. */
export interface EffectRow {
  readonly step: number;
  readonly task: string;
  /** Unique within the task: `model`, a tool call's id, a step's key. */
  readonly key: string;
  readonly kind: EffectKind;
  readonly name: string;
  readonly effect: EffectClass;
  readonly state: EffectState;
  /** Attempts over all processes; 0 before the end of the first attempt. */
  readonly attempts: number;
  /** The same in every attempt and after every resume. */
  readonly idempotencyKey: string;
  /** Start of the effect in the process that began it last: the time between a crash and the restart is excluded. */
  readonly startedAt: number;
  /** With the state `started`: the start was cancelled before execution. */
  readonly endedAt?: number | undefined;
  /** Encoded outcome. After the superstep is committed, only `once` effects retain the outcome. */
  readonly outcome?: string | undefined;
  /** Last human-readable progress of a tool call. */
  readonly stage?: string | undefined;
  /**
   * For a `once` tool call: digest of the arguments. A model that is called again assigns new ids to its tool calls.
   */
  readonly args?: string | undefined;
  /** Number of processes that began the effect; absent for one. The death of an owner is the reason for another one. */
  readonly processes?: number | undefined;
  /** Every attempt, oldest first; absent for an effect with a single attempt that did not die. */
  readonly attemptLog?: readonly EffectAttempt[] | undefined;
  /**
   * Tokens of the result of a model call, or of a tool that calls models by itself; absent when unknown. Kept after the
   * outcome is removed.
   */
  readonly usage?: EffectUsage | undefined;
}

/** Tokens of a recorded result. */
export interface EffectUsage extends Usage {
  /** Model that answered; absent when the row names the model, and for a tool. */
  readonly model?: string | undefined;
}

/** An attempt of an effect. An attempt without an end and without an error is running, or its owner has died since. */
export interface EffectAttempt {
  readonly startedAt: number;
  /** Absent for a running attempt, and for an attempt whose process died or was stopped. */
  readonly endedAt?: number | undefined;
  /**
   * Reason why the attempt has no result: `process_died`, `displaced` (another owner claimed the thread by force, and
   * the attempt may still be running), `stopped` (the run stopped before the end), an error code, the kind of a tool or model failure, or `error`. Absent for a result.
   */
  readonly error?: string | undefined;
  /** Requested model of a model call. */
  readonly model?: string | undefined;
  /** Tokens of a failed request of a model call; absent when unknown. */
  readonly usage?: Usage | undefined;
}

/** Error of an attempt whose owner died before the outcome was durable. */
export const processDied = "process_died";

/** Error of an attempt whose owner lost the thread to a forced claim: the attempt may still be running. */
export const attemptDisplaced = "displaced";

/** Error of an attempt that its run stopped: a pause, a shutdown or a failed store. */
export const attemptStopped = "stopped";

/** Returns true if an effect has started and its outcome is unknown. A cancelled start has an end and no outcome. */
export function isInFlight({ state, endedAt }: EffectRow): boolean {
  return state === "started" && endedAt === undefined;
}

/** Row of an interrupt; open until an answer arrives or the interrupt expires. */
export interface InterruptRow {
  readonly id: string;
  readonly branch: string;
  readonly step: number;
  readonly task: string;
  readonly node: string;
  readonly key: string;
  /** Encoded payload shown to the user. */
  readonly payload: string;
  /** JSON Schema of the answer; absent when the answer's schema provides none. */
  readonly schema?: Json | undefined;
  readonly raisedAt: number;
  /** Expiry time in milliseconds since the epoch; absent for an interrupt that never expires. */
  readonly expiresAt?: number | undefined;
  /** Encoded answer used on expiry, when declared. */
  readonly onExpire?: string | undefined;
  /** Time when the expiry was recorded. The answer is then {@link onExpire}, or absent. */
  readonly expiredAt?: number | undefined;
  /** Encoded answer; absent while unanswered. */
  readonly answer?: string | undefined;
  readonly answeredAt?: number | undefined;
  /** Short fingerprint of the interrupt's subject: an approval is valid only for the tool call as shown. */
  readonly about?: string | undefined;
  /** Tool of the tool call in question; the tool parses edited arguments in an answer before the answer counts. */
  readonly tool?: string | undefined;
  /** Identity of the answering user, as passed by the caller. */
  readonly answeredBy?: string | undefined;
  /** Idempotency key of the resume that answered. */
  readonly answerKey?: string | undefined;
  /** Run that the answer continued; only with {@link answerKey}. */
  readonly answeredRun?: string | undefined;
}

/** Open interrupt in the list over all threads. */
export interface OpenInterruptRow extends InterruptRow {
  readonly thread: string;
  readonly run: string;
  readonly graph: string;
  /** Position among all interrupts of the store: later interrupts have higher positions, independent of the clock. */
  readonly position: number;
}

/** Returns true if an interrupt is neither answered nor expired. */
export function isOpen({ answer, expiredAt }: InterruptRow): boolean {
  return answer === undefined && expiredAt === undefined;
}

/**
 * Returns true if an interrupt concerns the start of a `once` node or step. Its answer has a fixed schema, whatever
 * the graph declares.
 */
export function isStartInDoubt(row: InterruptRow): boolean {
  return nodeInDoubtPattern.test(row.id) || isStepInDoubt(row);
}

/** Returns true if an interrupt concerns the start of a `once` step. */
export function isStepInDoubt({ id, key }: InterruptRow): boolean {
  return id.endsWith(stepInDoubtSuffix) && (key === inDoubtKey || key.endsWith(`.${inDoubtKey}`));
}

const nodeInDoubtPattern = new RegExp(`/start\\d+:${inDoubtKey}$`);

/** End of the interrupt id of a `once` step in doubt, after the task and the key of the step. */
export const stepInDoubtSuffix: string = `/step:${inDoubtKey}`;
