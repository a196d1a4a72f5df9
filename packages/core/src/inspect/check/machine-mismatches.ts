/** The machine of a graph, held against the control states that the graph can come to. */
import { wholeKernelOf } from "../../run/kernel/get-kernel.ts";
import { nameIn, nodesOf, pathTo, type Site } from "./checked-graph.ts";
import { type MachineFault, regionStations, type Station, walkMachine } from "./explore-machine.ts";
import type { ControlState } from "./explore-states.ts";
import type { GraphViolation } from "./report.ts";

/**
 * A machine with one node at a time is walked through every control state, and so is a parallel one as long as that costs
 * little; of a larger one every region is taken through its transitions.
 */
export function machineFaults(site: Site): GraphViolation[] {
  const { graph, plan, walk } = site;
  const { states } = walk;
  const stations = new Map(
    plan.parallel && costOf(states, plan.nodes.size) > affordable
      ? []
      : states.map((state) => [state, stationOf(state)] as const),
  );
  for (const [state, { next }] of stations) {
    for (const after of state.next) {
      const station = stations.get(after);
      if (station !== undefined) next.push(station);
    }
  }
  const [first = regionStations([...plan.nodes.keys()])] = stations.values();
  const places = new Map<Station, ControlState>([...stations].map(([state, station]) => [station, state]));
  return walkMachine(wholeKernelOf(graph), first).map(({ at, message }) => ({
    rule: "machine_differs",
    path: placeOf(site, places.get(at), at),
    message,
  }));
}

/** Events of all stations, times the regions that each event is offered to. */
function costOf(states: readonly ControlState[], regions: number): number {
  return states.reduce((sum, { pending }) => sum + (5 * pending.length + 5) * regions, 0);
}

/** About what the regions of a graph of thirty nodes cost. */
const affordable = 6_000;

function stationOf(state: ControlState): Station & { readonly next: Station[] } {
  return { nodes: nodesOf(state), next: [], endings: nodesOf(state).length > 0 };
}

function placeOf(site: Site, state: ControlState | undefined, { nodes }: MachineFault["at"]): readonly string[] {
  if (state !== undefined) return pathTo(site, state);
  const start = site.way.length === 0 ? ["start"] : site.way;
  return nodes.length === 0 ? start : [...start, nodes.map((node) => nameIn(site, node)).join(" + ")];
}
