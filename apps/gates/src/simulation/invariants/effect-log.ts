/** Effects of a simulated thread: journal rows, and external calls of the processes. */
import type { EffectClass } from "@statewright/core";
import type { Commit, EffectRow } from "@statewright/core/store";
import type { SimulatedProcess } from "../simulated-process.ts";
import { toStableKey } from "../to-stable-key.ts";
import type { AddViolation, CheckpointLog } from "./checkpoint-log.ts";

/** Journal rows as written, and finished external calls. */
export class EffectLog {
  readonly #thread: string;
  readonly #addViolation: AddViolation;
  readonly #checkpoints: CheckpointLog;
  /** Outcomes by idempotency key. */
  readonly #outcomes = new Map<string, string>();
  readonly #starts = new Set<string>();
  /** States of journal rows by namespace and journal key. */
  readonly #rowStates = new Map<string, EffectRow["state"]>();
  readonly #finishedCalls: { readonly by: SimulatedProcess; readonly key: string }[] = [];

  constructor(thread: string, checkpoints: CheckpointLog, addViolation: AddViolation) {
    this.#thread = thread;
    this.#checkpoints = checkpoints;
    this.#addViolation = addViolation;
  }

  /** Number of external calls whose result has reached a process. */
  get finishedCallCount(): number {
    return this.#finishedCalls.length;
  }

  recordCommit(commit: Commit): void {
    for (const [namespace, row] of listJournalRows(commit)) {
      this.#checkOutcome(row);
      if (row.state === "started" && row.endedAt === undefined) this.#starts.add(toStableKey(row.idempotencyKey));
      else if (row.state === "started") this.#starts.delete(toStableKey(row.idempotencyKey));
      this.#rowStates.set(`${namespace} ${row.step}/${row.task}/${row.key}`, row.state);
    }
  }

  recordReturn(by: SimulatedProcess, key: string): void {
    this.#finishedCalls.push({ by, key });
  }

  /** Checks that an external call may start. */
  checkStart(key: string, effect: EffectClass): void {
    if (this.#outcomes.has(key)) this.#addViolation("I1", `${key} was attempted after its outcome was recorded`);
    const { namespace, step } = parseIdempotencyKey(this.#thread, key);
    const head = this.#checkpoints.getHeadStep(namespace);
    if (head !== undefined && step !== undefined && head > step)
      this.#addViolation("I1", `${key} was attempted after its superstep was committed`);
    if (effect === "once" && namespace !== undefined && !this.#starts.has(key) && !key.endsWith("/node"))
      this.#addViolation("I1", `${key} was attempted before its start was durable`);
  }

  /** Checks that a process has recorded the results of the first `count` finished calls. */
  checkRecorded(process: SimulatedProcess, count: number): void {
    for (const { by, key } of this.#finishedCalls.slice(0, count)) {
      const { namespace, step } = parseIdempotencyKey(this.#thread, key);
      const head = this.#checkpoints.getHeadStep(namespace);
      if (by !== process || head === undefined || head !== step) continue;
      if (this.#starts.has(key) && !this.#outcomes.has(key))
        this.#addViolation("I1", `${key} finished, and its outcome is not recorded`);
    }
  }

  /** Returns true if the successful result of a tool call is durable. */
  hasResult(task: string, callId: string): boolean {
    const ending = `/${task}/${callId}`;
    return [...this.#rowStates].some(([location, state]) => location.endsWith(ending) && state === "ok");
  }

  #checkOutcome({ kind, idempotencyKey: key, state, outcome }: EffectRow): void {
    const idempotencyKey = toStableKey(key);
    // The row of a task changes from a failure to the outcome of its error handler.
    if (kind === "task" || idempotencyKey === "") return;
    const previous = this.#outcomes.get(idempotencyKey);
    if (state === "started") {
      if (previous !== undefined)
        this.#addViolation("I1", `${idempotencyKey} started again after its outcome was recorded`);
      return;
    }
    if (previous !== undefined && outcome !== undefined && previous !== "" && previous !== outcome)
      this.#addViolation("I1", `the outcome of ${idempotencyKey} was written twice with different values`);
    this.#outcomes.set(idempotencyKey, outcome ?? previous ?? "");
  }
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

/** Parses namespace and step from an idempotency key. */
function parseIdempotencyKey(thread: string, key: string): { readonly namespace?: string; readonly step?: number } {
  if (!key.startsWith(`${thread}/`)) return {};
  const parts = key.slice(thread.length + 1).split("/");
  const namespace = parts.slice(0, -2).join("/");
  const step = Number(parts[parts.length - 2]?.split(":")[0]);
  return namespace === "" || Number.isNaN(step) ? {} : { namespace, step };
}
