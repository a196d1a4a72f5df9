/** Consistency rules of a thread export: a store accepts foreign rows only when the rows form a single thread. */
import { checkId } from "../../base/ids.ts";
import { isDelayed } from "../delayed-run.ts";
import { isChildNamespace } from "../rules.ts";
import { listGraphVersions, toVersionKey } from "../thread-rules.ts";
import { toStartTimerId } from "../timer.ts";
import type { NamespaceExport, ThreadExport } from "./thread-export.ts";

/** Highest checkpoint id in any store. */
const maxCheckpointId = 2 ** 24 - 1;

/** Throws the error made by `refuse` for the first inconsistency, and `invalid_id` for a name outside the grammar. */
export function checkExport(exported: ThreadExport, refuse: (what: string) => Error): void {
  const namespaces = new Map<string, NamespaceExport>();
  const namespaceOfCheckpoint = new Map<number, string>();
  checkRuns(exported, refuse);
  for (const namespace of exported.namespaces) {
    checkName(namespace, namespaces, refuse);
    namespaces.set(namespace.name, namespace);
    if (namespace.from !== undefined && !namespaceOfCheckpoint.has(namespace.from))
      throw refuse(`namespace "${namespace.name}" continues from checkpoint ${namespace.from}, which is missing`);
    checkNamespace(exported, namespace, namespaceOfCheckpoint, refuse);
  }
  const runs = new Map(exported.runs.map((run) => [run.id, run]));
  if (!namespaces.has(exported.headBranch) || isChildNamespace(exported.headBranch))
    throw refuse(`the head branch "${exported.headBranch}" is missing`);
  for (const { id, branch } of exported.runs) {
    if (!namespaces.has(branch) || isChildNamespace(branch)) throw refuse(`run "${id}" is on a missing branch`);
  }
  for (const { name, run } of [{ name: "", run: exported.run }, ...exported.namespaces]) {
    const newest = run === undefined ? undefined : runs.get(run);
    if (run !== undefined && (newest === undefined || (name !== "" && newest.branch !== name)))
      throw refuse(`the newest run "${run}" is missing`);
  }
  const versions = new Set(listGraphVersions(exported).map(toVersionKey));
  for (const outline of exported.outlines ?? []) {
    if (!versions.delete(toVersionKey(outline)))
      throw refuse(`the outline of graph "${outline.graph}", version ${outline.version}, is unused or occurs twice`);
  }
  checkRequests(exported, refuse);
  let last = 0;
  for (const { seq, branch } of exported.events) {
    if (seq <= last || seq > exported.seq || !namespaces.has(branch))
      throw refuse(`event ${seq} is out of order or on a missing namespace`);
    last = seq;
  }
}

function checkRequests({ requests = [], runs }: ThreadExport, refuse: (what: string) => Error): void {
  const branches = new Map(runs.map(({ id, branch }) => [id, branch]));
  const names = new Set<string>();
  for (const { id, run, branch, kind, key, handled } of requests) {
    checkId("request", id);
    if (branches.get(run) !== branch) throw refuse(`the request "${id}" is about a missing run`);
    const unique = [`id ${id}`, ...(key === undefined ? [] : [`key ${key}`])];
    if (handled !== true) unique.push(`kind ${kind} of the run ${run}`);
    for (const name of unique) {
      if (names.has(name)) throw refuse(`two requests have the ${name}`);
      names.add(name);
    }
  }
}

function checkRuns({ runs, tenant, writtenBy, namespaces }: ThreadExport, refuse: (what: string) => Error): void {
  const keys = new Set<string>();
  if (writtenBy === undefined && namespaces.some(({ checkpoints }) => checkpoints.length > 0))
    throw refuse("the thread has checkpoints, and no graph");
  const startTimers = new Set(
    namespaces.flatMap(({ name, timers }) =>
      timers.filter(({ kind }) => kind === "start").map((timer) => `${name} ${timer.id}`),
    ),
  );
  for (const run of runs) {
    const { id, key, status, input } = run;
    checkId("run", id);
    if (run.tenant !== tenant) throw refuse(`the run "${id}" has another tenant than the thread`);
    for (const each of key === undefined ? [`id ${id}`] : [`id ${id}`, `key ${key}`]) {
      if (keys.has(each)) throw refuse(`two runs have the ${each}`);
      keys.add(each);
    }
    if (status === "queued" && input === undefined) throw refuse(`the queued run "${id}" has no input`);
    if (isDelayed(run) && !startTimers.has(`${run.branch} ${toStartTimerId(id)}`))
      throw refuse(`the delayed run "${id}" has no timer`);
  }
}

function checkName(
  { name }: NamespaceExport,
  earlier: ReadonlyMap<string, NamespaceExport>,
  refuse: (what: string) => Error,
): void {
  for (const segment of name.split("/")) checkId("segment of a namespace", segment);
  if (earlier.has(name)) throw refuse(`namespace "${name}" occurs twice`);
  if (isChildNamespace(name) && !earlier.has(name.slice(0, name.lastIndexOf("/"))))
    throw refuse(`namespace "${name}" has no parent namespace`);
}

function checkNamespace(
  exported: ThreadExport,
  namespace: NamespaceExport,
  namespaceOfCheckpoint: Map<number, string>,
  refuse: (what: string) => Error,
): void {
  const { name, checkpoints, prunedRanges, effects, interrupts, awaited, timers, inbox } = namespace;
  let parentId = namespace.from;
  let lastPruned = 0;
  for (const { row, deltas } of checkpoints) {
    const pruned = prunedRanges.findLast(({ id }) => id < row.id && id > (parentId ?? 0));
    const isNext =
      row.branch === name && row.id > (parentId ?? 0) && row.id <= Math.min(exported.checkpoint, maxCheckpointId);
    if (
      !isNext ||
      row.seq > exported.seq ||
      row.parent !== (pruned?.id ?? parentId) ||
      namespaceOfCheckpoint.has(row.id)
    )
      throw refuse(`checkpoint ${row.id} does not continue namespace "${name}"`);
    if (new Set(deltas.map(({ channel }) => channel)).size !== deltas.length)
      throw refuse(`checkpoint ${row.id} changes a channel twice`);
    namespaceOfCheckpoint.set(row.id, name);
    parentId = row.id;
  }
  for (const { id, seq, deltas } of prunedRanges) {
    if (
      id <= lastPruned ||
      namespaceOfCheckpoint.has(id) ||
      seq > exported.seq ||
      deltas.some(({ checkpoint }) => checkpoint > id || namespaceOfCheckpoint.has(checkpoint))
    )
      throw refuse(`the pruned range at checkpoint ${id} is out of order or overlaps a checkpoint`);
    lastPruned = id;
  }
  const unique: readonly (readonly string[])[] = [
    effects.map(({ step, task, key }) => JSON.stringify(["effect", step, task, key])),
    interrupts.map(({ id }) => JSON.stringify(["interrupt", id])),
    timers.map(({ id }) => JSON.stringify(["timer", id])),
    inbox.map(({ id, deliveredTo }) => JSON.stringify(["message", id, deliveredTo])),
    prunedRanges.flatMap(({ deltas }) =>
      deltas.map(({ channel, checkpoint }) => JSON.stringify(["change", channel, checkpoint])),
    ),
  ];
  for (const ids of unique) {
    if (new Set(ids).size !== ids.length) throw refuse(`namespace "${name}" contains a duplicate row`);
  }
  const interruptIds = new Set(interrupts.map(({ id }) => id));
  if (awaited.some((id) => !interruptIds.has(id))) throw refuse(`namespace "${name}" waits for a missing interrupt`);
  if (inbox.length > 0 && isChildNamespace(name)) throw refuse(`namespace "${name}" has an inbox but is not a branch`);
  if ([...interrupts, ...timers, ...inbox].some(({ branch }) => branch !== name))
    throw refuse(`namespace "${name}" contains a row of another namespace`);
}
