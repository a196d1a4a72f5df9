/** Routes about runs: start, stream, wait, join, cancel and list. */
import * as z from "zod";
import type { Route, RouteCall, SseLine } from "../../http/route.ts";
import type { CallerService, RunView, StartedRun } from "../../service/caller-service.ts";
import { toAssistantId } from "../assistants.ts";
import { awaitTurn } from "../await-turn.ts";
import { createInputProblem, createRefusal } from "../create-problem.ts";
import { parseEventId, type StreamPlace } from "../legacy/legacy-event.ts";
import { streamRun } from "../legacy/stream-run.ts";
import type { LangGraphSettings } from "../options.ts";
import { listStreamModes, type RunBody, runBodySchema } from "../run-request.ts";
import { rollBackRun, startWireRun } from "../start-run.ts";
import { parseStreamModes, type StreamMode } from "../stream-modes.ts";
import type { WireObject } from "../to-wire-message.ts";
import { toWireValues } from "../to-wire-values.ts";
import { getStreamSelection, toWireRun } from "../wire-run.ts";
import { listWireInterrupts } from "../wire-state.ts";
import { listRunStatuses } from "../wire-status.ts";
import { findNewestState } from "../wire-thread.ts";
import { getThreadId } from "./thread-routes.ts";

/** Creates the routes about runs of threads. */
export function createRunRoutes(settings: LangGraphSettings): readonly Route[] {
  const start = { action: "run.start", isRead: false } as const;
  const read = { action: "thread.read", isRead: true } as const;
  const at = "/threads/:thread/runs";
  return [
    { method: "POST", path: at, ...start, handle: (call) => createRun(call, settings) },
    { method: "GET", path: at, ...read, handle: listRuns },
    { method: "POST", path: `${at}/stream`, ...start, handle: (call) => startStream(call, settings) },
    { method: "POST", path: `${at}/wait`, ...start, handle: (call) => startAndWait(call, settings) },
    {
      method: "GET",
      path: `${at}/:run`,
      ...read,
      handle: async (call) => Response.json(await toWireRun(await findRun(call))),
    },
    { method: "DELETE", path: `${at}/:run`, action: "thread.delete", isRead: false, handle: refuseDeletion },
    { method: "GET", path: `${at}/:run/join`, ...read, handle: (call) => joinRun(call, settings) },
    { method: "GET", path: `${at}/:run/stream`, ...read, handle: (call) => joinStream(call, settings) },
    { method: "POST", path: `${at}/:run/cancel`, action: "run.cancel", isRead: false, handle: cancelRun },
  ];
}

/** Returns the run of a request. A run of another thread is unknown. */
async function findRun({ service, params }: RouteCall): Promise<RunView> {
  const run = await service.getRun(params["run"] ?? "");
  if (run.thread === params["thread"]) return run;
  throw createRefusal(`There is no run ${JSON.stringify(run.id)} in this thread.`, 404);
}

async function startFromBody(
  call: RouteCall,
  settings: LangGraphSettings,
): Promise<{ body: RunBody; started: StartedRun }> {
  const body = await call.readJson(runBodySchema);
  const { service } = call;
  return { body, started: await startWireRun({ service, thread: getThreadId(call), body, hitl: settings.hitl }) };
}

async function createRun(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { started } = await startFromBody(call, settings);
  return Response.json(await toWireRun(started.run), { headers: { "content-location": toRunPath(started.run) } });
}

/** Path of a run below the address of the API, which clients put before it. */
export function toRunPath({ thread, id }: RunView): string {
  return `/threads/${encodeURIComponent(thread)}/runs/${encodeURIComponent(id)}`;
}

async function startStream(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { body, started } = await startFromBody(call, settings);
  if (body.on_disconnect === "cancel") cancelOnDisconnect(call, started.run);
  const selection = { modes: listStreamModes(body), subgraphs: body.stream_subgraphs === true };
  const { run, after } = started;
  return respondWithStream(call, settings, {
    ...{ run, after, place: undefined },
    ...selection,
    awaitsTurn: awaitsTurn(body),
  });
}

/** True for an input that is queued behind the run at work, and does not end it. */
function awaitsTurn({ multitask_strategy: strategy }: RunBody): boolean {
  return strategy === "enqueue";
}

/** Selection of a run's events for a client. */
export interface StreamSelection {
  readonly run: RunView;
  readonly after: number;
  readonly place: StreamPlace | undefined;
  readonly modes: readonly StreamMode[];
  readonly subgraphs: boolean;
  /** True to end a run that comes to rest before the turn of this one. */
  readonly awaitsTurn?: boolean;
  /** Called when the stream has ended, or its reader has left. */
  readonly onEnd?: () => void;
}

/**
 * Answers with the stream of a run. `location` is where a client reads on after a lost connection: it has the stream
 * modes, because clients do not send them again.
 */
export async function respondWithStream(
  { service, stream, watchWork }: Pick<RouteCall, "service" | "stream" | "watchWork">,
  { hitl }: LangGraphSettings,
  { run, modes, subgraphs, awaitsTurn = false, onEnd, ...place }: StreamSelection,
): Promise<Response> {
  const assistant = await toAssistantId(run.graph);
  const selected = new Set(modes);
  async function* readRun(signal: AbortSignal): AsyncGenerator<SseLine> {
    try {
      // The stream reads the thread meanwhile: it shows the run from its first event.
      if (awaitsTurn && run.status === "queued") watchWork("the turn of a queued run", awaitTurn(service, run, signal));
      yield* streamRun({ service, run, assistant, ...place, modes: selected, subgraphs, hitl, signal });
    } finally {
      onEnd?.();
    }
  }
  return stream(readRun, {
    headers: {
      "content-location": toRunPath(run),
      location: `${toRunPath(run)}/stream?${toQuery({ modes, subgraphs })}`,
    },
    formatFailure: ({ code, title }) => [{ event: "error", data: { error: code, message: title } }],
  });
}

function toQuery({ modes, subgraphs }: Pick<StreamSelection, "modes" | "subgraphs">): string {
  const query = new URLSearchParams(modes.map((mode): [string, string] => ["stream_mode", mode]));
  if (subgraphs) query.set("stream_subgraphs", "1");
  return query.toString();
}

/** Cancels the run when the client leaves: only for a client that has asked for this. */
export function cancelOnDisconnect(call: RouteCall, run: RunView): void {
  const { request, service } = call;
  const cancel = (): void => {
    const cancelled = service.cancelRun(run.thread, { run: run.id, reason: "the client disconnected" });
    call.watchWork("the cancellation of a run whose client has left", cancelled);
  };
  request.signal.addEventListener("abort", cancel, { once: true });
}

async function startAndWait(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { body, started } = await startFromBody(call, settings);
  if (body.on_disconnect === "cancel") cancelOnDisconnect(call, started.run);
  return respondWithOutcome(call, settings, { ...started, awaitsTurn: awaitsTurn(body) });
}

/** Answers with the values of the thread when the run rests. */
export async function respondWithOutcome(
  { service, request, watchWork }: Pick<RouteCall, "service" | "request" | "watchWork">,
  settings: LangGraphSettings,
  { run: { id, thread, status }, awaitsTurn = false }: { readonly run: RunView; readonly awaitsTurn?: boolean },
): Promise<Response> {
  const end = new AbortController();
  const signal = AbortSignal.any([request.signal, end.signal]);
  if (awaitsTurn && status === "queued")
    watchWork("the turn of a queued run", awaitTurn(service, { id, thread }, signal));
  const run = await service.waitForRun(id, request.signal).finally(() => end.abort());
  const headers = { "content-location": toRunPath(run) };
  return Response.json(await loadOutcome(service, thread, run, settings), { headers });
}

/** Values of the newest state, with `__interrupt__` of a run that waits and `__error__` of a run that has failed. */
async function loadOutcome(
  service: CallerService,
  thread: string,
  run: RunView,
  { hitl }: LangGraphSettings,
): Promise<WireObject> {
  const state = await findNewestState(service, thread);
  const values = state === undefined ? {} : toWireValues(state.values);
  if (run.error !== undefined) return { ...values, __error__: { error: run.error.code, message: run.error.title } };
  if (state === undefined || state.interrupts.length === 0) return values;
  return { ...values, __interrupt__: listWireInterrupts(state, { hitl }) };
}

async function joinRun(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const run = await findRun(call);
  if (isCancelAsked(call)) cancelOnDisconnect(call, run);
  return respondWithOutcome(call, settings, { run });
}

function isCancelAsked({ query }: RouteCall): boolean {
  const value = query.get("cancel_on_disconnect");
  return value === "1" || value === "true";
}

async function joinStream(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { query, request } = call;
  const run = await findRun(call);
  if (isCancelAsked(call)) cancelOnDisconnect(call, run);
  const known = getStreamSelection(run);
  const given = parseStreamModes(query.getAll("stream_mode"));
  const place = parsePlace(request.headers.get("last-event-id"));
  const after = place === undefined ? ((await call.service.findRunStart(run.id)) ?? 0) : 0;
  return respondWithStream(call, settings, {
    ...{ run, after, place },
    modes: given.length === 0 ? known.modes : given,
    subgraphs: given.length === 0 ? known.subgraphs : query.get("stream_subgraphs") === "1",
  });
}

/** `-1`, and no id, is the beginning of the run. */
function parsePlace(id: string | null): StreamPlace | undefined {
  if (id === null || id === "" || id === "-1") return undefined;
  const place = parseEventId(id);
  if (place === undefined)
    throw createInputProblem("/last-event-id", "expected an id of an event of this stream, or -1");
  return place;
}

const cancelSchema = z.enum(["interrupt", "rollback"]);

/** Cancels a run. `rollback` also moves the thread back to where the run began. */
async function cancelRun(call: RouteCall): Promise<Response> {
  const { service, query, request } = call;
  const action = cancelSchema.safeParse(query.get("action") ?? "interrupt").data;
  if (action === undefined) throw createInputProblem("/action", "expected interrupt or rollback");
  const { id, thread } = await findRun(call);
  await service.cancelRun(thread, { run: id, reason: query.get("reason") ?? undefined });
  const shouldWait = query.get("wait") === "1" || query.get("wait") === "true";
  if (shouldWait || action === "rollback") await service.waitForRun(id, request.signal);
  if (action === "rollback") await rollBackRun(service, thread, id);
  return shouldWait ? new Response(null, { status: 204 }) : new Response(null, { status: 202 });
}

function refuseDeletion(): never {
  throw createRefusal("The history of a thread keeps its runs. Use DELETE /threads/{thread_id}.", 405);
}

const pageSchema = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(10),
  offset: z.coerce.number().int().min(0).max(100_000).default(0),
});

async function listRuns(call: RouteCall): Promise<Response> {
  const { service, query } = call;
  const parsed = pageSchema.safeParse({
    limit: query.get("limit") ?? undefined,
    offset: query.get("offset") ?? undefined,
  });
  if (!parsed.success) throw createInputProblem("/limit", "expected a limit of 1 to 1000 and an offset of 0 or more");
  const { limit, offset } = parsed.data;
  const wanted = query.get("status");
  const status = wanted === null ? undefined : listRunStatuses(wanted);
  if (status?.length === 0)
    throw createInputProblem("/status", "expected pending, running, error, success or interrupted");
  const runs: RunView[] = [];
  let before: string | undefined;
  do {
    const page = await service.listRuns(getThreadId(call), { before, limit: Math.min(200, offset + limit), status });
    runs.push(...page.data);
    before = page.next;
  } while (before !== undefined && runs.length < offset + limit);
  return Response.json(await Promise.all(runs.slice(offset, offset + limit).map(toWireRun)));
}
