/** Carries out what a post of `useChat` asks for. */
import type { Json, RunStatus, UserMessage } from "@statewright/core";
import { fingerprint, toBranchPrefix } from "@statewright/core/adapter";
import { RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";
import type { CallerService, RunView, StateView } from "../service/caller-service.ts";
import { type BranchRun, listBranchRuns } from "./list-branch-runs.ts";
import { listStateMessages } from "./load-thread.ts";
import { createOtherBranchProblem, type UiPlan } from "./plan-request.ts";
import type { ResolvedUiStreamOptions } from "./ui-stream-options.ts";

/** Post that is carried out. */
export interface PostedPlan {
  readonly service: CallerService;
  readonly thread: string;
  readonly graph: string;
  readonly state: StateView | undefined;
  readonly asked: Json;
  readonly options: ResolvedUiStreamOptions;
  readonly signal: AbortSignal;
}

/** Run whose message answers a post. */
export interface AnsweringRun {
  readonly run: RunView;
  /** Number of the event before the run. */
  readonly after: number;
  /** Number of the event after which the response begins: 0 for the whole message. */
  readonly from: number;
}

/** Starts or continues the run that answers the post. */
export async function performPlan(post: PostedPlan, plan: UiPlan): Promise<AnsweringRun> {
  const { service, thread, asked } = post;
  switch (plan.kind) {
    case "send":
      return await sendMessages(post, plan, post.options.onBusy);
    case "repeat":
      return await findRepeated(post, plan);
    case "answer": {
      const { run, after } = await service.answer(thread, { answers: plan.answers, asked });
      return plan.next === undefined
        ? await describeRun(service, run, after)
        : await sendMessages(post, plan.next, "enqueue");
    }
    case "edit":
      return await edit(post, plan.original, plan.message);
    case "regenerate":
      return await regenerate(post, plan.run);
  }
}

/** Describes a run that has started before, with its first event. */
export async function describeRun(service: CallerService, run: RunView, from: number): Promise<AnsweringRun> {
  return { run, after: (await service.findRunStart(run.id)) ?? 0, from };
}

async function sendMessages(
  { service, thread, graph, asked }: PostedPlan,
  { messages, key }: Extract<UiPlan, { readonly kind: "send" }>,
  onBusy: ResolvedUiStreamOptions["onBusy"],
): Promise<AnsweringRun> {
  const { run, after } = await service.startRun(thread, { graph, input: { messages }, key, onBusy, asked });
  return { run, after, from: 0 };
}

/** Returns the run that a known message of the user has started. */
async function findRepeated(post: PostedPlan, { message }: { readonly message: string }): Promise<AnsweringRun> {
  const runs = await listRuns(post);
  const found = runs.find(({ userMessages }) => userMessages.has(message));
  if (found === undefined) throw new RequestProblem(createProblem("nothing_to_do"));
  return await describeRun(post.service, await post.service.getRun(found.run), 0);
}

/** Replaces a message of the user and removes what followed, on a new head branch, and runs from there. */
async function edit(post: PostedPlan, original: string, message: UserMessage): Promise<AnsweringRun> {
  const { service, thread, state } = post;
  await endRunsAtWork(post);
  const writer = (await listRuns(post)).findLast(({ userMessages }) => userMessages.has(original));
  const at = writer?.userMessages.get(original);
  if (at === undefined) throw new RequestProblem(createProblem("unknown_message"));
  const known = listStateMessages(await service.getState(thread, { at }));
  const removed = known.slice(known.findIndex(({ id }) => id === original)).map(({ id }) => ({ remove: id }));
  const name = `edit_${fingerprint(`${state?.checkpoint}\n${original}\n${JSON.stringify(message.content)}`)}`;
  const edited = { ...message, id: `${toBranchPrefix(name)}${message.id}` };
  await service.fork(thread, { at, name, moveHead: true, changes: { messages: toJsonList([...removed, edited]) } });
  return await runFrom(post, name);
}

function toJsonList(values: readonly object[]): Json {
  return JSON.parse(JSON.stringify(values)) as Json;
}

/** Forks before the answer of a run, and runs again from there. */
async function regenerate(post: PostedPlan, target: string | undefined): Promise<AnsweringRun> {
  const { service, thread } = post;
  await endRunsAtWork(post);
  const runs = await listRuns(post);
  const last = runs.at(-1);
  const found = target === undefined ? last : runs.find(({ run }) => run === target);
  if (found?.start === undefined || (found !== last && !found.hasAnswer)) throw await createTargetProblem(post, target);
  const { branch } = await service.fork(thread, { at: found.start, moveHead: true });
  return await runFrom(post, branch);
}

async function runFrom({ service, thread, asked }: PostedPlan, branch: string): Promise<AnsweringRun> {
  const { run, after } = await service.resumeRun(thread, { branch, asked });
  return { run, after, from: 0 };
}

async function listRuns({ service, thread, state, signal }: PostedPlan): Promise<readonly BranchRun[]> {
  return await listBranchRuns(service, { thread, branch: state?.branch, signal });
}

async function createTargetProblem(
  { service, thread }: PostedPlan,
  target: string | undefined,
): Promise<RequestProblem> {
  if (target !== undefined && (await findThreadRun(service, thread, target)) !== undefined)
    return createOtherBranchProblem();
  return new RequestProblem(createProblem("unknown_message"));
}

/** Returns the row of a run, if the thread has it. */
export async function findThreadRun(service: CallerService, thread: string, id: string): Promise<RunView | undefined> {
  for (let before: string | undefined; ; ) {
    const page = await service.listRuns(thread, { before, limit: 200 });
    const found = page.data.find((run) => run.id === id);
    if (found !== undefined || page.next === undefined) return found;
    before = page.next;
  }
}

/** Statuses of runs that work, or wait for their turn. */
export const statusesAtWork: readonly RunStatus[] = ["queued", "running", "crashed"];

/** Ends the runs at work before the conversation changes. Throws `thread_busy` (409) when the option refuses that. */
async function endRunsAtWork({ service, thread, options, signal }: PostedPlan): Promise<void> {
  const { data: runs } = await service.listRuns(thread, { status: statusesAtWork });
  if (runs.length > 0 && options.onBusy === "reject") throw new RequestProblem(createProblem("thread_busy"));
  for (const { id } of runs) {
    await service.cancelRun(thread, { run: id, reason: "the conversation was changed" });
    await service.waitForRun(id, signal);
  }
}
