/**
 * Decisions about `once` effects in doubt: effects that started here without an outcome, and effects that another
 * branch has recorded. Steps, nodes, tool calls and promises of durable machines decide by these functions.
 */

import { type ErrorRecord, fromErrorRecord } from "../../base/errors.ts";
import { type EffectRow, isInFlight } from "../../checkpoint/journal.ts";
import type { OnPriorEffect } from "../session/options/options.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import { describePriorEffects, type PriorEffect } from "./prior-effects.ts";

/** Recorded outcome of an effect. An error has its saved form, the same before and after a crash. */
export type RecordedOutcome<Value = unknown> = { readonly value: Value } | { readonly error: Error };

/** Decodes the outcome of a row; undefined for a row without an outcome. */
export function decodeOutcome({ codec }: Persistence, { state, outcome }: EffectRow): RecordedOutcome | undefined {
  if (outcome === undefined || state === "started") return undefined;
  const value = codec.decode(outcome);
  return state === "ok" ? { value } : { error: fromErrorRecord(value as ErrorRecord) };
}

/** Returns the value of an outcome, or throws its error. */
export function unwrapOutcome<Value>(outcome: RecordedOutcome<Value>): Value {
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

/** A `once` effect that may have happened. */
export interface EffectDoubt<Value> {
  readonly row: EffectRow;
  /** Subject of the interrupt: an answer counts only for the same subject. */
  readonly about: string;
  /** Set for an effect of another branch; `outcome` is undefined when the row has no usable outcome. */
  readonly prior?: { readonly branch: string; readonly outcome: RecordedOutcome<Value> | undefined };
}

/** Answer of a person about an effect in doubt. */
export interface DoubtAnswer<Value> {
  readonly happened: boolean;
  /** True when the answer states a value. Otherwise a recorded outcome counts. */
  readonly statesValue: boolean;
  /** Returns the stated value, or the value of an effect without a known result. */
  readonly getValue: () => Value;
}

/** Looks up the answer about an effect in doubt; `open` is the interrupt that still needs an answer. */
export type ConsultPerson<Value, Open> = (
  doubt: EffectDoubt<Value>,
) => DoubtAnswer<Value> | { readonly happened?: undefined; readonly open: Open };

/** Decision about an effect in doubt. */
export type DoubtDecision<Value, Open> =
  | { readonly kind: "waiting"; readonly open: Open }
  | { readonly kind: "happened"; readonly outcome: RecordedOutcome<Value> }
  /** The effect did not happen, so it may start. */
  | { readonly kind: "denied" };

/** Returns true for an unknown outcome. The effect of a failed task may have happened before the failure. */
export function isUnresolved(row: EffectRow): boolean {
  return isInFlight(row) || (row.kind === "task" && row.state === "error");
}

/** Identifies a start in an interrupt. The answer applies to this start only. */
function describeStart({ startedAt }: EffectRow): string {
  return `started at ${startedAt}`;
}

/** Describes a start in this branch for its interrupt. */
export function createStartDoubt<Value>(row: EffectRow): EffectDoubt<Value> {
  return { row, about: describeStart(row) };
}

/** Describes the selected record of other branches for its interrupt; `matches` are all records of the effect. */
export function createPriorDoubt<Value>(
  { branch, row }: PriorEffect,
  matches: readonly PriorEffect[],
  outcome: RecordedOutcome<Value> | undefined,
): EffectDoubt<Value> {
  return { row, about: describePriorEffects(matches), prior: { branch, outcome } };
}

/**
 * Decides about an effect in doubt. With the policy `reuse`, the outcome of another branch counts; otherwise the
 * answer of a person does.
 */
export function decideDoubt<Value, Open>(
  onPriorEffect: OnPriorEffect,
  doubt: EffectDoubt<Value>,
  consult: ConsultPerson<Value, Open>,
): DoubtDecision<Value, Open> {
  const recorded = doubt.prior?.outcome;
  if (recorded !== undefined && onPriorEffect === "reuse") return { kind: "happened", outcome: recorded };
  const answer = consult(doubt);
  if (answer.happened === undefined) return { kind: "waiting", open: answer.open };
  if (!answer.happened) return { kind: "denied" };
  return {
    kind: "happened",
    outcome: recorded === undefined || answer.statesValue ? { value: answer.getValue() } : recorded,
  };
}
