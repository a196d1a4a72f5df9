/** Input kind: every task has its own input. The body is of another kind: a function or a subgraph. */
import { describeIssues, parseWith } from "../../base/schema.ts";
import type { EdgeRecord, GraphDefinition, NodeKind, NodeRecord } from "../../define/graph.ts";
import type { GraphProblem } from "../../define/problem.ts";

/** Creates the kind of an input node from the kind of its body. */
export function createInputKind(body: NodeKind): NodeKind {
  return Object.freeze({
    ...body,
    shownAs: "input",
    savedAs: "task",
    takesInput: true,
    getInputSchema: ({ input }) => input,
    findProblems: (node, graph) => [...findSourceProblems(node, graph), ...body.findProblems(node, graph)],
    findInputProblem: ({ input }, name, sent) => {
      if (input === undefined) return undefined;
      if (sent === undefined) return `the node "${name}" is pending without the input that its schema requires now`;
      const parsed = parseWith(input, sent.input);
      if (parsed.ok) return undefined;
      return `the input sent to the node "${name}" does not match its schema: ${describeIssues(parsed.issues)}`;
    },
  } satisfies NodeKind);
}

/** Returns a problem for each edge to the node that passes no input. */
function findSourceProblems({ name: node }: NodeRecord, { edges }: GraphDefinition): readonly GraphProblem[] {
  return [...edges].flatMap(([source, edge]): readonly GraphProblem[] => {
    if (!edge.targets.includes(node) || passesInput(edge, node)) return [];
    return [
      {
        code: "input_node_without_send",
        node,
        message: `the edge from "${source}" leads to the input node "${node}" without an input`,
        hint: "use fanOut, or send with commandTargets",
      },
    ];
  });
}

function passesInput(edge: EdgeRecord, node: string): boolean {
  return edge.kind === "commandTargets" || (edge.kind === "fanOut" && edge.target === node && edge.otherwise !== node);
}
