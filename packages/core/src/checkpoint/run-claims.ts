/** Rules for claims of runs and of due timers by serving processes. Shared by all stores. */
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount, checkFunction, checkNumber, checkOptions, listOptionNames } from "../base/options.ts";
import type { RunRow } from "./checkpoint.ts";
import { claimableKinds } from "./claimable.ts";
import type { ClaimingGraph, ClaimRequest, RunClaimRequest, TimerClaimRequest } from "./store.ts";

const runClaimKeys = listOptionNames<RunClaimRequest>({
  graphs: true,
  kinds: true,
  limit: true,
  at: true,
  isSkipped: true,
});
const timerClaimKeys = listOptionNames<TimerClaimRequest>({
  graphs: true,
  kinds: true,
  dueBy: true,
  until: true,
  limit: true,
  after: true,
});

/** Throws `invalid_option` for an invalid request for claims of runs. */
export function checkRunClaimRequest(request: RunClaimRequest): void {
  checkOptions("claimRuns", request, runClaimKeys);
  const { graphs, kinds, limit, at, isSkipped } = request;
  checkCount("claimRuns", { limit: limit ?? null }, 1, Number.MAX_SAFE_INTEGER);
  checkNumber("claimRuns", { at: at ?? null }, 0);
  checkFunction("claimRuns", { isSkipped });
  checkGraphs("claimRuns", graphs);
  if (Array.isArray(kinds) && kinds.every((kind) => claimableKinds.includes(kind))) return;
  throw invalidOption({
    where: "claimRuns",
    option: "kinds",
    expected: `a list of ${claimableKinds.join(", ")}`,
    got: kinds,
  });
}

/** Throws `invalid_option` for an invalid request for claims of due timers. */
export function checkTimerClaimRequest(request: TimerClaimRequest): void {
  checkOptions("claimTimers", request, timerClaimKeys);
  const { graphs, dueBy, until, limit } = request;
  checkGraphs("claimTimers", graphs);
  checkNumber("claimTimers", { dueBy: dueBy ?? null, until: until ?? null }, 0);
  checkCount("claimTimers", { limit: limit ?? null }, 1, Number.MAX_SAFE_INTEGER);
}

function checkGraphs(where: string, graphs: unknown): void {
  if (Array.isArray(graphs)) return;
  throw invalidOption({ where, option: "graphs", expected: "a list of graphs", got: graphs });
}

/** Finds the graph with which a process continues a run: of the same name, and not older than the run. */
export function findClaimingGraph<Served extends Pick<ClaimingGraph, "name" | "version">>(
  graphs: readonly Served[],
  { graph, version }: Pick<RunRow, "graph" | "version">,
): Served | undefined {
  return graphs.find((each) => each.name === graph && version <= each.version);
}

/** Returns the claim of the thread of a run, for the graph that continues the run. */
export function toThreadClaim(
  { name, version, shape, outline }: ClaimingGraph,
  { thread, branch }: Pick<RunRow, "thread" | "branch">,
  at: number,
): ClaimRequest {
  return { thread, branch, graph: name, version, shape, outline, at, mustExist: true };
}

/**
 * Returns the name of the rotation of tenants that a request follows: processes with the same graphs share a rotation.
 */
export function toRotationName(graphs: readonly ClaimingGraph[]): string {
  return graphs
    .map(({ name, version }) => `${name}@${version}`)
    .sort()
    .join(" ");
}
