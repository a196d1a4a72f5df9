/** Matcher for bodies that ran once. */

import { formatValue } from "../order/first-difference.ts";
import { explainRun, formatNames, formatVerbCount } from "../run/explain-run.ts";
import { createIdNormalizer } from "../run/normalize-ids.ts";
import { getTraceContext } from "../run/trace-context.ts";
import { type Execution, listExecutions, type StepExecuted, type Trace } from "../trace/trace.ts";
import { type MatcherContext, type MatcherResult, requireTrace } from "./received.ts";

/** Name of an executed body: a tool or node by name, a node of an inner graph, or a recorded step by key. */
export type BodyName<Name extends string = string> =
  | Name
  | { readonly node: string; readonly nesting: string }
  | { readonly step: string };

/** Passes when the body of this tool, node or step was entered once, in all processes of the run together. */
export function toHaveRunOnce(this: MatcherContext, received: unknown, body: BodyName): MatcherResult {
  const trace = requireTrace(received, "toHaveRunOnce");
  const executions = listBodyExecutions(trace, body);
  const name = typeof body === "string" ? body : "step" in body ? body.step : `${body.nesting}.${body.node}`;
  const lines = executions.map(({ text, crashed }, index) => `${crashed ? "  (crash)\n" : ""}  ${index + 1}. ${text}`);
  return {
    pass: executions.length === 1,
    message: () => {
      const missed = executions.length === 0 && typeof body === "string" ? body : undefined;
      const reason = explainRepeat(trace, executions);
      return createIdNormalizer()(
        [
          `"${name}" ${formatVerbCount("ran", "", executions.length)}${this.isNot ? ", and should not have run just once" : ", and should run once"}.`,
          ...lines,
          ...(reason === undefined || this.isNot ? [] : [reason]),
          ...(missed === undefined ? [] : explainUnknownName(trace, missed)),
          ...(executions.length === 0 && typeof body === "object" && "step" in body ? explainMissingStep(trace) : []),
          explainRun(trace, missed),
        ].join("\n"),
      );
    },
    actual: executions.length,
    expected: 1,
  };
}

/** Explains an unknown name: the compiler does not check names in untyped code. */
function explainUnknownName(trace: Trace, name: string): readonly string[] {
  const context = getTraceContext(trace);
  if (context === undefined) return [];
  const tools = context.graph.tools.map(({ spec }) => spec.name);
  const nodes = [...context.graph.nodes.keys()];
  if (tools.includes(name) || nodes.includes(name)) return [];
  return [
    `The graph has no node and no tool with this name: its nodes are ${formatNames(nodes)}, its tools ${formatNames(tools, "none")}.`,
  ];
}

/**
 * Explains a missing step: lists the entered steps, and bodies that started again and repeated their effects outside
 * of steps.
 */
function explainMissingStep(trace: Trace): readonly string[] {
  const steps = new Set(trace.entries.flatMap((entry) => (entry.type === "step.executed" ? [entry.key] : [])));
  const starts = new Map<string, { readonly node: string; readonly count: number }>();
  for (const entry of trace.entries)
    if (entry.type === "task.started")
      starts.set(`${entry.withinId ?? ""}/${entry.task}`, {
        node: entry.node,
        count: (starts.get(`${entry.withinId ?? ""}/${entry.task}`)?.count ?? 0) + 1,
      });
  const restarted = [...starts.values()].filter(({ count }) => count > 1);
  return [
    `Steps that ran: ${formatNames([...steps], "none")}.`,
    ...restarted.map(
      ({ node, count }) =>
        `The body of "${node}" started ${count} times: its effects outside of step(key, fn) and tools happened each time.`,
    ),
  ];
}

interface BodyExecution {
  readonly entry: Execution | StepExecuted;
  readonly text: string;
  /** True when a process died between the previous execution and this execution. */
  readonly crashed: boolean;
}

function listBodyExecutions(trace: Trace, body: BodyName): readonly BodyExecution[] {
  const entered: readonly (Execution | StepExecuted)[] =
    typeof body === "string"
      ? listExecutions(trace, body)
      : "step" in body
        ? trace.entries.filter(
            (entry): entry is StepExecuted => entry.type === "step.executed" && entry.key === body.step,
          )
        : listExecutions(trace, body.node, body.nesting);
  let crashCount = 0;
  let lastCrashCount = 0;
  const found: BodyExecution[] = [];
  for (const entry of trace.entries) {
    if (entry.type === "process.crashed") crashCount += 1;
    const execution = entered.find((each) => each === entry);
    if (execution === undefined) continue;
    found.push({
      entry: execution,
      text: formatExecution(execution),
      crashed: found.length > 0 && crashCount > lastCrashCount,
    });
    lastCrashCount = crashCount;
  }
  return found;
}

function formatExecution(entry: Execution | StepExecuted): string {
  switch (entry.type) {
    case "tool.executed":
      return `call ${entry.callId}, attempt ${entry.attempt}, with ${formatValue(entry.args)}, key ${entry.idempotencyKey}`;
    case "step.executed":
      return `in "${entry.node}", key ${entry.idempotencyKey}`;
    case "task.started":
      return `task ${entry.task} of "${entry.node}", attempt ${entry.attempt}${entry.input === undefined ? "" : `, sent ${formatValue(entry.input)}`}`;
  }
}

/** Explains a repeated execution by its difference to the first execution. */
function explainRepeat(trace: Trace, executions: readonly BodyExecution[]): string | undefined {
  const repeatIndex = executions.findIndex(
    ({ entry }, index) => index > 0 && executions.slice(0, index).some((before) => isSameWork(before.entry, entry)),
  );
  const { entry, crashed } = executions[repeatIndex] ?? {};
  if (entry === undefined) {
    const [, second] = executions;
    if (second === undefined) return undefined;
    if (second.entry.type === "tool.executed") return "These are different calls: the model requested each of them.";
    return getStep(executions[0]?.entry) === getStep(second.entry)
      ? "These are different tasks of one superstep: the node got more than one input."
      : "These are different tasks: the path reached the node again.";
  }
  if ("attempt" in entry && entry.attempt > 1) return "The later execution is a retry of the first, which failed.";
  const kind = entry.type === "task.started" ? "task" : entry.type === "step.executed" ? "step" : "call";
  if (crashed !== true)
    return `It is the same ${kind}, started again without a crash: its node started again${hasInterrupt(trace) ? " after the answer to its interrupt" : ""}, and the outcome was not recorded.`;
  const effect = entry.type === "tool.executed" ? getEffectClass(trace, entry.tool) : undefined;
  const rule =
    effect === undefined
      ? kind === "task"
        ? "Effects of a body outside of step(key, fn) and tools are repeated. Put the effect into a step."
        : 'Declare { effect: "once" } for an effect that must not happen twice.'
      : `It is declared "${effect}", so the engine may repeat it${effect === "once" ? " only after an answer that it did not happen" : '; declare "once" for an effect that must not happen twice'}.`;
  return `It is the same ${kind}, executed again after a crash: the process died before its outcome was saved. ${rule}`;
}

function getStep(entry: BodyExecution["entry"] | undefined): string | undefined {
  return entry !== undefined && "task" in entry ? entry.task.slice(0, entry.task.indexOf(":")) : undefined;
}

function isSameWork(first: BodyExecution["entry"], second: BodyExecution["entry"]): boolean {
  if ("idempotencyKey" in first && "idempotencyKey" in second) return first.idempotencyKey === second.idempotencyKey;
  return "task" in first && "task" in second && first.task === second.task;
}

function hasInterrupt(trace: Trace): boolean {
  return trace.entries.some((entry) => entry.type === "task.interrupted");
}

/** Returns the effect class of a tool of the graph. */
export function getEffectClass(trace: Trace, tool: string): string | undefined {
  return getTraceContext(trace)?.graph.tools.find(({ spec }) => spec.name === tool)?.spec.effect;
}
