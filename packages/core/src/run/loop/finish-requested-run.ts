/**
 * Handles a request of a run at rest: ends or pauses the run without its graph, so that any process can do it. Finished
 * tasks stay in the journal, and the next input of the thread answers its pending tool calls.
 */
import { isStatewrightError, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import type { GraphVersion } from "../../checkpoint/export/thread-export.ts";
import { canPause, isAtRestForRequest } from "../../checkpoint/request-rules.ts";
import { isUnfinishedRun } from "../../checkpoint/rules.ts";
import type { RunRequest } from "../../checkpoint/run-request.ts";
import type { Claim, Commit, Store } from "../../checkpoint/store.ts";
import type { TimerChange, TimerRow } from "../../checkpoint/timer.ts";
import { type Codec, encodeWrapper } from "../../state/codec.ts";
import { describeRequest } from "../session/check-requests.ts";
import type { DurableEventBody } from "../session/durable-event.ts";
import { awaitDurable } from "../session/parts/persistence.ts";
import { addWakeTimer } from "../session/timers/timer-rows.ts";
import { release } from "../task/open-session.ts";

/** Thread with requests. */
export interface RequestedThread {
  readonly store: Store;
  readonly world: World;
  readonly codec: Codec;
  readonly thread: string;
}

/**
 * Outcome: `finished` with the row of the run, `busy` when an owner handles the request, `nothing` without a request of
 * a run at rest.
 */
export type RequestedEnd = { readonly kind: "finished"; readonly run: RunRow } | { readonly kind: "busy" | "nothing" };

/** Handles the oldest request of a run at rest. Rejects with the error of the store. */
export async function finishRequestedRun(at: RequestedThread): Promise<RequestedEnd> {
  const row = await findRequestedRun(at);
  if (row === undefined) return { kind: "nothing" };
  const claim = await claimUnlessBusy(at, row);
  if (claim === undefined) return { kind: "busy" };
  const end = await endUnlessFenced(at, claim, row);
  return end ?? { kind: "busy" };
}

async function findRequestedRun({ store, thread }: RequestedThread): Promise<RunRow | undefined> {
  const requests = await store.requests(thread);
  if (requests.length === 0) return undefined;
  const runs = await store.runs({ thread, status: ["waiting", "paused", "parked", "failed", "crashed"] });
  const requested = new Set(requests.map(({ run }) => run));
  return runs.findLast((run) => requested.has(run.id) && isAtRestForRequest(run));
}

/** Claims the thread under the graph version that wrote its newest checkpoint. */
async function claimUnlessBusy(
  { store, world, thread }: RequestedThread,
  { branch, graph, version }: RunRow,
): Promise<Claim | undefined> {
  const head = await store.head(thread, branch);
  const writer: GraphVersion | undefined = head && (await store.writtenBy(thread, head.id));
  try {
    const at = world.clock.now();
    return await store.claim({ shape: "", ...(writer ?? { graph, version }), thread, branch, at, mustExist: true });
  } catch (error) {
    if (isStatewrightError(error, "thread_busy")) return undefined;
    throw error;
  }
}

async function endUnlessFenced(at: RequestedThread, claim: Claim, { id }: RunRow): Promise<RequestedEnd | undefined> {
  const { store, world, thread } = at;
  try {
    const requests = (await store.requests(thread)).filter(({ run }) => run === id);
    if (claim.run?.id !== id || !isUnfinishedRun(claim.run) || requests.length === 0) {
      await release(store, thread, claim, { world });
      return { kind: "nothing" };
    }
    const run = claim.run.status === "running" ? { ...claim.run, status: "crashed" as const } : claim.run;
    const commit = await createEnd(at, claim, { run, requests });
    await awaitDurable((onCommitted) => store.commit(commit, onCommitted));
    return { kind: "finished", run: commit.run ?? run };
  } catch (error) {
    if (isStatewrightError(error, "fenced")) return undefined;
    await release(store, thread, claim, { world });
    throw error;
  }
}

interface EndingRun {
  readonly run: RunRow;
  readonly requests: readonly RunRequest[];
}

/** Creates the commit that handles the requests: a cancel comes before a pause. */
async function createEnd(at: RequestedThread, claim: Claim, { run, requests }: EndingRun): Promise<Commit> {
  const handledRequests = requests.map(({ id }) => id);
  const base = { thread: at.thread, branch: claim.branch, epoch: claim.epoch, handledRequests, release: true };
  const cancel = requests.find(({ kind }) => kind === "cancel");
  const [first] = requests;
  if (cancel !== undefined) {
    const reason = describeRequest(cancel);
    const { error: _, wakeAt: __, ...rest } = run;
    const cancelled: RunRow = { ...rest, status: "cancelled", endedAt: at.world.clock.now(), reason };
    const timers = await listTimerDrops(at, claim.branch);
    return { ...base, run: cancelled, timers, ...createEvent(at, claim, { type: "run.cancelled", reason }) };
  }
  if (first === undefined || !canPause(run)) return { ...base, seq: claim.nextSeq - 1 };
  const cause = toErrorRecord(createPausedError(run, describeRequest(first)));
  const paused: RunRow = { ...run, status: "paused", error: cause, wakeAt: first.until };
  const event = createEvent(at, claim, { type: "run.paused", cause });
  return addWakeTimer({ ...base, run: paused, ...event }, claim.run);
}

function createEvent(
  { world, codec }: RequestedThread,
  { branch, nextSeq: seq }: Claim,
  body: DurableEventBody,
): Pick<Commit, "after" | "seq" | "events"> {
  const text = encodeWrapper(codec, body, `the event ${body.type}`);
  return { after: seq - 1, seq, events: [{ seq, branch, at: world.clock.now(), text }] };
}

/** Drops the timers of the branch: timers fire only for a run that can continue. */
async function listTimerDrops({ store, thread }: RequestedThread, branch: string): Promise<readonly TimerChange[]> {
  const timers = await store.timers({ thread });
  return timers
    .filter((timer) => timer.branch === branch && timer.kind !== "start")
    .map(({ id, generation }: TimerRow) => ({ drop: { id, generation } }));
}

function createPausedError({ thread, graph }: RunRow, reason: string): StatewrightError {
  return new StatewrightError("drained", {
    what: `the run was drained: ${reason}`,
    next: "Resume the thread to continue",
    place: { graph, thread },
    details: { reason },
  });
}
