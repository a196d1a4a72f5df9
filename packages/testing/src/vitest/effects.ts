/** The matcher for what ran once. */

import { textOfValue } from "../order/first-difference.ts";
import { account, didTimes, listed } from "../run/explain-run.ts";
import { normalIds } from "../run/normalize-ids.ts";
import { toldOf } from "../run/trace-context.ts";
import { type Entrance, entrancesOf, type StepExecuted, type Trace } from "../trace/trace.ts";
import { asTrace, type Bound, type Verdict } from "./received.ts";

/** What ran: a tool or a node by its name, a node of a graph inside, or a recorded step by its key. */
export type RanName<Name extends string = string> =
  | Name
  | { readonly node: string; readonly within: string }
  | { readonly step: string };

/** The body of this tool, node or step was entered once, in all lives of the run together. */
export function toHaveRunOnce(this: Bound, received: unknown, what: RanName): Verdict {
  const trace = asTrace(received, "toHaveRunOnce");
  const found = entrances(trace, what);
  const name = typeof what === "string" ? what : "step" in what ? what.step : `${what.within}.${what.node}`;
  const lines = found.map(({ text, crashed }, index) => `${crashed ? "  (crash)\n" : ""}  ${index + 1}. ${text}`);
  return {
    pass: found.length === 1,
    message: () => {
      const missed = found.length === 0 && typeof what === "string" ? what : undefined;
      const why = causeOf(trace, found);
      return normalIds()(
        [
          `"${name}" ${didTimes("ran", "", found.length)}${this.isNot ? ", and should not have run just once" : ", and should run once"}.`,
          ...lines,
          ...(why === undefined || this.isNot ? [] : [why]),
          ...(missed === undefined ? [] : unknownName(trace, missed)),
          ...(found.length === 0 && typeof what === "object" && "step" in what ? insteadOfStep(trace) : []),
          account(trace, missed),
        ].join("\n"),
      );
    },
    actual: found.length,
    expected: 1,
  };
}

/** A name that the graph does not have: the compiler does not see those of a program without types. */
function unknownName(trace: Trace, name: string): readonly string[] {
  const of = toldOf(trace);
  if (of === undefined) return [];
  const tools = of.graph.tools.map(({ spec }) => spec.name);
  const nodes = [...of.graph.nodes.keys()];
  if (tools.includes(name) || nodes.includes(name)) return [];
  return [
    `The graph itself has no node and no tool of this name: its nodes are ${listed(nodes)}, its tools ${listed(tools, "none")}.`,
  ];
}

/** Steps that were entered, and bodies that started over: what these do outside of steps is done each time. */
function insteadOfStep(trace: Trace): readonly string[] {
  const steps = new Set(trace.entries.flatMap((entry) => (entry.type === "step.executed" ? [entry.key] : [])));
  const starts = new Map<string, { readonly node: string; readonly count: number }>();
  for (const entry of trace.entries)
    if (entry.type === "task.started")
      starts.set(`${entry.withinId ?? ""}/${entry.task}`, {
        node: entry.node,
        count: (starts.get(`${entry.withinId ?? ""}/${entry.task}`)?.count ?? 0) + 1,
      });
  const again = [...starts.values()].filter(({ count }) => count > 1);
  return [
    `Steps that ran: ${listed([...steps], "none")}.`,
    ...again.map(
      ({ node, count }) =>
        `The body of "${node}" started ${count} times: what it does outside of step(key, fn) and tools was done each time.`,
    ),
  ];
}

interface Entered {
  readonly entry: Entrance | StepExecuted;
  readonly text: string;
  /** A process died between this one and the one before. */
  readonly crashed: boolean;
}

function entrances(trace: Trace, what: RanName): readonly Entered[] {
  const entered: readonly (Entrance | StepExecuted)[] =
    typeof what === "string"
      ? entrancesOf(trace, what)
      : "step" in what
        ? trace.entries.filter(
            (entry): entry is StepExecuted => entry.type === "step.executed" && entry.key === what.step,
          )
        : entrancesOf(trace, what.node, what.within);
  let lives = 0;
  let last = 0;
  const found: Entered[] = [];
  for (const entry of trace.entries) {
    if (entry.type === "process.crashed") lives += 1;
    const mine = entered.find((each) => each === entry);
    if (mine === undefined) continue;
    found.push({ entry: mine, text: entranceText(mine), crashed: found.length > 0 && lives > last });
    last = lives;
  }
  return found;
}

function entranceText(entry: Entrance | StepExecuted): string {
  switch (entry.type) {
    case "tool.executed":
      return `call ${entry.callId}, attempt ${entry.attempt}, with ${textOfValue(entry.args)}, key ${entry.idempotencyKey}`;
    case "step.executed":
      return `in "${entry.node}", key ${entry.idempotencyKey}`;
    case "task.started":
      return `task ${entry.task} of "${entry.node}", attempt ${entry.attempt}${entry.input === undefined ? "" : `, sent ${textOfValue(entry.input)}`}`;
  }
}

/** Why something ran again, by how its second execution differs from its first. */
function causeOf(trace: Trace, found: readonly Entered[]): string | undefined {
  const again = found.findIndex(
    ({ entry }, index) => index > 0 && found.slice(0, index).some((before) => sameWork(before.entry, entry)),
  );
  const { entry, crashed } = found[again] ?? {};
  if (entry === undefined) {
    const [, second] = found;
    if (second === undefined) return undefined;
    if (second.entry.type === "tool.executed") return "These are different calls: the model asked for each of them.";
    return stepOf(found[0]?.entry) === stepOf(second.entry)
      ? "These are different tasks of one superstep: it was sent more than one input."
      : "These are different tasks: the path came there again.";
  }
  if ("attempt" in entry && entry.attempt > 1) return "The later one is a retry of the first, which failed.";
  const what = entry.type === "task.started" ? "task" : entry.type === "step.executed" ? "step" : "call";
  if (crashed !== true)
    return `It is the same ${what}, begun again without a crash: its node started over${asksBetween(trace) ? " when its question had an answer" : ""}, and what it did was not recorded.`;
  const effect = entry.type === "tool.executed" ? classOf(trace, entry.tool) : undefined;
  const rule =
    effect === undefined
      ? what === "task"
        ? "What a body does outside of step(key, fn) and tools is done again; put it into a step."
        : 'Declare { effect: "once" } for what must not happen twice.'
      : `It is declared "${effect}", so the engine may repeat it${effect === "once" ? " only when somebody said that it did not happen" : '; declare "once" for what must not happen twice'}.`;
  return `It is the same ${what}, done again after a crash: the process died before its outcome was saved. ${rule}`;
}

function stepOf(entry: Entered["entry"] | undefined): string | undefined {
  return entry !== undefined && "task" in entry ? entry.task.slice(0, entry.task.indexOf(":")) : undefined;
}

function sameWork(one: Entered["entry"], other: Entered["entry"]): boolean {
  if ("idempotencyKey" in one && "idempotencyKey" in other) return one.idempotencyKey === other.idempotencyKey;
  return "task" in one && "task" in other && one.task === other.task;
}

function asksBetween(trace: Trace): boolean {
  return trace.entries.some((entry) => entry.type === "task.interrupted");
}

/** The effect class of a tool of the graph. */
export function classOf(trace: Trace, tool: string): string | undefined {
  return toldOf(trace)?.graph.tools.find(({ spec }) => spec.name === tool)?.spec.effect;
}
