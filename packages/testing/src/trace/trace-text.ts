/** A trace as people read it and snapshots keep it: one line a transition. */
import type { Json, RunEvent } from "@statewright/core";
import { entered, standingIn } from "../node/state-names.ts";
import { textOfValue } from "../order/first-difference.ts";
import { normalIds } from "../run/normalize-ids.ts";
import type { Trace, TraceEntry } from "./trace.ts";

/** One line for each thing that happened, without times, ids that count up: the same in every run and on every machine. */
export function traceText(trace: Trace): string {
  const rename = normalIds();
  const lines: string[] = [];
  let wrote: readonly string[] = [];
  for (const entry of trace.entries) {
    if (entry.type === "step.committed") {
      wrote = Object.keys(entry.changes);
      continue;
    }
    const isCommit = entry.type === "transition.taken" && entry.event === "step.commit";
    const inside = "within" in entry && entry.within !== undefined ? `${entry.within} | ` : "";
    for (const line of lineOf(entry))
      lines.push(rename(`${inside}${line}${isCommit && wrote.length > 0 ? `, wrote ${wrote.join(", ")}` : ""}`));
    if (isCommit) wrote = [];
  }
  return lines.join("\n");
}

function lineOf(entry: TraceEntry): readonly string[] {
  switch (entry.type) {
    case "transition.taken":
      return [transitionText(entry)];
    case "step.executed":
      return [`  step ${entry.key} of ${entry.node}`];
    case "tool.executed":
      return [`  ${entry.tool} ${textOfValue(entry.args)}${entry.attempt > 1 ? ` (attempt ${entry.attempt})` : ""}`];
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

type TransitionTaken = Extract<RunEvent, { readonly type: "transition.taken" }>;

/** The moves of a graph's machine in words; a machine drawn by hand tells its own events. */
function transitionText({ event, from, to }: TransitionTaken): string {
  const places = (value: Json): string => standingIn(value).map(withoutLeaf).join(" + ");
  const [, ended, node] = /^xstate\.(done|error)\.actor\.([^.]+)$/.exec(event) ?? [];
  if (ended !== undefined && node !== undefined && entered(from, to).some((state) => state.startsWith(`${node}.`)))
    return `${node} ${ended === "done" ? "done" : "failed"}`;
  const moved = entered(from, to).map(withoutLeaf).join(" + ");
  if (event === "step.commit") return `${places(from)} → ${places(to)}`;
  if (event === "task.interrupted") return `${moved} interrupted`;
  if (event === "task.failed") return `${moved} failed`;
  if (event === "run.resumed") return `${moved} goes on`;
  return `${event}: ${standingIn(from).join(" + ")} → ${standingIn(to).join(" + ")}`;
}

function withoutLeaf(state: string): string {
  return state.replace(/\.(?:executing|committing|interrupted|failed)$/, "");
}
