/** `resume`: resumes a thread after a crash, a failure, or with answers of interrupts. */

import { isStatewrightError, StatewrightError } from "../base/errors.ts";
import { checkId, createId } from "../base/ids.ts";
import type { World } from "../base/world.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/graph.ts";
import { getPlan } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { getProgram, programs } from "../run/begin.ts";
import { launch } from "../run/launch.ts";
import { applyAnswers } from "../run/loop/apply-answers.ts";
import type { Delivery, GivenAnswers } from "../run/migration/program.ts";
import { announceClaim, type Caller, runAsActive } from "../run/queue.ts";
import { checkPreemption } from "../run/session/check-preemption.ts";
import { checkRunOptions } from "../run/session/options/check-run-options.ts";
import type { GraphCallOptions, ResumeOptions, RunHandle, RunOf, RunResult } from "../run/session/options/options.ts";
import { isLostClaim, type Persistence } from "../run/session/parts/persistence.ts";
import { getErrorPlace, type Position } from "../run/session/parts/position.ts";
import type { State } from "../run/session/returns.ts";
import type { Session } from "../run/session/session.ts";
import { getCodec, getWorld, type OpenSessionOptions, openSession, release } from "../run/task/open-session.ts";
import { copyInput } from "../state/copy-input.ts";
import { findRepeatedOutcome, findRunOutcome } from "./answers/repeated-answers.ts";
import { findKeyedEvents } from "./keyed-events.ts";
import { type Opening, openOrDeliver, type PostedEvents } from "./open-or-deliver.ts";

/**
 * Resumes a thread: executes only tasks without a recorded result. Answers are matched by interrupt id or key. A
 * finished thread is unchanged. Overdue interrupts expire before answers are applied. Answers for a durable machine at
 * work, in any process, are delivered to its run, and the result has the status `delivered`. Throws `missing_store`
 * without a store and `invalid_id` for an invalid thread id. With `key`, a second call with the same answers is not
 * refused: the call continues the run after a crash, and otherwise returns the outcome. Under a key, a durable machine
 * takes a single event or answer, with the key as id. `result` rejects with `unknown_thread`, `thread_busy`,
 * `unknown_interrupt`, `ambiguous_answer`, `already_answered`, `interrupt_expired`, `invalid_answer`, `event_refused`,
 * or the error that fails the run.
 */
export function resume<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: GraphCallOptions<Types>["resume"],
): RunOf<Types> {
  checkRunOptions("resume", graph, options);
  return resumeRun({ graph: graph as Graph, options }) as RunOf<Types>;
}

/** {@link resume} with options already checked. */
export function resumeRun(caller: Caller & { readonly options: ResumeOptions<GraphTypes> }): RunHandle<unknown> {
  const { graph, options } = caller;
  const world = getWorld(options);
  const thread = checkId("thread", options.thread);
  const runId = createId("run_", world.random);
  const { store } = options;
  if (store === undefined) throw createMissingStoreError(thread);
  const answers = copyInput(getCodec(options), options.answers ?? {});
  const { delivery } = getProgram(getPlan(graph));
  const { key } = options;
  return launch<unknown, unknown>(options, thread, runId, async (events, stops) => {
    const opening = {
      programs,
      graph,
      options,
      thread,
      runId,
      events,
      ...stops,
      mustExist: true,
      claim: caller.claim,
      resumeKey: key,
      resumes: true,
      onIncompatible: "parks",
    } as const;
    const repeat = { caller: { ...caller, options: { ...options, store } }, thread, answers, events, stops };
    const target = toDelivery(opening, store, answers);
    const keyed = key === undefined || delivery === undefined ? undefined : await findKeyedEvents(target, key);
    const repeated = delivery === undefined ? await findRepeatedOutcome(repeat) : findRunOutcome(repeat, keyed);
    if (repeated !== undefined) return await repeated.outcome;
    try {
      const known = keyed !== undefined && "posted" in keyed ? keyed.posted : undefined;
      return await resumeWithRetry({ caller, opening, target, known });
    } catch (error) {
      // Another call with the same key answered between the first read and the claim.
      const first = isStatewrightError(error, "already_answered") ? await findRepeatedOutcome(repeat) : undefined;
      if (first === undefined) throw error;
      return await first.outcome;
    }
  });
}

/** A resume with its opening. */
interface ResumeParams {
  readonly caller: Caller & { readonly options: ResumeOptions<GraphTypes> };
  readonly opening: ResumeOpening;
  readonly target: Delivery;
  readonly known: PostedEvents | undefined;
}

/** Another process claimed the thread before the first commit of this resume, which was to claim the thread. */
class LostClaimError extends Error {}

/** Claims the thread with the first commit of the resume; after a lost claim, claims the thread first. */
async function resumeWithRetry(params: ResumeParams): Promise<RunResult<State>> {
  const { opening } = params;
  // The first commit of a machine may follow an effect.
  const claimsOnCommit = getProgram(getPlan(opening.graph)).delivery === undefined;
  try {
    return await resumeOnThread({ ...params, opening: { ...opening, claimsOnCommit } });
  } catch (error) {
    if (!(error instanceof LostClaimError)) throw error;
    return resumeOnThread(params);
  }
}

async function resumeOnThread({ caller, opening, target, known }: ResumeParams): Promise<RunResult<State>> {
  const { thread, claimsOnCommit, options } = opening;
  const { answers } = target;
  const unregister = announceClaim(caller, target.store, thread);
  let saved: Persistence | undefined;
  let result: Promise<RunResult<State>>;
  try {
    const opened = await openThread(opening, target, known);
    if ("result" in opened) return opened.result;
    const { session, posted } = opened;
    saved = session.journal.saved;
    // A dead process may have left a queued input that pre-empts this run.
    if (saved !== undefined && saved.claim.queued > 0) await checkPreemption(saved.thread, saved.store);
    result = runAsActive(session, caller, () =>
      continueThread(session, { answers, by: options.by, key: options.key, posted }),
    );
  } catch (error) {
    throw claimsOnCommit === true && isStatewrightError(error, "fenced") ? new LostClaimError() : error;
  } finally {
    unregister();
  }
  try {
    return await result;
  } catch (error) {
    throw saved !== undefined && isLostClaim(saved, error) ? new LostClaimError() : error;
  }
}

type ResumeOpening = OpenSessionOptions & { readonly options: ResumeOptions<GraphTypes> };

function toDelivery(
  { graph, options, thread }: ResumeOpening,
  store: Store,
  answers: Readonly<Record<string, unknown>>,
): Delivery {
  const { branch, by, key } = options;
  const plan = getPlan(graph);
  return { plan, store, codec: getCodec(options), world: getWorld(options), thread, branch, answers, by, key };
}

/** Opens the thread, or delivers the answers to a durable machine at work. */
async function openThread(opening: ResumeOpening, target: Delivery, known: PostedEvents | undefined): Promise<Opening> {
  const { delivery } = getProgram(target.plan);
  if (delivery === undefined || Object.keys(target.answers).length === 0)
    return { session: await openSession(opening), posted: undefined };
  return openOrDeliver(opening, target, delivery, known);
}

async function continueThread(session: Session, given: Omit<GivenAnswers, "apply">): Promise<RunResult<State>> {
  const { saved } = session.journal;
  if (saved !== undefined && saved.claim.head === undefined)
    throw await createNotStartedError(session.position, session.env.world, saved);
  return getProgram(session.position.plan).resume(session, { ...given, apply: applyAnswers });
}

function createMissingStoreError(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: `resume of thread "${thread}" has no store`,
    next: "Pass the store that holds the thread to resume",
    place: { thread },
  });
}

/**
 * Creates the error for a thread without a checkpoint: the process died before the input was saved, or START has no
 * route.
 */
async function createNotStartedError(position: Position, world: World, saved: Persistence): Promise<StatewrightError> {
  await release(saved.store, position.run.thread, saved.claim, { world });
  return new StatewrightError("unknown_checkpoint", {
    what: `thread "${position.run.thread}" has no checkpoint: no run saved its input`,
    next: "Run it again with its input",
    place: getErrorPlace(position),
  });
}
