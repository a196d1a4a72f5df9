/** Loads the outcome of a stored run, equal to the result of its own handle. */
import { fromErrorRecord, StatewrightError } from "../base/errors.ts";
import type { CheckpointRow, RunRow } from "../checkpoint/checkpoint.ts";
import { createInitialState, restoreState } from "../checkpoint/codec/saved-state.ts";
import { isOpen } from "../checkpoint/journal.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Plan } from "../compile/plan.ts";
import type { Codec } from "../state/codec.ts";
import { getProgram } from "./begin.ts";
import type { RunResult } from "./session/options/options.ts";
import type { State } from "./session/returns.ts";
import { toOpenInterrupt, toPublicState } from "./session/run-row.ts";

/** Dependencies of `loadRunOutcome`. */
export interface OutcomeSource {
  readonly plan: Plan;
  readonly store: Store;
  readonly codec: Codec;
}

/**
 * Loads the result of a run. Throws the error of a failed or parked run, and `thread_busy` for a run active in
 * another process.
 */
export async function loadRunOutcome(source: OutcomeSource, run: RunRow): Promise<RunResult<State>> {
  const { plan } = source;
  if ((run.status === "failed" || run.status === "parked") && run.error !== undefined) throw fromErrorRecord(run.error);
  if (run.status === "running" || run.status === "crashed") throw createBusyError(run);
  const { state, head } = await loadState(source, run);
  const end = {
    run: run.id,
    thread: run.thread,
    branch: run.branch,
    state: toPublicState(plan, state),
    steps: 0,
    bytes: 0,
  };
  switch (run.status) {
    case "done":
      return { status: "done", output: getProgram(plan).readOutput(plan, state), ...end };
    case "waiting":
      return { status: "waiting", interrupts: await listOpenInterrupts(source, run, head), ...end };
    case "cancelled":
      return { status: "cancelled", reason: run.reason ?? "the run was cancelled", ...end };
    case "queued":
      return { status: "queued", ...end };
    default:
      return { status: "paused", cause: run.error ?? { name: "Error", message: "the run is paused" }, ...end };
  }
}

/** Loads the state at the run's last checkpoint; for a run that has not started, the current state of the thread. */
async function loadState(
  { plan, store, codec }: OutcomeSource,
  run: RunRow,
): Promise<{ readonly state: State; readonly head: CheckpointRow | undefined }> {
  const { channels } = plan.graph.state;
  const head = await findLastCheckpoint(store, run);
  if (head === undefined) return { state: Object.freeze(createInitialState(channels)), head };
  const rows = await store.state(run.thread, head.id);
  return { state: Object.freeze(restoreState(channels, codec, rows)), head };
}

async function findLastCheckpoint(
  store: Store,
  { thread, branch, id, queuedAt, status }: RunRow,
): Promise<CheckpointRow | undefined> {
  const newest = await store.head(thread, branch);
  const hasStarted = status !== "queued" && (queuedAt === undefined || status !== "cancelled");
  if (!hasStarted || newest === undefined || newest.run === id) return newest;
  for (let before: number | undefined = newest.id; before !== undefined; ) {
    const page: readonly CheckpointRow[] = await store.history(thread, { branch, before, limit: 50 });
    const found = page.find((row) => row.run === id);
    if (found !== undefined) return found;
    before = page[page.length - 1]?.id;
  }
  return newest;
}

async function listOpenInterrupts(
  { store, codec }: OutcomeSource,
  { thread, branch }: RunRow,
  head: CheckpointRow | undefined,
) {
  const rows = await store.interrupts(thread, branch);
  return rows.filter((row) => row.step === head?.step && isOpen(row)).map((row) => toOpenInterrupt({ codec }, row));
}

function createBusyError({ id, thread, status }: RunRow): StatewrightError {
  return new StatewrightError("thread_busy", {
    what: `the run "${id}" of the thread "${thread}" is ${status === "crashed" ? "crashed: its process died" : "active in another process"}`,
    next: "Retry when the run has ended",
    place: { thread },
    details: { run: id, status },
  });
}
