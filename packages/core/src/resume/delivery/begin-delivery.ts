/** Begins a delivery: makes its work durable under its key, or finds what an earlier delivery of the key began. */
import { StatewrightError } from "../../base/errors.ts";
import type { RunRow, RunStatus } from "../../checkpoint/checkpoint.ts";
import { restoreState } from "../../checkpoint/codec/saved-state.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import { createUnknownThreadError } from "../../checkpoint/rules.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan } from "../../compile/plan.ts";
import type { GraphTypes } from "../../define/graph.ts";
import type { Message } from "../../model/message.ts";
import { getProgram } from "../../run/begin.ts";
import { checkConversation, postMessages, toMessages } from "../../run/session/inbox/inbox.ts";
import { checkRunOptions } from "../../run/session/options/check-run-options.ts";
import type { SubmitOptions } from "../../run/session/options/options.ts";
import { queueRun } from "../../run/submit.ts";
import { getCodec } from "../../run/task/open-session.ts";
import { copyInput } from "../../state/copy-input.ts";
import { findAnsweredRun } from "../answers/repeated-answers.ts";
import { cancelRun } from "../cancel-run.ts";
import { findKeyedEvents } from "../keyed-events.ts";
import type { DeliveredMessages, DeliveredRun, Delivery } from "./delivery.ts";
import { type DeliveryContext, findBranch, getServedGraph } from "./delivery-context.ts";
import { findThreadWork, isContinuable, runThreadWork, runWork, toResumeWork } from "./thread-work.ts";

type DeliveryOf<Name extends string> = Extract<Delivery, { readonly [Key in Name]: unknown }>;

/** Delivered run: puts the run into the queue under its key, then runs the thread until the run is at rest. */
export async function deliverRun(
  context: DeliveryContext,
  { run, key, thread, branch }: DeliveryOf<"run">,
): Promise<void> {
  const graph = typeof run.graph === "string" ? getServedGraph(context, run.graph) : run.graph;
  const options = { ...toSubmitOptions(context, run), thread, ...(key === undefined ? {} : { key }) };
  checkRunOptions("submit", graph, options);
  const submitted = await queueRun(graph, { ...options, ...(branch === undefined ? {} : { branch }) });
  context.run = submitted.run;
  await runThreadWork(context);
}

function toSubmitOptions(
  { store, world, serving: { codec } }: DeliveryContext,
  { graph: _, ...run }: DeliveredRun,
): SubmitOptions<GraphTypes> {
  return { ...run, store, world, ...(codec === undefined ? {} : { codec }) } as SubmitOptions<GraphTypes>;
}

/** Delivered answers: continues the run with the answers, or the run that an earlier delivery of the key continued. */
export async function deliverAnswers(context: DeliveryContext, delivery: DeliveryOf<"answers">): Promise<void> {
  const { answers, by, key } = delivery;
  const row = await getNewestRun(context);
  const known = await findAnswered(context, row, delivery);
  context.run = known?.id;
  if (known !== undefined) return await runThreadWork(context);
  const given = { answers: copyInput(getCodec(context.serving), answers), ...(by === undefined ? {} : { by }) };
  await runWork(context, toResumeWork(context, row, { ...given, ...(key === undefined ? {} : { key }) }));
  context.run = row.id;
}

/** Finds the run that has taken the answers of an earlier delivery. */
async function findAnswered(
  context: DeliveryContext,
  row: RunRow,
  { thread, answers, by, key }: DeliveryOf<"answers">,
): Promise<RunRow | undefined> {
  const { store, world } = context;
  const caller = context.getCaller(row);
  const plan = getPlan(caller.graph);
  if (key === undefined) return undefined;
  const { branch } = row;
  if (getProgram(plan).delivery === undefined) {
    const options = { ...caller.options, thread, branch, key, answers };
    return await findAnsweredRun({ caller: { ...caller, options }, thread, answers });
  }
  const codec = getCodec(context.serving);
  const found = await findKeyedEvents({ plan, store, codec, world, thread, branch, answers, by, key }, key);
  return found === undefined || "posted" in found ? undefined : found.run;
}

/** Delivered messages: adds them to the inbox of the thread under the key, once. */
export async function deliverMessage(
  context: DeliveryContext,
  { thread, key = "", message }: DeliveryOf<"message">,
): Promise<void> {
  const { store, world, serving } = context;
  const row = await store.thread(thread);
  if (row === undefined) throw createUnknownThreadError(thread);
  const branch = context.delivery.branch ?? row.headBranch;
  if ((await store.inboxMessage(thread, branch, key)) !== undefined) return;
  const graph = row.graph === undefined ? undefined : getServedGraph(context, row.graph);
  if (graph !== undefined) checkConversation(getPlan(graph));
  const messages = toKeyedMessages(context, key, message);
  if (graph !== undefined && (await hasMessages(context, { graph, branch, messages }))) return;
  const location = { store, codec: getCodec(serving), thread, branch };
  await postMessages(location, world, { kind: message.kind, messages, id: key });
}

/** Converts a text to a message whose id follows from the key, so that a late repeat finds it in the conversation. */
function toKeyedMessages({ world }: DeliveryContext, key: string, { messages }: DeliveredMessages): readonly Message[] {
  const converted = toMessages(messages, world);
  return typeof messages === "string" ? converted.map((message) => ({ ...message, id: `user_${key}` })) : converted;
}

/** Returns true if the conversation has the messages: the run that received them has ended. */
async function hasMessages(
  { store, serving, delivery: { thread } }: DeliveryContext,
  {
    graph,
    branch,
    messages,
  }: { readonly graph: Graph; readonly branch: string; readonly messages: readonly Message[] },
): Promise<boolean> {
  const head = await store.head(thread, branch);
  if (head === undefined) return false;
  const rows = (await store.state(thread, head.id)).filter(({ channel }) => channel === "messages");
  const { messages: known } = restoreState(graph.state.channels, getCodec(serving), rows);
  const ids = new Set((known as readonly Message[]).map(({ id }) => id));
  return messages.every(({ id }) => ids.has(id));
}

/** Delivered cancel: ends the run of the thread, or asks its owner to end it, once per key. */
export async function deliverCancel(
  context: DeliveryContext,
  { thread, branch, key, cancel: reason, by }: DeliveryOf<"cancel">,
): Promise<void> {
  const { store, world, serving } = context;
  const codec = getCodec(serving);
  context.run = (await cancelRun(store, { thread, branch, key, reason, by, world, codec })).run;
}

/** Delivered timers: moves due runs into the queue and resumes each run with a due timer. */
export async function deliverTimers(context: DeliveryContext): Promise<void> {
  const { store, world, stop } = context;
  await store.enqueueDue({ at: await readStoreTime(store, world), limit: dueLimit });
  while (!stop.isStopped()) {
    const work = await findThreadWork(context);
    if (work === undefined || context.tried.has(work.row.id)) return;
    await runWork(context, work);
    if (context.failure !== undefined) return;
  }
}

/** Largest number of delayed runs that one delivery moves into their queues. */
const dueLimit = 500;

/** Delivered resume: continues the newest run of the branch, also after a failure or a pause, or starts the next run. */
export async function deliverResume(context: DeliveryContext, { key }: DeliveryOf<"resume">): Promise<void> {
  const row = await findNewestRun(context);
  const isStopped = row?.status === "failed" || row?.status === "paused" || row?.status === "parked";
  if (row === undefined || !isStopped || (key !== undefined && row.resumeKey === key) || isContinuable(row)) {
    if (row !== undefined && isStopped && !isContinuable(row)) context.run = row.id;
    return await runThreadWork(context);
  }
  await runWork(context, toResumeWork(context, row, key === undefined ? {} : { key }));
  context.run = row.id;
}

/** Finds the newest started run of the branch. Throws `unknown_thread`. */
async function findNewestRun(context: DeliveryContext): Promise<RunRow | undefined> {
  const { store, delivery } = context;
  const { thread } = delivery;
  const branch = await findBranch(context, delivery);
  if (branch === undefined) throw createUnknownThreadError(thread);
  const rows = await store.runs({ thread, branch, status: startedStatuses, limit: 1 });
  return rows[0];
}

/** Returns the newest started run of the branch. Throws `unknown_thread`, `unknown_interrupt` for a thread without a run. */
async function getNewestRun(context: DeliveryContext): Promise<RunRow> {
  const row = await findNewestRun(context);
  if (row !== undefined) return row;
  throw new StatewrightError("unknown_interrupt", {
    what: `thread "${context.delivery.thread}" has no run that waits for an answer`,
    next: "Deliver a run first",
    place: { thread: context.delivery.thread },
  });
}

const startedStatuses: readonly RunStatus[] = [
  "running",
  "waiting",
  "paused",
  "parked",
  "failed",
  "crashed",
  "done",
  "cancelled",
];
