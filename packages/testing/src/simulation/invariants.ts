/**
 * The witness: it sees every write when it is durable, every event when it is told and every call when it begins, and
 * says what must never be.
 */
import type { Commit, EffectClass, EffectRow, RunEvent, StoredEvent } from "@statewright/core";
import type { SimulatedProcess } from "./scheduler.ts";

/** What it knows of the thread, and what it is told. */
export interface Witness {
  readonly violations: readonly string[];
  readonly violated: (rule: string, what: string) => void;
  readonly claimed: (by: SimulatedProcess, epoch: number) => void;
  /** A write is durable; `calls` is how many calls had come back when it was handed over. */
  readonly committed: (by: SimulatedProcess, commit: Commit, calls: number) => void;
  readonly calls: () => number;
  /** A fork has written checkpoints by itself. */
  readonly forked: (events: readonly StoredEvent[]) => void;
  /** A call outside is about to begin. */
  readonly began: (by: SimulatedProcess, key: string, effect: EffectClass) => void;
  /** A call outside has come back to a process. */
  readonly returned: (by: SimulatedProcess, key: string) => void;
  /** A reader of a run for as long as it is at work. */
  readonly reader: (by: SimulatedProcess) => (event: RunEvent) => void;
  /** The thread is taken from its owner though it lives, as when a lease runs out. */
  readonly taken: () => { readonly epoch: number; readonly owner: SimulatedProcess } | undefined;
  readonly wasCutOff: (process: SimulatedProcess) => boolean;
  /** Checkpoints as they were written, by id. */
  readonly checkpoints: ReadonlyMap<number, string>;
  readonly lastSeq: () => number;
  /** Questions that have their answer, as far as it is durable. */
  readonly answered: (branch: string) => readonly string[];
}

/** Text under which a checkpoint must be found again. */
export function checkpointText(row: object, deltas: readonly object[]): string {
  return JSON.stringify([
    Object.entries(row).sort(byName),
    deltas.map((delta) => JSON.stringify(Object.entries(delta).sort(byName))).sort(),
  ]);
}

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}

/** A witness of one thread. */
export function createWitness(thread: string, mayBeInDoubt: () => boolean, mayLoseResults: () => boolean): Witness {
  const violations: string[] = [];
  const seqs = new Set<number>();
  const checkpoints = new Map<number, string>();
  /** By idempotency key. */
  const outcomes = new Map<string, string>();
  const starts = new Set<string>();
  /** By line and journal key. */
  const rows = new Map<string, string>();
  const heads = new Map<string, number>();
  const answers = new Map<string, { readonly about: string; readonly answer: string }>();
  const calls: { readonly by: SimulatedProcess; readonly key: string }[] = [];
  const budgets = new Map<string, number>();
  const attempts = new Map<string, { readonly attempt: number; readonly epoch: number }>();
  const cutOff = new Set<SimulatedProcess>();
  let owner: { readonly process: SimulatedProcess; readonly epoch: number } | undefined;
  let lastSeq = 0;
  const violated = (rule: string, what: string): void => {
    violations.push(`${rule} ${what}`);
  };

  function tookSeq(seq: number): void {
    if (seqs.has(seq)) violated("I4", `the number ${seq} stands for two facts`);
    seqs.add(seq);
  }

  function checkpointed(commit: Commit): void {
    const { checkpoint, branch } = commit;
    if (checkpoint === undefined) return;
    const { row, deltas } = checkpoint;
    tookSeq(row.seq);
    if (checkpoints.has(row.id)) violated("I5", `the checkpoint ${row.id} was written twice`);
    checkpoints.set(row.id, checkpointText(row, deltas));
    heads.set(branch, row.step);
    const { steps = 0 } = JSON.parse(row.control) as { readonly steps?: number };
    const budget = `${branch} ${row.run}`;
    if (!branch.includes("/") && steps < (budgets.get(budget) ?? 0))
      violated("I10", `the run has taken ${steps} steps after ${budgets.get(budget)}`);
    budgets.set(budget, steps);
  }

  /** A process that lets the thread go leaves no result behind. */
  function checkRecorded(process: SimulatedProcess, returned: number): void {
    for (const { by, key } of calls.slice(0, returned)) {
      const { line, step } = placeOf(thread, key);
      if (by !== process || line === undefined || !heads.has(line) || heads.get(line) !== step) continue;
      if (starts.has(key) && !outcomes.has(key)) violated("I1", `${key} has ended, and its outcome is not recorded`);
    }
  }

  return {
    violations,
    violated,
    checkpoints,
    lastSeq: () => lastSeq,
    answered: (branch) =>
      [...answers.keys()].flatMap((place) => (place.startsWith(`${branch} `) ? [place.slice(branch.length + 1)] : [])),
    wasCutOff: (process) => cutOff.has(process),
    claimed: (process, epoch) => {
      if (owner?.process.alive() === true) violated("I9", "a thread with a living owner was given to another");
      owner = { process, epoch };
    },
    taken: () => {
      if (owner?.process.alive() !== true) return undefined;
      const { process, epoch } = owner;
      cutOff.add(process);
      owner = undefined;
      return { epoch, owner: process };
    },
    calls: () => calls.length,
    forked: (events) => {
      for (const event of events) {
        if (!("checkpoint" in event)) continue;
        const { deltas, ...row } = event.checkpoint;
        tookSeq(row.seq);
        checkpoints.set(row.id, checkpointText(row, deltas));
        heads.set(row.branch, row.step);
        lastSeq = Math.max(lastSeq, row.seq);
      }
    },
    committed: (process, commit, returned) => {
      if (owner?.process !== process || owner.epoch !== commit.epoch)
        violated("I9", `a write under the epoch ${commit.epoch} came from a process that does not own the thread`);
      checkpointed(commit);
      for (const { seq } of commit.events ?? []) tookSeq(seq);
      lastSeq = Math.max(lastSeq, commit.seq);
      for (const [line, row] of journalRowsOf(commit)) {
        const place = `${line} ${row.step}/${row.task}/${row.key}`;
        if (row.idempotencyKey !== "" && row.state !== "started") {
          const before = outcomes.get(row.idempotencyKey);
          if (before !== undefined && row.outcome !== undefined && before !== "" && before !== row.outcome)
            violated("I1", `the outcome of ${row.idempotencyKey} was written again, and differs`);
          outcomes.set(row.idempotencyKey, row.outcome ?? before ?? "");
        } else if (row.idempotencyKey !== "" && outcomes.has(row.idempotencyKey))
          violated("I1", `${row.idempotencyKey} started again after its outcome was recorded`);
        if (row.state === "started" && row.endedAt === undefined) starts.add(row.idempotencyKey);
        else if (row.state === "started") starts.delete(row.idempotencyKey);
        rows.set(place, row.state);
      }
      for (const { id, key, about = "", answer, expiredAt } of commit.interrupts ?? []) {
        if (key.endsWith("in_doubt") && !mayBeInDoubt()) violated("I2", `nothing died, and ${id} is asked`);
        const place = `${commit.branch} ${id}`;
        const before = answers.get(place);
        // A call that is in doubt again asks again, about another start.
        const same = before?.about === about;
        if (answer !== undefined && same && before.answer !== answer)
          violated("I1", `the question ${id} was answered twice`);
        if (answer === undefined && expiredAt === undefined && same)
          violated("I1", `the question ${id} is open again, and has its answer`);
        if (answer === undefined) answers.delete(place);
        else answers.set(place, { about, answer });
      }
      const { run } = commit;
      if (run !== undefined) {
        const before = attempts.get(run.id);
        const resumed = before !== undefined && before.epoch !== commit.epoch;
        if (before !== undefined && run.attempt < before.attempt + (resumed ? 1 : 0))
          violated("I10", `the run ${run.id} is in its attempt ${run.attempt} after ${before.attempt}`);
        attempts.set(run.id, { attempt: run.attempt, epoch: commit.epoch });
      }
      if (commit.release === true) {
        owner = undefined;
        if (!mayLoseResults()) checkRecorded(process, returned);
      }
    },
    returned: (by, key) => {
      calls.push({ by, key });
    },
    began: (process, key, effect) => {
      if (cutOff.has(process) && effect !== "once") return;
      if (outcomes.has(key)) violated("I1", `${key} was attempted after its outcome was recorded`);
      const { line, step } = placeOf(thread, key);
      const head = line === undefined ? undefined : heads.get(line);
      if (head !== undefined && step !== undefined && head > step)
        violated("I1", `${key} was attempted after its superstep was committed`);
      if (effect === "once" && line !== undefined && !starts.has(key) && !key.endsWith("/node"))
        violated("I1", `${key} was attempted before its start was durable`);
    },
    reader: (process) => {
      let last: number | undefined;
      const unsaved = new Set<string | undefined>();
      return (event) => {
        if (!process.alive()) return;
        if (event.type === "step.committed" && event.checkpoint === undefined) unsaved.add(event.within);
        if (durable.has(event.type) && !isInPassing(event, last ?? event.seq)) {
          if (!seqs.has(event.seq)) violated("I8", `${event.type} ${event.seq} was told before it was durable`);
          if (last !== undefined && event.seq !== last + 1)
            violated("I4", `${event.type} ${event.seq} was told after ${last}`);
          last = event.seq;
        } else if (event.type === "tool.completed" && !unsaved.has(event.within)) {
          const ending = `/${event.task}/${event.callId}`;
          const isDurable = [...rows].some(([place, state]) => place.endsWith(ending) && state === "ok");
          if (!isDurable) violated("I8", `the result of ${event.callId} was told before it was durable`);
        }
      };
    },
  };
}

/** The journal rows of a commit, each with its line. */
function journalRowsOf({ branch, effects = [], around = [] }: Commit): readonly (readonly [string, EffectRow])[] {
  const journals = [{ line: branch, effects }, ...around];
  return journals.flatMap(({ line, effects: rows }) => rows.map((row) => [line, row] as const));
}

/** The end of a run that could not be saved, and the steps of inner graphs that are not, are told under the number before them. */
function isInPassing(event: RunEvent, last: number): boolean {
  if (event.seq > last) return false;
  if (event.type === "step.committed") return event.checkpoint === undefined;
  return event.type === "run.failed" || event.type === "run.paused";
}

/** What stands in the sequence of durable events. */
const durable: ReadonlySet<RunEvent["type"]> = new Set([
  "run.started",
  "run.waiting",
  "run.paused",
  "run.failed",
  "run.cancelled",
  "run.completed",
  "step.committed",
]);

/** The line and the step that an idempotency key names. */
function placeOf(thread: string, key: string): { readonly line?: string; readonly step?: number } {
  if (!key.startsWith(`${thread}/`)) return {};
  const parts = key.slice(thread.length + 1).split("/");
  const line = parts.slice(0, -2).join("/");
  const step = Number(parts[parts.length - 2]?.split(":")[0]);
  return line === "" || Number.isNaN(step) ? {} : { line, step };
}
