/** Answers for a user-written machine: an event by its type, or the decision about a promise in doubt. */
import type { AnyEventObject } from "xstate";
import { addErrorPlace, type ErrorPlace, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { describeIssues, parseWith } from "../../base/schema.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { MachineDefinition } from "../../compile/durable-machine.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import { type ActorTree, checkAccepted, findDueTimer } from "../kernel/actor-tree.ts";
import { type ActorInDoubt, actorInDoubt } from "./doubts.ts";

/** Parsed answers. */
export interface MachineAnswers {
  readonly event: AnyEventObject | undefined;
  readonly decisions: readonly { readonly interrupt: InterruptRow; readonly value: ActorInDoubt }[];
}

/** Open and answered interrupts of the current step, and the place for errors. */
export interface AnswerContext {
  readonly interrupts: readonly InterruptRow[];
  readonly place: ErrorPlace;
}

/**
 * Parses answers. The key `in_doubt` or an interrupt id answers for a promise; any other key is an event type, and its
 * value the event's payload. Throws `ambiguous_answer` or `invalid_answer`.
 */
export function parseMachineAnswers(answers: unknown, context: AnswerContext): MachineAnswers {
  if (!isPlainObject(answers))
    throw createInvalidAnswerError(context, "answers", "expected an object of events by type");
  const decisions: MachineAnswers["decisions"][number][] = [];
  const events: AnyEventObject[] = [];
  for (const [name, value] of Object.entries(answers)) {
    const interrupt = findInDoubtInterrupt(context, name);
    if (interrupt === undefined) events.push(parseEvent(context, name, value));
    else decisions.push({ interrupt, value: parseDecision(context, interrupt.key, value) });
  }
  if (events.length > 1)
    throw new StatewrightError("ambiguous_answer", {
      what: `expected one event, got ${events.length}`,
      next: "Send one event at a time: each event changes the events that the machine accepts next",
      place: context.place,
      details: events.map(({ type }) => type),
    });
  return { event: events[0], decisions };
}

function parseDecision(context: AnswerContext, key: string, value: unknown): ActorInDoubt {
  const parsed = parseWith(actorInDoubt, value);
  if (parsed.ok) return parsed.value;
  throw createInvalidAnswerError(context, key, describeIssues(parsed.issues));
}

function parseEvent(context: AnswerContext, name: string, value: unknown): AnyEventObject {
  // An interrupt about an accepted event has the event type as its key.
  const type = context.interrupts.find((row) => row.id === name)?.key ?? name;
  if (type.startsWith("xstate."))
    throw createInvalidAnswerError(context, type, "event types that begin with xstate. are reserved");
  if (value !== null && value !== true && !isPlainObject(value))
    throw createInvalidAnswerError(context, name, "expected an object or true as the event's payload");
  return { ...(isPlainObject(value) ? value : {}), type };
}

function findInDoubtInterrupt({ interrupts, place }: AnswerContext, name: string): InterruptRow | undefined {
  const rows = interrupts.filter((row) => row.key === inDoubtKey);
  const byId = rows.find((row) => row.id === name);
  if (byId !== undefined || name !== inDoubtKey) return byId;
  const unanswered = rows.filter((row) => row.answer === undefined);
  if (unanswered.length > 1) {
    throw new StatewrightError("ambiguous_answer", {
      what: `${unanswered.length} promises are in doubt`,
      next: `Answer by id: ${unanswered.map(({ id }) => `"${id}"`).join(", ")}`,
      place,
      details: unanswered.map(({ id }) => id),
    });
  }
  return unanswered[0];
}

function createInvalidAnswerError({ place }: AnswerContext, name: string, reason: string): StatewrightError {
  return new StatewrightError("invalid_answer", {
    what: `the answer "${name}" is invalid: ${reason}`,
    next: "Pass an event as { TYPE: { …payload } }, or the outcome of a promise in doubt as { happened, output }",
    place,
  });
}

/**
 * Throws `event_refused` unless the machine accepts the event now. Skipped when a due timer or a recorded result comes
 * before the event: they may change the accepted events.
 */
export function checkEvent(
  definition: MachineDefinition,
  tree: ActorTree,
  event: AnyEventObject,
  { now, hasResults, place }: { readonly now: number; readonly hasResults: boolean; readonly place: ErrorPlace },
): void {
  if (hasResults || findDueTimer(tree, now) !== undefined) return;
  try {
    checkAccepted(definition, tree, event);
  } catch (error) {
    throw isStatewrightError(error) ? addErrorPlace(error, place) : error;
  }
}

/** Returns the `event_refused` error of an event; undefined for an accepted event. */
export function findRefusal(
  definition: MachineDefinition,
  tree: ActorTree,
  event: AnyEventObject,
): StatewrightError | undefined {
  try {
    checkAccepted(definition, tree, event);
    return undefined;
  } catch (error) {
    if (isStatewrightError(error, "event_refused")) return error;
    throw error;
  }
}
