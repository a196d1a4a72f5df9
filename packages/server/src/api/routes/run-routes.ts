/** Routes of runs: start, list, answer, resume, cancel, pause, and messages for a run at work. */
import type { Message, RunStatus } from "@statewright/core";
import type { RouteCall } from "../../http/route.ts";
import type { CallerService, CancelRequest, Page, RunView } from "../../service/caller-service.ts";
import { createNothingToDoProblem } from "../../service/service-problems.ts";
import { answerStarted, startedFrames } from "../answer-started.ts";
import { checkHead } from "../check-head.ts";
import { type Answer, type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { readKey, readWaitMs } from "../request-headers.ts";
import { inboxMessage, inboxReceipt, type WireUserMessage } from "../schemas/messages.ts";
import {
  answers,
  cancel,
  newRun,
  outcome,
  pause,
  resume,
  run,
  runOrOutcome,
  runPage,
  runQuery,
} from "../schemas/runs.ts";
import { toUserMessage } from "../to-user-message.ts";
import { toPage, toRun } from "../to-wire.ts";

/** Creates the routes of runs. */
export function createRunRoutes(): readonly ApiRoute[] {
  return [...createReadRoutes(), ...createStartRoutes(), ...createStopRoutes(), createInboxRoute()];
}

const accepted: Answer = { description: "The run, queued or at work", schema: run, headers: ["location"] };
const rested: Answer = { description: "The run at rest, with `Prefer: wait`", schema: outcome };

function createReadRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "GET", path: "/threads/:thread/runs", action: "thread.read", id: "listRuns", tag: "runs" },
      summary: "Runs of a thread, newest first",
      query: runQuery,
      answers: { 200: { description: "A page of runs", schema: runPage } },
      handle: async ({ service, params }, { query }) =>
        createJson(toPage(await service.listRuns(params["thread"] ?? "", query), toRun)),
    }),
    defineRoute({
      ...{ method: "GET", path: "/runs/:run", action: "thread.read", id: "getRun", tag: "runs" },
      summary: "A run",
      answers: { 200: { description: "The run", schema: run } },
      handle: async ({ service, params }) => createJson(toRun(await service.getRun(params["run"] ?? ""))),
    }),
  ];
}

function createStartRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "POST", path: "/threads/:thread/runs", action: "run.start", id: "startRun", tag: "runs" },
      summary: "Start a run, on a new or an existing thread",
      headers: ["idempotency-key", "prefer"],
      body: newRun,
      frames: startedFrames,
      answers: {
        200: { description: "The run at rest, with `Prefer: wait`; or the known run of the key", schema: runOrOutcome },
        201: { ...accepted, description: "The started run" },
        202: { ...accepted, description: "The queued run, or a run that works longer than `Prefer: wait`" },
      },
      handle: async (call, { body: { context, key, input, ...body } }) => {
        const { service, request } = call;
        const thread = call.params["thread"] ?? "";
        const started = await service.startRun(thread, {
          ...body,
          input: input === undefined ? undefined : await service.insertFiles(thread, input),
          key: readKey(request, key),
          asked: context,
        });
        const isQueued = started.run.status === "queued";
        return await answerStarted(call, started, { status: !started.isNew ? 200 : isQueued ? 202 : 201 });
      },
    }),
    defineRoute({
      ...{ method: "POST", path: "/threads/:thread/answers", action: "run.answer", id: "answer", tag: "runs" },
      summary: "Answer interrupts and continue the run",
      headers: ["idempotency-key", "prefer", "if-match"],
      body: answers,
      frames: startedFrames,
      answers: { 200: rested, 202: accepted },
      handle: async (call, { body: { context, key, ...body } }) => {
        const thread = call.params["thread"] ?? "";
        const head = await checkHead(call, thread, body.branch);
        const started = await call.service.answer(thread, {
          ...body,
          ifCheckpoint: body.ifCheckpoint ?? head,
          key: readKey(call.request, key),
          asked: context,
        });
        return await answerStarted(call, started, { status: 202 });
      },
    }),
    defineRoute({
      ...{ method: "POST", path: "/threads/:thread/resume", action: "run.start", id: "resumeRun", tag: "runs" },
      summary: "Continue a paused, failed or crashed run",
      headers: ["idempotency-key", "prefer"],
      body: resume,
      frames: startedFrames,
      answers: { 200: rested, 202: accepted },
      handle: async (call, { body: { context, key, ...body } }) => {
        const request = { ...body, key: readKey(call.request, key), asked: context };
        const started = await call.service.resumeRun(call.params["thread"] ?? "", request);
        return await answerStarted(call, started, { status: 202 });
      },
    }),
  ];
}

/** Milliseconds that a cancellation with `wait: true` waits. */
const cancelWaitMs = 60_000;

function createStopRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "POST", path: "/threads/:thread/cancel", action: "run.cancel", id: "cancelRun", tag: "runs" },
      summary: "Cancel the run at work, or a named run",
      headers: ["prefer"],
      body: cancel,
      answers: {
        200: { description: "The cancelled run, when the request waited for its end", schema: run },
        202: { description: "The cancellation is saved; the run ends soon", schema: run },
      },
      handle: async (call, { body: { wait, ...body } }) => {
        const cancelled = await stopRun(call, body, { statuses: unended, stop: call.service.cancelRun });
        const ms = readWaitMs(call.request) ?? (wait === true ? cancelWaitMs : undefined);
        if (ms === undefined) return createJson(toRun(cancelled), { status: 202 });
        const rest = await call.service.waitForRest(cancelled.id, { ms, signal: call.request.signal });
        if (rest === undefined) return createJson(toRun(cancelled), { status: 202 });
        return createJson(toRun(rest));
      },
    }),
    defineRoute({
      ...{ method: "POST", path: "/threads/:thread/pause", action: "run.cancel", id: "pauseRun", tag: "runs" },
      summary: "Pause the run at work at the end of its superstep",
      body: pause,
      answers: { 202: { description: "The pause is saved", schema: run } },
      handle: async (call, { body }) => {
        const paused = await stopRun(call, body, {
          statuses: ["queued", "running", "waiting", "crashed"],
          stop: call.service.pauseRun,
        });
        return createJson(toRun(paused), { status: 202 });
      },
    }),
  ];
}

const unended: readonly RunStatus[] = ["queued", "running", "waiting", "paused", "parked", "crashed"];

/** Stops a run. Throws a problem (409) when the thread has no run, or the named run is not one, of these statuses. */
async function stopRun(
  { service, params }: RouteCall,
  request: CancelRequest,
  { statuses, stop }: { readonly statuses: readonly RunStatus[]; readonly stop: CallerService["cancelRun"] },
): Promise<RunView> {
  const thread = params["thread"] ?? "";
  const { data } = request.run === undefined ? await service.listRuns(thread, { status: statuses, limit: 1 }) : noRuns;
  const named = request.run === undefined ? undefined : await service.getRun(request.run);
  const isStoppable = named === undefined ? data.length > 0 : statuses.includes(named.status);
  if (isStoppable) return await stop(thread, request);
  throw createNothingToDoProblem("No run of the thread is at work.");
}

const noRuns: Page<RunView> = { data: [] };

function createInboxRoute(): ApiRoute {
  return defineRoute({
    ...{ method: "POST", path: "/threads/:thread/inbox", action: "run.start", id: "sendMessage", tag: "runs" },
    summary: "Send messages to the run at work, or to the next run",
    headers: ["idempotency-key"],
    body: inboxMessage,
    answers: { 202: { description: "The messages are saved", schema: inboxReceipt } },
    handle: async (call, { body: { id: bodyId, messages, kind, branch } }) => {
      const { service, params, request, requestId } = call;
      const thread = params["thread"] ?? "";
      const id = readKey(request, bodyId) ?? `in_${requestId}`;
      await service.sendMessage(thread, {
        id,
        kind,
        branch,
        messages: await toMessages(call, thread, { id, messages }),
      });
      return createJson({ id }, { status: 202 });
    },
  });
}

async function toMessages(
  { service }: RouteCall,
  thread: string,
  { id, messages }: { readonly id: string; readonly messages: readonly WireUserMessage[] },
): Promise<readonly Message[]> {
  const made = messages.map((message, nth) => toUserMessage(message, `${id}.${nth}`));
  return await Promise.all(made.map((message) => service.insertFiles(thread, message)));
}
