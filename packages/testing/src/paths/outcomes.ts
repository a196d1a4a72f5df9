/** The events that may come where control stands: how each node at work may end. */
import { END, type GraphDefinition, START } from "@statewright/core";
import type { Control } from "./path-control.ts";
import { type NodeOutcome, type PathEvent, pathEvent } from "./path-event.ts";

/** What decides which outcomes there are. */
export interface OutcomeOptions {
  /** Nodes that ask a model: it says something, or calls a tool. Default: those that lead to a tool node. */
  readonly models?: readonly string[];
}

/** Ways of choosing of nodes side by side are all taken together up to this number; beyond it one node chooses at a time. */
const mostTogether = 16;

/** Every event that may come. */
export function eventsAt(graph: GraphDefinition, control: Control, options: OutcomeOptions): readonly PathEvent[] {
  const ways = control.pending.map((node) => outcomesOf(graph, node, control, options));
  const plain = ways.map((outcomes) =>
    outcomes.filter(({ how, asked }) => how !== "fails" && asked?.how !== "expired"),
  );
  const choices = new Set(control.pending.filter((node) => choicesOf(graph, node).length > 1));
  const together = plain.reduce((count, outcomes) => count * outcomes.length, 1);
  const events = together <= mostTogether ? product(plain) : oneByOne(plain, plain);
  const deviations = ways.map((outcomes) =>
    outcomes.filter(({ how, asked }) => how === "fails" || asked?.how === "expired"),
  );
  const all = [...events, ...oneByOne(plain, deviations).filter((each) => !events.includes(each))];
  const byName = new Map(all.map((outcomes) => pathEvent(outcomes, choices)).map((event) => [event.type, event]));
  return [...byName.values()];
}

/** How one node may end. */
function outcomesOf(
  graph: GraphDefinition,
  node: string,
  { called }: Control,
  options: OutcomeOptions,
): readonly NodeOutcome[] {
  const choices = choicesOf(graph, node);
  if (node === START) return choices.map((to) => ({ node, how: "returns", to }));
  const record = graph.nodes.get(node);
  if (record?.tools !== undefined) {
    const names = [...record.tools.registry.tools().keys()];
    const tool = called !== undefined && names.includes(called) ? called : names[0];
    if (tool === undefined) return choices.map((to) => ({ node, how: "returns", to }));
    const fails = record.tools.registry.get(tool)?.spec.onError === "fail";
    return [
      ...choices
        .slice(0, 1)
        .flatMap((to): NodeOutcome[] => [
          { node, how: "ok", tool, to },
          ...(fails ? [] : [{ node, how: "error", tool, to } as const]),
          { node, how: "denied", tool, to },
        ]),
      ...(fails ? [{ node, how: "fails", to: [] } as const] : []),
    ];
  }
  // Where a failure is handled, what comes after it is decided by the handler; a graph inside fails by itself only.
  const isPlain = record?.policy.onError === undefined && record?.subgraph === undefined;
  const fails: readonly NodeOutcome[] = isPlain ? [{ node, how: "fails", to: [] }] : [];
  const tools = toolsAfter(graph, node, options);
  if (tools.length > 0) {
    const said = choices.filter((to) =>
      to.every((name) => name !== node && graph.nodes.get(name)?.tools === undefined),
    );
    return [
      ...tools.map(([to, tool]): NodeOutcome => ({ node, how: "calls", tool, to: [to] })),
      ...said.map((to): NodeOutcome => ({ node, how: "says", to })),
      ...fails,
    ];
  }
  const asks = record?.policy.asks ?? [];
  const answered = asks.flatMap((key) =>
    choices.map((to): NodeOutcome => ({ node, how: "returns", to, asked: { key, how: "answered" } })),
  );
  const expired = asks.flatMap((key): readonly NodeOutcome[] => {
    const declared = graph.interrupts[key];
    const expires = declared !== undefined && "answer" in declared && declared.expiresMs !== undefined;
    if (!expires) return [];
    const goesOn = "onExpire" in declared;
    return goesOn
      ? choices.slice(0, 1).map((to) => ({ node, how: "returns", to, asked: { key, how: "expired" } }))
      : [];
  });
  const returned = choices.map((to): NodeOutcome => ({ node, how: "returns", to }));
  return [...(answered.length > 0 ? answered : returned), ...expired, ...fails];
}

/** The tools that a model in this node may call, each with the tool node that answers. */
function toolsAfter(
  graph: GraphDefinition,
  node: string,
  { models }: OutcomeOptions,
): readonly (readonly [string, string])[] {
  if (models !== undefined && !models.includes(node)) return [];
  return (graph.edges.get(node)?.targets ?? []).flatMap((target) =>
    [...(graph.nodes.get(target)?.tools?.registry.tools().keys() ?? [])].map((tool) => [target, tool] as const),
  );
}

/** The sets of nodes that an edge may lead to; empty for the end. */
function choicesOf(graph: GraphDefinition, node: string): readonly (readonly string[])[] {
  const edge = graph.edges.get(node);
  if (edge === undefined) return [[]];
  const targets = [...new Set(edge.targets)];
  const others = targets.filter((target) => target !== END);
  const end: readonly (readonly string[])[] = targets.includes(END) ? [[]] : [];
  switch (edge.kind) {
    case "to":
    case "join":
      return [others];
    case "route":
      return [...others.map((target) => [target]), ...(edge.many && others.length > 1 ? [others] : []), ...end];
    case "sends": {
      const otherwise = edge.otherwise;
      return [[edge.target], ...(otherwise === undefined ? [] : [otherwise === END ? [] : [otherwise]])];
    }
    case "gotos":
      return [...others.map((target) => [target]), []];
  }
}

/** Every node varies alone, beside others that take their first way. */
function oneByOne(
  usual: readonly (readonly NodeOutcome[])[],
  varied: readonly (readonly NodeOutcome[])[],
): readonly (readonly NodeOutcome[])[] {
  return varied.flatMap((outcomes, at) =>
    outcomes.map((outcome) => usual.flatMap((others, place) => (place === at ? [outcome] : others.slice(0, 1)))),
  );
}

function product(lists: readonly (readonly NodeOutcome[])[]): readonly (readonly NodeOutcome[])[] {
  return lists.reduce<readonly (readonly NodeOutcome[])[]>(
    (all, outcomes) => all.flatMap((each) => outcomes.map((outcome) => [...each, outcome])),
    [[]],
  );
}
