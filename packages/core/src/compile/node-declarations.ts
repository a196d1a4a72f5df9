/** What nodes say of themselves, against their graph: the questions that they ask and the channels that they write. */
import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import type { GraphDefinition, NodeRecord } from "../define/graph.ts";
import type { GraphProblem } from "./problem.ts";

/** What a node says of itself, copied; throws `invalid_option` for what is no list of names. */
export function claimsOf(
  node: string,
  claims: { readonly [Option in keyof Claims]: Claims[Option] | undefined },
): Claims {
  return Object.fromEntries(
    Object.entries(claims).flatMap(([option, names]): [string, readonly string[]][] => {
      if (names === undefined) return [];
      if (Array.isArray(names) && names.every((name) => typeof name === "string")) return [[option, [...names]]];
      throw new StatewrightError("invalid_option", {
        what: `the ${option} of the node "${node}" is ${describeValue(names)}`,
        next: `Give a list of names: ${option}: ["…"]`,
      });
    }),
  );
}

type Claims = { readonly [Option in "asks" | "writes"]?: readonly string[] };

/** Questions and channels that are not there, and nodes that say they ask and cannot. */
export function claimProblems(graph: GraphDefinition): GraphProblem[] {
  return [...graph.nodes.values()].flatMap((node) => [...askProblems(graph, node), ...writeProblems(graph, node)]);
}

/** Why a node's body cannot ask, where it cannot; its error handler may. */
export function muteness({ kind, policy, subgraph }: NodeRecord): string | undefined {
  if (kind === "tools") return "is a tool node";
  if (subgraph !== undefined) return "is a subgraph, whose own nodes ask";
  return policy.effect === "once" ? "is declared once" : undefined;
}

function askProblems({ interrupts }: GraphDefinition, node: NodeRecord): GraphProblem[] {
  const { name, policy } = node;
  const { asks = [] } = policy;
  const mute = policy.onError === undefined ? muteness(node) : undefined;
  const unable: GraphProblem[] =
    mute === undefined || asks.length === 0
      ? []
      : [
          {
            code: "cannot_ask",
            node: name,
            message: `the node "${name}" ${mute}, and says that it asks ${asks.map((key) => `"${key}"`).join(" and ")}`,
            hint: "ask in a node before it",
          },
        ];
  return [
    ...unable,
    ...asks
      .filter((key) => !Object.hasOwn(interrupts, key))
      .map(
        (key): GraphProblem => ({
          code: "unknown_interrupt",
          node: name,
          message: `the node "${name}" says that it asks "${key}", which the graph does not declare`,
          hint: `add it to the graph's interrupts: { ${key}: z.object({ … }) }`,
        }),
      ),
  ];
}

function writeProblems({ state: { channels } }: GraphDefinition, { name, policy }: NodeRecord): GraphProblem[] {
  return (policy.writes ?? [])
    .filter((channel) => !Object.hasOwn(channels, channel))
    .map((channel) => ({
      code: "unknown_channel",
      node: name,
      message: `the node "${name}" says that it writes "${channel}", which is not in the state`,
      hint: `channels are ${Object.keys(channels).join(", ")}`,
    }));
}
