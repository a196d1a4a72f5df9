/** Act that answers interrupts, and continues their run. */
import { type Graph, isStatewrightError } from "@statewright/core";
import { isDurableMachine } from "@statewright/core/adapter";
import { checkAnswer } from "@statewright/core/inspect";
import type { CallerScope, OwnThread } from "../caller-scope.ts";
import type { AnswerRequest, StartedRun } from "../caller-service.ts";
import { omitUndefined } from "../omit-undefined.ts";
import {
  createChangedCheckpointProblem,
  createInvalidRequestProblem,
  createLeftBranchProblem,
} from "../service-problems.ts";
import { waitForHint } from "../wait-for-hint.ts";
import { keepOwnRun } from "./own-runs.ts";
import { createRunContext } from "./run-context.ts";
import { checkKeyStartedNoRun, createReusedKeyError, findAnswered } from "./run-keys.ts";
import { awaitSavedStart } from "./saved-start.ts";
import { findHeadRun, toBreakpoints, toStartedRun } from "./started-run.ts";

/**
 * Answers interrupts by their ids, each once, and continues their run; a durable machine also takes events by their
 * type. Resolves when the answers are saved. Throws the errors of `checkAnswer` and `resume`, `key_reused`, and the
 * problems `checkpoint_changed` and `invalid_request`.
 */
export async function answerRun(scope: CallerScope, thread: string, request: AnswerRequest): Promise<StartedRun> {
  const { options, caller } = scope;
  const own = await scope.requireThread(thread, { action: "run.answer", changes: true });
  const graph = scope.requireGraph(own.row.graph ?? "");
  const { answers, key } = request;
  if (Object.keys(answers).length === 0)
    throw createInvalidRequestProblem("answers: expected at least one answer by the id of an interrupt, got none.");
  if (key !== undefined) await checkKeyStartedNoRun(scope, own, key);
  const { branch, isRepeated } = await findPlace(scope, own, graph, request);
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
    const saved = await awaitSavedStart(handle, async () => isRepeated);
    keepOwnRun(options.engine, saved.run, handle);
    return await toStartedRun(scope, own.stored, { ...saved, isNew: !isRepeated });
  } catch (error) {
    if (isRepeated && key !== undefined && isStatewrightError(error, "already_answered"))
      throw createReusedKeyError(thread, key);
    if (isStatewrightError(error, "thread_busy") && !isDurableMachine(graph))
      await awaitOtherAnswer(scope, own, answers);
    throw error;
  }
}

/** Where the answers of a request belong. */
interface AnswerPlace {
  readonly branch: string;
  /** True when an earlier request under the same key has given answers. */
  readonly isRepeated: boolean;
}

/** Checks the answers, and finds their branch. */
async function findPlace(
  scope: CallerScope,
  own: OwnThread,
  graph: Graph,
  request: AnswerRequest,
): Promise<AnswerPlace> {
  const { key, branch: asked } = request;
  const place = isDurableMachine(graph)
    ? await findMachinePlace(scope, own, request)
    : await findGraphPlace(scope, own, request);
  const { branch, isRepeated } = place;
  if (asked !== undefined && asked !== branch)
    throw createInvalidRequestProblem(`branch: the answered interrupts are on the branch "${branch}", got "${asked}".`);
  if (asked === undefined && !isRepeated && branch !== own.row.headBranch)
    throw createLeftBranchProblem(branch, own.row.headBranch);
  if (!isRepeated || key === undefined) await checkHead(scope, own, branch, request.ifCheckpoint);
  return place;
}

async function findGraphPlace(
  scope: CallerScope,
  own: OwnThread,
  { answers, key }: AnswerRequest,
): Promise<AnswerPlace> {
  const [known] = key === undefined ? [] : await findAnswered(scope, own.stored, key);
  if (known !== undefined) return { branch: known.branch, isRepeated: true };
  return { branch: await checkAnswers(scope, own, answers), isRepeated: false };
}

/** A machine checks its events itself: one that is at work takes them without an open interrupt. */
async function findMachinePlace(scope: CallerScope, own: OwnThread, request: AnswerRequest): Promise<AnswerPlace> {
  const { key, branch = own.row.headBranch } = request;
  const run = key === undefined ? undefined : await findHeadRun(scope, own, branch);
  return { branch, isRepeated: run?.resumeKey !== undefined && run.resumeKey === key };
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
