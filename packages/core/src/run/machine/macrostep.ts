/** Saves a macrostep of a user-written machine as a single checkpoint, emits its events, then runs its actions. */
import { StatewrightError } from "../../base/errors.ts";
import { isPlainObject, type Json } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { CheckpointRow, RunRow } from "../../checkpoint/checkpoint.ts";
import { isOpen } from "../../checkpoint/journal.ts";
import type { MachineState } from "../../compile/durable-machine.ts";
import { END } from "../../define/edge.ts";
import {
  describeCheckpoint,
  describeStep,
  describeUnsavedStep,
  type EventEmitter,
  emit,
  noCheckpoint,
} from "../events/events.ts";
import type { RecordedOutcome } from "../journal/decide-effect.ts";
import {
  type ActorTree,
  createControl,
  createState,
  getRootSnapshot,
  type InvokedPromise,
  type Macrostep,
  type StepTime,
} from "../kernel/actor-tree.ts";
import { createDurableEvent, createStartEvent, type DurableEvent } from "../session/durable-event.ts";
import { getEventKey, type QueuedEvent } from "../session/inbox/event-inbox.ts";
import { countSteps, getErrorPlace, type Position } from "../session/parts/position.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { toRunRow } from "../session/run-row.ts";
import type { Session } from "../session/session.ts";
import { allocateEventPlace, type EventNumbers, saveCheckpoint } from "../superstep/commit.ts";
import { type FinishedPromise, inspectTurn } from "../superstep/inspect-run.ts";
import { carryRows, createActorError } from "./machine-effect.ts";

/** Session parts that a macrostep changes. */
export type MacrostepSession = Pick<Session, "env" | "position" | "progress" | "events" | "journal">;

/** Facts of a macrostep besides its transitions. */
export interface MacrostepOptions {
  readonly source: "input" | "step";
  readonly nodes: readonly string[];
  readonly startedAt: number;
  readonly outcomes: ReadonlyMap<InvokedPromise, RecordedOutcome>;
  /** Promise whose outcome starts the macrostep. */
  readonly settled?: FinishedPromise | undefined;
  /** Inbox event that starts the macrostep. */
  readonly received?: QueuedEvent | undefined;
  /** Events still queued: a macrostep that ends the machine refuses them. */
  readonly queued?: readonly QueuedEvent[] | undefined;
}

/** Makes a macrostep durable, emits its events, then runs its actions. */
export async function commitMacrostep(
  session: MacrostepSession,
  tree: ActorTree,
  macrostep: Macrostep,
  options: MacrostepOptions,
): Promise<void> {
  const saved = await saveMacrostep(session, tree, options);
  if (session.events.stream.hasReaders()) emitMacrostep(session, macrostep, options, saved);
  inspectTurn(session.position, session.events, macrostep.transitions, options.settled);
  runActions(session.position, session.events, macrostep);
}

interface SavedMacrostep {
  readonly numbers: EventNumbers & { readonly row?: CheckpointRow };
  readonly deltas: ReturnType<typeof createState>["deltas"];
  readonly durationMs: number;
}

/** Writes the checkpoint of a macrostep and advances the session to it. */
async function saveMacrostep(
  session: MacrostepSession,
  tree: ActorTree,
  { source, nodes, startedAt, outcomes, received, queued = [] }: MacrostepOptions,
): Promise<SavedMacrostep> {
  const { position, progress, journal } = session;
  const isFirst = source === "input";
  const { state, deltas } = createState(tree, progress.state as MachineState, { fresh: isFirst });
  const steps = countSteps(position) + (isFirst ? 0 : 1);
  const control = createControl(tree, position.plan.graph.name, position.step + 1, steps);
  const isDone = control.tasks.length === 0;
  const stepsOfRun = position.stepsOfRun + (isFirst ? 0 : 1);
  const durationMs = session.env.world.clock.monotonic() - startedAt;
  const refused = isDone ? queued : [];
  const assignNumbers = (): EventNumbers => ({
    started: isFirst ? createStartEvent(session) : undefined,
    received: [
      ...(received === undefined ? [] : [createReceivedEvent(session, received)]),
      ...refused.map((event) => createRefusedEvent(session, event, createFinishedError(position, getEventKey(event)))),
    ],
    place: allocateEventPlace(session.events),
    ended: isDone
      ? createDurableEvent(session.events, journal, { type: "run.completed", steps: stepsOfRun })
      : undefined,
  });
  const inboxMessages = [...(received === undefined ? [] : [received]), ...refused];
  const run = selectRunRow(session, { isFirst, isDone });
  const options = { nodes, source, durationMs, run, release: isDone, assignNumbers, inboxMessages };
  const numbers = await writeMacrostep(session, { tree, outcomes }, { result: { state, deltas }, control, options });
  progress.state = state;
  progress.control = control;
  progress.snapshot = getRootSnapshot(tree);
  position.stepsOfRun = stepsOfRun;
  return { numbers, deltas, durationMs };
}

/** A run row ends the wait for the interrupts of the step before. */
function selectRunRow(
  { env, position, journal: { saved } }: MacrostepSession,
  { isFirst, isDone }: { readonly isFirst: boolean; readonly isDone: boolean },
): RunRow | undefined {
  if (isDone) return toRunRow(position, env.world, "done");
  return isFirst || [...(saved?.interrupts.values() ?? [])].some(isOpen) ? position.run : undefined;
}

async function writeMacrostep(
  { position, progress, journal }: MacrostepSession,
  { tree, outcomes }: { readonly tree: ActorTree } & Pick<MacrostepOptions, "outcomes">,
  write: Parameters<typeof saveCheckpoint>[3],
): Promise<SavedMacrostep["numbers"]> {
  if (journal.saved === undefined) {
    const numbers = write.options.assignNumbers();
    position.step += 1;
    return numbers;
  }
  const applyCarriedRows = carryRows(position, journal, tree.promises.values(), outcomes);
  const durable = saveCheckpoint(position, progress, journal.saved, write);
  // Outcomes from here on are recorded in the new step: the store keeps the order of writes.
  position.step += 1;
  applyCarriedRows();
  try {
    return await durable;
  } catch (error) {
    position.step -= 1;
    throw error;
  }
}

function emitMacrostep(
  { env, position, progress: { control }, events }: MacrostepSession,
  { transitions }: Macrostep,
  { nodes, source }: MacrostepOptions,
  { numbers: { row, started, received = [], place, ended }, deltas, durationMs }: SavedMacrostep,
): void {
  const changes = env.redactor.redactUncommon(deltas);
  const committed = row === undefined ? describeUnsavedStep(position, source, durationMs) : describeCheckpoint(row);
  const next = control.tasks.length === 0 ? [END] : control.tasks.map(({ node }) => node);
  started?.emit();
  for (const event of received) event.emit();
  emit(events, { ...committed, nodes, next, changes }, place);
  transitions.forEach(({ path, event, from, step }, index) => {
    // The changes of the macrostep are reported with its first transition, the cause of all others.
    const { bytes, durationMs } = committed;
    const saved = index === 0 ? { changes, bytes, durationMs } : noCheckpoint;
    emit(events, {
      type: "transition.taken",
      path: [position.plan.graph.name, ...path],
      event: event.type,
      from,
      ...describeStep(step),
      ...saved,
    });
  });
  ended?.emit();
}

function runActions(position: Position, events: EventEmitter, { actions }: Macrostep): void {
  for (const { name, params, run } of actions) {
    const details = isPlainObject(params) ? params : {};
    if (name === "xstate.log") {
      events.world.log("info", String(details["label"] ?? "log"), { value: details["value"] });
    } else if (name === "xstate.emit") {
      const event = details["event"] as { readonly type: string };
      emit(events, {
        type: "custom",
        node: position.plan.graph.name,
        task: `${position.step}:0`,
        name: event.type,
        payload: event as Json,
      });
    } else if (!name.startsWith("xstate.")) runAction(position, name, run);
  }
}

function runAction(position: Position, name: string, run: (() => void) | undefined): void {
  try {
    run?.();
  } catch (cause) {
    throw new StatewrightError("machine_failed", {
      what: `the action "${name}" of the machine "${position.plan.graph.name}" threw an error`,
      next: "Fix the action named in the cause; its transition is saved, and the action does not run again",
      place: getErrorPlace(position),
      cause,
    });
  }
}

/** Returns the step number of the next checkpoint and the current time. */
export function getStepTime(position: Position, world: World): StepTime {
  return { step: position.step + 1, now: world.clock.now() };
}

/** Throws the error of the root machine, which fails the run; the macrostep is not saved. */
export function checkMachineError(position: Position, tree: ActorTree): void {
  const { status, error, value } = getRootSnapshot(tree);
  if (status === "error") throw createActorError(position, JSON.stringify(value), error);
}

/** Creates the durable event of a processed inbox event. */
export function createReceivedEvent(
  { events, journal }: Pick<Session, "events" | "journal">,
  event: QueuedEvent,
): DurableEvent {
  return createDurableEvent(events, journal, { type: "event.received", ...describeEvent(event) });
}

/** Creates the durable event of a refused inbox event. */
export function createRefusedEvent(
  { env, events, journal }: Pick<Session, "env" | "events" | "journal">,
  event: QueuedEvent,
  error: unknown,
): DurableEvent {
  return createDurableEvent(events, journal, {
    type: "event.refused",
    ...describeEvent(event),
    error: toRedactedRecord(env.redactor, error),
  });
}

function describeEvent(event: QueuedEvent) {
  const by = event.message?.by;
  return { inboxMessageId: event.id, key: getEventKey(event), ...(by === undefined ? {} : { by }) };
}

/** Creates the error of an event for a finished machine. */
export function createFinishedError(position: Position, type: string): StatewrightError {
  return new StatewrightError("event_refused", {
    what: `the machine "${position.plan.graph.name}" has finished and does not accept "${type}"`,
    next: "Start a new run: a finished run accepts no events",
    place: getErrorPlace(position),
    details: { event: type, accepts: [] },
  });
}
