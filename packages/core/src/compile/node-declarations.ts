/** Checks the declarations of nodes against the graph: declared interrupts and declared writes. */

import { invalidOption } from "../base/invalid-option.ts";
import type { GraphDefinition, NodeRecord } from "../define/graph.ts";
import type { GraphProblem } from "../define/problem.ts";

/** Returns a copy of the declarations of a node. Throws `invalid_option` for a value other than a list of names. */
export function copyDeclarations(
  node: string,
  declarations: { readonly [Option in keyof NodeDeclarations]: NodeDeclarations[Option] | undefined },
): NodeDeclarations {
  return Object.fromEntries(
    Object.entries(declarations).flatMap(([option, names]): [string, readonly string[]][] => {
      if (names === undefined) return [];
      if (Array.isArray(names) && names.every((name) => typeof name === "string")) return [[option, [...names]]];
      throw invalidOption({
        where: `node "${node}"`,
        option,
        expected: "a list of names",
        got: names,
        fix: `Pass a list of names: ${option}: ["…"]`,
      });
    }),
  );
}

type NodeDeclarations = { readonly [Option in "interrupts" | "writes"]?: readonly string[] };

/** Returns unknown interrupts and channels in declarations, and interrupts declared on nodes that cannot interrupt. */
export function findNodeDeclarationProblems(graph: GraphDefinition): GraphProblem[] {
  return [...graph.nodes.values()].flatMap((node) => [
    ...findInterruptProblems(graph, node),
    ...findWriteProblems(graph, node),
  ]);
}

function findInterruptProblems({ interrupts }: GraphDefinition, node: NodeRecord): GraphProblem[] {
  const { name, policy } = node;
  const { interrupts: keys = [] } = policy;
  const obstacle = policy.onError === undefined ? node.logic.getInterruptObstacle(node) : undefined;
  const disallowed: GraphProblem[] =
    obstacle === undefined || keys.length === 0
      ? []
      : [
          {
            code: "cannot_interrupt",
            node: name,
            message: `the node "${name}" ${obstacle}, and declares the interrupts ${keys.map((key) => `"${key}"`).join(" and ")}`,
            hint: "interrupt in an earlier node",
          },
        ];
  return [
    ...disallowed,
    ...keys
      .filter((key) => !Object.hasOwn(interrupts, key))
      .map(
        (key): GraphProblem => ({
          code: "unknown_interrupt",
          node: name,
          message: `the node "${name}" declares the interrupt "${key}", which the graph does not declare`,
          hint: `add it to the graph's interrupts: { ${key}: z.object({ … }) }`,
        }),
      ),
  ];
}

function findWriteProblems({ state: { channels } }: GraphDefinition, { name, policy }: NodeRecord): GraphProblem[] {
  return (policy.writes ?? [])
    .filter((channel) => !Object.hasOwn(channels, channel))
    .map((channel) => ({
      code: "unknown_channel",
      node: name,
      message: `the node "${name}" declares writes to "${channel}", which is not in the state`,
      hint: `channels are ${Object.keys(channels).join(", ")}`,
    }));
}
