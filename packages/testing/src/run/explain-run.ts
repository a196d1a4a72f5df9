/** What a failing matcher says besides its first line: the path, where the run stands, what it accepts, and what said no. */
import { END, type Graph, START } from "@statewright/core";
import { isNamed, standingIn } from "../node/state-names.ts";
import { textOfValue } from "../order/first-difference.ts";
import { isVisit, pathOf, pathText, type Trace, timesRun } from "../trace/trace.ts";
import { isDrawn } from "./instrument.ts";
import { normalIds } from "./normalize-ids.ts";
import { type ToldOf, toldOf } from "./trace-context.ts";

/** The lines that end a failure; `missed` is the state or the node that the run did not come to. */
export function account(trace: Trace, missed?: string): string {
  const of = toldOf(trace);
  const lines = [
    `The path: ${pathText(trace)}`,
    ...(of === undefined ? [] : [standing(of)]),
    ...(of === undefined || missed === undefined ? [] : whyNot(trace, of, missed)),
  ];
  return normalIds()(lines.join("\n"));
}

/** Names as people read them: `"a", "b"`. */
export function listed(names: readonly string[], none = "nothing"): string {
  return names.length === 0 ? none : names.map(named).join(", ");
}

/** A node as people read it: the two ends have no quotes. */
export function named(name: string): string {
  return name === START ? "START" : name === END ? "END" : `"${name}"`;
}

/** `never visited "a"`, `visited "a" once`, `visited "a" 3 times`. */
export function didTimes(did: string, what: string, count: number): string {
  const said = what === "" ? did : `${did} "${what}"`;
  return count === 0 ? `never ${said}` : `${said} ${times(count)}`;
}

/** `never`, `once`, `3 times`. */
export function times(count: number): string {
  return count === 0 ? "never" : count === 1 ? "once" : `${count} times`;
}

function standing({ run, graph }: ToldOf): string {
  const where = listed(standingIn(run.value));
  switch (run.status) {
    case "ready":
      return "It has not begun: until, step or finish lets it go.";
    case "waiting":
      return isDrawn(graph)
        ? `It waits in ${where} and accepts the ${run.accepts.length === 1 ? "event" : "events"} ${listed(run.accepts)}.`
        : `It waits in ${where} and accepts an answer to ${run.interrupts.map(({ key, payload }) => `"${key}"${payload === undefined || payload === null ? "" : ` about ${shortened(textOfValue(payload))}`}`).join(" and to ")}.`;
    case "failed":
      return `It failed in ${where}: ${run.error instanceof Error ? run.error.message : String(run.error)}`;
    case "crashed":
      return `It crashed; ${run.interrupts.length === 0 ? `a resume goes on in ${where}` : `it waits for ${listed(run.interrupts.map(({ key }) => key))}`}.`;
    case "held":
      return `It is held at work in ${where}, asks nothing, and accepts no answer.`;
    case "done":
    case "cancelled":
      return `It is ${run.status} and accepts nothing more.`;
    default:
      return `It is ${run.status} in ${where}.`;
  }
}

/** Why a run did not come to a node: what the edges that lead to it chose instead, and which guards said no. */
function whyNot(trace: Trace, { graph }: ToldOf, missed: string): readonly string[] {
  if (isDrawn(graph)) return refusingGuards(trace);
  const node = [...graph.nodes.keys()].find((name) => isNamed(missed, name) || missed === name);
  if (missed === END || missed === "done") return waysTo(trace, graph, END);
  if (missed === "interrupted") return neverRan(trace, graph);
  if (node === undefined) return [];
  const count = timesRun(trace, node);
  if (count > 0)
    return missed === node ? [] : [`"${node}" ran ${times(count)} and was never "${missed.slice(node.length + 1)}".`];
  return waysTo(trace, graph, node);
}

/** Nodes that might have done what is missed. */
function neverRan(trace: Trace, graph: Graph): readonly string[] {
  const nodes = [...graph.nodes.keys()].filter((node) => !wasEntered(trace, node));
  return nodes.length === 0 ? [] : [`These nodes never ran: ${listed(nodes)}.`];
}

function waysTo(trace: Trace, graph: Graph, node: string): readonly string[] {
  const sources = [...graph.edges].filter(([, { targets }]) => targets.includes(node)).map(([source]) => source);
  if (sources.length === 0) return [`No edge leads to ${named(node)}.`];
  return sources.flatMap((source) => {
    if (source !== START && !wasEntered(trace, source))
      return [`${named(node)} may come after ${named(source)}, which never ran.`];
    return choicesOf(trace, graph, source, node);
  });
}

function wasEntered(trace: Trace, node: string): boolean {
  return pathOf(trace).some((together) => together.some((state) => isVisit(state, node)));
}

function choicesOf(trace: Trace, graph: Graph, source: string, node: string): readonly string[] {
  const edge = graph.edges.get(source);
  const chosen = trace.entries.flatMap((entry) =>
    entry.type === "edge.chosen" && entry.from === source && !entry.targets.includes(node) ? [entry] : [],
  );
  const lines = chosen.map(({ kind, targets, declared }) =>
    kind === "goto" || kind === "send"
      ? `${named(source)} itself went to ${listed(targets)}, not to ${named(node)}.`
      : `After ${named(source)} the ${kind === "sends" ? "sends" : "route"} chose ${listed(targets)} of ${listed(declared)}, not ${named(node)}.`,
  );
  if (edge?.kind === "join" && chosen.length === 0) {
    const missing = [...graph.edges].filter(
      ([from, { kind, targets }]) => kind === "join" && targets.includes(node) && timesRun(trace, from) === 0,
    );
    return missing.length === 0
      ? []
      : [`${named(node)} waits for all that join in it; ${listed(missing.map(([from]) => from))} never ran.`];
  }
  return [...new Set(lines)];
}

function refusingGuards(trace: Trace): readonly string[] {
  const refused = trace.entries.flatMap((entry) =>
    entry.type === "transition.taken"
      ? entry.guards.flatMap(({ guard, result }) =>
          result
            ? []
            : [
                `In ${listed(standingIn(entry.from))} the guard "${guard}" said no to ${entry.event}, which led to ${listed(standingIn(entry.to))}.`,
              ],
        )
      : [],
  );
  return [...new Set(refused)];
}

function shortened(text: string): string {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}
