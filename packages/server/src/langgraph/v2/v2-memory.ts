/** What the mapper of the streaming events protocol remembers between events. */

import { isMessage } from "../to-wire-message.ts";
import type { FinishedTask } from "../wire-task.ts";
import { hashIdentity } from "./hash-identity.ts";

/** Status of a graph in the tree of a thread. A graph has started when none of its frames was made. */
export type V2Status = "started" | "running" | "completed" | "failed" | "interrupted";

/** Block of a streamed message. */
export interface V2Block {
  readonly kind: "text" | "reasoning" | "call";
  readonly callId: string;
  readonly tool: string;
  /** Text or arguments so far. */
  text: string;
  /** Length of the sent part of `text`. */
  sent: number;
  isStarted: boolean;
  isFinished: boolean;
}

/** Message that a model writes, or has written since the newest checkpoint. */
export interface V2Message {
  readonly id: string;
  readonly node: string;
  /** Attempt of the run that writes the message, and number of its failed requests: the text of each is another one. */
  readonly epoch: number;
  failures: number;
  readonly blocks: V2Block[];
  isStarted: boolean;
  isFinished: boolean;
  /** True when the text before the newest failure was taken back. */
  isVoided: boolean;
  /** True when the run was recovered for this message: the process before may have sent a part of it. */
  readonly isRecovering: boolean;
}

/** State of a graph, outermost or inner, built from events. */
export interface V2Graph {
  readonly branch: string;
  readonly withinId: string;
  readonly namespace: readonly string[];
  /** State after the newest checkpoint; undefined when unknown. */
  values: Readonly<Record<string, unknown>> | undefined;
  checkpoint: number | undefined;
  step: number;
  status: V2Status;
  /** Name of the node or tool that calls the graph; the name of the graph for the outermost one. */
  name: string;
  readonly messages: Map<string, V2Message>;
  /** Ids and nodes of the tasks that have completed since the newest checkpoint. */
  readonly completedTasks: FinishedTask[];
}

/** Run of a branch. */
export interface V2Run {
  readonly id: string;
  readonly graph: string;
  /** Attempt whose text is new: an attempt that continues after an answer keeps the text of the one before. */
  epoch: number;
  status: V2Status;
  /** Interrupts on the wire that the run waits for. */
  waiting: readonly string[];
  /** True from a recovery to the next checkpoint: a process may die before it records a request whose text it has sent. */
  isRecovering: boolean;
}

/** Memory of the mapper for one reader of a thread. */
export interface V2Memory {
  /** Payloads of interrupts in the shapes of LangGraph, or as they are. */
  readonly hitl: boolean;
  /** Newest run by branch. */
  readonly runs: Map<string, V2Run>;
  /** Graphs by branch and `withinId`. */
  readonly graphs: Map<string, V2Graph>;
  /** Number of equal lines of progress by call. */
  readonly progress: Map<string, number>;
  /** Ids of the sent frames about the start and the end of a call. */
  readonly sentCalls: Set<string>;
}

/** Creates the memory for a reader. */
export function createV2Memory({ hitl }: { readonly hitl: boolean }): V2Memory {
  return { hitl, runs: new Map(), graphs: new Map(), progress: new Map(), sentCalls: new Set() };
}

/** Place of an event in a thread. */
export interface V2Place {
  readonly branch: string;
  readonly within?: string;
  readonly withinId?: string;
}

/** Returns the memory of the graph of an event; creates the memory of an inner graph that is called now. */
export function getV2Graph(memory: V2Memory, { branch, within, withinId }: V2Place): V2Graph {
  const isRoot = within === undefined || withinId === undefined;
  const id = isRoot ? "" : withinId;
  const known = memory.graphs.get(`${branch} ${id}`);
  if (known !== undefined) return known;
  const namespace = isRoot ? [] : toNamespace(memory, { branch, within, withinId });
  const created: V2Graph = {
    ...{ branch, withinId: id, namespace, values: undefined, checkpoint: undefined, step: -1, status: "started" },
    name: isRoot ? "" : within.slice(within.lastIndexOf(".") + 1),
    messages: new Map(),
    completedTasks: [],
  };
  memory.graphs.set(`${branch} ${id}`, created);
  return created;
}

/** Lists the inner graphs that a graph has called, with those that they have called. */
export function listInnerGraphs({ graphs }: V2Memory, { branch, withinId }: V2Graph): readonly V2Graph[] {
  const isInner = (graph: V2Graph): boolean =>
    graph.branch === branch &&
    graph.withinId !== withinId &&
    (withinId === "" || graph.withinId.startsWith(`${withinId}/`));
  return [...graphs.values()].filter(isInner);
}

/**
 * Returns the namespace of an inner graph: `node:task` for a graph in a node, and `tools:call` for a graph in a tool call,
 * under which clients look for agents that tools call.
 */
function toNamespace(memory: V2Memory, place: Required<V2Place>): readonly string[] {
  const ids = place.withinId.split("/");
  return place.within.split(".").map((name, index) => {
    const id = ids[index] ?? "";
    const position = /^\d+:\d+:(\d+)$/.exec(id);
    if (position === null) return `${name}:${id}`;
    const parent = memory.graphs.get(`${place.branch} ${ids.slice(0, index).join("/")}`);
    return `tools:${findCallId(parent, Number(position[1])) ?? id}`;
  });
}

/** Finds the id of a call of the newest message with calls. */
function findCallId(parent: V2Graph | undefined, index: number): string | undefined {
  const messages = Object.values(parent?.values ?? {}).flatMap((value) => (Array.isArray(value) ? value : []));
  const calls = messages.filter(isMessage).flatMap((message) => {
    const found = message.role === "assistant" ? message.content.filter((block) => block.type === "call") : [];
    return found.length === 0 ? [] : [found];
  });
  return calls.at(-1)?.[index]?.id;
}

/** Finds or creates the memory of a message. */
export function getV2Message(
  memory: V2Memory,
  graph: V2Graph,
  { id, node }: { readonly id: string; readonly node: string },
): V2Message {
  const known = graph.messages.get(id);
  if (known !== undefined) return known;
  const { epoch = 1, isRecovering = false } = memory.runs.get(graph.branch) ?? {};
  const flags = { isStarted: false, isFinished: false, isVoided: false, isRecovering };
  const created: V2Message = { id, node, epoch, failures: 0, blocks: [], ...flags };
  graph.messages.set(id, created);
  return created;
}

/** Returns the key of something of a run in a graph, as a part of the ids of its frames. */
export function toWorkKey({ runs }: V2Memory, { branch, withinId }: V2Graph, id: string): string {
  return hashIdentity(runs.get(branch)?.id ?? "", branch, withinId, id);
}
