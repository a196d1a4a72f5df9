/**
 * Delivery of events to a durable machine whose thread another run owns, in this process or another: the events are
 * posted to the inbox of the branch, and the owner processes them.
 */

import { type ErrorPlace, StatewrightError } from "../../base/errors.ts";
import type { CheckpointRow, RunRow } from "../../checkpoint/checkpoint.ts";
import { restoreState } from "../../checkpoint/codec/saved-state.ts";
import { parseControl } from "../../checkpoint/control.ts";
import { checkThread } from "../../checkpoint/thread-rules.ts";
import type { MachineState } from "../../compile/durable-machine.ts";
import { createAnsweredError } from "../conversation/answered-error.ts";
import { type ActorTree, getDefinition, restoreActorTree } from "../kernel/actor-tree.ts";
import type { Delivery } from "../migration/program.ts";
import { isWriter } from "../migration/resolve-version.ts";
import { type EventMessage, getEventKey, postEvent } from "../session/inbox/event-inbox.ts";
import type { DeliveredEvent, RunResult } from "../session/options/options.ts";
import type { State } from "../session/returns.ts";
import { toPublicState } from "../session/run-row.ts";
import { checkEvent, type MachineAnswers, parseMachineAnswers } from "./machine-answers.ts";

/**
 * Posts the answers to the inbox of the run at work. Resolves when they are durable. Throws `event_refused` for an
 * event that the saved state does not accept, `ambiguous_answer`, `invalid_answer`, and `graph_changed` for a thread
 * of another graph; an error changes nothing.
 */
export async function postAnswers(delivery: Delivery, run: RunRow): Promise<readonly DeliveredEvent[]> {
  const { store, codec, world, thread, by, key } = delivery;
  const { branch } = run;
  const { event, decisions } = await parseAnswers(delivery, run);
  const contents: EventMessage["content"][] = decisions.map(({ interrupt, value }) => ({
    interrupt: interrupt.id,
    key: interrupt.key,
    about: interrupt.about,
    value,
  }));
  if (event !== undefined) contents.push({ event });
  checkKeyedContents(contents, key, { graph: delivery.plan.graph.name, thread, branch });
  const delivered: DeliveredEvent[] = [];
  for (const content of contents) {
    const message = { run: run.id, ...(by === undefined ? {} : { by }), content };
    const id = await postEvent({ store, codec, thread, branch }, world, message, key);
    delivered.push({ id, key: getEventKey({ message }) });
  }
  return delivered;
}

/** Throws `ambiguous_answer` for several answers under the same key: the key is the id of an inbox message. */
export function checkKeyedContents(contents: readonly unknown[], key: string | undefined, place: ErrorPlace): void {
  if (key === undefined || contents.length <= 1) return;
  throw new StatewrightError("ambiguous_answer", {
    what: `expected one event or one answer with the key "${key}", got ${contents.length}`,
    next: "Send each with a key of its own",
    place,
  });
}

/** Parses the answers against the newest checkpoint, as its owner would. */
async function parseAnswers({ plan, store, codec, world, ...given }: Delivery, run: RunRow): Promise<MachineAnswers> {
  const { thread, branch } = run;
  const head = await store.head(thread, branch);
  const place = { graph: plan.graph.name, thread, branch };
  checkThread({ id: thread, graph: run.graph }, plan.graph);
  const interrupts = (await store.interrupts(thread, branch)).filter((row) => row.step === head?.step);
  const parsed = parseMachineAnswers(given.answers, { interrupts, place });
  const answered = parsed.decisions.find(({ interrupt }) => interrupt.answer !== undefined);
  if (answered !== undefined) throw createAnsweredError(codec, answered.interrupt, place);
  if (parsed.event === undefined || head === undefined) return parsed;
  const tree = await loadTree({ plan, store, codec }, thread, head);
  if (tree === undefined) return parsed;
  const effects = await store.effects(thread, branch, head.step);
  const tasks = new Set([...tree.promises.values()].map(({ task }) => task.id));
  const hasResults = effects.some((row) => tasks.has(row.task) && row.outcome !== undefined);
  checkEvent(getDefinition(plan), tree, parsed.event, { now: world.clock.now(), hasResults, place });
  return parsed;
}

/** Restores the machine of a checkpoint; undefined when another version or shape of the machine wrote it. */
async function loadTree(
  { plan, store, codec }: Pick<Delivery, "plan" | "store" | "codec">,
  thread: string,
  head: CheckpointRow,
): Promise<ActorTree | undefined> {
  const writer = await store.writtenBy(thread, head.id);
  if (writer === undefined || !isWriter(plan.graph, writer)) return undefined;
  const rows = await store.state(thread, head.id);
  const state = restoreState(plan.graph.state.channels, codec, rows) as MachineState;
  return restoreActorTree(getDefinition(plan), state, parseControl(codec, head));
}

/** Creates the result of a delivery: the newest saved state, and the posted events. */
export async function createDeliveredResult(
  { plan, store, codec }: Delivery,
  { id: run, thread, branch }: RunRow,
  delivered: readonly DeliveredEvent[],
): Promise<RunResult<State>> {
  const head = await store.head(thread, branch);
  const { channels } = plan.graph.state;
  const state = Object.freeze(
    restoreState(channels, codec, head === undefined ? [] : await store.state(thread, head.id)),
  );
  return { status: "delivered", delivered, run, thread, branch, state: toPublicState(plan, state), steps: 0, bytes: 0 };
}
