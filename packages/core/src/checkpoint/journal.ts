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
}

/** A question to a person, open until it has an answer. */
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
  /** The encoded answer, once given. */
  readonly answer?: string | undefined;
  readonly answeredAt?: number | undefined;
}
