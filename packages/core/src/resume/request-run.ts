/** Requests that the caller of `cancelRun` and `pauseRun` adds: handled here when the run is in this process or at rest. */
import { isStatewrightError } from "../base/errors.ts";
import { checkId, createId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import type { World } from "../base/world.ts";
import type { RunRow, RunStatus } from "../checkpoint/checkpoint.ts";
import type { RunRequest, RunRequestKind, RunRequestOutcome } from "../checkpoint/run-request.ts";
import type { Store } from "../checkpoint/store.ts";
import { finishRequestedRun } from "../run/loop/finish-requested-run.ts";
import { leaveQueue } from "../run/queue.ts";
import { checkCodecOption, checkWorldOption } from "../run/session/options/check-run-options.ts";
import { type ActiveRun, getThreadRegistry } from "../run/session/thread-registry.ts";
import { getCodec, getWorld } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";

/** Options of `cancelRun`, and those of `pauseRun` except `until`. */
export interface RequestRunOptions {
  /** Id of the thread. */
  readonly thread: string;
  /** Branch of the run, if `run` is absent. Default: the branch at work, otherwise the thread's head branch. */
  readonly branch?: string | undefined;
  /** Id of the run. Default: the unfinished run of the branch, otherwise its first queued run. */
  readonly run?: string | undefined;
  /** Reason, in the result and the events of the run. Default: names `by`. */
  readonly reason?: string | undefined;
  /** Author of the request, such as the id of a user. */
  readonly by?: string | undefined;
  /** Idempotency key in the thread: a repeated call with the key changes nothing, also after the run has ended. */
  readonly key?: string | undefined;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World | undefined;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec | undefined;
}

/** Outcome of `cancelRun` and `pauseRun`. */
export interface RequestedRunResult {
  readonly thread: string;
  readonly branch: string;
  readonly run: string;
  /**
   * `cancelled` and `paused`: the run has this status now. `requested`: the owner of the thread, or the process that
   * starts the queued run, handles the request. `unchanged`: the run had ended, or it rests already until a resume.
   */
  readonly status: "cancelled" | "paused" | "requested" | "unchanged";
  /** Last known status of the run. */
  readonly runStatus: RunStatus;
  /** Request that counts: of this call, or of an earlier one. Absent if the run needed none. */
  readonly request?: RunRequest | undefined;
}

/** Request of a call, with its kind. */
interface GivenRequest extends RequestRunOptions {
  readonly kind: RunRequestKind;
  readonly until?: number | undefined;
}

/** Checks the options that both calls share. Throws `invalid_option`, `invalid_id`. */
export function checkRequestOptions(call: string, options: RequestRunOptions): void {
  checkWorldOption(call, options.world);
  checkCodecOption(call, options.codec);
  checkId("thread", options.thread);
  if (options.branch !== undefined) checkId("branch", options.branch);
  if (options.run !== undefined) checkId("run", options.run);
  const { reason, by, key } = options;
  for (const [option, value] of Object.entries({ reason, by, key }))
    if (value !== undefined && (typeof value !== "string" || value === ""))
      throw invalidOption({ where: call, option, expected: "a text that is not empty", got: value });
}

/** Adds a request to the store, and handles it here when the run is in this process or at rest. */
export async function requestRun(store: Store, given: GivenRequest): Promise<RequestedRunResult> {
  const { thread } = given;
  const world = getWorld(toCommonOptions(given));
  const outcome = await addRequest(store, given, world);
  if ("local" in outcome) return outcome.local;
  const { run: row, request } = outcome;
  const base = { thread, branch: row.branch, run: row.id, ...(request === undefined ? {} : { request }) };
  if (outcome.isNew && request === undefined) {
    leaveQueue(store, row);
    return { ...base, status: "cancelled", runStatus: row.status };
  }
  if (request === undefined || request.handled === true) return { ...base, status: "unchanged", runStatus: row.status };
  const active = getThreadRegistry(store).active.get(thread);
  if (active?.run === row.id) {
    active.stopForRequest(request);
    return { ...base, status: "requested", runStatus: "running" };
  }
  const end = await finishRequestedRun({ store, world, codec: getCodec(toCommonOptions(given)), thread });
  if (end.kind !== "finished" || end.run.id !== row.id) return { ...base, status: "requested", runStatus: row.status };
  const { status } = end.run;
  return { ...base, status: status === "cancelled" || status === "paused" ? status : "unchanged", runStatus: status };
}

function toCommonOptions({ world, codec }: RequestRunOptions): { readonly world?: World; readonly codec?: Codec } {
  return { ...(world === undefined ? {} : { world }), ...(codec === undefined ? {} : { codec }) };
}

/** Adds the request. A run of this process that its first commit has not saved yet is stopped without a request. */
async function addRequest(
  store: Store,
  { thread, branch, codec: _, world: __, ...given }: GivenRequest,
  world: World,
): Promise<RunRequestOutcome | { readonly local: RequestedRunResult }> {
  const run = given.run ?? (branch === undefined ? await findRunAtWork(store, thread) : undefined);
  const id = createId("request_", world.random);
  const write = { ...given, id, thread, branch, run, at: world.clock.now() };
  try {
    return await store.request(write);
  } catch (error) {
    const active = getThreadRegistry(store).active.get(thread);
    const isUnsaved = isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "unknown_run");
    if (!isUnsaved || active === undefined || (run !== undefined && run !== active.run)) throw error;
    return { local: stopUnsaved(active, { ...write, run: active.run, branch: active.branch }) };
  }
}

function stopUnsaved(
  active: ActiveRun,
  { thread, ...request }: RunRequest & { readonly thread: string },
): RequestedRunResult {
  active.stopForRequest(request);
  return { thread, branch: active.branch, run: active.run, status: "requested", runStatus: "running", request };
}

/** Finds the run of the thread that a process runs now, on any branch. */
async function findRunAtWork(store: Store, thread: string): Promise<string | undefined> {
  const active = getThreadRegistry(store).active.get(thread);
  if (active !== undefined) return active.run;
  const [running]: readonly RunRow[] = await store.runs({ thread, status: "running", limit: 1 });
  return running?.id;
}
