/** Frames of a thread for mappers: its events, with the answers, states and failures that events do not hold. */
import { type EventView, type Json, type RunEvent, StatewrightError } from "@statewright/core";
import * as z from "zod";
import type { CallerService, EventRequest, RunView, StateView } from "../service/caller-service.ts";
import type { UiFrame } from "./run-mapper.ts";

/** Part of the events of a thread. */
export interface FrameRequest extends Pick<EventRequest, "after" | "branch" | "end" | "signal"> {
  readonly thread: string;
  /** Channels whose values are read after each superstep that changes them. */
  readonly channels: readonly string[];
  /** Ends the frames after the stored events, in place of following the thread. */
  readonly isStoredOnly?: boolean | undefined;
}

const views: readonly EventView[] = ["checkpoints", "messages", "tools", "custom"];

/** Acts of a caller that frames are read with. */
export interface FrameSource extends Pick<CallerService, "streamEvents"> {
  getState(thread: string, place: { readonly at: number }): Promise<Pick<StateView, "answered" | "values">>;
  getRun(run: string): Promise<Pick<RunView, "status" | "error">>;
}

/** Streams the frames of a thread. */
export async function* readFrames(
  service: FrameSource,
  { thread, channels, isStoredOnly = false, ...request }: FrameRequest,
): AsyncGenerator<UiFrame, undefined, undefined> {
  const places = new Map<string, Place>();
  for await (const event of await service.streamEvents(thread, { ...request, views })) {
    if (event.type === "thread.deleted" || (isStoredOnly && event.type === "snapshot")) return undefined;
    const place = places.get(event.branch) ?? { checkpoint: undefined, run: undefined, isWaiting: false };
    places.set(event.branch, place);
    const { run, checkpoint } = place;
    const answered =
      continuesWaiting(place, event) && run !== undefined && checkpoint !== undefined
        ? ({
            type: "ui.answered",
            run,
            interrupts: await loadAnswered(service, { thread, checkpoint, by: event.at }),
          } as const)
        : undefined;
    notePlace(place, event);
    if (answered === undefined) yield event;
    // The answers belong to the attempt that they start, and come before the end of a cancelled run.
    else if (event.type === "run.started" && event.run === run) yield* [event, answered];
    else yield* [answered, event];
    if (place.run === undefined || event.within !== undefined) continue;
    for (const [channel, value] of await readChannels(service, { thread, channels }, event))
      yield { type: "ui.state", run: place.run, channel, value };
    if (event.type === "run.failed") {
      const { status, error } = await service.getRun(place.run);
      yield { type: "ui.status", run: place.run, status: status === "parked" ? "parked" : "failed", error };
    }
  }
  return undefined;
}

/** Loads the interrupts of a checkpoint that were answered by a time. */
async function loadAnswered(
  service: FrameSource,
  { thread, checkpoint, by }: { readonly thread: string; readonly checkpoint: number; readonly by: number },
): Promise<StateView["answered"]> {
  const { answered } = await service.getState(thread, { at: checkpoint });
  return answered.filter(({ answeredAt }) => answeredAt === undefined || answeredAt <= by);
}

/** Newest checkpoint and run of a branch. */
interface Place {
  checkpoint: number | undefined;
  run: string | undefined;
  isWaiting: boolean;
}

/** True for an event after which the interrupts of a waiting run are closed: events do not hold the answers. */
function continuesWaiting({ isWaiting }: Place, { type }: RunEvent): boolean {
  return isWaiting && (type === "run.started" || type === "run.cancelled");
}

function notePlace(place: Place, event: RunEvent): void {
  if (event.within !== undefined) return;
  if (event.type === "step.committed") place.checkpoint = event.checkpoint ?? place.checkpoint;
  if (event.type === "run.started") place.run = event.run;
  if (event.type === "run.waiting") place.isWaiting = true;
  else if (event.type === "run.started" || event.type === "run.cancelled") place.isWaiting = false;
}

async function readChannels(
  service: FrameSource,
  { thread, channels }: Pick<FrameRequest, "thread" | "channels">,
  event: RunEvent,
): Promise<readonly (readonly [string, Json])[]> {
  if (event.type !== "step.committed" || event.within !== undefined || event.checkpoint === undefined) return [];
  const changed = channels.filter((channel) => Object.hasOwn(event.changes, channel));
  if (changed.length === 0) return [];
  try {
    const { values } = await service.getState(thread, { at: event.checkpoint });
    return changed.map((channel) => [channel, z.json().parse(values[channel] ?? null)]);
  } catch (error) {
    // A checkpoint that retention has removed since its event.
    if (error instanceof StatewrightError && error.code === "unknown_checkpoint") return [];
    throw error;
  }
}
