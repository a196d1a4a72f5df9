/** Queue of a machine loop: events from the inbox, in posting order, after recorded results, due timers and doubts. */
import { addErrorPlace, StatewrightError } from "../../base/errors.ts";
import { parseWith } from "../../base/schema.ts";
import { getEventKey, type QueuedEvent } from "../session/inbox/event-inbox.ts";
import type { DeliveredEvent } from "../session/options/options.ts";
import { awaitCommit } from "../session/parts/persistence.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { actorInDoubt, getInDoubtId } from "./doubts.ts";
import type { LoopState } from "./loop-state.ts";
import { listDoubtInterrupts, listSavedInterrupts } from "./machine-interrupts.ts";
import { createReceivedEvent, createRefusedEvent } from "./macrostep.ts";

/** Reads new events of the inbox into the queue. Events that can never be processed are refused at once. */
export async function readQueue(loop: LoopState): Promise<void> {
  loop.hasReadQueue = loop.hasArrivals;
  if (!loop.hasArrivals) return;
  loop.hasArrivals = false;
  loop.queue = await loop.session.inboxes.events.listEvents();
  for (const event of loop.queue) {
    const error = findForeignError(loop, event);
    if (error !== undefined) await refuseEvent(loop, event, error);
  }
}

function findForeignError(
  { session: { position } }: LoopState,
  { message }: QueuedEvent,
): StatewrightError | undefined {
  if (message?.run === position.run.id) return undefined;
  const what =
    message === undefined
      ? "a message in the inbox is not an event"
      : `the event was for the run "${message.run}" of the thread, which has ended`;
  return new StatewrightError("event_refused", {
    what,
    next: "Send the event again: it was removed from the inbox",
    place: getErrorPlace(position),
  });
}

/** Removes an event from the inbox without processing it. The caller that resumed this run gets the error. */
export async function refuseEvent(loop: LoopState, event: QueuedEvent, error: StatewrightError): Promise<void> {
  const { session } = loop;
  const placed = addErrorPlace(error, getErrorPlace(session.position));
  await removeEvent(loop, event, createRefusedEvent(session, event, placed));
  if (loop.ownIds.has(event.id)) loop.refusal ??= placed;
  else {
    const fields = { thread: session.position.run.thread, event: getEventKey(event), error: placed.message };
    session.env.world.log("warn", "a queued event of a durable machine was refused", fields);
  }
}

/** Removes an event whose macrostep failed the run. */
export async function removeFailedEvent(loop: LoopState, event: QueuedEvent, error: unknown): Promise<void> {
  await removeEvent(loop, event, createRefusedEvent(loop.session, event, error));
}

/**
 * Applies the queued answers about promises in doubt. Returns true when at least one was applied. An answer whose
 * interrupt is closed is refused.
 */
export async function applyQueuedAnswers(loop: LoopState): Promise<boolean> {
  const answers = loop.queue.filter(({ message }) => message !== undefined && "interrupt" in message.content);
  for (const answer of answers) await applyQueuedAnswer(loop, answer);
  return answers.length > 0;
}

async function applyQueuedAnswer(loop: LoopState, event: QueuedEvent): Promise<void> {
  const { session } = loop;
  const { saved } = session.journal;
  const { message } = event;
  if (saved === undefined || message === undefined || !("interrupt" in message.content)) return;
  const { interrupt: id, about, key, value } = message.content;
  const interrupt = listDoubtInterrupts(loop).find((row) => row.id === id && row.about === about);
  const parsed = parseWith(actorInDoubt, value);
  if (interrupt === undefined || !parsed.ok) {
    const what = `the answer "${key}" is about the interrupt "${id}", which is ${parsed.ok ? "closed" : "of another kind"}`;
    const next = "List the open interrupts and answer one of them";
    return refuseEvent(loop, event, new StatewrightError("unknown_interrupt", { what, next }));
  }
  const row = {
    ...interrupt,
    answer: saved.codec.encode(parsed.value, `the answer to "${key}"`),
    answeredAt: session.env.world.clock.now(),
    ...(message.by === undefined ? {} : { answeredBy: message.by }),
  };
  saved.interrupts.set(id, row);
  loop.answers.set(id, row);
  await removeEvent(loop, event, createReceivedEvent(session, event), [row]);
  for (const [work, state] of loop.running)
    if (state === "in doubt" && getInDoubtId(loop.session.position, loop.priorEffects.get(work), work) === id)
      loop.running.delete(work);
}

/** Removes an event from the inbox together with its durable event. */
async function removeEvent(
  loop: LoopState,
  { id }: QueuedEvent,
  event: ReturnType<typeof createReceivedEvent>,
  answered: Parameters<typeof awaitCommit>[1]["interrupts"] = [],
): Promise<void> {
  const { journal, position } = loop.session;
  loop.queue = loop.queue.filter((each) => each.id !== id);
  if (journal.saved === undefined) return;
  const interrupts = [...answered, ...listSavedInterrupts(loop)];
  const write = { run: position.run, interrupts, deliveredMessages: [id], events: event.rows };
  await awaitCommit(journal.saved, write);
  event.emit();
}

/** Lists the events of the caller that are still queued. */
export function listOwnQueued({ queue, ownIds }: LoopState): readonly DeliveredEvent[] {
  return queue.filter(({ id }) => ownIds.has(id)).map((event) => ({ id: event.id, key: getEventKey(event) }));
}
