/** Maps the events of a thread to the frames of the streaming events protocol of LangGraph (v2). */
import type { ErrorRecord, RunEvent } from "@statewright/core";
import { groupInterrupts, toWireInterrupt } from "../to-wire-interrupts.ts";
import type { WireObject } from "../to-wire-message.ts";
import { applyChanges, listWrittenMessages, toWireChanges } from "../wire-changes.ts";
import { toCheckpointId } from "../wire-checkpoint.ts";
import { toWireSource } from "../wire-state.ts";
import { createTaskResultData, type FinishedTask, mapTaskEvent } from "../wire-task.ts";
import { hashIdentity } from "./hash-identity.ts";
import {
  mapCallDelta,
  mapCommittedMessage,
  mapCompletedMessage,
  mapDelta,
  mapOpenMessages,
  mapRetraction,
  noteFailure,
} from "./message-frames.ts";
import { mapOpenTools, mapTool, mapToolMessage } from "./tool-frames.ts";
import type { V2Frame } from "./v2-frame.ts";
import { getV2Graph, listInnerGraphs, type V2Graph, type V2Memory, type V2Run, type V2Status } from "./v2-memory.ts";
import { createValuesFrame } from "./values-frame.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;
type CommitEvent = EventOf<"step.committed">;

/**
 * Returns the frames of an event, and updates the memory. Contract: no clock, no store, no socket; the same events and
 * the same memory give the same frames.
 */
export function mapV2Event(event: RunEvent, memory: V2Memory): readonly V2Frame[] {
  const announced = event.within === undefined ? [] : announceInner(event, memory);
  const mapped = event.within === undefined ? mapRunEvent(event, memory) : undefined;
  return [...announced, ...(mapped ?? mapWorkEvent(event, memory))];
}

/** First event of an inner graph: the graph has started, in a node or in a tool call. */
function announceInner(event: RunEvent, memory: V2Memory): readonly V2Frame[] {
  const graph = getV2Graph(memory, event);
  if (graph.status !== "started") return [];
  graph.status = "running";
  const callId = /^tools:(.+)$/.exec(graph.namespace.at(-1) ?? "")?.[1];
  const cause = callId === undefined ? {} : { cause: { type: "toolCall", tool_call_id: callId } };
  return [createInnerLifecycle(memory, graph, { at: event.at, data: { event: "started", ...cause } })];
}

function createInnerLifecycle(
  { runs }: V2Memory,
  { branch, withinId, namespace, name }: V2Graph,
  { at, data }: { readonly at: number; readonly data: { readonly event: V2Status } },
): V2Frame {
  const id = `l.${hashIdentity(runs.get(branch)?.id ?? "", branch, withinId)}.${data.event}`;
  return { method: "lifecycle", channel: "lifecycle", namespace, at, data: { ...data, graph_name: name }, id };
}

/** Events about a run; undefined for another event. */
function mapRunEvent(event: RunEvent, memory: V2Memory): readonly V2Frame[] | undefined {
  switch (event.type) {
    case "run.started":
      return mapStart(event, memory);
    case "run.waiting":
      return mapWaiting(event, memory);
    case "run.completed":
      return endRun(event, memory, { event: "completed" });
    case "run.failed":
      return endRun(event, memory, { event: "failed", error: formatFailure(event.error) });
    case "run.paused":
      return endRun(event, memory, { event: "interrupted" });
    case "run.cancelled":
      return endRun(event, memory, { event: "interrupted" });
    case "inbox.delivered":
      return [createInjected(event)];
    default:
      return undefined;
  }
}

function mapStart(event: EventOf<"run.started">, memory: V2Memory): readonly V2Frame[] {
  const known = memory.runs.get(event.branch);
  const isSame = known?.id === event.run;
  const answered = isSame && known.status === "interrupted" ? known.waiting : [];
  // A run that continues after an answer keeps the text that it has written; after a crash or a failure it writes anew.
  const epoch = answered.length > 0 && known !== undefined ? known.epoch : event.attempt;
  if (!isSame) forgetGraphs(memory, event.branch);
  if (answered.length === 0) forgetMessages(memory, event.branch);
  const { run: id, graph, recovered: isRecovering } = event;
  memory.runs.set(event.branch, { id, graph, epoch, status: "running", waiting: [], isRecovering });
  const root = getV2Graph(memory, event);
  Object.assign(root, { name: event.graph, status: "running" });
  const running = createLifecycle(event, event.run, { event: "running", graph_name: event.graph });
  if (answered.length === 0) return [running];
  return [running, createDurable(event, "input", "input.answered", { interrupt_ids: answered })];
}

/** Inner graphs of an earlier run are no part of the tree of the next. */
function forgetGraphs({ graphs, progress, sentCalls }: V2Memory, branch: string): void {
  for (const [key, graph] of graphs) if (graph.branch === branch && graph.withinId !== "") graphs.delete(key);
  progress.clear();
  sentCalls.clear();
}

function forgetMessages({ graphs }: V2Memory, branch: string): void {
  for (const graph of graphs.values()) if (graph.branch === branch) graph.messages.clear();
}

function mapWaiting(event: EventOf<"run.waiting">, memory: V2Memory): readonly V2Frame[] {
  const requests = groupInterrupts(event.interrupts, memory).map(toWireInterrupt);
  const run = memory.runs.get(event.branch);
  if (run !== undefined) run.waiting = requests.map(({ id }) => String(id));
  const root = getV2Graph(memory, event);
  const results = root.completedTasks.splice(0).map((task) => createTaskResult(event, root, task, []));
  const requested = requests.map(({ id, value, ...rest }) =>
    createDurable(event, "input", "input.requested", { interrupt_id: id, payload: value, ...rest }),
  );
  return [...results, ...requested, ...endRun(event, memory, { event: "interrupted" })];
}

type EndEvent = EventOf<"run.waiting" | "run.completed" | "run.failed" | "run.paused" | "run.cancelled">;

/** End of a run, and of the inner graphs that it has called. */
function endRun(
  event: EndEvent,
  memory: V2Memory,
  data: { readonly event: V2Status; readonly error?: string },
): readonly V2Frame[] {
  const run = memory.runs.get(event.branch);
  const ended = event.type === "run.cancelled" ? event.run : undefined;
  if (ended !== undefined && ended !== run?.id) return [createLifecycle(event, ended, data)];
  const root = getV2Graph(memory, event);
  const inner = listInnerGraphs(memory, root).filter(({ status }) => status === "running");
  const closed = inner.map((graph) => closeInner(memory, graph, { at: event.at, status: data.event }));
  root.status = data.event;
  if (run !== undefined) run.status = data.event;
  const name = run === undefined ? {} : { graph_name: run.graph };
  return [...closed, createLifecycle(event, run?.id ?? "unknown", { ...data, ...name })];
}

function closeInner(
  memory: V2Memory,
  graph: V2Graph,
  { at, status }: { readonly at: number; readonly status: V2Status },
): V2Frame {
  // A graph that waits goes on under the same name: it is shown as started once.
  if (status !== "interrupted") graph.status = status;
  return createInnerLifecycle(memory, graph, { at, data: { event: status } });
}

/** What a client may know of a failure: its code and its title, which the service has put in place of the message. */
function formatFailure({ code = "internal", message }: ErrorRecord): string {
  return `${code}: ${message}`;
}

function createLifecycle({ at }: RunEvent, run: V2Run["id"], data: WireObject): V2Frame {
  return { method: "lifecycle", channel: "lifecycle", namespace: [], at, data, run };
}

function createDurable({ at }: RunEvent, channel: "input", method: string, data: WireObject): V2Frame {
  return { method, channel, namespace: [], at, data };
}

function createInjected(event: EventOf<"inbox.delivered">): V2Frame {
  const data = { message_ids: event.messages.map(({ id }) => id) };
  return createTransient(event, { channel: "input", method: "input.injected", data });
}

/** Frame of a transient event, identified by the whole event: equal events of other moments are other frames. */
function createTransient(
  event: RunEvent,
  frame: Pick<V2Frame, "channel" | "method" | "data">,
  graph?: V2Graph,
): V2Frame {
  const node = "node" in event ? { node: event.node } : {};
  const namespace = graph?.namespace ?? [];
  return { ...frame, namespace, at: event.at, ...node, id: `x.${event.seq}.${hashIdentity(event)}` };
}

/** Events about work of a graph, outermost or inner. */
function mapWorkEvent(event: RunEvent, memory: V2Memory): readonly V2Frame[] {
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
    case "model.retried":
      noteFailure(event, memory);
      return [];
    case "snapshot":
      return [...mapOpenMessages(event, memory), ...mapOpenTools(event, memory)];
    case "task.started":
    case "task.completed":
    case "task.failed":
      return mapTask(event, memory);
    case "custom":
      return [createCustom(event, memory, { name: event.name, payload: event.payload })];
    case "node.progress":
      return [createCustom(event, memory, { name: "progress", payload: { node: event.node, text: event.text } })];
    default:
      return mapTool(event, memory);
  }
}

function createCustom(event: EventOf<"custom" | "node.progress">, memory: V2Memory, data: WireObject): V2Frame {
  return createTransient(event, { channel: "custom", method: "custom", data }, getV2Graph(memory, event));
}

function mapTask(
  event: EventOf<"task.started" | "task.completed" | "task.failed">,
  memory: V2Memory,
): readonly V2Frame[] {
  const graph = getV2Graph(memory, event);
  const mapped = mapTaskEvent(event, graph.completedTasks);
  if (mapped === undefined) return [];
  return [createTransient(event, { channel: "tasks", method: "tasks", data: mapped.data }, graph)];
}

function createTaskResult(
  event: RunEvent,
  { namespace }: V2Graph,
  task: FinishedTask,
  result: readonly unknown[],
): V2Frame {
  const { id, name } = task;
  const data = createTaskResultData(task, result);
  const identity = `x.${event.seq}.${hashIdentity(namespace, id, name)}`;
  return { method: "tasks", channel: "tasks", namespace, at: event.at, node: name, data, id: identity };
}

/** A checkpoint: ends of messages and calls, what was written, the checkpoint, and the state. */
function mapCommit(event: CommitEvent, memory: V2Memory): readonly V2Frame[] {
  const graph = getV2Graph(memory, event);
  const work = event.source === "step" ? mapWrittenMessages(event, memory) : [];
  applyCommit(graph, event);
  const changes = toWireChanges(event.changes, graph.values);
  const tasks = graph.completedTasks.splice(0);
  const results = tasks.map((task, index) =>
    createTaskResult(event, graph, task, index === 0 ? Object.entries(changes) : []),
  );
  graph.messages.clear();
  const run = memory.runs.get(event.branch);
  if (run !== undefined && event.within === undefined) run.isRecovering = false;
  return [
    ...work,
    ...results,
    ...closeCalled(event, graph, memory),
    ...(event.source === "step" ? createUpdates(event, graph, changes) : []),
    ...createCheckpoint(event, graph),
    ...[createValuesFrame(graph, event.at)].filter((frame) => frame !== undefined),
  ];
}

/** The inner graphs that the tasks of a superstep have called end with it, and inner graphs with them. */
function closeCalled(event: CommitEvent, graph: V2Graph, memory: V2Memory): readonly V2Frame[] {
  if (event.source !== "step") return [];
  return listInnerGraphs(memory, graph)
    .filter(({ status }) => status === "running")
    .map((inner) => closeInner(memory, inner, { at: event.at, status: "completed" }));
}

/** Messages of a superstep: what this reader has not seen of them. */
function mapWrittenMessages(event: CommitEvent, memory: V2Memory): readonly V2Frame[] {
  const place = { ...event, node: event.nodes[0] ?? "" };
  return listWrittenMessages(event.changes).flatMap((message) => {
    if (message.role === "assistant") return mapCommittedMessage(message, place, memory);
    return message.role === "tool" ? mapToolMessage(message, place, memory) : [];
  });
}

function applyCommit(graph: V2Graph, { step, checkpoint, parent, changes }: CommitEvent): void {
  graph.step = step;
  if (checkpoint !== undefined && graph.checkpoint === checkpoint) return;
  const isNext = graph.values !== undefined && (graph.checkpoint === parent || checkpoint === undefined);
  const values = isNext ? graph.values : parent === undefined ? {} : undefined;
  graph.values = values === undefined ? undefined : applyChanges(values, changes);
  graph.checkpoint = graph.values === undefined ? undefined : checkpoint;
}

/** All changes stand at the first node of a step, because a step reduces the writes of its nodes together. */
function createUpdates({ nodes, at }: CommitEvent, { namespace }: V2Graph, changes: WireObject): readonly V2Frame[] {
  return nodes.map((node, index) => ({
    ...{ method: "updates", channel: "updates", namespace, at, node },
    data: { node, values: index === 0 ? changes : {} },
  }));
}

const sources: ReadonlySet<string> = new Set(["input", "loop", "update", "fork"]);

/** Clients pair a checkpoint with the state that follows it. */
function createCheckpoint(event: CommitEvent, { namespace }: V2Graph): readonly V2Frame[] {
  const { checkpoint, parent, step, at } = event;
  if (checkpoint === undefined) return [];
  const source = toWireSource(event.source);
  const data = {
    id: toCheckpointId(checkpoint),
    ...(parent === undefined ? {} : { parent_id: toCheckpointId(parent) }),
    ...{ step, source: sources.has(source) ? source : "update" },
  };
  return [{ method: "checkpoints", channel: "checkpoints", namespace, at, data }];
}
