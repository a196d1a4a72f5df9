/** Starts and continues runs for requests of LangGraph clients. */
import { isStatewrightError, START } from "@statewright/core";
import type { CallerService, StartedRun, StateView } from "../service/caller-service.ts";
import { loadAssistantGraph } from "./assistants.ts";
import { isRestingStatus } from "./await-turn.ts";
import { type BuiltInput, buildInput, buildUpdate } from "./build-input.ts";
import { createInputProblem, createRefusal } from "./create-problem.ts";
import { parseResume } from "./parse-resume.ts";
import {
  checkThreadIds,
  findCheckpointId,
  isGiven,
  listStreamModes,
  type RunBody,
  refuseUnsupported,
  toAskedContext,
  toBreakpoints,
  toRunMetadata,
} from "./run-request.ts";
import { toHex } from "./to-hex.ts";
import { groupInterrupts } from "./to-wire-interrupts.ts";
import { isMessage } from "./to-wire-message.ts";
import { parseCheckpointId, rootBranchPrefix, rootCheckpoint } from "./wire-checkpoint.ts";

/** Request for a run on a thread. */
export interface RunRequest {
  readonly service: CallerService;
  readonly thread: string;
  readonly body: RunBody;
  readonly hitl: boolean;
}

/**
 * Starts a run with the input, answers open interrupts with `command.resume`, or continues the thread. Before that it
 * moves to the checkpoint of the request on a new branch, and writes `command.update`. Throws problems and errors of
 * the service.
 */
export async function startWireRun(request: RunRequest): Promise<StartedRun> {
  const { service, thread, body } = request;
  refuseUnsupported(body);
  checkThreadIds(thread, body);
  listStreamModes(body);
  const graph = await loadAssistantGraph(service, body.assistant_id);
  if (body.if_not_exists !== "create") await service.getThread(thread);
  const built = isGiven(body.input) ? buildInput(graph, body.input) : undefined;
  const { branch, removeMessages } = await moveToCheckpoint(request, built);
  const { command } = body;
  if (isGiven(command?.update) && isGiven(command?.resume))
    throw createRefusal(
      "An update closes the interrupts that the same command answers. Send two commands, the answer first.",
    );
  if (isGiven(command?.update)) {
    const changes = buildUpdate(graph, command?.update, "/command/update");
    await service.updateState(thread, { changes, branch });
  }
  const breakpoints = toBreakpoints(body, graph.nodes);
  const settings = { branch, breakpoints, asked: toAskedContext(body) };
  if (isGiven(command?.resume)) {
    const state = await service.getState(thread, { branch });
    const answers = parseResume(command?.resume, groupInterrupts(state.interrupts, request));
    return service.answer(thread, { ...settings, answers, branch: state.branch });
  }
  if (built === undefined) return service.resumeRun(thread, settings);
  const key = await createRunKey(request, built.messageId);
  const start = {
    ...settings,
    graph: graph.name,
    input: built.input,
    key,
    metadata: toRunMetadata(body),
    removeMessages,
  };
  return startWithInput(request, start);
}

/**
 * Returns the idempotency key of an input: the id of its newest message, so that the same request twice is a single
 * run. An edit repeats the id at another checkpoint, and is another run.
 */
async function createRunKey(request: RunRequest, messageId: string | undefined): Promise<string | undefined> {
  const { thread, body } = request;
  if (messageId === undefined) return undefined;
  const checkpoint = findCheckpointId(body);
  const isId = /^[A-Za-z0-9_.:-]{1,128}$/.test(messageId);
  return checkpoint === undefined && isId ? messageId : `c:${await hashParts([thread, messageId, checkpoint ?? null])}`;
}

async function hashParts(parts: readonly unknown[]): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(parts)));
  return toHex(new Uint8Array(digest)).slice(0, 32);
}

/** Place at which a run begins. */
interface RunStart {
  /** Undefined for the head branch. */
  readonly branch?: string;
  /** Messages that are not part of the thread at this place. */
  readonly removeMessages?: readonly string[];
}

/** Forks the thread at the checkpoint of a request; does nothing for the head of the thread. */
async function moveToCheckpoint(request: RunRequest, built: BuiltInput | undefined): Promise<RunStart> {
  const { service, thread, body } = request;
  const id = findCheckpointId(body);
  if (id === undefined) return {};
  const at = parseCheckpointId(thread, id);
  if (at === rootCheckpoint) return moveToRoot(request, built);
  const head = await service.getState(thread);
  if (head.checkpoint === at) return {};
  const hash = await hashRequest(request, built);
  return {
    branch: await forkOnce(request, { at, name: hash === undefined ? undefined : `lg-${hash}`, moveHead: true }),
  };
}

/** Returns the hash of a request with a message id, so that the same request twice finds the branch of the first one. */
async function hashRequest({ thread, body }: RunRequest, built: BuiltInput | undefined): Promise<string | undefined> {
  if (built?.messageId === undefined) return undefined;
  return hashParts([thread, built.messageId, findCheckpointId(body)]);
}

/**
 * Begins the thread anew on a branch of its first checkpoint, without the messages of that checkpoint. Throws a problem
 * for a request without an input.
 */
async function moveToRoot(request: RunRequest, built: BuiltInput | undefined): Promise<RunStart> {
  const { service, thread } = request;
  if (built === undefined)
    throw createInputProblem("/input", "expected an input for a run at the beginning of the thread");
  const first = await service.getState(thread, { at: firstCheckpoint });
  const removeMessages = listMessageIds(first);
  const hash = (await hashRequest(request, built)) ?? String((await service.listBranches(thread)).length);
  const branch = await forkOnce(request, { at: first.checkpoint, name: rootBranchPrefix + hash, moveHead: true });
  return { branch, removeMessages };
}

function listMessageIds({ values: { messages } }: StateView): readonly string[] {
  return Array.isArray(messages) ? messages.filter(isMessage).map(({ id }) => id) : [];
}

/** Checkpoints of a thread are counted from 1. */
const firstCheckpoint = 1;

async function forkOnce(request: RunRequest, fork: ForkRequest): Promise<string> {
  try {
    return await forkThread(request, fork);
  } catch (error) {
    if (fork.name !== undefined && isStatewrightError(error, "thread_exists")) return fork.name;
    throw error;
  }
}

type ForkRequest = Parameters<CallerService["fork"]>[1];

/** Forks the thread. A run at work is stopped before, if the request asks for that. */
async function forkThread({ service, thread, body }: RunRequest, fork: ForkRequest): Promise<string> {
  try {
    return (await service.fork(thread, fork)).branch;
  } catch (error) {
    const strategy = body.multitask_strategy;
    const mayStop = strategy === "interrupt" || strategy === "rollback";
    if (!mayStop || !isStatewrightError(error, "thread_busy")) throw error;
    const stopped = await service.cancelRun(thread, { reason: strategy });
    await service.waitForRun(stopped.id, new AbortController().signal);
    return (await service.fork(thread, fork)).branch;
  }
}

const busyModes = { reject: "reject", interrupt: "cancel", rollback: "rollback", enqueue: "enqueue" } as const;

type StartInput = Parameters<CallerService["startRun"]>[1];

/**
 * Starts a run. `reject` is about a run at work: a run that waits, has paused or has failed is ended by the new input,
 * as on a LangGraph server.
 */
async function startWithInput({ service, thread, body }: RunRequest, start: StartInput): Promise<StartedRun> {
  const asked = busyModes[body.multitask_strategy ?? "reject"];
  // An input behind a run that waits for a person would never start: the input ends that run, as for `reject`.
  const onBusy = asked === "enqueue" && (await isResting(service, thread)) ? "cancel" : asked;
  try {
    return await service.startRun(thread, { ...start, onBusy });
  } catch (error) {
    if (onBusy !== "reject" || !isStatewrightError(error, "thread_busy")) throw error;
    const { status } = await service.getThread(thread);
    if (!isRestingStatus(status)) throw error;
    return await service.startRun(thread, { ...start, onBusy: "cancel" });
  }
}

/** Moves the head of a thread back to the checkpoint before a run. A thread that began with the run has no messages then. */
export async function rollBackRun(service: CallerService, thread: string, run: string): Promise<void> {
  const { branch } = await service.getRun(run);
  let before: string | undefined;
  do {
    const page = await service.listStates(thread, { branch, before, limit: 50 });
    const earlier = page.data.find((state) => state.run !== run);
    if (earlier !== undefined) {
      await service.fork(thread, { at: earlier.checkpoint, moveHead: true });
      return;
    }
    before = page.next;
    if (before === undefined && page.data.length > 0) await removeFirstRun(service, thread);
  } while (before !== undefined);
}

/** Begins a thread anew on a branch of its first checkpoint, without the messages of the checkpoint. */
async function removeFirstRun(service: CallerService, thread: string): Promise<void> {
  const first = await service.getState(thread, { at: firstCheckpoint });
  const name = `${rootBranchPrefix}${(await service.listBranches(thread)).length}`;
  const { branch } = await service.fork(thread, { at: first.checkpoint, name, moveHead: true });
  const messages = listMessageIds(first).map((id) => ({ remove: id }));
  if (messages.length > 0) await service.updateState(thread, { changes: { messages }, as: START, branch });
}

/** Returns true if the newest run of the thread rests without an end; false for a missing thread. */
async function isResting(service: CallerService, thread: string): Promise<boolean> {
  try {
    return isRestingStatus((await service.getThread(thread)).status);
  } catch (error) {
    if (!isStatewrightError(error, "unknown_thread")) throw error;
    return false;
  }
}
