/** Every route of the native API, against stores in memory and in a file. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { nativeApi, reachedOperations } from "../support/check-answer.ts";
import { createNativeServer, type NativeServer, parseFrames, say } from "../support/native-server.ts";
import type { StoreKind } from "../support/test-store.ts";
import { storeKinds } from "../support/test-store.ts";

const runSchema = z.object({ id: z.string(), status: z.string() });
const outcomeSchema = z.object({ run: runSchema, state: z.object({ checkpoint: z.number(), values: z.unknown() }) });
const interruptsSchema = z.object({ data: z.array(z.object({ id: z.string() })), next: z.string().optional() });

const wait = { prefer: "wait=60" };

/** Starts a run and returns its outcome. */
async function startRun({ call }: Pick<NativeServer, "call">, thread: string, text: string) {
  const body = { graph: "assistant", input: say(text) };
  const started = await call(`/threads/${thread}/runs`, { body, headers: wait });
  expect([started.status, started.headers.get("preference-applied")]).toEqual([200, "wait=60"]);
  return outcomeSchema.parse(started.body);
}

async function listInterrupts({ call }: Pick<NativeServer, "call">, thread: string): Promise<readonly string[]> {
  const { data } = interruptsSchema.parse((await call(`/interrupts?thread=${thread}`)).body);
  return data.map(({ id }) => id);
}

async function checkGraphs({ call }: NativeServer): Promise<void> {
  expect((await call("/info")).body).toMatchObject({
    name: "statewright",
    role: "serve",
    protocols: [{ path: "/api" }],
  });
  expect((await call("/openapi.json")).body).toMatchObject({ openapi: "3.1.0" });
  const graphs = await call("/graphs");
  expect(graphs.body).toMatchObject({ data: [{ name: "assistant" }, { name: "review" }] });
  const review = await call("/graphs/review");
  expect(review.body).toMatchObject({ name: "review", nodes: ["write", "ask"], schemas: { answers: { approve: {} } } });
  const headers = { "if-none-match": review.headers.get("etag") ?? "" };
  expect((await call("/graphs/review", { headers })).status).toBe(304);
  expect((await call("/graphs/nothing")).body).toMatchObject({ code: "unknown_graph", status: 404 });
}

async function checkThreads({ call }: NativeServer): Promise<void> {
  const made = await call("/threads", { body: { id: "t1", title: "Trip", metadata: { project: "atlas", n: 5 } } });
  expect([made.status, made.headers.get("location")]).toEqual([201, "/api/threads/t1"]);
  expect((await call("/threads", { body: { id: "t1" } })).body).toMatchObject({ status: 409, code: "thread_exists" });
  expect((await call("/threads", { body: { id: "t1", ifExists: "keep" } })).status).toBe(200);
  expect((await call("/threads/t1")).body).toMatchObject({ id: "t1", title: "Trip", owner: "ann" });
  const changed = await call("/threads/t1", { method: "PATCH", body: { title: null, metadata: { n: 6 } } });
  expect(changed.body).toMatchObject({ metadata: { project: "atlas", n: 6 } });
  expect(changed.body).not.toHaveProperty("title");
  const { id } = z.object({ id: z.string() }).parse((await call("/threads", { body: {} })).body);
  const listed = async (query: string) => {
    const { body } = await call(`/threads?${query}`);
    return z
      .object({ data: z.array(z.object({ id: z.string() })) })
      .parse(body)
      .data.map((thread) => thread.id);
  };
  expect(await listed("metadata.project=atlas&metadata.n=6")).toEqual(["t1"]);
  expect(await listed('metadata.n="6"')).toEqual([]);
  expect(await listed("q=t1")).toEqual(["t1"]);
  expect(await listed("limit=200")).toEqual(expect.arrayContaining(["t1", id]));
  expect((await call(`/threads/${id}`, { method: "DELETE" })).status).toBe(204);
  expect((await call(`/threads/${id}`)).body).toMatchObject({ code: "unknown_thread", status: 404 });
}

async function checkRuns(server: NativeServer): Promise<void> {
  const { call, transfers } = server;
  const waiting = await startRun(server, "t1", "transfer");
  expect(waiting).toMatchObject({ run: { status: "waiting" } });
  expect((await call(`/runs/${waiting.run.id}`)).body).toMatchObject({ thread: "t1", status: "waiting" });
  const [interrupt = ""] = await listInterrupts(server, "t1");
  const answers = { [interrupt]: { approved: true } };
  const answered = await call("/threads/t1/answers", { body: { answers } });
  expect([answered.status, answered.body]).toEqual([202, expect.objectContaining({ id: waiting.run.id })]);
  const again = await call("/threads/t1/answers", { body: { answers }, headers: wait });
  expect(again.body).toMatchObject({ code: "already_answered", status: 409 });
  await server.clock.advance(1_000);
  expect(transfers).toEqual([{ to: "ann", amount: 5 }]);
  expect((await call("/threads/t1/runs?status=done")).body).toMatchObject({ data: [{ id: waiting.run.id }] });
  expect((await call("/threads/t1/cancel", { body: {} })).status).toBe(409);
}

async function checkStops(server: NativeServer): Promise<void> {
  const { call } = server;
  await startRun(server, "t2", "transfer");
  const rested = await call("/threads/t2/pause", { body: {} });
  expect([rested.status, rested.body]).toMatchObject([202, { status: "paused" }]);
  expect((await call("/threads/t2/pause", { body: {} })).status).toBe(409);
  const steered = await call("/threads/t2/inbox", {
    body: { id: "note-1", kind: "followUp", messages: [{ role: "user", content: "and hurry" }] },
  });
  expect([steered.status, steered.body]).toEqual([202, { id: "note-1" }]);
  const cancelled = await call("/threads/t2/cancel", { body: { reason: "changed my mind", wait: true } });
  expect([cancelled.status, cancelled.body]).toMatchObject([200, { status: "cancelled" }]);
  const broken = await startRun(server, "t3", "fail");
  expect(broken.run.status).toBe("failed");
  const resumed = await call("/threads/t3/resume", { body: {} });
  expect([resumed.status, resumed.body]).toMatchObject([202, { id: broken.run.id }]);
  await server.clock.advance(1_000);
  const breakpoints = { before: ["ask"] };
  const reviewed = { graph: "review", input: { draft: "x" }, breakpoints };
  const paused = await call("/threads/t4/runs", { body: reviewed, headers: wait });
  expect(paused.body).toMatchObject({ run: { status: "paused" }, state: { next: ["ask"] } });
  const running = await call("/threads/t4/resume", { body: {}, headers: wait });
  expect(running.body).toMatchObject({ run: { status: "waiting" } });
}

async function checkStates(server: NativeServer): Promise<void> {
  const { call } = server;
  const { state } = await startRun(server, "t5", "hello");
  const read = await call("/threads/t5/state?select=messages");
  expect([read.headers.get("etag"), read.body]).toMatchObject([
    `"${state.checkpoint}"`,
    { checkpoint: state.checkpoint },
  ]);
  const history = await call("/threads/t5/history?limit=1");
  expect(history.body).toMatchObject({ data: [{ checkpoint: state.checkpoint }], next: expect.any(String) });
  const diff = await call(`/threads/t5/diff?from=1&to=${state.checkpoint}`);
  expect(diff.body).toMatchObject({ from: 1, patch: [{ op: expect.any(String) }] });
  const forked = await call("/threads/t5/forks", { body: { at: 1, name: "second" } });
  expect([forked.status, forked.body]).toMatchObject([201, { branch: "second", state: { parent: 1 } }]);
  expect((await call("/threads/t5/branches")).body).toMatchObject({
    data: [{ name: "main" }, { name: "second", from: 1 }],
  });
  const written = await call("/threads/t5/state", {
    body: { changes: { messages: say("more", "m9").messages }, as: "__start__" },
  });
  expect(written.status, written.text).toBe(200);
  const edited = await call("/threads/t5/messages/m1/edits", {
    body: { message: { role: "user", content: "goodbye" } },
    headers: wait,
  });
  expect(edited.body).toMatchObject({ run: { status: "done" } });
  expect(JSON.stringify(edited.body)).toContain("You said: goodbye");
}

async function checkEvents(server: NativeServer): Promise<void> {
  const { call, open } = server;
  await startRun(server, "t6", "hello");
  const { text } = await call("/threads/t6/events?end=idle");
  const frames = parseFrames(text);
  expect(frames[0]).toMatchObject({ id: "1", event: "run.started", data: { type: "run.started", thread: "t6" } });
  expect(frames.at(-1)).toMatchObject({ event: "end" });
  const stream = await open("/interrupts/events");
  await stream.readUntil(({ event }) => event === "snapshot");
  await startRun(server, "t7", "transfer");
  const opened = await stream.readUntil(({ event }) => event === "interrupt.opened");
  expect(opened.at(-1)).toMatchObject({ data: { thread: "t7", key: "approve" } });
  await stream.close();
}

async function checkMoves({ call, upload }: NativeServer): Promise<void> {
  const copied = await call("/threads/t6/copies", { body: { id: "copy" } });
  expect([copied.status, copied.headers.get("location")]).toEqual([201, "/api/threads/copy"]);
  const exported = await call("/threads/t6/export", { as: "root" });
  expect(exported.status).toBe(200);
  const imported = await upload("/threads/imports?id=moved", exported.text, {
    as: "root",
    type: "application/x-ndjson",
  });
  expect([imported.status, imported.body]).toMatchObject([201, { id: "moved", graph: "assistant" }]);
  expect((await call("/threads/moved/state")).body).toMatchObject({ thread: "moved", status: "done" });
  expect(
    (await call("/runs/bulk", { as: "root", body: { action: "cancel", filter: {}, dryRun: true } })).body,
  ).toMatchObject({
    isComplete: false,
    done: 0,
  });
}

async function checkArtifacts({ call, upload }: NativeServer): Promise<void> {
  expect((await call("/threads/t6/artifacts")).body).toEqual({ data: [] });
  const uploaded = await upload("/threads/t6/files?name=note.txt&mimeType=text/plain", "hello", {
    type: "application/octet-stream",
  });
  expect([uploaded.status, uploaded.body]).toMatchObject([201, { bytes: 5, block: { type: "file" } }]);
}

async function checkSchedules({ call, clock }: NativeServer): Promise<void> {
  const content = { graph: "assistant", input: say("tick") };
  const made = await call("/schedules", {
    body: { ...content, id: "daily", cron: "0 9 * * *", timeZone: "Europe/Berlin" },
  });
  expect([made.status, made.headers.get("location")]).toEqual([201, "/api/schedules/daily"]);
  expect((await call("/schedules/daily", { method: "PUT", body: { ...content, everyMs: 60_000 } })).status).toBe(200);
  expect((await call("/schedules/daily")).body).toMatchObject({ everyMs: 60_000, status: "active", owner: "ann" });
  expect((await call("/schedules?limit=1")).body).toMatchObject({ data: [{ id: "daily" }] });
  expect((await call("/schedules/daily/slots?count=2")).body).toMatchObject({
    data: [expect.any(String), expect.any(String)],
  });
  const preview = await call("/schedules/slots", { body: { cron: "0 9 * * *", count: 3 } });
  expect(preview.body).toMatchObject({ data: expect.arrayContaining([expect.stringMatching(/T09:00:00\.000Z$/)]) });
  expect((await call("/schedules/daily/pause", { body: {} })).body).toMatchObject({ status: "paused" });
  expect((await call("/schedules/daily/resume", { body: {} })).body).toMatchObject({ status: "active" });
  const queued = await call("/schedules/daily/runs", { body: {}, headers: { "idempotency-key": "now" } });
  expect([queued.status, queued.body]).toMatchObject([202, { thread: "now", owner: "ann" }]);
  await clock.advance(1_000);
  expect((await call("/threads/now")).body).toMatchObject({ status: "done" });
  expect((await call("/schedules/daily", { method: "DELETE" })).status).toBe(204);
  expect((await call("/schedules/daily")).body).toMatchObject({ code: "unknown_schedule", status: 404 });
}

const checks = [
  checkGraphs,
  checkThreads,
  checkRuns,
  checkStops,
  checkStates,
  checkEvents,
  checkMoves,
  checkArtifacts,
  checkSchedules,
];

describe.each(storeKinds)("with a %s store", (kind: StoreKind) => {
  test(`the routes of graphs, threads, runs, states, events, files and schedules answer with a ${kind} store [V13]`, async () => {
    reachedOperations.clear();
    const server = await createNativeServer({ store: kind });
    for (const check of checks) await check(server);
    // The body of an artifact has a test of its own: the graphs of this one make none.
    const all = nativeApi.routes.map(({ operation }) => operation.id).filter((id) => id !== "readArtifact");
    expect(all.filter((id) => !reachedOperations.has(id))).toEqual([]);
  });
});
