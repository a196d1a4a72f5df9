/**
 * Explanation below the first line of a matcher failure: path, current state, accepted events, and refusing guards.
 */
import { END, type Graph, START } from "@statewright/core";
import { isStateNamed, listActiveStates } from "../node/state-names.ts";
import { formatValue } from "../order/first-difference.ts";
import { countExecutions, formatPath, getPath, isVisit, type Trace } from "../trace/trace.ts";
import { isDurableMachine } from "./instrument.ts";
import { createIdNormalizer } from "./normalize-ids.ts";
import { getTraceContext, type TraceContext } from "./trace-context.ts";

/** Returns the final lines of a failure message; `missed` is the state or node that the run did not reach. */
export function explainRun(trace: Trace, missed?: string): string {
  const context = getTraceContext(trace);
  const lines = [
    `The path: ${formatPath(trace)}`,
    ...(context === undefined ? [] : [formatStatus(context)]),
    ...(context === undefined || missed === undefined ? [] : explainMissed(trace, context, missed)),
  ];
  return createIdNormalizer()(lines.join("\n"));
}

/** Formats names as `"a", "b"`. */
export function formatNames(names: readonly string[], emptyText = "nothing"): string {
  return names.length === 0 ? emptyText : names.map(formatNode).join(", ");
}

/** Formats a node name; `START` and `END` have no quotes. */
export function formatNode(name: string): string {
  return name === START ? "START" : name === END ? "END" : `"${name}"`;
}

/** Formats `never visited "a"`, `visited "a" once` or `visited "a" 3 times`. */
export function formatVerbCount(verb: string, object: string, count: number): string {
  const phrase = object === "" ? verb : `${verb} "${object}"`;
  return count === 0 ? `never ${phrase}` : `${phrase} ${formatTimes(count)}`;
}

/** Formats `never`, `once` or `3 times`. */
export function formatTimes(count: number): string {
  return count === 0 ? "never" : count === 1 ? "once" : `${count} times`;
}

function formatStatus({ run, graph }: TraceContext): string {
  const stateNames = formatNames(listActiveStates(run.value));
  switch (run.status) {
    case "ready":
      return "The run has not started: call until, step or finish.";
    case "waiting":
      return isDurableMachine(graph)
        ? `The run waits in ${stateNames} and accepts the ${run.accepts.length === 1 ? "event" : "events"} ${formatNames(run.accepts)}.`
        : `The run waits in ${stateNames} and accepts an answer to ${run.interrupts.map(({ key, payload }) => `"${key}"${payload === undefined || payload === null ? "" : ` about ${truncate(formatValue(payload))}`}`).join(" and to ")}.`;
    case "failed":
      return `The run failed in ${stateNames}: ${run.error instanceof Error ? run.error.message : String(run.error)}`;
    case "crashed":
      return `The run crashed; ${run.interrupts.length === 0 ? `a resume continues in ${stateNames}` : `it waits for ${formatNames(run.interrupts.map(({ key }) => key))}`}.`;
    case "held":
      return `The run is held while it executes in ${stateNames}; it has no open interrupt and accepts no answer.`;
    case "done":
    case "cancelled":
      return `The run is ${run.status} and accepts no more events.`;
    default:
      return `The run is ${run.status} in ${stateNames}.`;
  }
}

/** Explains an unreached node: the targets chosen by the edges that lead to the node, and the guards that refused. */
function explainMissed(trace: Trace, { graph }: TraceContext, missed: string): readonly string[] {
  if (isDurableMachine(graph)) return explainGuards(trace);
  const node = [...graph.nodes.keys()].find((name) => isStateNamed(missed, name) || missed === name);
  if (missed === END || missed === "done") return explainSources(trace, graph, END);
  if (missed === "interrupted") return explainNeverRan(trace, graph);
  if (node === undefined) return [];
  const count = countExecutions(trace, node);
  if (count > 0)
    return missed === node
      ? []
      : [`"${node}" ran ${formatTimes(count)} and never was "${missed.slice(node.length + 1)}".`];
  return explainSources(trace, graph, node);
}

/** Lists the nodes that never ran, as candidates for a missed interrupt. */
function explainNeverRan(trace: Trace, graph: Graph): readonly string[] {
  const nodes = [...graph.nodes.keys()].filter((node) => !isVisited(trace, node));
  return nodes.length === 0 ? [] : [`Nodes that never ran: ${formatNames(nodes)}.`];
}

function explainSources(trace: Trace, graph: Graph, node: string): readonly string[] {
  const sources = [...graph.edges].filter(([, { targets }]) => targets.includes(node)).map(([source]) => source);
  if (sources.length === 0) return [`No edge leads to ${formatNode(node)}.`];
  return sources.flatMap((source) => {
    if (source !== START && !isVisited(trace, source))
      return [`${formatNode(node)} may follow ${formatNode(source)}, which never ran.`];
    return explainChoices(trace, graph, source, node);
  });
}

function isVisited(trace: Trace, node: string): boolean {
  return getPath(trace).some((states) => states.some((state) => isVisit(state, node)));
}

function explainChoices(trace: Trace, graph: Graph, source: string, node: string): readonly string[] {
  const edge = graph.edges.get(source);
  const chosen = trace.entries.flatMap((entry) =>
    entry.type === "edge.chosen" && entry.from === source && !entry.targets.includes(node) ? [entry] : [],
  );
  const lines = chosen.map(({ kind, targets, declared }) =>
    kind === "goto" || kind === "send"
      ? `${formatNode(source)} returned a command to ${formatNames(targets)}, not to ${formatNode(node)}.`
      : `After ${formatNode(source)} the ${kind === "fanOut" ? "fan-out" : "route"} chose ${formatNames(targets)} of ${formatNames(declared)}, not ${formatNode(node)}.`,
  );
  if (edge?.kind === "join" && chosen.length === 0) {
    const missing = [...graph.edges].filter(
      ([from, { kind, targets }]) => kind === "join" && targets.includes(node) && countExecutions(trace, from) === 0,
    );
    return missing.length === 0
      ? []
      : [
          `${formatNode(node)} waits for all sources of its join; ${formatNames(missing.map(([from]) => from))} never ran.`,
        ];
  }
  return [...new Set(lines)];
}

function explainGuards(trace: Trace): readonly string[] {
  const refused = trace.entries.flatMap((entry) =>
    entry.type === "transition.taken"
      ? entry.guards.flatMap(({ guard, result }) =>
          result
            ? []
            : [
                `In ${formatNames(listActiveStates(entry.from))} the guard "${guard}" refused ${entry.event}, which led to ${formatNames(listActiveStates(entry.to))}.`,
              ],
        )
      : [],
  );
  return [...new Set(refused)];
}

function truncate(text: string): string {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}
