/** The outcome of a run that stands in a store: what its own handle gave, given again. */
import { fromErrorRecord, StatewrightError } from "../base/errors.ts";
import type { CheckpointRow, RunRow } from "../checkpoint/checkpoint.ts";
import { initialState, restoreState } from "../checkpoint/codec/saved-state.ts";
import { isOpen } from "../checkpoint/journal.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Plan } from "../compile/plan.ts";
import type { Codec } from "../state/codec.ts";
import type { RunResult } from "./session/options.ts";
import { readOutput, shownState } from "./session/output.ts";
import type { State } from "./session/returns.ts";
import { openInterrupt } from "./session/run-row.ts";

/** What reading an outcome takes. */
export interface OutcomeSource {
  readonly plan: Plan;
  readonly store: Store;
  readonly codec: Codec;
}

/** How a run ended for now. Throws the error of one that failed or is parked; one that is at work elsewhere is `thread_busy`. */
export async function outcomeOf(source: OutcomeSource, run: RunRow): Promise<RunResult<State>> {
  const { plan } = source;
  if ((run.status === "failed" || run.status === "parked") && run.error !== undefined) throw fromErrorRecord(run.error);
  if (run.status === "running" || run.status === "crashed") throw atWorkElsewhere(run);
  const { state, head } = await stateOf(source, run);
  const end = {
    run: run.id,
    thread: run.thread,
    branch: run.branch,
    state: shownState(plan, state),
    steps: 0,
    bytes: 0,
  };
  switch (run.status) {
    case "done":
      return { status: "done", output: plan.drawing === undefined ? readOutput(plan, state) : state["output"], ...end };
    case "waiting":
      return { status: "waiting", interrupts: await openQuestions(source, run, head), ...end };
    case "cancelled":
      return { status: "cancelled", reason: run.reason ?? "the run was cancelled", ...end };
    case "queued":
      return { status: "queued", ...end };
    default:
      return { status: "paused", cause: run.error ?? { name: "Error", message: "the run is paused" }, ...end };
  }
}

/** The state as the run left it; of one that has not begun, as the thread has it. */
async function stateOf(
  { plan, store, codec }: OutcomeSource,
  run: RunRow,
): Promise<{ readonly state: State; readonly head: CheckpointRow | undefined }> {
  const { channels } = plan.graph.state;
  const head = await lastOf(store, run);
  if (head === undefined) return { state: Object.freeze(initialState(channels)), head };
  const rows = await store.state(run.thread, head.id);
  return { state: Object.freeze(restoreState(channels, codec, rows)), head };
}

async function lastOf(
  store: Store,
  { thread, branch, id, queuedAt, status }: RunRow,
): Promise<CheckpointRow | undefined> {
  const newest = await store.head(thread, branch);
  const began = status !== "queued" && (queuedAt === undefined || status !== "cancelled");
  if (!began || newest === undefined || newest.run === id) return newest;
  for (let before: number | undefined = newest.id; before !== undefined; ) {
    const page: readonly CheckpointRow[] = await store.history(thread, { branch, before, limit: 50 });
    const found = page.find((row) => row.run === id);
    if (found !== undefined) return found;
    before = page[page.length - 1]?.id;
  }
  return newest;
}

async function openQuestions(
  { store, codec }: OutcomeSource,
  { thread, branch }: RunRow,
  head: CheckpointRow | undefined,
) {
  const asked = await store.interrupts(thread, branch);
  return asked.filter((row) => row.step === head?.step && isOpen(row)).map((row) => openInterrupt({ codec }, row));
}

function atWorkElsewhere({ id, thread, status }: RunRow): StatewrightError {
  return new StatewrightError("thread_busy", {
    what: `the run "${id}" of the thread "${thread}" is ${status === "crashed" ? "cut off by the death of its process" : "at work in another process"}`,
    next: "Ask again when it has ended",
    place: { thread },
    details: { run: id, status },
  });
}
