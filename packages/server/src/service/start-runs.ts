/** Acts that start and continue runs. */
import { isStatewrightError, type Json, type RunHandle, StatewrightError } from "@statewright/core";
import { checkId, digestArgs } from "@statewright/core/adapter";
import { checkAnswer } from "@statewright/core/inspect";
import type { CheckpointRow, InterruptRow, RunRow } from "@statewright/core/store";
import type { CallerScope, OwnThread } from "./caller-scope.ts";
import type { AnswerRequest, CallerService, ContinueRequest, StartedRun, StartRequest } from "./caller-service.ts";
import { findRunRow } from "./find-run-row.ts";
import { selectInput } from "./new-messages.ts";
import { omitUndefined } from "./omit-undefined.ts";
import { createRunContext } from "./run-context.ts";
import { awaitSavedStart, type SavedStart } from "./saved-start.ts";
import {
  createChangedCheckpointProblem,
  createInvalidRequestProblem,
  createNothingToDoProblem,
} from "./service-problems.ts";
import { createUnknownRunError, createUnknownThreadError } from "./thread-ids.ts";
import type { ThreadLocks } from "./thread-locks.ts";
import { findSeqBeforeStart, getNewestSeq } from "./thread-timeline.ts";
import { toJson } from "./to-json.ts";
import { toRunView } from "./views.ts";
import { waitForHint } from "./wait-for-hint.ts";

/** Creates the acts that start and continue runs of a caller. */
export function createStartActs(
  scope: CallerScope,
  locks: ThreadLocks,
): Pick<CallerService, "startRun" | "answer" | "resumeRun"> {
  return {
    startRun: (thread, request) => startRun(scope, thread, request),
    // Two answers of one interrupt: the second finds the first.
    answer: (thread, request) => locks(scope.toStoredId(thread), () => answer(scope, thread, request)),
    resumeRun: (thread, request) => resumeRun(scope, thread, request),
  };
}

/** Handles whose first caller has its answer: a later call under the same key starts no run. */
const knownHandles: WeakSet<RunHandle<unknown>> = new WeakSet();

async function startRun(scope: CallerScope, thread: string, request: StartRequest): Promise<StartedRun> {
  const { store, caller, options } = scope;
  const stored = scope.toStoredId(thread);
  await scope.ask({ action: "run.start", graph: request.graph, thread, changes: true });
  const graph = scope.requireGraph(request.graph);
  const known = await store.thread(stored);
  if (known !== undefined && !scope.isVisible(known)) throw createUnknownThreadError(thread);
  await checkBranch(scope, { wire: thread, stored }, request.branch, known === undefined);
  const { key, branch, onBusy, metadata, removeMessages } = request;
  const keyed = key === undefined ? undefined : { stored, key, body: toKeyBody(request) };
  const repeated = keyed === undefined ? undefined : await findRepeatedStart(scope, keyed);
  if (repeated !== undefined) return repeated;
  let input: object | undefined;
  try {
    input = await selectInput(scope, { graph, stored, branch, key }, request.input);
  } catch (error) {
    // Another call under the key has saved the messages meanwhile.
    const other = keyed === undefined ? undefined : await findRepeatedStart(scope, keyed);
    if (other !== undefined) return other;
    throw error;
  }
  const context = await createRunContext(scope, { graph, thread, asked: request.asked });
  const handle = options.engine.run(graph, {
    ...context,
    thread: stored,
    onKeyReused: "refuse",
    ...omitUndefined({ key, keyBody: keyed?.body, branch, onBusy, metadata, removeMessages, input }),
    ...toBreakpoints(request.breakpoints),
    tenant: caller.tenant,
    owner: caller.id,
  });
  const isFirst = !knownHandles.has(handle);
  knownHandles.add(handle);
  const saved = await awaitSavedStart(handle, async (run) => (await findRunRow(store, stored, run)) !== undefined);
  const isNew = isFirst && saved.run === handle.id;
  return await toStartedRun(scope, stored, { ...saved, isNew });
}

async function answer(scope: CallerScope, thread: string, request: AnswerRequest): Promise<StartedRun> {
  const { options, caller } = scope;
  const own = await scope.requireThread(thread, { action: "run.answer", changes: true });
  const graph = scope.requireGraph(own.row.graph ?? "");
  const { answers, key, branch: asked } = request;
  if (Object.keys(answers).length === 0)
    throw createInvalidRequestProblem("answers: expected at least one answer by the id of an interrupt, got none.");
  const repeated = key === undefined ? [] : await findAnswered(scope, own.stored, key);
  if (key !== undefined) await checkKeyStartedNoRun(scope, own, key);
  const branch = repeated[0]?.branch ?? (await checkAnswers(scope, own, answers));
  if (asked !== undefined && asked !== branch)
    throw createInvalidRequestProblem(`branch: the answered interrupts are on the branch "${branch}", got "${asked}".`);
  if (repeated.length === 0) await checkHead(scope, own, branch, request.ifCheckpoint);
  const context = await createRunContext(scope, {
    graph,
    thread,
    asked: request.asked,
    run: await findHeadRun(scope, own, branch),
  });
  const handle = options.engine.resume(graph, {
    ...context,
    ...{ thread: own.stored, branch, answers, by: caller.id },
    ...omitUndefined({ key }),
    ...toBreakpoints(request.breakpoints),
  });
  try {
    const saved = await awaitSavedStart(handle, async () => repeated.length > 0);
    return await toStartedRun(scope, own.stored, { ...saved, isNew: repeated.length === 0 });
  } catch (error) {
    if (repeated.length > 0 && key !== undefined && isStatewrightError(error, "already_answered"))
      throw createReusedKeyError(thread, key);
    if (isStatewrightError(error, "thread_busy")) await awaitOtherAnswer(scope, own, answers);
    throw error;
  }
}

async function resumeRun(scope: CallerScope, thread: string, request: ContinueRequest): Promise<StartedRun> {
  const own = await scope.requireThread(thread, { action: "run.start", changes: true });
  const graph = scope.requireGraph(own.row.graph ?? "");
  await checkBranch(scope, own, request.branch, false);
  const branch = request.branch ?? own.row.headBranch;
  const run = await findHeadRun(scope, own, branch);
  const { key } = request;
  if (run !== undefined && key !== undefined && run.resumeKey === key)
    return await toStartedRun(scope, own.stored, { run: run.id, seq: undefined, isNew: false });
  if (run !== undefined && isOver(run, await scope.store.head(own.stored, branch)))
    throw createNothingToDoProblem("No run of the branch is paused, failed or crashed.");
  const context = await createRunContext(scope, { graph, thread, asked: request.asked, run });
  const handle = scope.options.engine.resume(graph, {
    ...context,
    ...{ thread: own.stored, branch, by: scope.caller.id },
    ...omitUndefined({ key }),
    ...toBreakpoints(request.breakpoints),
  });
  const saved = await awaitSavedStart(handle, async () => false);
  if (saved.seq === undefined) throw createNothingToDoProblem("No run of the branch is paused, failed or crashed.");
  return await toStartedRun(scope, own.stored, { ...saved, isNew: true });
}

/** True for a run that has ended, on a branch that nobody has forked or changed since. */
function isOver({ status }: RunRow, head: CheckpointRow | undefined): boolean {
  return (status === "done" || status === "cancelled") && head?.source !== "fork" && head?.source !== "update";
}

/** Breakpoints of a request as the option of a run. */
function toBreakpoints(breakpoints: StartRequest["breakpoints"]): {
  readonly breakpoints?: { readonly before?: readonly string[]; readonly after?: readonly string[] };
} {
  return breakpoints === undefined ? {} : { breakpoints: omitUndefined(breakpoints) };
}

/** Start under a key. */
interface KeyedStart {
  readonly stored: string;
  readonly key: string;
  readonly body: Json;
}

/** What a start under a key is about: a repeated one is equal. */
function toKeyBody({ graph, input, metadata = {}, removeMessages = [] }: StartRequest): Json {
  return [graph, toJson(input), metadata, [...removeMessages]];
}

/** Returns the run that an earlier start of the key began. Throws `key_reused` for another request under the key. */
async function findRepeatedStart(
  scope: CallerScope,
  { stored, key, body }: KeyedStart,
): Promise<StartedRun | undefined> {
  const { store, codec } = scope;
  const [run] = await store.runs({ thread: stored, key, limit: 1 });
  const isSame = run?.bodyHash === undefined || run.bodyHash === digestArgs(codec, body);
  if (!isSame || (run === undefined && (await findAnswered(scope, stored, key)).length > 0))
    throw createReusedKeyError(scope.toWireId(stored), key);
  return run === undefined
    ? undefined
    : await toStartedRun(scope, stored, { run: run.id, seq: undefined, isNew: false });
}

/** Throws `unknown_branch` for a branch that the thread does not have: a run would create it. */
export async function checkBranch(
  { store }: CallerScope,
  { stored, wire }: Pick<OwnThread, "stored" | "wire">,
  branch: string | undefined,
  isNewThread: boolean,
): Promise<void> {
  if (branch === undefined || (isNewThread && branch === "main")) return;
  checkId("branch", branch);
  const branches = isNewThread ? [] : await store.branches(stored);
  if (branches.some(({ name }) => name === branch)) return;
  throw new StatewrightError("unknown_branch", {
    what: `the thread "${wire}" has no branch "${branch}"`,
    next: "Use a branch of the thread, or leave out the branch",
    place: { thread: wire },
  });
}

/** Throws the problem `checkpoint_changed` when the head of the branch is another checkpoint than the request names. */
async function checkHead(
  { store }: CallerScope,
  { stored }: Pick<OwnThread, "stored">,
  branch: string,
  expected: number | undefined,
): Promise<void> {
  if (expected === undefined) return;
  const head = await store.head(stored, branch);
  if (head?.id !== expected) throw createChangedCheckpointProblem(expected, head?.id);
}

/**
 * Checks every answer by the id of its interrupt and its saved schema. Returns the branch of the interrupts. Throws
 * `unknown_interrupt`, `already_answered`, `interrupt_expired`, `invalid_answer`.
 */
async function checkAnswers(
  { store, world, codec }: CallerScope,
  { stored }: OwnThread,
  answers: AnswerRequest["answers"],
): Promise<string> {
  const branches = new Set<string>();
  for (const [interrupt, value] of Object.entries(answers))
    branches.add((await checkAnswer(store, { thread: stored, interrupt, value, world, codec })).branch);
  const [branch = "main", ...others] = branches;
  if (others.length === 0) return branch;
  throw createInvalidRequestProblem("answers: expected interrupts of one branch. Answer each branch by itself.");
}

/** Time in which another process saves the answers for which it has claimed the thread, in milliseconds. */
const otherAnswerMs = 500;

/** Throws `already_answered` when another process, which holds the thread, has answered meanwhile. */
async function awaitOtherAnswer(scope: CallerScope, own: OwnThread, answers: AnswerRequest["answers"]): Promise<void> {
  await checkAnswers(scope, own, answers);
  const hints = waitForHint(scope, own.stored, new AbortController().signal);
  await hints.next(otherAnswerMs);
  hints.stop();
  await checkAnswers(scope, own, answers);
}

/** Lists the interrupts of a thread that were answered under a key. */
async function findAnswered({ store }: CallerScope, stored: string, key: string): Promise<readonly InterruptRow[]> {
  const branches = await store.branches(stored);
  const rows = await Promise.all(branches.map(({ name }) => store.interrupts(stored, name)));
  return rows.flat().filter(({ answerKey }) => answerKey === key);
}

async function checkKeyStartedNoRun({ store }: CallerScope, { stored, wire }: OwnThread, key: string): Promise<void> {
  const [started] = await store.runs({ thread: stored, key, limit: 1 });
  if (started !== undefined) throw createReusedKeyError(wire, key);
}

export function createReusedKeyError(thread: string, key: string): StatewrightError {
  return new StatewrightError("key_reused", {
    what: `the key "${key}" belongs to another request of the thread "${thread}"`,
    next: "Use another key for other work, or repeat the request unchanged",
    place: { thread },
  });
}

/** Returns the newest started run of a branch. */
export async function findHeadRun(
  { store }: CallerScope,
  { stored }: OwnThread,
  branch: string,
): Promise<RunRow | undefined> {
  return (await store.runs({ thread: stored, branch, limit: 50 })).find(({ status }) => status !== "queued");
}

/** Returns the saved run with the number of the event before it. */
export async function toStartedRun(
  scope: CallerScope,
  stored: string,
  { run, seq, isNew }: SavedStart & { readonly isNew: boolean },
): Promise<StartedRun> {
  const { store } = scope;
  const newest = seq === undefined ? await getNewestSeq(store, stored) : 0;
  const row = await findRunRow(store, stored, run);
  if (row === undefined) throw createUnknownRunError(run);
  if (seq !== undefined) return { run: toRunView(scope, row), isNew, after: seq - 1 };
  const before = row.status === "queued" ? newest : await findSeqBeforeStart(scope, stored, run);
  return { run: toRunView(scope, row), isNew, after: before ?? (isNew ? newest : 0) };
}
