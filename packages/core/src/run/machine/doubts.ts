/** `once` promises in doubt: started in a crashed process or on another branch, without a decision. */
import { toErrorRecord } from "../../base/errors.ts";
import { createPlainObjectSchema } from "../../base/plain-object-schema.ts";
import type { Schema } from "../../base/schema.ts";
import { type InterruptRow, isInFlight } from "../../checkpoint/journal.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import {
  createStartDoubt,
  type DoubtAnswer,
  type DoubtDecision,
  decideDoubt,
  decodeOutcome,
  type EffectDoubt,
} from "../journal/decide-effect.ts";
import type { PriorEffect } from "../journal/prior-effects.ts";
import type { InvokedPromise } from "../kernel/actor-tree.ts";
import type { Journal } from "../session/parts/journal.ts";
import { getInterruptIdPrefix, type Position } from "../session/parts/position.ts";
import { type LoopState, setOutcome } from "./loop-state.ts";
import { getPromiseRow } from "./machine-effect.ts";

/** Answer of a person about a promise that started in a crashed process. */
export interface ActorInDoubt {
  readonly happened: boolean;
  readonly output?: unknown;
}

/** Schema of the answer about a promise in doubt. */
export const actorInDoubt: Schema<ActorInDoubt> = createPlainObjectSchema(
  { happened: "boolean" },
  { output: "anything" },
);

/**
 * Marks the promises in doubt, and sets the outcomes that answers decide. Returns true while events wait: a promise is
 * in doubt, or an outcome comes first.
 */
export function resolveDoubts(loop: LoopState): boolean {
  for (const work of loop.tree.promises.values()) {
    const decision = loop.running.has(work) ? undefined : decideStart(loop, work);
    if (decision?.kind === "waiting") loop.running.set(work, "in doubt");
    else if (decision?.kind === "happened")
      setOutcome(loop, work, { ...decision.outcome, endedAt: loop.session.env.world.clock.now() });
  }
  return loop.outcomes.size > 0 || [...loop.running.values()].includes("in doubt");
}

/** Decides about a promise that would start; undefined for a promise that is not in doubt. */
function decideStart(loop: LoopState, work: InvokedPromise): DoubtDecision<unknown, undefined> | undefined {
  const { session, priorEffects } = loop;
  const doubt = findDoubt(loop, work);
  const isInDoubt = priorEffects.get(work) !== undefined || (doubt !== undefined && isInFlight(doubt.row));
  if (doubt === undefined || !isInDoubt || work.actor.effect !== "once") return undefined;
  return decideDoubt(session.env.onPriorEffect, doubt, () => {
    const answer = findAnswer(loop, work, doubt);
    return answer === undefined ? { open: undefined } : toDoubtAnswer(answer);
  });
}

function toDoubtAnswer({ happened, output }: ActorInDoubt): DoubtAnswer<unknown> {
  return { happened, statesValue: output !== undefined, getValue: () => output };
}

/** Returns the start of a promise on another branch, else on this branch; undefined for a promise without a start. */
function findDoubt({ session, priorEffects }: LoopState, work: InvokedPromise): EffectDoubt<unknown> | undefined {
  const { position, journal } = session;
  const { saved } = journal;
  const found = priorEffects.get(work);
  const row = found?.row ?? getPromiseRow(position, journal, work);
  if (saved === undefined || row === undefined) return undefined;
  const doubt = createStartDoubt(row);
  return found === undefined
    ? doubt
    : { ...doubt, prior: { branch: found.branch, outcome: decodeOutcome(saved, row) } };
}

/** A prior effect on another branch and a start on this branch are different events: each has its own interrupt. */
export function getInDoubtId(
  position: Pick<Position, "run" | "nesting">,
  found: PriorEffect | undefined,
  { task }: InvokedPromise,
): string {
  const kind = found === undefined ? inDoubtKey : `prior_effect:${inDoubtKey}`;
  return `${getInterruptIdPrefix(position)}${task.id}:${kind}`;
}

/** Row and payload of the interrupt about a promise in doubt; undefined for a promise without a start. */
export function describeDoubt(
  loop: LoopState,
  work: InvokedPromise,
): { readonly id: string; readonly about: string; readonly payload: object } | undefined {
  const doubt = findDoubt(loop, work);
  if (doubt === undefined) return undefined;
  const { row, about, prior } = doubt;
  const { idempotencyKey, startedAt } = row;
  const payload = { actor: work.task.node, input: work.input, idempotencyKey, startedAt, ...describePrior(prior) };
  return { id: getInDoubtId(loop.session.position, loop.priorEffects.get(work), work), about, payload };
}

function describePrior(prior: EffectDoubt<unknown>["prior"]): object {
  if (prior === undefined) return {};
  const { branch, outcome } = prior;
  if (outcome === undefined) return { alreadyOn: branch };
  return "error" in outcome
    ? { alreadyOn: branch, error: toErrorRecord(outcome.error) }
    : { alreadyOn: branch, outcome: outcome.value };
}

/** True when a person answered that a start on this branch had no effect. */
export function isDenied({ session, answers }: LoopState, work: InvokedPromise): boolean {
  const row = getPromiseRow(session.position, session.journal, work);
  if (row === undefined) return false;
  return (
    decodeAnswer(session.journal, createStartDoubt(row), answers.get(getInDoubtId(session.position, undefined, work)))
      ?.happened === false
  );
}

function findAnswer(
  { session, answers, priorEffects }: LoopState,
  work: InvokedPromise,
  doubt: EffectDoubt<unknown>,
): ActorInDoubt | undefined {
  return decodeAnswer(
    session.journal,
    doubt,
    answers.get(getInDoubtId(session.position, priorEffects.get(work), work)),
  );
}

/** Decodes the answer to an interrupt about this start; undefined for another start. */
function decodeAnswer(
  { saved }: Journal,
  { about }: EffectDoubt<unknown>,
  interrupt: InterruptRow | undefined,
): ActorInDoubt | undefined {
  const text = interrupt?.about === about ? interrupt.answer : undefined;
  return text === undefined ? undefined : (saved?.codec.decode(text) as ActorInDoubt);
}
