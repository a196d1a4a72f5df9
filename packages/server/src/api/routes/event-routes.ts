/** Routes of events: the stream of a thread, open interrupts, and the stream of their changes. */
import type { EventView } from "@statewright/core";
import type { SseLine } from "../../http/route.ts";
import type { InterruptChange } from "../../service/native/watch-interrupts.ts";
import { startedFrames } from "../answer-started.ts";
import { type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { streamThread, toFailureFrames } from "../event-frames.ts";
import { readLastEventId } from "../request-headers.ts";
import { eventQuery, type WireView } from "../schemas/events.ts";
import { interrupt, interruptEnd, interruptPage, interruptQuery } from "../schemas/interrupts.ts";
import { toInterrupt, toPage } from "../to-wire.ts";

/** Creates the routes of events and interrupts. */
export function createEventRoutes(): readonly ApiRoute[] {
  return [createEventRoute(), ...createInterruptRoutes()];
}

/** Views of core, by the views of the API. `steps` are the durable events; `all` has no filter. */
const viewNames: { readonly [View in Exclude<WireView, "all">]: EventView } = {
  messages: "messages",
  tools: "tools",
  steps: "checkpoints",
  tasks: "tasks",
  custom: "custom",
};

function toViews(views: readonly WireView[] | undefined): readonly EventView[] | undefined {
  if (views === undefined || views.length === 0) return undefined;
  const selected = views.flatMap((view) => (view === "all" ? [] : [viewNames[view]]));
  return selected.length < views.length ? undefined : selected;
}

function createEventRoute(): ApiRoute {
  return defineRoute({
    ...{ method: "GET", path: "/threads/:thread/events", action: "thread.read", id: "streamEvents", tag: "events" },
    summary: "Events of a thread as server-sent events; durable events have their number as id",
    query: eventQuery,
    headers: ["last-event-id"],
    frames: startedFrames,
    answers: {},
    handle: async (call, { query: { after, branch, views, end } }) =>
      await streamThread(call, call.params["thread"] ?? "", {
        after: readLastEventId(call.request, after),
        branch,
        views: toViews(views),
        end,
      }),
  });
}

function createInterruptRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "GET", path: "/interrupts", action: "thread.read", id: "listInterrupts", tag: "events" },
      summary: "Open interrupts of all threads, newest first",
      query: interruptQuery,
      answers: { 200: { description: "A page of interrupts", schema: interruptPage } },
      handle: async ({ service }, { query }) => createJson(toPage(await service.listInterrupts(query), toInterrupt)),
    }),
    defineRoute({
      ...{ method: "GET", path: "/interrupts/events", action: "thread.read", id: "streamInterrupts", tag: "events" },
      summary: "The newest open interrupts, then each that opens or closes, as server-sent events",
      frames: { snapshot: interruptPage, "interrupt.opened": interrupt, "interrupt.closed": interruptEnd },
      answers: {},
      handle: async (call) => {
        const left = new AbortController();
        const changes = await call.service.watchInterrupts(left.signal);
        return call.stream(
          async function* (signal) {
            const leave = (): void => left.abort();
            signal.addEventListener("abort", leave, { once: true });
            if (signal.aborted) leave();
            try {
              for await (const change of changes) yield toChangeFrame(change);
            } finally {
              signal.removeEventListener("abort", leave);
              leave();
            }
          },
          { formatFailure: toFailureFrames },
        );
      },
    }),
  ];
}

function toChangeFrame(change: InterruptChange): SseLine {
  switch (change.type) {
    case "snapshot":
      return { event: "snapshot", data: toPage(change.page, toInterrupt) };
    case "opened":
      return { event: "interrupt.opened", data: toInterrupt(change.interrupt) };
    case "closed":
      return { event: "interrupt.closed", data: { id: change.id, thread: change.thread } };
  }
}
