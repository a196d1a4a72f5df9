/** Maps the events of a run to the wire events of the legacy stream of LangGraph. */
import { END, type ErrorRecord, type RunEvent } from "@statewright/core";
import { groupInterrupts, toWireInterrupt } from "../to-wire-interrupts.ts";
import { toWireMessage, type WireObject } from "../to-wire-message.ts";
import { toWireValues } from "../to-wire-values.ts";
import { applyChanges, listWrittenMessages, toWireChanges } from "../wire-changes.ts";
import { rootCheckpoint, toCheckpointId } from "../wire-checkpoint.ts";
import { toWireSource } from "../wire-state.ts";
import { toWireRunStatus, type WireRunStatus } from "../wire-status.ts";
import { createTaskResultData, type FinishedTask, mapTaskEvent } from "../wire-task.ts";
import type { LegacyEvent } from "./legacy-event.ts";
import { type EventPlace, type GraphMemory, getGraphMemory, type LegacyMemory } from "./legacy-memory.ts";
import {
  createMetadata,
  mapCallDelta,
  mapCompletedMessage,
  mapDelta,
  mapOpenMessages,
  mapRetraction,
  toValuesEvents,
} from "./map-message.ts";
import { mapOpenTools, mapTool } from "./map-tool.ts";
import { createOpenMessage } from "./open-message.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

/**
 * Returns the wire events of an event, and updates the memory. Contract: no clock, no store, no socket; the same events
 * and the same memory give the same wire events.
 */
export function mapLegacyEvent(event: RunEvent, memory: LegacyMemory): readonly LegacyEvent[] {
  const owed = takeOwedValues(event, memory);
  const mapped = event.within === undefined ? mapRunEvent(event, memory) : undefined;
  return [...owed, ...(mapped ?? mapWorkEvent(event, memory))];
}

/**
 * A run that continues shows its state before anything else. A run with an input shows the state with that input: a
 * state without it would take the message of the user off the screen.
 */
function takeOwedValues(event: RunEvent, memory: LegacyMemory): readonly LegacyEvent[] {
  if (!memory.owesValues || event.type === "run.started") return [];
  memory.owesValues = false;
  if (event.type === "step.committed" && event.source !== "step") return [];
  return toValuesEvents(memory.root);
}

/** Events about the run itself; undefined for another event. */
function mapRunEvent(event: RunEvent, memory: LegacyMemory): readonly LegacyEvent[] | undefined {
  switch (event.type) {
    case "run.started":
      return mapStart(event, memory);
    case "run.waiting":
      return mapWaiting(event, memory);
    case "run.completed":
      return [createEnd(memory, toWireRunStatus("done"))];
    case "run.cancelled":
      return event.run === undefined || event.run === memory.run.run
        ? [createEnd(memory, toWireRunStatus("cancelled"))]
        : [];
    case "run.paused":
      return mapPause(event, memory);
    case "run.failed":
      return [createError(event.error)];
    default:
      return undefined;
  }
}

function mapStart(event: EventOf<"run.started">, memory: LegacyMemory): readonly LegacyEvent[] {
  const { run, thread, assistant } = memory.run;
  memory.owesValues = true;
  const graphs = [memory.root, ...memory.inner.values()];
  for (const graph of graphs) forgetMessages(graph, event);
  memory.runningTools.clear();
  const data = { run_id: run, thread_id: thread, assistant_id: assistant, attempt: event.attempt };
  return [{ event: "metadata", mode: undefined, namespace: "", data }];
}

/**
 * After a crash the model answers anew, perhaps under the id of a message whose text was sent: messages of a recovered
 * run have the number of the attempt in their id.
 */
function forgetMessages(graph: GraphMemory, { recovered, attempt }: EventOf<"run.started">): void {
  graph.completedTasks.length = 0;
  if (!recovered) graph.messages.clear();
  graph.firstAttempt = recovered ? attempt : 1;
  for (const message of graph.messages.values()) {
    const next = Math.max(attempt, message.attempt + 1);
    Object.assign(message, createOpenMessage(message.key, next));
  }
}

function mapWaiting(event: EventOf<"run.waiting">, memory: LegacyMemory): readonly LegacyEvent[] {
  const { root } = memory;
  const interrupts = groupInterrupts(event.interrupts, memory).map(toWireInterrupt);
  const extra = { __interrupt__: interrupts };
  const tasks = root.completedTasks.splice(0);
  return [
    ...tasks.map((task) => createTaskResult(root, task, [])),
    ...toValuesEvents({ ...root, values: root.values ?? {} }, extra),
    { event: "updates", mode: "updates", namespace: "", data: extra },
    createEnd(memory, toWireRunStatus("waiting")),
  ];
}

/** A pause at a breakpoint is an interrupt without a value, which clients show as a breakpoint. */
function mapPause(event: EventOf<"run.paused">, memory: LegacyMemory): readonly LegacyEvent[] {
  const { root } = memory;
  const isBreakpoint = event.cause.code === "breakpoint";
  const values = isBreakpoint ? toValuesEvents({ ...root, values: root.values ?? {} }, { __interrupt__: [] }) : [];
  return [...values, createEnd(memory, toWireRunStatus("paused"))];
}

/** Last event of a stream: the status of the run. */
export function createEnd({ run }: LegacyMemory, status: WireRunStatus): LegacyEvent {
  return { event: "end", mode: undefined, namespace: "", data: { run_id: run.run, status }, isEnd: true };
}

/** Last event of the stream of a failed run: the code of the error and its title, which the service has put in place. */
export function createError({ code = "internal", message }: Pick<ErrorRecord, "code" | "message">): LegacyEvent {
  return { event: "error", mode: undefined, namespace: "", data: { error: code, message }, isEnd: true };
}

/** Events about work of a graph, outermost or inner. */
function mapWorkEvent(event: RunEvent, memory: LegacyMemory): readonly LegacyEvent[] {
  switch (event.type) {
    case "step.committed":
      return mapCommit(event, memory);
    case "message.delta":
      return mapDelta(event, memory);
    case "message.call_delta":
      return mapCallDelta(event, memory);
    case "message.completed":
      return mapCompletedMessage(event, memory);
    case "message.retracted":
      return mapRetraction(event, memory);
    case "snapshot":
      return [...mapOpenMessages(event, memory), ...mapOpenTools(event, memory)];
    case "task.started":
    case "task.completed":
    case "task.failed":
      return mapTask(event, getGraphMemory(memory, event));
    case "custom":
      return [createCustom(getGraphMemory(memory, event), toCustomData(event))];
    case "node.progress":
      return [createCustom(getGraphMemory(memory, event), { type: "progress", node: event.node, text: event.text })];
    case "transition.taken":
      return [mapTransition(event, getGraphMemory(memory, event))];
    default:
      return mapTool(event, memory);
  }
}

/** Custom data of a node: an object with its name as `type`, unless the payload has a type of its own. */
function toCustomData({ name, payload }: EventOf<"custom">): WireObject {
  return isPlainPayload(payload) ? { type: name, ...payload } : { type: name, payload };
}

function isPlainPayload(payload: unknown): payload is WireObject {
  return typeof payload === "object" && payload !== null && !Array.isArray(payload);
}

function createCustom({ namespace }: GraphMemory, data: WireObject): LegacyEvent {
  return { event: "custom", mode: "custom", namespace, data };
}

function mapTransition(event: EventOf<"transition.taken">, { namespace }: GraphMemory): LegacyEvent {
  const { type, path, event: name, from, to } = event;
  return { event: "custom", mode: "debug", namespace, data: { type, path, event: name, from, to } };
}

type TaskEvent = EventOf<"task.started" | "task.completed" | "task.failed">;

function mapTask(event: TaskEvent, graph: GraphMemory): readonly LegacyEvent[] {
  const mapped = mapTaskEvent(event, graph.completedTasks);
  return mapped === undefined ? [] : toTaskEvents(graph, mapped);
}

function toTaskEvents(
  { step, namespace }: GraphMemory,
  { type, data }: NonNullable<ReturnType<typeof mapTaskEvent>>,
): readonly LegacyEvent[] {
  return [
    { event: "tasks", mode: "tasks", namespace, data },
    { event: "debug", mode: "debug", namespace, data: { type, step: step + 1, payload: data } },
  ];
}

function createTaskResult(graph: GraphMemory, task: FinishedTask, result: readonly unknown[]): LegacyEvent {
  const data = createTaskResultData(task, result);
  return { event: "tasks", mode: "tasks", namespace: graph.namespace, data };
}

/** A checkpoint: what was written, the state, and the results of the tasks. */
function mapCommit(event: EventOf<"step.committed">, memory: LegacyMemory): readonly LegacyEvent[] {
  const graph = getGraphMemory(memory, event);
  applyCommit(graph, event);
  const changes = toWireChanges(event.changes, graph.values);
  const unstreamed = event.source === "step" ? mapUnstreamedMessages(event, graph, memory) : [];
  const results = mapTaskResults(graph, changes);
  graph.messages.clear();
  graph.streamedIds.clear();
  graph.firstAttempt = 1;
  return [
    ...unstreamed.filter(({ isBeforeCommit }) => isBeforeCommit === true),
    ...unstreamed.filter(({ isBeforeCommit }) => isBeforeCommit !== true),
    ...results,
    ...(event.source === "step" ? [createUpdates(graph, event.nodes, changes)] : []),
    ...toValuesEvents(graph),
    ...mapCheckpoint(event, graph, memory),
  ];
}

function applyCommit(graph: GraphMemory, event: EventOf<"step.committed">): void {
  graph.step = event.step;
  const { checkpoint, parent, changes } = event;
  const isKnown = checkpoint !== undefined && graph.checkpoint !== undefined && checkpoint <= graph.checkpoint;
  if (isKnown) return;
  const values = graph.values ?? (parent === undefined ? {} : undefined);
  graph.values = values === undefined ? undefined : applyChanges(values, changes);
  graph.checkpoint = graph.values === undefined ? undefined : checkpoint;
}

/** All changes stand under the first node of a step, because a step reduces the writes of its nodes together. */
function createUpdates(graph: GraphMemory, nodes: readonly string[], changes: WireObject): LegacyEvent {
  const data = Object.fromEntries(nodes.map((node, index) => [node, index === 0 ? changes : null]));
  return { event: "updates", mode: "updates", namespace: graph.namespace, data };
}

/** Messages of a step that were not streamed to their end: results of tools, and text that comes with its commit. */
function mapUnstreamedMessages(
  event: EventOf<"step.committed">,
  graph: GraphMemory,
  memory: LegacyMemory,
): readonly LegacyEvent[] {
  const { namespace, streamedIds } = graph;
  const node = event.nodes[0] ?? "";
  const metadata = createMetadata(memory, { ...graph, step: graph.step - 1 }, node);
  return listWrittenMessages(event.changes).flatMap((message): readonly LegacyEvent[] => {
    if (message.role === "user" || streamedIds.has(message.id)) return [];
    if (message.role === "assistant")
      return mapCompletedMessage({ ...pickPlace(event), message, node }, memory).map(markBeforeCommit);
    const wire = toWireMessage(message);
    return [
      { event: "messages", mode: "messages-tuple", namespace, data: [wire, metadata] },
      { event: "messages/complete", mode: "messages", namespace, data: [wire] },
    ];
  });
}

function markBeforeCommit(event: LegacyEvent): LegacyEvent {
  return { ...event, isBeforeCommit: true };
}

function pickPlace({ within, withinId }: EventPlace): EventPlace {
  return within === undefined || withinId === undefined ? {} : { within, withinId };
}

function mapTaskResults(graph: GraphMemory, changes: WireObject): readonly LegacyEvent[] {
  return graph.completedTasks.splice(0).flatMap((task, index) => {
    const result = createTaskResult(graph, task, index === 0 ? Object.entries(changes) : []);
    const debug = { type: "task_result", step: graph.step, payload: result.data };
    return [result, { event: "debug", mode: "debug", namespace: graph.namespace, data: debug }];
  });
}

function mapCheckpoint(
  event: EventOf<"step.committed">,
  graph: GraphMemory,
  { run }: LegacyMemory,
): readonly LegacyEvent[] {
  const { checkpoint, parent, source, step, next } = event;
  if (checkpoint === undefined || graph.values === undefined) return [];
  const { namespace } = graph;
  const toConfig = (id: number): WireObject => ({
    configurable: { thread_id: run.thread, checkpoint_ns: namespace.slice(1), checkpoint_id: toCheckpointId(id) },
  });
  const isFirst = parent === undefined && namespace === "";
  const parentConfig = parent === undefined ? (isFirst ? toConfig(rootCheckpoint) : null) : toConfig(parent);
  const nextNodes = listNextNodes(next);
  const data = {
    config: toConfig(checkpoint),
    parent_config: parentConfig,
    values: toWireValues(graph.values),
    metadata: { source: toWireSource(source), step, parents: {} },
    next: nextNodes,
    tasks: nextNodes.map((name) => ({ id: `${toCheckpointId(checkpoint)}:${name}`, name, interrupts: [] })),
  };
  return [
    { event: "checkpoints", mode: "checkpoints", namespace, data },
    { event: "debug", mode: "debug", namespace, data: { type: "checkpoint", step, payload: data } },
  ];
}

/** Returns the nodes that run next, without the mark of the end. */
function listNextNodes(next: readonly string[]): readonly string[] {
  return next.filter((node) => node !== END);
}
