/** What happened in a test run, over all its lives: the run's own events, and what only a test can see. */
import { applyDelta, type GraphTypes, type Json, type OpenInterrupt, type RunEvent } from "@statewright/core";
import { entered, isNamed, standingIn } from "../node/state-names.ts";

/** A tool's body was entered. */
export interface ToolExecuted {
  readonly type: "tool.executed";
  readonly tool: string;
  readonly callId: string;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly args: unknown;
}

/** The process died here. */
export interface ProcessCrashed {
  readonly type: "process.crashed";
}

/** Another process went on from where the saved machine stood. */
export interface ProcessResumed {
  readonly type: "process.resumed";
  readonly value: Json;
  readonly answers: readonly string[];
}

/** The body of a recorded step was entered. */
export interface StepExecuted {
  readonly type: "step.executed";
  readonly node: string;
  readonly key: string;
  readonly idempotencyKey: string;
}

/** A body returned this update: what it wrote, before its channels folded it. */
export interface NodeReturned {
  readonly type: "node.returned";
  readonly node: string;
  /** What a task was sent. */
  readonly input: unknown;
  readonly update: Readonly<Record<string, unknown>>;
}

/** An edge that chooses, or a command of a node, said where control goes. */
export interface EdgeChosen {
  readonly type: "edge.chosen";
  readonly from: string;
  readonly kind: string;
  readonly targets: readonly string[];
  /** What it could choose from. */
  readonly declared: readonly string[];
}

/** One thing that happened. */
export type TraceEntry =
  | RunEvent
  | ToolExecuted
  | StepExecuted
  | NodeReturned
  | EdgeChosen
  | ProcessCrashed
  | ProcessResumed;

/** Everything that happened, in order. `types` exists only for the compiler. */
export interface Trace<Types extends GraphTypes = GraphTypes> {
  readonly graph: string;
  readonly entries: readonly TraceEntry[];
  readonly types?: Types;
}

/** A call of a tool: made once by the model, however often it is executed. */
export interface TracedCall {
  readonly name: string;
  readonly args: unknown;
}

/** The states that were entered, in order; what was entered at the same time stands together. */
export function pathOf(trace: Trace): readonly (readonly string[])[] {
  return trace.entries.flatMap((entry) => {
    const states = enteredBy(entry);
    return states.length === 0 ? [] : [states];
  });
}

/** The path as people read it: a node's name stands for its execution, commits are left out. */
export function pathText(trace: Trace): string {
  const parts = wayOf(trace);
  return parts.length === 0 ? "nothing yet" : ["start", ...parts].join(" → ");
}

/** The parts of the path, from this entry of the trace on. */
export function wayOf(trace: Trace, from = 0): readonly string[] {
  return trace.entries.slice(from).flatMap((entry) => {
    if (entry.type === "process.crashed") return ["(crash)"];
    const shown = enteredBy(entry).filter((state) => !state.endsWith(".committing"));
    return shown.length === 0 ? [] : [shown.map(shortName).join(" + ")];
  });
}

/** The calls that reached their tools' arguments, in the order in which they were made. */
export function calledTools(trace: Trace): readonly TracedCall[] {
  const calls = new Map<string, TracedCall>();
  for (const entry of trace.entries) {
    if (entry.type !== "tool.started" && entry.type !== "tool.args_rewritten") continue;
    calls.set(`${entry.withinId ?? ""}/${entry.task}/${entry.callId}`, { name: entry.tool, args: entry.args });
  }
  return [...calls.values()];
}

/** How often the body of a tool or a node was entered; `within` leads to the inner graph that has the node. */
export function timesRun(trace: Trace, name: string, within?: string): number {
  return entrancesOf(trace, name, within).length;
}

/** Each time that the body of a tool or a node was entered. */
export function entrancesOf(trace: Trace, name: string, within?: string): readonly Entrance[] {
  return trace.entries.filter(
    (entry): entry is Entrance =>
      (entry.type === "tool.executed" && entry.tool === name) ||
      (entry.type === "task.started" && entry.node === name && entry.within === within),
  );
}

/** A body was entered. */
export type Entrance = ToolExecuted | Extract<RunEvent, { readonly type: "task.started" }>;

/** Every question that was asked, once each. */
export function questions(trace: Trace): readonly OpenInterrupt[] {
  const asked = new Map<string, OpenInterrupt>();
  for (const entry of trace.entries)
    if (entry.type === "run.waiting") for (const question of entry.interrupts) asked.set(question.id, question);
  return [...asked.values()];
}

/** A superstep that wrote a channel of the outermost graph. */
export interface ChannelWrite {
  readonly step: number;
  readonly nodes: readonly string[];
  /** What the channel was afterwards. */
  readonly value: unknown;
  /** What each node gave it, where its return says so in plain data. */
  readonly given: readonly { readonly node: string; readonly input: unknown; readonly value: unknown }[];
}

/** Every superstep that wrote this channel; `initial` is what it held at first. */
export function writesOf(trace: Trace, channel: string, initial?: unknown): readonly ChannelWrite[] {
  const writes: ChannelWrite[] = [];
  let value = initial;
  let given: ChannelWrite["given"][number][] = [];
  for (const entry of trace.entries) {
    if (entry.type === "process.crashed") given = [];
    if (entry.type === "node.returned" && Object.hasOwn(entry.update, channel))
      given.push({ node: entry.node, input: entry.input, value: entry.update[channel] });
    if (entry.type !== "step.committed" || entry.within !== undefined) continue;
    const delta = Object.hasOwn(entry.changes, channel) ? entry.changes[channel] : undefined;
    if (delta !== undefined) {
      value = applyDelta(value, delta);
      writes.push({ step: entry.step, nodes: entry.nodes, value, given });
    }
    given = [];
  }
  return writes;
}

/** An effect that a body entered: how often, and how often its recorded outcome was handed back instead. */
export interface TracedEffect {
  readonly kind: "tool" | "step";
  readonly name: string;
  readonly idempotencyKey: string;
  readonly executed: number;
  readonly reused: number;
}

/** The steps and tool calls whose bodies were entered, over all lives of the run. */
export function effectsIn(trace: Trace): readonly TracedEffect[] {
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

/** Tell whether a state that was entered is meant by `name`: a bare node means its execution. */
export function isVisit(state: string, name: string): boolean {
  return state === name || (isNamed(state, name) && (state.endsWith(".executing") || !state.startsWith(`${name}.`)));
}

function enteredBy(entry: TraceEntry): readonly string[] {
  if (entry.type === "process.resumed") return entry.answers.length > 0 ? [] : standingIn(entry.value);
  if (entry.type !== "transition.taken") return [];
  const inside = entry.path.slice(1).map((part) => `${part}.`);
  return entered(entry.from, entry.to).map((state) => `${inside.join("")}${state}`);
}

function shortName(state: string): string {
  return state.endsWith(".executing") ? state.slice(0, -".executing".length) : state;
}
