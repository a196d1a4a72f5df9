/** Journal rows: every external effect of a superstep, with its start and its outcome, and every question to a person. */
import type { EffectClass, EffectKind } from "../base/effect.ts";
import type { Json } from "../base/json.ts";

/** How far an effect came. `started` without an outcome after a crash means in doubt for `once`, run again for the others. */
export type EffectState = "started" | "ok" | "error";

/** One effect. Within a branch it is known by step, task and key. */
export interface EffectRow {
  readonly step: number;
  readonly task: string;
  /** Unique within the task: `model`, a tool call's id, a step's key. */
  readonly key: string;
  readonly kind: EffectKind;
  readonly name: string;
  readonly effect: EffectClass;
  readonly state: EffectState;
  readonly attempts: number;
  /** The same in every attempt and after every resume. */
  readonly idempotencyKey: string;
  readonly startedAt: number;
  /** With the state `started`: its start was called off before it began. */
  readonly endedAt?: number | undefined;
  /** The encoded outcome. After the superstep is folded it is kept for `once` effects only. */
  readonly outcome?: string | undefined;
  /** The person-readable last state of a tool call: where it stood. */
  readonly stage?: string | undefined;
  /** Of a `once` tool call: what tells its arguments from others, since a model that is asked again gives its calls other ids. */
  readonly args?: string | undefined;
}

/** Whether an effect began and its outcome is not known. One whose start was called off has an end and no outcome. */
export function inFlight({ state, endedAt }: EffectRow): boolean {
  return state === "started" && endedAt === undefined;
}

/** A question to a person, open until it has an answer or its time is over. */
export interface InterruptRow {
  readonly id: string;
  readonly branch: string;
  readonly step: number;
  readonly task: string;
  readonly node: string;
  readonly key: string;
  /** The encoded payload that the person sees. */
  readonly payload: string;
  /** JSON Schema of the answer, when the schema has one. */
  readonly schema?: Json | undefined;
  readonly raisedAt: number;
  /** When it stops waiting, in milliseconds since the epoch; absent when it waits for ever. */
  readonly expiresAt?: number | undefined;
  /** The encoded answer that is taken then, when one was declared. */
  readonly onExpire?: string | undefined;
  /** When it was found that its time is over. Its answer is then {@link onExpire}, or there is none. */
  readonly expiredAt?: number | undefined;
  /** The encoded answer, once given. */
  readonly answer?: string | undefined;
  readonly answeredAt?: number | undefined;
  /** What it is about, in a few characters: an approval counts for the call as it was shown and for no other. */
  readonly about?: string | undefined;
  /** The tool whose call it is about: other arguments in an answer are parsed by it before the answer counts. */
  readonly tool?: string | undefined;
  /** Who answered, as they said. */
  readonly answeredBy?: string | undefined;
}

/** An open question as the list over all threads shows it. */
export interface QuestionRow extends InterruptRow {
  readonly thread: string;
  readonly run: string;
  readonly graph: string;
  /** Its place among all questions of the store: later ones have higher places, whatever the clock said. */
  readonly place: number;
}

/** Whether a question still waits. */
export function isOpen({ answer, expiredAt }: InterruptRow): boolean {
  return answer === undefined && expiredAt === undefined;
}
