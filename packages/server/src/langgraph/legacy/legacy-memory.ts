/** Memory of the legacy mapper: states of graphs, open messages and running tools. */
import type { FinishedTask } from "../wire-task.ts";
import type { LegacyEvent } from "./legacy-event.ts";
import { createOpenMessage, type OpenMessage, toMessageKey, toPosition } from "./open-message.ts";

/** Names of a run, for the metadata of its events. */
export interface LegacyRun {
  readonly thread: string;
  readonly run: string;
  readonly graph: string;
  readonly assistant: string;
}

/** State of a graph, outermost or inner, as far as events have told it. */
export interface GraphMemory {
  /** Namespace such as `|research:0:1`; empty for the outermost graph. */
  readonly namespace: string;
  /** State after the newest checkpoint; undefined when unknown. */
  values: Readonly<Record<string, unknown>> | undefined;
  /** Newest checkpoint in `values`. */
  checkpoint: number | undefined;
  step: number;
  /** Tasks that have completed since the newest checkpoint. */
  readonly completedTasks: FinishedTask[];
  /** Messages that were streamed since the newest checkpoint, by id. */
  readonly streamedIds: Set<string>;
  readonly messages: Map<string, OpenMessage>;
  /** Attempt of messages that begin now. */
  firstAttempt: number;
}

/** Memory of the mapper for one reader of one run. */
export interface LegacyMemory {
  readonly run: LegacyRun;
  /** Payloads of interrupts in the shapes of LangGraph, or as they are. */
  readonly hitl: boolean;
  seq: number;
  n: number;
  readonly root: GraphMemory;
  /** Inner graphs by `withinId`. */
  readonly inner: Map<string, GraphMemory>;
  /** Calls whose tool body runs: their start was sent. */
  readonly runningTools: Set<string>;
  /** True after the start of a run until its first state is sent. */
  owesValues: boolean;
}

/** Creates the memory for a reader of a run. */
export function createLegacyMemory(run: LegacyRun, { hitl }: { readonly hitl: boolean }): LegacyMemory {
  return {
    ...{ run, hitl, seq: 0, n: -1, root: createGraphMemory(""), owesValues: false },
    inner: new Map(),
    runningTools: new Set(),
  };
}

/** Restores the sent lengths of messages from the event id of a reader. */
export function restoreMessages({ root }: LegacyMemory, messages: readonly OpenMessage[]): void {
  for (const message of messages) root.messages.set(message.key, message);
}

function createGraphMemory(namespace: string): GraphMemory {
  return {
    ...{ namespace, values: undefined, checkpoint: undefined, step: 0, firstAttempt: 1 },
    completedTasks: [],
    streamedIds: new Set(),
    messages: new Map(),
  };
}

/** Place of an event in a run: fields of events of inner graphs. */
export interface EventPlace {
  readonly within?: string;
  readonly withinId?: string;
}

/** Returns the memory of the graph of an event. */
export function getGraphMemory(memory: LegacyMemory, { within, withinId }: EventPlace): GraphMemory {
  if (within === undefined || withinId === undefined) return memory.root;
  const known = memory.inner.get(withinId);
  if (known !== undefined) return known;
  const created = createGraphMemory(toNamespace(within, withinId));
  memory.inner.set(withinId, created);
  return created;
}

/** Formats the namespace of an inner graph: `|node:task` for each level. */
function toNamespace(within: string, withinId: string): string {
  const ids = withinId.split("/");
  return within
    .split(".")
    .map((node, index) => `|${toEventName(node)}:${toEventName(ids[index] ?? "")}`)
    .join("");
}

/** Names of events hold only characters of the grammar of event names. */
function toEventName(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_.:~-]/g, "_");
}

/** Finds or creates the memory of a streamed message. Messages of an event id are of the outermost graph's map. */
export function getOpenMessage(memory: LegacyMemory, graph: GraphMemory, id: string, withinId?: string): OpenMessage {
  const key = toMessageKey(id, withinId);
  const known = graph.messages.get(key) ?? memory.root.messages.get(key);
  if (known !== undefined) {
    if (graph !== memory.root) memory.root.messages.delete(key);
    graph.messages.set(key, known);
    return known;
  }
  const created = createOpenMessage(key, graph.firstAttempt);
  graph.messages.set(key, created);
  return created;
}

/** Counts a wire event: `n` begins anew after each durable event. */
export function countEvent(memory: LegacyMemory, seq: number, { isBeforeCommit }: LegacyEvent): void {
  const isFirst = seq > memory.seq && isBeforeCommit !== true;
  if (isFirst) memory.seq = seq;
  memory.n = isFirst ? 0 : memory.n + 1;
}

/** Lists the sent lengths of the open messages of all graphs, as parts of an event id. */
export function listPositions({ root, inner }: LegacyMemory): readonly string[] {
  return [root, ...inner.values()].flatMap(({ messages }) => [...messages.values()].map(toPosition));
}
