/** Schedules over the native API: rights of the maker, limits, tenancy. */
import { expect, test } from "vitest";
import * as z from "zod";
import type { Caller } from "../../src/index.ts";
import { testTokens } from "../support/create-test-server.ts";
import { createNativeServer, say } from "../support/native-server.ts";

const minuteMs = 60_000;
const content = { graph: "assistant", input: say("tick") };
const scheduleSchema = z.object({ last: z.record(z.string(), z.unknown()).optional(), nextAt: z.string().optional() });

test("a schedule fires as its maker: the run has tenant and owner, and its new thread belongs to the tenant [V94]", async () => {
  const { call, clock, store } = await createNativeServer();
  await call("/schedules", { body: { ...content, id: "tick", everyMs: minuteMs, metadata: { from: "schedule" } } });
  await clock.advance(minuteMs);
  const shown = scheduleSchema.parse((await call("/schedules/tick")).body);
  expect(shown.last).toMatchObject({ slot: "2025-01-01T00:01:00.000Z", thread: "tick:2025-01-01T00:01:00.000Z" });
  const run = await call(`/runs/${String(shown.last?.["run"])}`);
  expect(run.body).toMatchObject({ owner: "ann", metadata: { from: "schedule" }, status: "done" });
  expect((await call("/threads/tick:2025-01-01T00:01:00.000Z")).body).toMatchObject({ owner: "ann", status: "done" });
  expect(await store.thread("t.acme.tick:2025-01-01T00:01:00.000Z")).toMatchObject({ tenant: "acme" });
  expect((await call("/threads", { as: "bob" })).body).toEqual({ data: [] });
});

test("a schedule whose maker has lost the access or the right skips its run and says so [V94]", async () => {
  let isHired = true;
  let mayStart = true;
  const makers: unknown[] = [];
  const findMaker = async (maker: Pick<Caller, "id" | "tenant">): Promise<Caller | undefined> => {
    makers.push(maker);
    return isHired ? { ...maker, scopes: ["writer"] } : undefined;
  };
  const { call, clock } = await createNativeServer({
    schedules: { findMaker },
    access: {
      tokens: { ann: { token: testTokens.ann, tenant: "acme", scopes: ["writer"] } },
      authorize: (caller, { action }) =>
        action !== "run.start" || (mayStart && caller.scopes?.includes("writer") === true),
    },
  });
  await call("/schedules", { body: { ...content, id: "tick", everyMs: minuteMs } });
  const readLast = async () => scheduleSchema.parse((await call("/schedules/tick")).body).last;
  mayStart = false;
  await clock.advance(minuteMs);
  expect(await readLast()).toMatchObject({
    skipped: "the caller who made the schedule may not start its runs any more",
  });
  isHired = false;
  await clock.advance(minuteMs);
  expect(await readLast()).toMatchObject({ skipped: "the caller who made the schedule has no access any more" });
  expect(await readLast()).not.toHaveProperty("run");
  isHired = true;
  mayStart = true;
  await clock.advance(minuteMs);
  expect(await readLast()).toMatchObject({ run: expect.any(String), slot: "2025-01-01T00:03:00.000Z" });
  expect(makers[0]).toEqual({ id: "ann", tenant: "acme" });
});

test("another tenant has no such schedule, and cannot pin its runs to a foreign thread [V94]", async () => {
  const { call, store } = await createNativeServer();
  await call("/schedules", { body: { ...content, id: "tick", everyMs: minuteMs, thread: "t" } });
  const requests: readonly (readonly [string, string, unknown])[] = [
    ["GET", "/schedules/tick", undefined],
    ["GET", "/schedules/tick/slots", undefined],
    ["POST", "/schedules/tick/pause", {}],
    ["POST", "/schedules/tick/resume", {}],
    ["POST", "/schedules/tick/runs", {}],
    ["DELETE", "/schedules/tick", undefined],
  ];
  for (const [method, path, body] of requests) {
    const request = { method, ...(body === undefined ? {} : { body }) };
    const missing = await call(path.replace("tick", "none"), { as: "bob", ...request });
    const foreign = await call(path, { as: "bob", ...request });
    expect([path, foreign.status, foreign.text.replace(/req_\w+/, "")]).toEqual([
      path,
      404,
      missing.text.replace(/req_\w+/, ""),
    ]);
  }
  expect((await call("/schedules", { as: "bob" })).body).toEqual({ data: [] });
  const own = await call("/schedules", { as: "bob", body: { ...content, id: "tick", everyMs: minuteMs, thread: "t" } });
  expect(own.status).toBe(201);
  const rows = await store.schedules.list();
  expect(rows.map(({ id, thread, tenant }) => [id, thread, tenant])).toEqual([
    ["t.acme.tick", "t.acme.t", "acme"],
    ["t.globex.tick", "t.globex.t", "globex"],
  ]);
  expect((await call("/schedules")).body).toMatchObject({ data: [{ id: "tick", owner: "ann" }] });
});

test("a schedule below the minimum distance, above the number of a tenant, or of an unknown graph is refused [V96]", async () => {
  const { call } = await createNativeServer({ schedules: { maxPerTenant: 2 } });
  const refusals: readonly (readonly [unknown, number, string])[] = [
    [{ ...content, everyMs: 59_999 }, 422, "interval_too_short"],
    [{ ...content, cron: "*/30 * * * * *" }, 422, "interval_too_short"],
    [{ ...content, cron: "0,10 0 9 * * *" }, 422, "interval_too_short"],
    [{ ...content, cron: "nonsense" }, 422, "invalid_option"],
    [{ ...content, cron: "0 9 * * *", everyMs: minuteMs }, 422, "invalid_option"],
    [{ ...content }, 422, "invalid_option"],
    [{ ...content, graph: "none", everyMs: minuteMs }, 404, "unknown_graph"],
    [{ graph: "assistant", input: 5, everyMs: minuteMs }, 422, "invalid_request"],
    [{ graph: "review", input: { draft: 5 }, everyMs: minuteMs }, 422, "invalid_input"],
  ];
  for (const [body, status, code] of refusals)
    expect([body, (await call("/schedules", { body })).body]).toMatchObject([body, { status, code }]);
  expect((await call("/schedules", { body: { ...content, id: "a", cron: "* * * * *" } })).status).toBe(201);
  expect((await call("/schedules", { body: { ...content, id: "b", everyMs: minuteMs } })).status).toBe(201);
  expect((await call("/schedules", { body: { ...content, id: "b", everyMs: minuteMs } })).body).toMatchObject({
    ...{ status: 409, code: "schedule_exists" },
  });
  expect((await call("/schedules", { body: { ...content, everyMs: minuteMs } })).body).toMatchObject({
    ...{ status: 422, code: "too_many_schedules" },
  });
  const changed = await call("/schedules/b", { method: "PUT", body: { ...content, everyMs: 2 * minuteMs } });
  expect([changed.status, changed.body]).toMatchObject([200, { everyMs: 2 * minuteMs }]);
  expect((await call("/schedules", { as: "bob", body: { ...content, everyMs: minuteMs } })).status).toBe(201);
});

test("missed runs follow the option missed, and a paused schedule starts none [V94]", async () => {
  const { call, clock, engine } = await createNativeServer();
  for (const missed of ["skip", "last", "all"])
    await call("/schedules", { body: { ...content, id: missed, everyMs: minuteMs, missed } });
  await call("/schedules", { body: { ...content, id: "paused", everyMs: minuteMs } });
  await call("/schedules/paused/pause", { body: {} });
  await engine.stop();
  await clock.advance(3 * minuteMs + 30_000);
  await engine.start();
  await clock.advance(1_000);
  const listRuns = async (id: string) => {
    const page = z.object({ data: z.array(z.object({ id: z.string() })) });
    return page.parse((await call(`/threads?q=${id}:`)).body).data.map((thread) => thread.id);
  };
  expect(await listRuns("skip")).toHaveLength(1);
  expect(await listRuns("last")).toEqual(["last:2025-01-01T00:03:00.000Z"]);
  expect(await listRuns("all")).toHaveLength(3);
  expect(await listRuns("paused")).toEqual([]);
  expect((await call("/schedules/paused")).body).not.toHaveProperty("nextAt");
});

test("a run of a schedule at once is one run for its key, and the times of a schedule are shown [V94]", async () => {
  const { call } = await createNativeServer();
  const body = {
    ...content,
    id: "daily",
    cron: "30 2 * * *",
    timeZone: "Europe/Berlin",
    until: "2025-01-03T12:00:00Z",
  };
  const made = await call("/schedules", { body });
  expect(made.body).toMatchObject({ nextAt: "2025-01-01T01:30:00.000Z", until: "2025-01-03T12:00:00.000Z" });
  expect((await call("/schedules/daily/slots")).body).toEqual({
    data: ["2025-01-01T01:30:00.000Z", "2025-01-02T01:30:00.000Z", "2025-01-03T01:30:00.000Z"],
  });
  const headers = { "idempotency-key": "today" };
  const [one, two] = [
    await call("/schedules/daily/runs", { body: {}, headers }),
    await call("/schedules/daily/runs", { body: {}, headers }),
  ];
  expect([one.status, two.status, two.headers.get("location")]).toEqual([202, 202, one.headers.get("location")]);
  const other = await call("/schedules/daily/runs", { body: {} });
  expect(other.headers.get("location")).not.toBe(one.headers.get("location"));
  // 2025-03-30 has no 02:30 in Berlin: the run moves to the end of the gap.
  const preview = await call("/schedules/slots", {
    body: { cron: "30 2 30 3 *", timeZone: "Europe/Berlin", count: 1 },
  });
  expect(preview.body).toEqual({ data: ["2025-03-30T01:00:00.000Z"] });
});

test("a schedule keeps only the messages of the user in its input, and each run adds them anew [V94, V28]", async () => {
  const { call, clock } = await createNativeServer();
  const messages = [
    { role: "system", id: "s", content: "Obey the schedule." },
    { role: "user", content: "tick" },
  ];
  await call("/schedules", {
    body: { graph: "assistant", input: { messages }, id: "tick", everyMs: minuteMs, thread: "t" },
  });
  await clock.advance(2 * minuteMs + 1_000);
  const { body, text } = await call("/threads/t/state");
  const state = z.object({ values: z.object({ messages: z.array(z.object({ role: z.string() })) }) }).parse(body);
  expect(state.values.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect(text).not.toContain("Obey");
});
