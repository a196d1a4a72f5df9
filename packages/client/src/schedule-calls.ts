/** Calls about schedules. */
import type { ApiRequest, Requester } from "./request.ts";
import type { Calendar, NewSchedule, Page, PageQuery, Run, Schedule } from "./server-types.ts";

/** Calls about schedules. All throw `ClientError`. */
export interface ScheduleCalls {
  /** Lists schedules by id. */
  listSchedules(query?: PageQuery & { readonly graph?: string }): Promise<Page<Schedule>>;
  /** Reads a schedule, with its next and its newest run. */
  getSchedule(id: string): Promise<Schedule>;
  /** Creates a schedule. */
  createSchedule(schedule: NewSchedule): Promise<Schedule>;
  /** Creates a schedule, or replaces the content of a known one. */
  putSchedule(id: string, schedule: Omit<NewSchedule, "id">): Promise<Schedule>;
  /** Deletes a schedule; its queued runs stay. */
  deleteSchedule(id: string): Promise<void>;
  /** Pauses a schedule: it starts no run. */
  pauseSchedule(id: string): Promise<Schedule>;
  /** Continues a paused schedule with the first time after now. */
  resumeSchedule(id: string): Promise<Schedule>;
  /** Queues a run now; one run for each key. */
  runSchedule(id: string, options?: { readonly key?: string }): Promise<Run>;
  /** Returns the next times of a schedule, or of a calendar that is not saved. */
  listSlots(calendar: string | Calendar, count?: number): Promise<readonly string[]>;
}

/** Creates the calls about schedules. */
export function createScheduleCalls({ sendJson }: Requester): ScheduleCalls {
  const toPath = (id: string, rest = ""): string => `/schedules/${encodeURIComponent(id)}${rest}`;
  const post = <Value>(path: string, body: unknown, more: Partial<ApiRequest> = {}): Promise<Value> =>
    sendJson({ method: "POST", path, body, ...more });
  return {
    listSchedules: (query = {}) => sendJson({ method: "GET", path: "/schedules", query: { ...query } }),
    getSchedule: (id) => sendJson({ method: "GET", path: toPath(id) }),
    createSchedule: (schedule) => post("/schedules", schedule),
    putSchedule: (id, schedule) => sendJson({ method: "PUT", path: toPath(id), body: schedule }),
    deleteSchedule: (id) => sendJson({ method: "DELETE", path: toPath(id) }),
    pauseSchedule: (id) => post(toPath(id, "/pause"), {}, { isRepeatable: true }),
    resumeSchedule: (id) => post(toPath(id, "/resume"), {}, { isRepeatable: true }),
    runSchedule: (id, { key } = {}) =>
      post(
        toPath(id, "/runs"),
        {},
        key === undefined ? {} : { headers: { "idempotency-key": key }, isRepeatable: true },
      ),
    listSlots: async (calendar, count) => {
      const { data } = await (typeof calendar === "string"
        ? sendJson<{ readonly data: readonly string[] }>({
            method: "GET",
            path: toPath(calendar, "/slots"),
            query: { count },
          })
        : post<{ readonly data: readonly string[] }>(
            "/schedules/slots",
            { ...calendar, count },
            { isRepeatable: true },
          ));
      return data;
    },
  };
}
