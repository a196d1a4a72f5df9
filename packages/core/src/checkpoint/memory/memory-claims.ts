/** Claims in the memory store: of a thread, of runs in the order of the queue, and of due timers. */
import { checkId } from "../../base/ids.ts";
import type { RunRow } from "../checkpoint.ts";
import { type ClaimableKind, getClaimableKind, isAtRest } from "../claimable.ts";
import { isDelayed } from "../delayed-run.ts";
import type { PreviousOwner } from "../previous-owner.ts";
import { isAtRestForRequest } from "../request-rules.ts";
import {
  compareTimers,
  createBusyError,
  createUnknownBranchError,
  createUnknownThreadError,
  isUnfinishedRun,
} from "../rules.ts";
import {
  checkRunClaimRequest,
  checkTimerClaimRequest,
  findClaimingGraph,
  toRotationName,
  toThreadClaim,
} from "../run-claims.ts";
import type { Claim, ClaimedRun, ClaimRequest, RunClaimRequest, TimerClaimRequest } from "../store.ts";
import { checkParties, checkTenant, toThreadDetails } from "../thread-rules.ts";
import type { TimerRow } from "../timer.ts";
import { hasUndeliveredEvent, type NumberedRun, toEffectiveRun } from "./memory-runs.ts";
import { saveForSnapshots } from "./memory-snapshot.ts";
import {
  countInputs,
  createNamespace,
  createThread,
  listOpenRequests,
  loadClaimedRows,
  type Owner,
  type StoredNamespace,
  saveOutline,
  type Thread,
  type Threads,
  toCheckpointRow,
} from "./memory-thread.ts";
import { listTimers } from "./memory-timers.ts";

/** Claims a thread for an owner. */
export function claimThread(threads: Threads, self: Owner, request: ClaimRequest): Claim {
  const { graph, version, shape, at } = request;
  checkId("thread", request.thread);
  if (request.branch !== undefined) checkId("branch", request.branch);
  const known = threads.get(request.thread);
  if (known === undefined && request.mustExist === true) throw createUnknownThreadError(request.thread);
  if (known?.owner?.alive === true && (known.owner === self || request.claim !== "force"))
    throw createBusyError(request.thread);
  const writer = { graph, version, shape };
  const { thread: id, branch: headBranch = "main", keySalt = "", tenant, owner } = request;
  checkParties("run", { tenant, owner });
  if (known !== undefined) checkTenant("run", { id, tenant: known.details.tenant }, tenant);
  const details = toThreadDetails({ tenant, owner });
  const thread = known ?? createThread({ id, headBranch, createdAt: at, keySalt, details }, writer);
  const name = request.branch ?? thread.headBranch;
  let namespace = thread.namespaces.get(name);
  if (namespace === undefined) {
    if (known !== undefined && request.mustExist === true) throw createUnknownBranchError(request.thread, name);
    namespace = createNamespace(name, undefined, undefined);
    thread.namespaces.set(name, namespace);
  }
  threads.set(thread.id, thread);
  saveOutline(threads, writer, request.outline);
  const previousOwner = known === undefined ? "new" : replaceOwner(known);
  thread.owner = self;
  thread.writer = writer;
  thread.writtenBy ??= writer;
  thread.epoch += 1;
  const head = namespace.checkpoints.at(-1);
  return {
    epoch: thread.epoch,
    keySalt: thread.keySalt,
    ...(thread.details.tenant === undefined ? {} : { tenant: thread.details.tenant }),
    branch: name,
    nextSeq: thread.seq + 1,
    nextCheckpoint: thread.checkpoint + 1,
    writtenBy: head?.writtenBy ?? writer,
    head: toCheckpointRow(head?.checkpoint),
    run: namespace.run === undefined ? undefined : thread.runs.get(namespace.run)?.row,
    previousOwner,
    ...countInputs(thread),
    ...(threads.now === undefined ? {} : { at: threads.now() }),
    ...(request.loads === true && head !== undefined
      ? { loaded: loadClaimedRows(thread, namespace, head.checkpoint) }
      : {}),
  };
}

/** Records a displaced owner of a thread; returns the kind of the previous owner. */
function replaceOwner(thread: Thread): PreviousOwner {
  const { owner } = thread;
  thread.displaced = [...thread.displaced, ...(owner === undefined ? [] : [owner])].filter(({ alive }) => alive);
  if (thread.displaced.length > 0) return "displaced";
  return owner === undefined ? "released" : "dead";
}

/** Claims runs in the order of the store contract. */
export function claimRuns(threads: Threads, self: Owner, request: RunClaimRequest): readonly ClaimedRun[] {
  checkRunClaimRequest(request);
  const claimed: ClaimedRun[] = [];
  for (const kind of request.kinds) {
    for (const run of sortForClaims(threads, kind, request)) {
      if (claimed.length >= request.limit) return claimed;
      const graph = findClaimingGraph(request.graphs, run);
      if (graph === undefined || threads.get(run.thread)?.owner?.alive === true) continue;
      saveForSnapshots(threads, run.thread);
      const claim = claimThread(threads, self, toThreadClaim(graph, run, request.at));
      if (kind === "queued") threads.servedTenants.set(toTurnKey(request, run.priority), claim.tenant ?? "");
      claimed.push({ kind, run, claim });
    }
  }
  return claimed;
}

function toTurnKey({ graphs }: RunClaimRequest, priority = 0): string {
  return `${priority} ${toRotationName(graphs)}`;
}

/** Lists the runs of a kind that a request may claim, in the order of their claims. */
function sortForClaims(threads: Threads, kind: ClaimableKind, request: RunClaimRequest): readonly RunRow[] {
  const { graphs, isSkipped } = request;
  const found = [...threads.values()]
    .filter(({ owner }) => owner?.alive !== true)
    .flatMap((thread) => [...thread.namespaces.values()].flatMap((each) => findClaimable(thread, each, kind)))
    .filter(({ row }) => findClaimingGraph(graphs, row) !== undefined && isSkipped?.(row) !== true)
    .sort((one, other) => one.nth - other.nth)
    .map(({ row }) => row);
  if (kind !== "queued") return found;
  const priorities = [...new Set(found.map(({ priority = 0 }) => priority))].sort((one, other) => other - one);
  return priorities.flatMap((priority) =>
    rotateTenants(
      found.filter((row) => (row.priority ?? 0) === priority),
      threads.servedTenants.get(toTurnKey(request, priority)),
    ),
  );
}

/** Finds the runs of a kind that a branch offers: its first queued run, its newest run, or its runs with a request. */
function findClaimable(thread: Thread, namespace: StoredNamespace, kind: ClaimableKind): readonly NumberedRun[] {
  if (kind === "requested") return listRequested(thread, namespace);
  const first = findStartable(thread, namespace);
  if (kind === "queued") return first;
  const newest = namespace.run === undefined ? undefined : thread.runs.get(namespace.run);
  // A queued run pre-empts the newest run.
  if (newest === undefined || first.length > 0) return [];
  const row = toEffectiveRun(thread, newest);
  const isOfKind =
    kind === "notified" ? isAtRest(row) && hasUndeliveredEvent(namespace) : getClaimableKind(row) === kind;
  return isOfKind ? [{ nth: newest.nth, row }] : [];
}

function listRequested(thread: Thread, { name }: StoredNamespace): readonly NumberedRun[] {
  const runs = new Set(listOpenRequests(thread).map(({ run }) => run));
  return [...runs].flatMap((id) => {
    const run = thread.runs.get(id);
    const row = run === undefined ? undefined : toEffectiveRun(thread, run);
    return run !== undefined && row?.branch === name && isAtRestForRequest(row) ? [{ nth: run.nth, row }] : [];
  });
}

/** Finds the first queued run of a branch whose newest run has ended or is pre-empted by a queued run. */
function findStartable(thread: Thread, { name, run }: StoredNamespace): readonly NumberedRun[] {
  if (thread.queued === 0) return [];
  const queued = [...thread.runs.values()].filter(
    ({ row }) => row.status === "queued" && row.branch === name && !isDelayed(row),
  );
  const newest = run === undefined ? undefined : thread.runs.get(run)?.row;
  const isFree =
    newest === undefined || !isUnfinishedRun(newest) || queued.some(({ row }) => row.stops?.run === newest.id);
  return isFree ? queued.slice(0, 1) : [];
}

/** Orders runs round robin over their tenants, beginning with the tenant after the one served last. */
function rotateTenants(rows: readonly RunRow[], served: string | undefined): readonly RunRow[] {
  const byTenant = new Map<string, RunRow[]>();
  for (const row of rows) byTenant.set(row.tenant ?? "", [...(byTenant.get(row.tenant ?? "") ?? []), row]);
  const tenants = [...byTenant.keys()].sort(compareText);
  const next = served === undefined ? 0 : tenants.findIndex((tenant) => compareText(tenant, served) > 0);
  const rotated = next < 0 ? tenants : [...tenants.slice(next), ...tenants.slice(0, next)];
  const rounds = Math.max(0, ...rotated.map((tenant) => byTenant.get(tenant)?.length ?? 0));
  return Array.from({ length: rounds }, (_, round) =>
    rotated.flatMap((tenant) => byTenant.get(tenant)?.slice(round, round + 1) ?? []),
  ).flat();
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Claims due timers that no other living owner has claimed. */
export function claimTimers(threads: Threads, self: Owner, request: TimerClaimRequest): readonly TimerRow[] {
  checkTimerClaimRequest(request);
  const { graphs, kinds, dueBy, until, limit, after } = request;
  const isFree = (timer: TimerRow): boolean => {
    const known = threads.timerClaims.get(timer);
    return known === undefined || known.owner === self || !known.owner.alive || known.until <= dueBy;
  };
  const isServed = ({ thread }: TimerRow): boolean => {
    const written = threads.get(thread)?.writtenBy;
    return written !== undefined && findClaimingGraph(graphs, written) !== undefined;
  };
  const claimed = listTimers(threads, { dueBy, ...(kinds === undefined ? {} : { kinds }) })
    .filter((timer) => after === undefined || compareTimers(timer, after) > 0)
    .filter((timer) => isServed(timer) && isFree(timer))
    .slice(0, limit);
  for (const timer of claimed) {
    const known = threads.timerClaims.get(timer);
    if (known?.owner !== self || known.until <= dueBy) threads.timerClaims.set(timer, { owner: self, until });
  }
  return claimed;
}
