/** `once` promises in doubt: started in a crashed process or on another branch, without a decision. */
import { toErrorRecord } from "../../base/errors.ts";
import { createPlainObjectSchema } from "../../base/plain-object-schema.ts";
import type { Schema } from "../../base/schema.ts";
import { type EffectRow, type InterruptRow, isInFlight } from "../../checkpoint/journal.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import { describeStart } from "../journal/journal.ts";
import type { PriorEffect } from "../journal/prior-effects.ts";
import type { InvokedPromise } from "../kernel/actor-tree.ts";
import type { Journal } from "../session/parts/journal.ts";
import type { Position } from "../session/parts/position.ts";
import { type LoopState, setOutcome } from "./loop-state.ts";
import { decodePriorOutcome, getPromiseRow, type PromiseOutcome } from "./machine-effect.ts";

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

/** True when a `once` promise started in a crashed process and has no outcome. */
function isInDoubt(position: Position, journal: Journal, work: InvokedPromise): boolean {
  const row = getPromiseRow(position, journal, work);
  return work.actor.effect === "once" && row !== undefined && isInFlight(row);
}

/**
 * Returns the decision about a promise that would start: `start`, an outcome that replaces the start, or undefined
 * while the promise is in doubt.
 */
function decideStart(loop: LoopState, work: InvokedPromise): "start" | PromiseOutcome | undefined {
  const { position, journal, env } = loop.session;
  const priorOutcome = getPriorOutcome(loop, work);
  if (priorOutcome !== undefined && env.onPriorEffect === "reuse") return priorOutcome;
  if (!isInDoubt(position, journal, work) && loop.priorEffects.get(work) === undefined) return "start";
  const answer = findAnswer(loop, work);
  if (answer === undefined) return undefined;
  if (!answer.happened) return "start";
  return answer.output === undefined && priorOutcome !== undefined ? priorOutcome : { output: answer.output };
}

/**
 * Marks the promises in doubt, and sets the outcomes that answers decide. Returns true while events wait: a promise is
 * in doubt, or an outcome comes first.
 */
export function resolveDoubts(loop: LoopState): boolean {
  for (const work of loop.tree.promises.values()) {
    const decision = loop.running.has(work) ? "start" : decideStart(loop, work);
    if (decision === undefined) loop.running.set(work, "in doubt");
    else if (decision !== "start") setOutcome(loop, work, { ...decision, endedAt: loop.session.env.world.clock.now() });
  }
  return loop.outcomes.size > 0 || [...loop.running.values()].includes("in doubt");
}

/** A prior effect on another branch and a start on this branch are different events: each has its own interrupt. */
export function getInDoubtId(found: PriorEffect | undefined, { task }: InvokedPromise): string {
  return found === undefined ? `${task.id}:${inDoubtKey}` : `${task.id}:prior_effect:${inDoubtKey}`;
}

/** Row and payload of the interrupt about a promise in doubt; undefined for a promise without a start. */
export function describeDoubt(
  loop: LoopState,
  work: InvokedPromise,
): { readonly id: string; readonly about: string; readonly payload: object } | undefined {
  const { position, journal } = loop.session;
  const found = loop.priorEffects.get(work);
  const row = found?.row ?? getPromiseRow(position, journal, work);
  if (row === undefined) return undefined;
  const { idempotencyKey, startedAt } = row;
  const facts = { actor: work.task.node, input: work.input, idempotencyKey, startedAt };
  const payload = found === undefined ? facts : { ...facts, alreadyOn: found.branch, ...describePrior(loop, work) };
  return { id: getInDoubtId(found, work), about: describeStart(row), payload };
}

function describePrior(loop: LoopState, work: InvokedPromise): object {
  const priorOutcome = getPriorOutcome(loop, work);
  if (priorOutcome === undefined) return {};
  return "error" in priorOutcome ? { error: toErrorRecord(priorOutcome.error) } : { outcome: priorOutcome.output };
}

function getPriorOutcome({ session, priorEffects }: LoopState, work: InvokedPromise): PromiseOutcome | undefined {
  const { saved } = session.journal;
  const found = priorEffects.get(work);
  return saved === undefined || found === undefined ? undefined : decodePriorOutcome(saved, found);
}

function findAnswer({ session, answers, priorEffects }: LoopState, work: InvokedPromise): ActorInDoubt | undefined {
  const found = priorEffects.get(work);
  return decodeAnswer(
    session.journal,
    found?.row ?? getPromiseRow(session.position, session.journal, work),
    answers.get(getInDoubtId(found, work)),
  );
}

/** True when a person answered that a start on this branch had no effect. */
export function isDenied({ session, answers }: LoopState, work: InvokedPromise): boolean {
  return (
    decodeAnswer(
      session.journal,
      getPromiseRow(session.position, session.journal, work),
      answers.get(getInDoubtId(undefined, work)),
    )?.happened === false
  );
}

/** Decodes the answer to an interrupt about this start; undefined for another start. */
function decodeAnswer(
  { saved }: Journal,
  row: EffectRow | undefined,
  interrupt: InterruptRow | undefined,
): ActorInDoubt | undefined {
  const text = row !== undefined && interrupt?.about === describeStart(row) ? interrupt.answer : undefined;
  return text === undefined ? undefined : (saved?.codec.decode(text) as ActorInDoubt);
}
