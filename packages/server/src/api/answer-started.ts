/** Answers of routes that start or continue a run: the run, its outcome, or its stream. */
import type * as z from "zod";
import type { RouteCall } from "../http/route.ts";
import type { RunView, StartedRun } from "../service/caller-service.ts";
import { createJson } from "./define-route.ts";
import { streamThread } from "./event-frames.ts";
import { acceptsEvents, readWaitMs } from "./request-headers.ts";
import { event, gap } from "./schemas/events.ts";
import { problem } from "./schemas/problem.ts";
import { toRun, toState } from "./to-wire.ts";

/** Frames of the stream of a run, by event name. */
export const startedFrames: Readonly<Record<string, z.ZodType>> = { "*": event, gap, error: problem };

/**
 * Answers with the stream of the run for `Accept: text/event-stream`, with its outcome for `Prefer: wait=N` when it
 * comes in time, and with the run and the status otherwise.
 */
export async function answerStarted(
  call: RouteCall,
  { run, after }: StartedRun,
  { status }: { readonly status: 200 | 201 | 202 },
): Promise<Response> {
  const location = `${call.base}/runs/${run.id}`;
  if (acceptsEvents(call.request))
    return await streamThread(call, run.thread, { after, end: { run: run.id } }, { location });
  const ms = readWaitMs(call.request);
  if (ms === undefined) return createJson(toRun(run), { status, headers: { location } });
  const headers = { location, "preference-applied": `wait=${ms / 1_000}` };
  const rest = await call.service.waitForRest(run.id, { ms, signal: call.request.signal });
  if (rest !== undefined) return createJson(await loadOutcome(call, rest), { headers });
  return createJson(toRun(await call.service.getRun(run.id)), { status: 202, headers });
}

async function loadOutcome({ service }: RouteCall, run: RunView): Promise<unknown> {
  const hasStarted = run.status !== "queued" && (run.status !== "cancelled" || run.attempt > 0);
  const state = hasStarted ? await service.getState(run.thread, { branch: run.branch }) : undefined;
  const isOwn = state !== undefined && (state.run === undefined || state.run === run.id);
  return { run: toRun(run), state: isOwn ? toState(state) : undefined };
}
