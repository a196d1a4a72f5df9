/** Stream of one assistant message. */
import { isStatewrightError } from "@statewright/core";
import type { Problem } from "../http/problem.ts";
import type { SseLine } from "../http/route.ts";
import type { RunView } from "../service/caller-service.ts";
import { type FrameSource, readFrames } from "./read-frames.ts";
import { RunMapper, type UiFrame } from "./run-mapper.ts";
import type { UiChunk } from "./ui-chunk.ts";
import type { ResolvedUiStreamOptions } from "./ui-stream-options.ts";

/** Message to stream. */
export interface RunStreamRequest {
  readonly service: FrameSource;
  readonly run: RunView;
  /** Number of the event before the run: what is read begins there. */
  readonly after: number;
  /** Number of the event after which the stream begins: 0 for the whole message. */
  readonly from: number;
  readonly options: Pick<ResolvedUiStreamOptions, "state" | "steering">;
  readonly signal: AbortSignal;
}

/** Headers of a UI message stream. */
export const uiStreamHeaders: Readonly<Record<string, string>> = {
  "x-vercel-ai-ui-message-stream": "v1",
  "x-accel-buffering": "no",
};

/** Streams the lines of a message: its chunks as JSON, then `[DONE]`. */
export async function* streamRun(request: RunStreamRequest): AsyncGenerator<SseLine, undefined, undefined> {
  for await (const chunk of streamChunks(request)) yield { data: chunk };
  yield { text: "[DONE]" };
  return undefined;
}

/** Lines after a failure of the stream itself. */
export function formatStreamFailure({ code, title }: Problem): readonly SseLine[] {
  const error: UiChunk = { type: "error", errorText: `${code}: ${title}` };
  return [{ data: error }, { data: { type: "finish", finishReason: "error" } satisfies UiChunk }, { text: "[DONE]" }];
}

async function* streamChunks(request: RunStreamRequest): AsyncGenerator<UiChunk, undefined, undefined> {
  const { service, run, after, from, options, signal } = request;
  const mapper = new RunMapper({ thread: run.thread, run: run.id, branch: run.branch, steering: options.steering });
  const frames = readFrames(service, {
    ...{ thread: run.thread, branch: run.branch, channels: options.state, signal },
    ...{ after, end: { run: run.id } },
  });
  let hasStarted = false;
  // The events before the stream are mapped too: a call that was shown then may get its result now.
  let isShown = from === 0;
  for await (const frame of frames) {
    isShown ||= isAfter(frame, from);
    const chunks = mapper.map(frame);
    if (!isShown || (chunks.length === 0 && !mapper.isAtWork)) continue;
    if (!hasStarted) yield mapper.createStart();
    hasStarted = true;
    yield* chunks;
    if (mapper.hasEnded) return undefined;
  }
  if (signal.aborted) return undefined;
  // A run that ended without an event: cancelled in the queue, or parked.
  if (!hasStarted) yield mapper.createStart();
  const status = await findStatus(service, run);
  yield* mapper.map({ type: "ui.status", run: run.id, ...status });
  return undefined;
}

function isAfter(frame: UiFrame, from: number): boolean {
  return "seq" in frame && frame.seq > from;
}

async function findStatus(service: FrameSource, { id }: RunView): Promise<Pick<RunView, "status" | "error">> {
  try {
    const { status, error } = await service.getRun(id);
    return { status, error };
  } catch (error) {
    // The thread was deleted while it was streamed.
    if (isStatewrightError(error, "unknown_run") || isStatewrightError(error, "unknown_thread"))
      return { status: "cancelled" };
    throw error;
  }
}
