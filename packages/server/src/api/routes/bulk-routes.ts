/** Route of acts on many runs. */

import type { RouteCall, SseLine } from "../../http/route.ts";
import type { BulkFilter, BulkProgress, BulkReport, BulkRequest } from "../../service/native/bulk.ts";
import { type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { toFailureFrames } from "../event-frames.ts";
import { acceptsEvents } from "../request-headers.ts";
import { createRequestProblem } from "../request-problems.ts";
import { bulkProgress, bulkReport, bulkRequest, type WireBulkRequest } from "../schemas/bulk.ts";
import { problem } from "../schemas/problem.ts";
import { toBulkProgress, toBulkReport } from "../to-wire.ts";

/** Creates the routes of acts on many runs. */
export function createBulkRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "POST", path: "/runs/bulk", action: "admin", id: "changeRuns", tag: "runs" },
      summary: "Cancel, resume, retry or delete all runs of the tenant that match. Needs the scope admin.",
      body: bulkRequest,
      frames: { progress: bulkProgress, report: bulkReport, error: problem },
      answers: { 200: { description: "The result", schema: bulkReport } },
      handle: async (call, { body }) => {
        const request = toRequest(body);
        if (body.action === "delete" && Object.values(body.filter).every((each) => each === undefined))
          throw createRequestProblem({ detail: "filter: expected a condition for the action delete, got none." });
        if (acceptsEvents(call.request)) return streamBulk(call, request);
        const report = await call.service.changeRuns({ ...request, signal: call.request.signal });
        return createJson(toBulkReport(report));
      },
    }),
  ];
}

type Unstarted = Omit<BulkRequest, "signal" | "onProgress">;

function toRequest({ action, filter, dryRun, reason }: WireBulkRequest): Unstarted {
  const { since, until, ...rest } = filter;
  const times: Pick<BulkFilter, "since" | "until"> = {
    ...(since === undefined ? {} : { since: Date.parse(since) }),
    ...(until === undefined ? {} : { until: Date.parse(until) }),
  };
  return { action, filter: { ...rest, ...times }, dryRun, reason };
}

/** Streams the progress of an act, the newest only for a slow reader, and its report. */
function streamBulk({ service, stream }: RouteCall, request: Unstarted): Response {
  return stream((signal) => yieldProgress((onProgress) => service.changeRuns({ ...request, signal, onProgress })), {
    formatFailure: toFailureFrames,
  });
}

async function* yieldProgress(
  start: (onProgress: (progress: BulkProgress) => void) => Promise<BulkReport>,
): AsyncGenerator<SseLine> {
  let newest: BulkProgress | undefined;
  let wake: () => void = () => undefined;
  let waiting = new Promise<void>((resolve) => {
    wake = resolve;
  });
  let report: BulkReport | undefined;
  const work = start((progress) => {
    newest = progress;
    wake();
  }).then((result) => {
    report = result;
    wake();
  });
  while (report === undefined) {
    await Promise.race([waiting, work]);
    waiting = new Promise((resolve) => {
      wake = resolve;
    });
    const progress = newest;
    newest = undefined;
    if (progress !== undefined) yield { event: "progress", data: toBulkProgress(progress) };
  }
  yield { event: "report", data: toBulkReport(report) };
}
