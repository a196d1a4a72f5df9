/** Invariants of a simulation, checked at every durable write, every emitted event and every external call. */

import type { EffectClass, RunEvent } from "@statewright/core";
import type { Commit, EffectRow, StoredEvent } from "@statewright/core/store";
import type { SimulatedProcess } from "./scheduler.ts";

/** Observed state of the thread, and callbacks for its observations. */
export interface Invariants {
  readonly violations: readonly string[];
  readonly addViolation: (rule: string, what: string) => void;
  readonly onClaim: (by: SimulatedProcess, epoch: number) => void;
  /** Called for a durable write; `calls` is the number of finished external calls when the write was requested. */
  readonly onCommit: (by: SimulatedProcess, commit: Commit, countFinishedCalls: number) => void;
  readonly calls: () => number;
  /** Called for the checkpoints written by a fork. */
  readonly onFork: (events: readonly StoredEvent[]) => void;
  /** Called before an external call. */
  readonly onCallStart: (by: SimulatedProcess, key: string, effect: EffectClass) => void;
  /** Called when an external call has returned to a process. */
  readonly onCallReturn: (by: SimulatedProcess, key: string) => void;
  /** Creates an event listener for a run. */
  readonly createListener: (by: SimulatedProcess) => (event: RunEvent) => void;
  /** Takes the thread from its living owner, as when a lease expires. */
  readonly takeThread: () => { readonly epoch: number; readonly owner: SimulatedProcess } | undefined;
  readonly wasCutOff: (process: SimulatedProcess) => boolean;
  /** Checkpoints as written, by id. */
  readonly checkpoints: ReadonlyMap<number, string>;
  readonly getLastSeq: () => number;
  /** Interrupts with a durable answer. */
  readonly listAnswered: (branch: string) => readonly string[];
}

/** Serializes a checkpoint for comparison. */
export function formatCheckpoint(row: object, deltas: readonly object[]): string {
  return JSON.stringify([
    Object.entries(row).sort(compareKeys),
    deltas.map((delta) => JSON.stringify(Object.entries(delta).sort(compareKeys))).sort(),
  ]);
}

function compareKeys([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** Creates the invariant checker of one thread. */
export function createInvariants(
  thread: string,
  canBeInDoubt: () => boolean,
  canLoseResults: () => boolean,
): Invariants {
  const violations: string[] = [];
  const seqs = new Set<number>();
  const checkpoints = new Map<number, string>();
  /** Outcomes by idempotency key. */
  const outcomes = new Map<string, string>();
  const starts = new Set<string>();
  /** Journal rows by namespace and journal key. */
  const rows = new Map<string, string>();
  const heads = new Map<string, number>();
  const answers = new Map<string, { readonly about: string; readonly answer: string }>();
  const finishedCalls: { readonly by: SimulatedProcess; readonly key: string }[] = [];
  const budgets = new Map<string, number>();
  const attempts = new Map<string, { readonly attempt: number; readonly epoch: number }>();
  const cutOff = new Set<SimulatedProcess>();
  let owner: { readonly process: SimulatedProcess; readonly epoch: number } | undefined;
  let lastSeq = 0;
  const addViolation = (rule: string, what: string): void => {
    violations.push(`${rule} ${what}`);
  };

  function recordSeq(seq: number): void {
    if (seqs.has(seq)) addViolation("I4", `two events have the sequence number ${seq}`);
    seqs.add(seq);
  }

  function recordCheckpoint(commit: Commit): void {
    const { checkpoint, branch } = commit;
    if (checkpoint === undefined) return;
    const { row, deltas } = checkpoint;
    recordSeq(row.seq);
    if (checkpoints.has(row.id)) addViolation("I5", `the checkpoint ${row.id} was written twice`);
    checkpoints.set(row.id, formatCheckpoint(row, deltas));
    heads.set(branch, row.step);
    const { steps = 0 } = JSON.parse(row.control) as { readonly steps?: number };
    const budget = `${branch} ${row.run}`;
    if (!branch.includes("/") && steps < (budgets.get(budget) ?? 0))
      addViolation("I10", `the run counts ${steps} steps after ${budgets.get(budget)}`);
    budgets.set(budget, steps);
  }

  /** Checks that a process has recorded every result when it releases the thread. */
  function checkRecorded(process: SimulatedProcess, returned: number): void {
    for (const { by, key } of finishedCalls.slice(0, returned)) {
      const { namespace, step } = parseIdempotencyKey(thread, key);
      if (by !== process || namespace === undefined || !heads.has(namespace) || heads.get(namespace) !== step) continue;
      if (starts.has(key) && !outcomes.has(key)) addViolation("I1", `${key} finished, and its outcome is not recorded`);
    }
  }

  return {
    violations,
    addViolation,
    checkpoints,
    getLastSeq: () => lastSeq,
    listAnswered: (branch) =>
      [...answers.keys()].flatMap((place) => (place.startsWith(`${branch} `) ? [place.slice(branch.length + 1)] : [])),
    wasCutOff: (process) => cutOff.has(process),
    onClaim: (process, epoch) => {
      if (owner?.process.isAlive() === true)
        addViolation("I9", "a thread with a living owner was claimed by another process");
      owner = { process, epoch };
    },
    takeThread: () => {
      if (owner?.process.isAlive() !== true) return undefined;
      const { process, epoch } = owner;
      cutOff.add(process);
      owner = undefined;
      return { epoch, owner: process };
    },
    calls: () => finishedCalls.length,
    onFork: (events) => {
      for (const event of events) {
        if (!("checkpoint" in event)) continue;
        const { deltas, ...row } = event.checkpoint;
        recordSeq(row.seq);
        checkpoints.set(row.id, formatCheckpoint(row, deltas));
        heads.set(row.branch, row.step);
        lastSeq = Math.max(lastSeq, row.seq);
      }
    },
    onCommit: (process, commit, returned) => {
      if (owner?.process !== process || owner.epoch !== commit.epoch)
        addViolation("I9", `a write under the epoch ${commit.epoch} came from a process that does not own the thread`);
      recordCheckpoint(commit);
      for (const { seq } of commit.events ?? []) recordSeq(seq);
      lastSeq = Math.max(lastSeq, commit.seq);
      for (const [namespace, row] of listJournalRows(commit)) {
        const rowKey = `${namespace} ${row.step}/${row.task}/${row.key}`;
        if (row.idempotencyKey !== "" && row.state !== "started") {
          const previous = outcomes.get(row.idempotencyKey);
          if (previous !== undefined && row.outcome !== undefined && previous !== "" && previous !== row.outcome)
            addViolation("I1", `the outcome of ${row.idempotencyKey} was written twice with different values`);
          outcomes.set(row.idempotencyKey, row.outcome ?? previous ?? "");
        } else if (row.idempotencyKey !== "" && outcomes.has(row.idempotencyKey))
          addViolation("I1", `${row.idempotencyKey} started again after its outcome was recorded`);
        if (row.state === "started" && row.endedAt === undefined) starts.add(row.idempotencyKey);
        else if (row.state === "started") starts.delete(row.idempotencyKey);
        rows.set(rowKey, row.state);
      }
      for (const { id, key, about = "", answer, expiredAt } of commit.interrupts ?? []) {
        if (key.endsWith("in_doubt") && !canBeInDoubt())
          addViolation("I2", `no process died, and the interrupt ${id} was raised`);
        const place = `${commit.branch} ${id}`;
        const before = answers.get(place);
        // A call that is in doubt again raises a new interrupt, about another start.
        const isSameStart = before?.about === about;
        if (answer !== undefined && isSameStart && before.answer !== answer)
          addViolation("I1", `the interrupt ${id} was answered twice`);
        if (answer === undefined && expiredAt === undefined && isSameStart)
          addViolation("I1", `the interrupt ${id} was reopened after its answer`);
        if (answer === undefined) answers.delete(place);
        else answers.set(place, { about, answer });
      }
      const { run } = commit;
      if (run !== undefined) {
        const before = attempts.get(run.id);
        const resumed = before !== undefined && before.epoch !== commit.epoch;
        if (before !== undefined && run.attempt < before.attempt + (resumed ? 1 : 0))
          addViolation("I10", `the run ${run.id} has attempt ${run.attempt} after ${before.attempt}`);
        attempts.set(run.id, { attempt: run.attempt, epoch: commit.epoch });
      }
      if (commit.release === true) {
        owner = undefined;
        if (!canLoseResults()) checkRecorded(process, returned);
      }
    },
    onCallReturn: (by, key) => {
      finishedCalls.push({ by, key });
    },
    onCallStart: (process, key, effect) => {
      if (cutOff.has(process) && effect !== "once") return;
      if (outcomes.has(key)) addViolation("I1", `${key} was attempted after its outcome was recorded`);
      const { namespace, step } = parseIdempotencyKey(thread, key);
      const head = namespace === undefined ? undefined : heads.get(namespace);
      if (head !== undefined && step !== undefined && head > step)
        addViolation("I1", `${key} was attempted after its superstep was committed`);
      if (effect === "once" && namespace !== undefined && !starts.has(key) && !key.endsWith("/node"))
        addViolation("I1", `${key} was attempted before its start was durable`);
    },
    createListener: (process) => {
      let last: number | undefined;
      const unsaved = new Set<string | undefined>();
      return (event) => {
        if (!process.isAlive()) return;
        if (event.type === "step.committed" && event.checkpoint === undefined) unsaved.add(event.within);
        if (durableTypes.has(event.type) && !isWithoutOwnSeq(event, last ?? event.seq)) {
          if (!seqs.has(event.seq)) addViolation("I8", `${event.type} ${event.seq} was emitted before it was durable`);
          if (last !== undefined && event.seq !== last + 1)
            addViolation("I4", `${event.type} ${event.seq} was emitted after ${last}`);
          last = event.seq;
        } else if (event.type === "tool.completed" && !unsaved.has(event.within)) {
          const ending = `/${event.task}/${event.callId}`;
          const isDurable = [...rows].some(([place, state]) => place.endsWith(ending) && state === "ok");
          if (!isDurable) addViolation("I8", `the result of ${event.callId} was emitted before it was durable`);
        }
      };
    },
  };
}

/** Lists the journal rows of a commit with their namespaces. */
function listJournalRows({
  branch,
  effects = [],
  parentJournals = [],
}: Commit): readonly (readonly [string, EffectRow])[] {
  const journals = [{ namespace: branch, effects }, ...parentJournals];
  return journals.flatMap(({ namespace, effects: rows }) => rows.map((row) => [namespace, row] as const));
}

/**
 * Returns true for events that reuse the previous sequence number: the end of a run that could not be saved, and
 * unsaved steps of inner graphs.
 */
function isWithoutOwnSeq(event: RunEvent, last: number): boolean {
  if (event.seq > last) return false;
  if (event.type === "step.committed") return event.checkpoint === undefined;
  return event.type === "run.failed" || event.type === "run.paused";
}

/** Types of durable events. */
const durableTypes: ReadonlySet<RunEvent["type"]> = new Set([
  "run.started",
  "run.waiting",
  "run.paused",
  "run.failed",
  "run.cancelled",
  "run.completed",
  "step.committed",
]);

/** Parses namespace and step from an idempotency key. */
function parseIdempotencyKey(thread: string, key: string): { readonly namespace?: string; readonly step?: number } {
  if (!key.startsWith(`${thread}/`)) return {};
  const parts = key.slice(thread.length + 1).split("/");
  const line = parts.slice(0, -2).join("/");
  const step = Number(parts[parts.length - 2]?.split(":")[0]);
  return line === "" || Number.isNaN(step) ? {} : { namespace: line, step };
}
