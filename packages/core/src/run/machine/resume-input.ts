/** Input of a resumed machine: answers about promises in doubt are applied at once, an event is queued when the run has continued. */
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { MachineState } from "../../compile/durable-machine.ts";
import { getDefinition, restoreActorTree } from "../kernel/actor-tree.ts";
import type { GivenAnswers } from "../migration/program.ts";
import { type EventMessage, postEvent } from "../session/inbox/event-inbox.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import type { Session } from "../session/session.ts";
import { release } from "../task/open-session.ts";
import { checkKeyedContents } from "./deliver-events.ts";
import { checkEvent, type MachineAnswers, parseMachineAnswers } from "./machine-answers.ts";
import { findRecordedOutcome } from "./machine-effect.ts";
import type { ResumeInput } from "./machine-loop.ts";
import { createFinishedError } from "./macrostep.ts";

type ResumeSession = Pick<Session, "env" | "position" | "progress" | "journal">;

/**
 * Reads the answers of a resume. Throws `event_refused` with the accepted event types, `ambiguous_answer`,
 * `invalid_answer` or `unencodable_value`; an error changes nothing and releases the thread.
 */
export async function readResumeInput(
  session: ResumeSession,
  { answers, by, key, posted }: Pick<GivenAnswers, "answers" | "by" | "key" | "posted">,
): Promise<ResumeInput> {
  const { env, position, progress, journal } = session;
  const { saved } = journal;
  try {
    const isFinished = progress.control.tasks.length === 0;
    if (posted !== undefined) {
      if (isFinished) throw createFinishedError(position, posted.map(({ key }) => key).join(", "));
      return { rows: [], postedIds: posted.map(({ id }) => id), message: undefined };
    }
    const interrupts = [...(saved?.interrupts.values() ?? [])];
    const parsed = parseMachineAnswers(answers, { interrupts, place: getErrorPlace(position) });
    const { decisions, event } = parsed;
    checkKeyedContents(event === undefined ? decisions : [...decisions, event], key, getErrorPlace(position));
    const rows = decisions.map((decision) => createAnsweredRow(session, decision, { by, key }));
    let message: EventMessage | undefined;
    if (event !== undefined) {
      if (isFinished) throw createFinishedError(position, event.type);
      checkResumeEvent(session, event);
      message = { run: position.run.id, ...(by === undefined ? {} : { by }), content: { event } };
      saved?.codec.encode(message, "the event");
    }
    for (const row of rows) saved?.interrupts.set(row.id, row);
    if (key === undefined || message === undefined || saved === undefined) return { rows, postedIds: [], message };
    // Before the run continues: the row of the run names the key only when the event is durable.
    const { thread, branch } = position.run;
    const location = { store: saved.store, codec: saved.codec, thread, branch };
    return { rows, postedIds: [await postEvent(location, env.world, message, key)], message: undefined };
  } catch (error) {
    if (saved !== undefined) await release(saved.store, position.run.thread, saved.claim, { world: env.world });
    throw error;
  }
}

function checkResumeEvent(
  { env, position, progress, journal }: ResumeSession,
  event: NonNullable<MachineAnswers["event"]>,
): void {
  const definition = getDefinition(position.plan);
  const tree = restoreActorTree(definition, progress.state as MachineState, progress.control);
  const hasResults = [...tree.promises.values()].some(
    (work) => findRecordedOutcome({ position, journal }, work) !== undefined,
  );
  checkEvent(definition, tree, event, { now: env.world.clock.now(), hasResults, place: getErrorPlace(position) });
}

function createAnsweredRow(
  { env, position, journal }: ResumeSession,
  { interrupt, value }: MachineAnswers["decisions"][number],
  { by, key }: Pick<GivenAnswers, "by" | "key">,
): InterruptRow {
  const answer = journal.saved?.codec.encode(value, `the answer to "${interrupt.key}"`);
  const answeredAt = env.world.clock.now();
  return {
    ...interrupt,
    answer,
    answeredAt,
    ...(by === undefined ? {} : { answeredBy: by }),
    ...(key === undefined ? {} : { answerKey: key, answeredRun: position.run.id }),
  };
}
