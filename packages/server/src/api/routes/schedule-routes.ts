/** Routes of schedules. */
import * as z from "zod";
import type { RouteCall } from "../../http/route.ts";
import type { CalendarRequest, ScheduleRequest } from "../../service/native/schedules.ts";
import { type Answer, type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { readKey } from "../request-headers.ts";
import { createRequestProblem } from "../request-problems.ts";
import { run } from "../schemas/runs.ts";
import {
  newSchedule,
  schedule,
  schedulePage,
  scheduleQuery,
  slotQuery,
  slotRequest,
  slots,
  type WireCalendar,
  type WireNewSchedule,
} from "../schemas/schedules.ts";
import { toPage, toRun, toSchedule, toTime } from "../to-wire.ts";

/** Creates the routes of schedules. */
export function createScheduleRoutes(): readonly ApiRoute[] {
  return [...createReadRoutes(), ...createSaveRoutes(), ...createStateRoutes(), ...createSlotRoutes()];
}

const found: Answer = { description: "The schedule", schema: schedule };

function createReadRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "GET", path: "/schedules", action: "schedule.read", id: "listSchedules", tag: "schedules" },
      summary: "Schedules, by id",
      query: scheduleQuery,
      answers: { 200: { description: "A page of schedules", schema: schedulePage } },
      handle: async ({ service }, { query }) => createJson(toPage(await service.listSchedules(query), toSchedule)),
    }),
    defineRoute({
      ...{ method: "GET", path: "/schedules/:schedule", action: "schedule.read", id: "getSchedule", tag: "schedules" },
      summary: "A schedule, with its next and its last run",
      answers: { 200: found },
      handle: async ({ service, params }) =>
        createJson(toSchedule(await service.getSchedule(params["schedule"] ?? ""))),
    }),
  ];
}

function createSaveRoutes(): readonly ApiRoute[] {
  const saved = { schema: schedule, headers: ["location"] };
  return [
    defineRoute({
      ...{ method: "POST", path: "/schedules", action: "schedule.write", id: "createSchedule", tag: "schedules" },
      summary: "Create a schedule. Its runs have the rights of the caller.",
      body: newSchedule,
      answers: { 201: { description: "The new schedule", ...saved } },
      handle: async (call, { body }) => await saveSchedule(call, body, { id: body.id, mustBeNew: true }),
    }),
    defineRoute({
      ...{ method: "PUT", path: "/schedules/:schedule", action: "schedule.write", id: "putSchedule", tag: "schedules" },
      summary: "Create a schedule, or replace the content of a known one",
      body: newSchedule,
      answers: {
        200: { description: "The changed schedule", ...saved },
        201: { description: "The new schedule", ...saved },
      },
      handle: async (call, { body }) => {
        const id = call.params["schedule"] ?? "";
        if (body.id !== undefined && body.id !== id)
          throw createRequestProblem({ detail: "The id of the schedule differs from that of the path." });
        return await saveSchedule(call, body, { id, mustBeNew: false });
      },
    }),
    defineRoute({
      ...{ method: "DELETE", path: "/schedules/:schedule", action: "schedule.write", id: "deleteSchedule" },
      ...{ tag: "schedules", summary: "Delete a schedule; its queued runs stay" },
      answers: { 204: { description: "The schedule is deleted" } },
      handle: async ({ service, params }) => {
        await service.deleteSchedule(params["schedule"] ?? "");
        return new Response(null, { status: 204 });
      },
    }),
  ];
}

async function saveSchedule(
  { service, base }: RouteCall,
  body: WireNewSchedule,
  { id, mustBeNew }: { readonly id: string | undefined; readonly mustBeNew: boolean },
): Promise<Response> {
  const { graph, thread, input, metadata, onBusy, missed } = body;
  const request: ScheduleRequest = { graph, thread, input, metadata, onBusy, missed, ...toCalendar(body) };
  const { schedule: saved, isNew } = await service.saveSchedule({ ...request, id, mustBeNew });
  const headers = { location: `${base}/schedules/${saved.id}` };
  return createJson(toSchedule(saved), { status: isNew ? 201 : 200, headers });
}

function toCalendar({ cron, timeZone, everyMs, until }: WireCalendar): CalendarRequest {
  return { cron, timeZone, everyMs, until: until === undefined ? undefined : Date.parse(until) };
}

const noBody: z.ZodType<unknown> = z.strictObject({});

function createStateRoutes(): readonly ApiRoute[] {
  const write = { method: "POST", action: "schedule.write", tag: "schedules" } as const;
  return [
    defineRoute({
      ...{ ...write, path: "/schedules/:schedule/pause", id: "pauseSchedule" },
      summary: "Pause a schedule: no run is started until it is resumed",
      body: noBody,
      answers: { 200: found },
      handle: async ({ service, params }) =>
        createJson(toSchedule(await service.pauseSchedule(params["schedule"] ?? ""))),
    }),
    defineRoute({
      ...{ ...write, path: "/schedules/:schedule/resume", id: "resumeSchedule" },
      summary: "Continue a paused schedule with the first time after now",
      body: noBody,
      answers: { 200: found },
      handle: async ({ service, params }) =>
        createJson(toSchedule(await service.resumeSchedule(params["schedule"] ?? ""))),
    }),
    defineRoute({
      ...{ ...write, path: "/schedules/:schedule/runs", id: "runSchedule" },
      summary: "Queue a run of a schedule now",
      headers: ["idempotency-key"],
      body: noBody,
      answers: { 202: { description: "The queued run", schema: run, headers: ["location"] } },
      handle: async ({ service, params, request, base }) => {
        const queued = await service.runSchedule(params["schedule"] ?? "", readKey(request, undefined));
        const headers = { location: `${base}/runs/${queued.run}` };
        return createJson(toRun(await service.getRun(queued.run)), { status: 202, headers });
      },
    }),
  ];
}

const defaultCount = 10;

function createSlotRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "GET", path: "/schedules/:schedule/slots", action: "schedule.read", id: "listSlots" },
      ...{ tag: "schedules", summary: "Times of the next runs of a schedule" },
      query: slotQuery,
      answers: { 200: { description: "The times", schema: slots } },
      handle: async ({ service, params }, { query: { count = defaultCount } }) => {
        const times = await service.listSlots({ schedule: params["schedule"] ?? "" }, count);
        return createJson({ data: times.map(toTime) });
      },
    }),
    defineRoute({
      ...{ method: "POST", path: "/schedules/slots", action: "schedule.read", id: "previewSlots", tag: "schedules" },
      ...{ isRead: true, summary: "Times of a calendar that is not saved" },
      body: slotRequest,
      answers: { 200: { description: "The times", schema: slots } },
      handle: async ({ service }, { body: { count = defaultCount, ...calendar } }) => {
        const times = await service.listSlots(toCalendar(calendar), count);
        return createJson({ data: times.map(toTime) });
      },
    }),
  ];
}
