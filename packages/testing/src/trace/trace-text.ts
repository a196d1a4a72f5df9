/** Text form of a trace for readers and snapshots: a line per transition. */
import type { Json, RunEvent } from "@statewright/core";
import { listActiveStates, listEnteredStates } from "../node/state-names.ts";
import { formatValue } from "../order/first-difference.ts";
import { createIdNormalizer } from "../run/normalize-ids.ts";
import type { Trace, TraceEntry } from "./trace.ts";

/**
 * Formats a trace with a single line per entry, without times and with normalized ids: equal in every run and on every
 * machine.
 */
export function traceText(trace: Trace): string {
  const rename = createIdNormalizer();
  const lines: string[] = [];
  let writtenChannels: readonly string[] = [];
  for (const entry of trace.entries) {
    if (entry.type === "step.committed") {
      writtenChannels = Object.keys(entry.changes);
      continue;
    }
    const isCommit = entry.type === "transition.taken" && entry.event === "step.commit";
    const nestingPrefix = "within" in entry && entry.within !== undefined ? `${entry.within} | ` : "";
    for (const line of formatEntry(entry))
      lines.push(
        rename(
          `${nestingPrefix}${line}${isCommit && writtenChannels.length > 0 ? `, wrote ${writtenChannels.join(", ")}` : ""}`,
        ),
      );
    if (isCommit) writtenChannels = [];
  }
  return lines.join("\n");
}

function formatEntry(entry: TraceEntry): readonly string[] {
  switch (entry.type) {
    case "transition.taken":
      return [formatTransition(entry)];
    case "step.executed":
      return [`  step ${entry.key} of ${entry.node}`];
    case "tool.executed":
      return [`  ${entry.tool} ${formatValue(entry.args)}${entry.attempt > 1 ? ` (attempt ${entry.attempt})` : ""}`];
    case "tool.completed":
    case "tool.failed":
      return [`  ${entry.tool} ${entry.type === "tool.failed" ? "failed" : "completed"}`];
    case "effect.reused":
    case "effect.repeated":
      return [`  ${entry.kind} ${entry.name} ${entry.type === "effect.reused" ? "reused" : "repeated"}`];
    case "run.waiting":
      return [`waits for ${entry.interrupts.map((interrupt) => interrupt.key).join(", ")}`];
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

/** Formats a transition of a graph's machine; a durable machine shows the author's events. */
function formatTransition({ event, from, to }: TransitionTaken): string {
  const formatStates = (value: Json): string => listActiveStates(value).map(omitLeaf).join(" + ");
  const [, ended, node] = /^xstate\.(done|error)\.actor\.([^.]+)$/.exec(event) ?? [];
  if (
    ended !== undefined &&
    node !== undefined &&
    listEnteredStates(from, to).some((state) => state.startsWith(`${node}.`))
  )
    return `${node} ${ended === "done" ? "done" : "failed"}`;
  const enteredStates = listEnteredStates(from, to).map(omitLeaf).join(" + ");
  if (event === "step.commit") return `${formatStates(from)} → ${formatStates(to)}`;
  if (event === "task.interrupted") return `${enteredStates} interrupted`;
  if (event === "task.failed") return `${enteredStates} failed`;
  if (event === "run.resumed") return `${enteredStates} continues`;
  return `${event}: ${listActiveStates(from).join(" + ")} → ${listActiveStates(to).join(" + ")}`;
}

function omitLeaf(state: string): string {
  return state.replace(/\.(?:executing|committing|interrupted|failed)$/, "");
}
