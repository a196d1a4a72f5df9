/** AI SDK UI message stream: routes for `useChat`, as a protocol of the server. */
import type { Json } from "@statewright/core";
import * as z from "zod";
import { formatProblem } from "../http/problem-response.ts";
import type { Protocol, RouteCall } from "../http/route.ts";
import type { CallerService, RunView, StateView } from "../service/caller-service.ts";
import { findState, listStateMessages } from "./load-thread.ts";
import { createMessageIds } from "./message-ids.ts";
import { type AnsweringRun, describeRun, findThreadRun, performPlan, statusesAtWork } from "./perform-plan.ts";
import { createOtherBranchProblem, type KnownThread, mayBelongToOtherBranch, planRequest } from "./plan-request.ts";
import { readFrames } from "./read-frames.ts";
import { formatStreamFailure, streamRun, uiStreamHeaders } from "./run-stream.ts";
import { Transcript } from "./transcript.ts";
import { type UiRequest, uiRequest } from "./ui-request.ts";
import { type ResolvedUiStreamOptions, resolveUiStreamOptions, type UiStreamOptions } from "./ui-stream-options.ts";

/**
 * Creates the protocol of the AI SDK UI message stream, version 1, below `/ui`: `useChat` of `@ai-sdk/react` talks to
 * graphs with a conversation. The id of a chat is the id of its thread, and one assistant message is one run.
 *
 * @param options - `onBusy` (default `cancel`), `state` (channels to send, default none), `steering` (default false),
 * `maxFileBytes` (default 5 MiB), `maxBodyBytes` (default 10 MiB).
 * @throws `invalid_option` for an unknown or invalid option.
 * @example
 * const server = serve({ engine: host, access, protocols: [uiStream()] });
 */
export function uiStream(options: UiStreamOptions = {}): Protocol {
  const resolved = resolveUiStreamOptions(options);
  return {
    name: "ai-sdk",
    prefix: "/ui",
    formatProblem,
    routes: [
      {
        ...{ method: "POST", path: "/:graph", action: "run.start", isRead: false },
        maxBodyBytes: resolved.maxBodyBytes,
        handle: (call) => postMessages(call, resolved),
      },
      {
        ...{ method: "GET", path: "/:graph/:thread/stream", action: "thread.read", isRead: true },
        handle: (call) => streamRunAtWork(call, resolved),
      },
      {
        ...{ method: "POST", path: "/:graph/:thread/stop", action: "run.cancel", isRead: false },
        handle: stopRun,
      },
      {
        ...{ method: "GET", path: "/:graph/:thread/messages", action: "thread.read", isRead: true },
        handle: (call) => listMessages(call, resolved),
      },
    ],
  };
}

/** Path parameter; the router has checked it. */
function getParam({ params }: RouteCall, name: "graph" | "thread"): string {
  return params[name] ?? "";
}

async function postMessages(call: RouteCall, options: ResolvedUiStreamOptions): Promise<Response> {
  const body = await call.readJson(uiRequest);
  const graph = getParam(call, "graph");
  const { service } = call;
  const state = await findState(service, { thread: body.id, graph });
  const plan = planRequest(body, await loadKnown(service, body, state), options);
  const { id: thread, messages: _messages, trigger: _trigger, messageId: _messageId, ...rest } = body;
  const { signal } = call.request;
  const asked: Json = z.record(z.string(), z.json()).parse(rest);
  return streamMessage(
    call,
    options,
    await performPlan({ service, thread, graph, state, asked, options, signal }, plan),
  );
}

/** Loads what the plan needs: branches, and the messages of other branches only for a post that may hold them. */
async function loadKnown(service: CallerService, body: UiRequest, state: StateView | undefined): Promise<KnownThread> {
  const branches = state === undefined ? [] : (await service.listBranches(body.id)).map(({ name }) => name);
  const messages = listStateMessages(state);
  const thread = { messages, branches, interrupts: state?.interrupts ?? [], run: state?.run };
  await checkLastAnswer(service, body, state, branches);
  if (!mayBelongToOtherBranch(body, thread)) return { ...thread, otherIds: new Set() };
  const ids = createMessageIds(body.id, branches);
  const others = branches.filter((branch) => branch !== state?.branch);
  const states = await Promise.all(others.map((branch) => service.getState(body.id, { branch })));
  const known = new Set(messages.map((message) => ids.toClientId(message.id)));
  const found = states.flatMap((other) => listStateMessages(other).map((message) => ids.toClientId(message.id)));
  return { ...thread, otherIds: new Set(found.filter((id) => !known.has(id))) };
}

/** Refuses new messages after the answer of a run of another branch: the page shows a conversation that is no more. */
async function checkLastAnswer(
  service: CallerService,
  { id: thread, messages, trigger }: UiRequest,
  state: StateView | undefined,
  branches: readonly string[],
): Promise<void> {
  const last = messages.findLast(({ role }) => role === "assistant");
  if (state === undefined || last === undefined || last.id === state.run) return;
  if (branches.length < 2 || trigger !== "submit-message" || messages.at(-1)?.role !== "user") return;
  const run = await findThreadRun(service, thread, last.id);
  if (run !== undefined && run.branch !== state.branch) throw createOtherBranchProblem();
}

async function streamRunAtWork(call: RouteCall, options: ResolvedUiStreamOptions): Promise<Response> {
  const { service } = call;
  const thread = getParam(call, "thread");
  const state = await findState(service, { thread, graph: getParam(call, "graph") });
  const run = state === undefined ? undefined : await findRunAtWork(service, thread, state.branch);
  if (run === undefined) return new Response(null, { status: 204, headers: { "cache-control": "no-store" } });
  return streamMessage(call, options, await describeRun(service, run, 0));
}

/** Returns the run at work on the head branch, else the oldest that waits for its turn. */
async function findRunAtWork(service: CallerService, thread: string, branch: string): Promise<RunView | undefined> {
  const { data } = await service.listRuns(thread, { status: statusesAtWork, limit: 200 });
  const runs = data.filter((run) => run.branch === branch);
  return runs.find(({ status }) => status !== "queued") ?? runs.at(-1);
}

function streamMessage(
  call: RouteCall,
  options: ResolvedUiStreamOptions,
  { run, after, from }: AnsweringRun,
): Response {
  const { service } = call;
  return call.stream((signal) => streamRun({ service, run, after, from, options, signal }), {
    headers: uiStreamHeaders,
    formatFailure: formatStreamFailure,
  });
}

async function stopRun(call: RouteCall): Promise<Response> {
  const { service } = call;
  const thread = getParam(call, "thread");
  const state = await findState(service, { thread, graph: getParam(call, "graph") });
  const run = state === undefined ? undefined : await findRunAtWork(service, thread, state.branch);
  if (run === undefined) return Response.json({ stopped: false });
  await service.cancelRun(thread, { run: run.id, reason: "stopped by the user" });
  return Response.json({ stopped: true, runId: run.id }, { status: 202 });
}

async function listMessages(call: RouteCall, options: ResolvedUiStreamOptions): Promise<Response> {
  const { service } = call;
  const thread = getParam(call, "thread");
  const state = await findState(service, { thread, graph: getParam(call, "graph") });
  if (state === undefined) return Response.json([]);
  const { branch } = state;
  const ids = createMessageIds(
    thread,
    (await service.listBranches(thread)).map(({ name }) => name),
  );
  const transcript = new Transcript({ thread, messages: listStateMessages(state), ids, steering: options.steering });
  const { signal } = call.request;
  const request = {
    thread,
    after: 0,
    branch,
    channels: options.state,
    isStoredOnly: true,
    end: "idle",
    signal,
  } as const;
  for await (const frame of readFrames(service, request)) transcript.apply(frame);
  return Response.json(transcript.toMessages(), { headers: { "cache-control": "no-store" } });
}
