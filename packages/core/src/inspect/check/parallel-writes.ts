/** Tasks of one superstep that get into each other's way: they write one channel, or answer the same calls. */
import { keepsOne } from "../../run/session/returns.ts";
import { listed, nameIn, pathTo, type Site } from "./checked-graph.ts";
import { claimedWrites } from "./declared-writes.ts";
import type { ControlState } from "./explore-states.ts";
import type { GraphViolation } from "./report.ts";

/** Channels that keep one value and that two tasks of a superstep write. */
export function lostWrites(site: Site): GraphViolation[] {
  const writers = writersOf(site);
  const found = new Map<string, GraphViolation>();
  for (const state of site.walk.states) {
    for (const [channel, nodes] of writers) {
      const writing = state.pending.flatMap(({ node, many }) => {
        if (!nodes.includes(node)) return [];
        return many ? [node, node] : [node];
      });
      for (const [one, other] of pairs(writing)) {
        const key = `${channel} ${one} ${other}`;
        if (found.has(key)) continue;
        const who =
          one === other
            ? `two tasks of "${nameIn(site, one)}"`
            : listed([one, other].map((node) => nameIn(site, node)));
        found.set(key, {
          rule: "lost_write",
          path: pathTo(site, state),
          message: `${who} write the channel "${channel}" in one superstep: nothing of the step is kept; let one of them write it, or make it a list, a record or a reduce channel`,
        });
      }
    }
  }
  return [...found.values()];
}

/** Nodes that run beside others and do not say what they write, where there is a channel that they could fight for. */
export function unknownWrites(site: Site): readonly string[] {
  const { graph, plan, walk } = site;
  if (!Object.values(graph.state.channels).some(keepsOne)) return [];
  const found = new Set<string>();
  for (const { pending } of walk.states) {
    for (const { node } of pending) {
      const record = plan.nodes.get(node);
      if (record === undefined || record.policy.writes !== undefined) continue;
      if (pending.length > 1 || record.kind === "task") found.add(node);
    }
  }
  return [...plan.nodes.keys()].filter((node) => found.has(node)).map((node) => nameIn(site, node));
}

/** Tool nodes of one superstep: each would make every call of the last message. */
export function doubleAnswers(site: Site): GraphViolation[] {
  const found = new Map<string, GraphViolation>();
  for (const state of site.walk.states) {
    for (const pair of pairs(toolNodes(site, state))) {
      const key = pair.join(" ");
      if (found.has(key)) continue;
      found.set(key, {
        rule: "answered_twice",
        path: pathTo(site, state),
        message: `the tool nodes ${listed(pair.map((node) => nameIn(site, node)))} run in one superstep: both make every call of the last message; let one follow the other, or make them one`,
      });
    }
  }
  return [...found.values()];
}

function toolNodes({ plan }: Site, { pending }: ControlState): readonly string[] {
  return pending.flatMap(({ node }) => (plan.nodes.get(node)?.kind === "tools" ? [node] : []));
}

function writersOf(site: Site): ReadonlyMap<string, readonly string[]> {
  const writers = new Map<string, string[]>();
  for (const node of site.plan.nodes.values())
    for (const channel of new Set(claimedWrites(site.graph, node)))
      writers.set(channel, [...(writers.get(channel) ?? []), node.name]);
  return writers;
}

function pairs(items: readonly string[]): readonly (readonly [string, string])[] {
  return items.flatMap((one, index) => items.slice(index + 1).map((other) => [one, other] as const));
}
