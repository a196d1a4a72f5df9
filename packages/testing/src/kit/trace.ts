/** What happened in a test run, over all its lives: the run's own events, and what only a test can see. */
import { applyDelta, type GraphTypes, type Json, type OpenInterrupt, type RunEvent } from "@statewright/core";
import { entered, isNamed, standingIn } from "./state-names.ts";

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

/** One thing that happened. */
export type TraceEntry = RunEvent | ToolExecuted | ProcessCrashed | ProcessResumed;

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
  const parts = trace.entries.flatMap((entry) => {
    if (entry.type === "process.crashed") return ["(crash)"];
    const shown = enteredBy(entry).filter((state) => !state.endsWith(".committing"));
    return shown.length === 0 ? [] : [shown.map(shortName).join(" + ")];
  });
  return parts.length === 0 ? "nothing yet" : ["start", ...parts].join(" → ");
}

/** The calls that reached their tools' arguments, in the order in which they were made. */
export function calledTools(trace: Trace): readonly TracedCall[] {
  const calls = new Map<string, TracedCall>();
  for (const entry of trace.entries) {
    if (entry.type !== "tool.started" && entry.type !== "tool.args_rewritten") continue;
    calls.set(`${entry.task}/${entry.callId}`, { name: entry.tool, args: entry.args });
  }
  return [...calls.values()];
}

/** How often the body of a tool or a node was entered. */
export function timesRun(trace: Trace, name: string): number {
  return trace.entries.filter(
    (entry) =>
      (entry.type === "tool.executed" && entry.tool === name) || (entry.type === "task.started" && entry.node === name),
  ).length;
}

/** Every question that was asked, once each. */
export function questions(trace: Trace): readonly OpenInterrupt[] {
  const asked = new Map<string, OpenInterrupt>();
  for (const entry of trace.entries)
    if (entry.type === "run.waiting") for (const question of entry.interrupts) asked.set(question.id, question);
  return [...asked.values()];
}

/** The values that a channel of the outermost graph had after each superstep that wrote it. */
export function writesOf(trace: Trace, channel: string): readonly unknown[] {
  const values: unknown[] = [];
  for (const entry of trace.entries) {
    const delta =
      entry.type === "step.committed" && entry.within === undefined && Object.hasOwn(entry.changes, channel)
        ? entry.changes[channel]
        : undefined;
    if (delta !== undefined) values.push(applyDelta(values.at(-1), delta));
  }
  return values;
}

/** One line for each thing that happened, without times and generated ids: the same in every run. */
export function traceText(trace: Trace): string {
  const inside = (entry: TraceEntry): string => ("within" in entry ? `${entry.within} | ` : "");
  return trace.entries.flatMap((entry) => lineOf(entry).map((line) => inside(entry) + line)).join("\n");
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

function lineOf(entry: TraceEntry): readonly string[] {
  switch (entry.type) {
    case "transition.taken":
      return [`${entry.event}: ${standingIn(entry.from).join(" + ")} → ${standingIn(entry.to).join(" + ")}`];
    case "step.committed":
      return [`step ${entry.step} wrote ${Object.keys(entry.changes).join(", ") || "nothing"}`];
    case "tool.executed":
      return [`  ${entry.tool} ${JSON.stringify(entry.args)}${entry.attempt > 1 ? ` (attempt ${entry.attempt})` : ""}`];
    case "tool.completed":
    case "tool.failed":
      return [`  ${entry.tool} ${entry.type === "tool.failed" ? "failed" : "completed"}`];
    case "effect.reused":
    case "effect.repeated":
      return [`  ${entry.kind} ${entry.name} ${entry.type === "effect.reused" ? "reused" : "repeated"}`];
    case "run.waiting":
      return [`waits for ${entry.interrupts.map((question) => question.key).join(", ")}`];
    case "run.failed":
      return [`failed: ${entry.error.code ?? entry.error.name}`];
    case "run.completed":
    case "run.cancelled":
    case "run.paused":
      return [entry.type.slice("run.".length)];
    case "process.crashed":
      return ["(crash)"];
    case "process.resumed":
      return [`(resume${entry.answers.length === 0 ? "" : ` with ${entry.answers.join(", ")}`})`];
    default:
      return [];
  }
}
