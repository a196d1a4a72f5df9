/** Possible events of a control state: the outcomes of each pending node. */
import { END, type GraphDefinition, START } from "@statewright/core";
import type { PathControl } from "./path-control.ts";
import { createPathEvent, type NodeOutcome, type PathEvent } from "./path-event.ts";

/** Options of the possible outcomes. */
export interface OutcomeOptions {
  /** Nodes that call a model, which answers with text or a tool call. Default: nodes with an edge to a tool node. */
  readonly models?: readonly string[];
}

/** Maximum number of combined outcomes of concurrent nodes; above this number, nodes vary in turn. */
const maxCombinations = 16;

/** Lists the possible events. */
export function listPathEvents(
  graph: GraphDefinition,
  control: PathControl,
  options: OutcomeOptions,
): readonly PathEvent[] {
  const outcomeLists = control.pending.map((node) => listOutcomes(graph, node, control, options));
  const plainOutcomes = outcomeLists.map((outcomes) =>
    outcomes.filter(({ how, asked }) => how !== "fails" && asked?.how !== "expired"),
  );
  const choices = new Set(control.pending.filter((node) => listTargetSets(graph, node).length > 1));
  const combinations = plainOutcomes.reduce((count, outcomes) => count * outcomes.length, 1);
  const events =
    combinations <= maxCombinations ? combineOutcomes(plainOutcomes) : varyOneNode(plainOutcomes, plainOutcomes);
  const deviations = outcomeLists.map((outcomes) =>
    outcomes.filter(({ how, asked }) => how === "fails" || asked?.how === "expired"),
  );
  const all = [...events, ...varyOneNode(plainOutcomes, deviations).filter((each) => !events.includes(each))];
  const byName = new Map(all.map((outcomes) => createPathEvent(outcomes, choices)).map((event) => [event.type, event]));
  return [...byName.values()];
}

/** Lists the possible outcomes of a node. */
function listOutcomes(
  graph: GraphDefinition,
  node: string,
  { calledTool }: PathControl,
  options: OutcomeOptions,
): readonly NodeOutcome[] {
  const choices = listTargetSets(graph, node);
  if (node === START) return choices.map((to) => ({ node, how: "returns", to }));
  const record = graph.nodes.get(node);
  if (record?.tools !== undefined) {
    const names = [...record.tools.registry.tools().keys()];
    const tool = calledTool !== undefined && names.includes(calledTool) ? calledTool : names[0];
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
  // With an error handler the next node depends on the handler; an inner graph fails only by itself.
  const isPlain = record?.policy.onError === undefined && record?.subgraph === undefined;
  const fails: readonly NodeOutcome[] = isPlain ? [{ node, how: "fails", to: [] }] : [];
  const tools = listCallableTools(graph, node, options);
  if (tools.length > 0) {
    const finalChoices = choices.filter((to) =>
      to.every((name) => name !== node && graph.nodes.get(name)?.tools === undefined),
    );
    return [
      ...tools.map(([to, tool]): NodeOutcome => ({ node, how: "calls", tool, to: [to] })),
      ...finalChoices.map((to): NodeOutcome => ({ node, how: "replies", to })),
      ...fails,
    ];
  }
  const interruptKeys = record?.policy.interrupts ?? [];
  const answered = interruptKeys.flatMap((key) =>
    choices.map((to): NodeOutcome => ({ node, how: "returns", to, asked: { key, how: "answered" } })),
  );
  const expired = interruptKeys.flatMap((key): readonly NodeOutcome[] => {
    const declared = graph.interrupts[key];
    const expires = declared !== undefined && "answer" in declared && declared.expiresMs !== undefined;
    if (!expires) return [];
    const hasExpiryAnswer = "onExpire" in declared;
    return hasExpiryAnswer
      ? choices.slice(0, 1).map((to) => ({ node, how: "returns", to, asked: { key, how: "expired" } }))
      : [];
  });
  const returned = choices.map((to): NodeOutcome => ({ node, how: "returns", to }));
  return [...(answered.length > 0 ? answered : returned), ...expired, ...fails];
}

/** Lists the tools that the model of this node may call, each with the answering tool node. */
function listCallableTools(
  graph: GraphDefinition,
  node: string,
  { models }: OutcomeOptions,
): readonly (readonly [string, string])[] {
  if (models !== undefined && !models.includes(node)) return [];
  return (graph.edges.get(node)?.targets ?? []).flatMap((target) =>
    [...(graph.nodes.get(target)?.tools?.registry.tools().keys() ?? [])].map((tool) => [target, tool] as const),
  );
}

/** Lists the target sets of the node's edge; an empty set means the end. */
function listTargetSets(graph: GraphDefinition, node: string): readonly (readonly string[])[] {
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
    case "fanOut": {
      const otherwise = edge.otherwise;
      return [[edge.target], ...(otherwise === undefined ? [] : [otherwise === END ? [] : [otherwise]])];
    }
    case "commandTargets":
      return [...others.map((target) => [target]), []];
  }
}

/** Varies the nodes in turn; the other nodes have the first outcome. */
function varyOneNode(
  usual: readonly (readonly NodeOutcome[])[],
  varied: readonly (readonly NodeOutcome[])[],
): readonly (readonly NodeOutcome[])[] {
  return varied.flatMap((outcomes, index) =>
    outcomes.map((outcome) =>
      usual.flatMap((others, otherIndex) => (otherIndex === index ? [outcome] : others.slice(0, 1))),
    ),
  );
}

function combineOutcomes(lists: readonly (readonly NodeOutcome[])[]): readonly (readonly NodeOutcome[])[] {
  return lists.reduce<readonly (readonly NodeOutcome[])[]>(
    (all, outcomes) => all.flatMap((each) => outcomes.map((outcome) => [...each, outcome])),
    [[]],
  );
}
