/** Trace of a test run over all processes: the events of the run, and entries that only a test sees. */

import type { GraphTypes, Json, OpenInterrupt, RunEvent } from "@statewright/core";
import { applyDelta } from "@statewright/core/store";
import { isStateNamed, listActiveStates, listEnteredStates } from "../node/state-names.ts";

/** Entry into the body of a tool. */
export interface ToolExecuted {
  readonly type: "tool.executed";
  readonly tool: string;
  readonly callId: string;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly args: unknown;
}

/** Death of the process. */
export interface ProcessCrashed {
  readonly type: "process.crashed";
}

/** Resume in another process, with the saved state value of the machine. */
export interface ProcessResumed {
  readonly type: "process.resumed";
  readonly value: Json;
  readonly answers: readonly string[];
}

/** Entry into the body of a recorded step. */
export interface StepExecuted {
  readonly type: "step.executed";
  readonly node: string;
  readonly key: string;
  readonly idempotencyKey: string;
}

/** Update returned by a node body, before the channels reduce the update. */
export interface NodeReturned {
  readonly type: "node.returned";
  readonly node: string;
  /** Input of a task. */
  readonly input: unknown;
  readonly update: Readonly<Record<string, unknown>>;
}

/** Targets chosen by an edge or by a command of a node. */
export interface EdgeChosen {
  readonly type: "edge.chosen";
  readonly from: string;
  readonly kind: string;
  readonly targets: readonly string[];
  /** Possible targets. */
  readonly declared: readonly string[];
}

/** Entry of a trace. */
export type TraceEntry =
  | RunEvent
  | ToolExecuted
  | StepExecuted
  | NodeReturned
  | EdgeChosen
  | ProcessCrashed
  | ProcessResumed;

/** Entries in order. `types` exists only for the compiler. */
export interface Trace<Types extends GraphTypes = GraphTypes> {
  readonly graph: string;
  readonly entries: readonly TraceEntry[];
  readonly types?: Types;
}

/** Tool call: made once by the model, possibly executed several times. */
export interface TracedCall {
  readonly name: string;
  readonly args: unknown;
}

/** Lists the entered states in order; states entered at the same time form a group. */
export function getPath(trace: Trace): readonly (readonly string[])[] {
  return trace.entries.flatMap((entry) => {
    const states = getEnteredStates(entry);
    return states.length === 0 ? [] : [states];
  });
}

/** Formats the path: a node name means an execution, commits are omitted. */
export function formatPath(trace: Trace): string {
  const parts = formatPathParts(trace);
  return parts.length === 0 ? "nothing yet" : ["start", ...parts].join(" → ");
}

/** Formats the parts of the path, starting at this trace entry. */
export function formatPathParts(trace: Trace, from = 0): readonly string[] {
  return trace.entries.slice(from).flatMap((entry) => {
    if (entry.type === "process.crashed") return ["(crash)"];
    const shown = getEnteredStates(entry).filter((state) => !state.endsWith(".committing"));
    return shown.length === 0 ? [] : [shown.map(shortenStateName).join(" + ")];
  });
}

/** Lists the tool calls that passed argument parsing, in call order. */
export function listTracedCalls(trace: Trace): readonly TracedCall[] {
  const calls = new Map<string, TracedCall>();
  for (const entry of trace.entries) {
    if (entry.type !== "tool.started" && entry.type !== "tool.args_rewritten") continue;
    calls.set(`${entry.withinId ?? ""}/${entry.task}/${entry.callId}`, { name: entry.tool, args: entry.args });
  }
  return [...calls.values()];
}

/** Counts the executions of a tool or node body; `within` is the path of the inner graph of the node. */
export function countExecutions(trace: Trace, name: string, nesting?: string): number {
  return listExecutions(trace, name, nesting).length;
}

/** Lists the executions of a tool or node body. */
export function listExecutions(trace: Trace, name: string, nesting?: string): readonly Execution[] {
  return trace.entries.filter(
    (entry): entry is Execution =>
      (entry.type === "tool.executed" && entry.tool === name) ||
      (entry.type === "task.started" && entry.node === name && entry.within === nesting),
  );
}

/** Execution of a body. */
export type Execution = ToolExecuted | Extract<RunEvent, { readonly type: "task.started" }>;

/** Lists all interrupts of the run, without duplicates. */
export function listTracedInterrupts(trace: Trace): readonly OpenInterrupt[] {
  const interrupts = new Map<string, OpenInterrupt>();
  for (const entry of trace.entries)
    if (entry.type === "run.waiting") for (const interrupt of entry.interrupts) interrupts.set(interrupt.id, interrupt);
  return [...interrupts.values()];
}

/** Superstep that wrote a channel of the outermost graph. */
export interface ChannelWrite {
  readonly step: number;
  readonly nodes: readonly string[];
  /** Value of the channel after the superstep. */
  readonly value: unknown;
  /** Values returned by the nodes, where the return is plain data. */
  readonly nodeValues: readonly { readonly node: string; readonly input: unknown; readonly value: unknown }[];
}

/** Lists the supersteps that wrote this channel; `initial` is the first value of the channel. */
export function listChannelWrites(trace: Trace, channel: string, initial?: unknown): readonly ChannelWrite[] {
  const writes: ChannelWrite[] = [];
  let value = initial;
  let nodeValues: ChannelWrite["nodeValues"][number][] = [];
  for (const entry of trace.entries) {
    if (entry.type === "process.crashed") nodeValues = [];
    if (entry.type === "node.returned" && Object.hasOwn(entry.update, channel))
      nodeValues.push({ node: entry.node, input: entry.input, value: entry.update[channel] });
    if (entry.type !== "step.committed" || entry.within !== undefined) continue;
    const delta = Object.hasOwn(entry.changes, channel) ? entry.changes[channel] : undefined;
    if (delta !== undefined) {
      value = applyDelta(value, delta);
      writes.push({ step: entry.step, nodes: entry.nodes, value, nodeValues });
    }
    nodeValues = [];
  }
  return writes;
}

/** Effect with the number of executions, and the number of reuses of the recorded outcome. */
export interface TracedEffect {
  readonly kind: "tool" | "step";
  readonly name: string;
  readonly idempotencyKey: string;
  readonly executed: number;
  readonly reused: number;
}

/** Lists the steps and tool calls whose bodies were entered, in all processes of the run. */
export function listEffects(trace: Trace): readonly TracedEffect[] {
  const effects = new Map<string, TracedEffect>();
  for (const entry of trace.entries) {
    if (entry.type === "effect.reused") {
      const key = [...effects.keys()].find((known) => known.endsWith(`/${entry.task}/${entry.key}`));
      const known = key === undefined ? undefined : effects.get(key);
      if (known !== undefined) effects.set(known.idempotencyKey, { ...known, reused: known.reused + 1 });
    }
    if (entry.type !== "tool.executed" && entry.type !== "step.executed") continue;
    const { idempotencyKey } = entry;
    const [kind, name] =
      entry.type === "tool.executed" ? (["tool", entry.tool] as const) : (["step", entry.key] as const);
    const known = effects.get(idempotencyKey) ?? { kind, name, idempotencyKey, executed: 0, reused: 0 };
    effects.set(idempotencyKey, { ...known, executed: known.executed + 1 });
  }
  return [...effects.values()];
}

/** Returns true if the entered state matches `name`; a node name means the execution of the node. */
export function isVisit(state: string, name: string): boolean {
  return (
    state === name || (isStateNamed(state, name) && (state.endsWith(".executing") || !state.startsWith(`${name}.`)))
  );
}

function getEnteredStates(entry: TraceEntry): readonly string[] {
  if (entry.type === "process.resumed") return entry.answers.length > 0 ? [] : listActiveStates(entry.value);
  if (entry.type !== "transition.taken") return [];
  const inside = entry.path.slice(1).map((part) => `${part}.`);
  return listEnteredStates(entry.from, entry.to).map((state) => `${inside.join("")}${state}`);
}

function shortenStateName(state: string): string {
  return state.endsWith(".executing") ? state.slice(0, -".executing".length) : state;
}
