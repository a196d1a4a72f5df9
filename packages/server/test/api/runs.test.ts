/** Starting and continuing runs over the native API: streams, waits, keys, conditions. */
import { expect, test } from "vitest";
import * as z from "zod";
import { createNativeServer, parseFrames, say } from "../support/native-server.ts";
import { sixtyWords } from "../support/test-graphs.ts";

const streams = { accept: "text/event-stream" };
const runSchema = z.object({ id: z.string(), status: z.string() });
const durable: ReadonlySet<string> = new Set(["run.started", "step.committed", "run.completed"]);
const stateSchema = z.object({ checkpoint: z.number(), interrupts: z.array(z.object({ id: z.string() })) });

test("a started run, its answers, a resume and an edit answer with the stream of that run, which ends with it [V14]", async () => {
  const { call, clock, send } = await createNativeServer();
  const first = await call("/threads/t/runs", {
    body: { graph: "assistant", input: say("transfer") },
    headers: streams,
  });
  expect(first.headers.get("location")).toMatch(/^\/api\/runs\/run_/);
  const frames = parseFrames(first.text);
  expect(frames[0]).toMatchObject({ id: "1", event: "run.started" });
  expect(frames.slice(-2).map(({ event }) => event)).toEqual(["run.waiting", "end"]);
  const { interrupts } = stateSchema.parse((await call("/threads/t/state")).body);
  const answers = { [interrupts[0]?.id ?? ""]: { approved: true } };
  const answered = parseFrames((await call("/threads/t/answers", { body: { answers }, headers: streams })).text);
  expect(answered[0]?.event).toBe("run.started");
  expect(answered.slice(-2).map(({ event }) => event)).toEqual(["run.completed", "end"]);
  const edit = { message: { role: "user", content: "hello" } };
  const edited = parseFrames((await call("/threads/t/messages/m1/edits", { body: edit, headers: streams })).text);
  expect(edited.slice(-2).map(({ event }) => event)).toEqual(["run.completed", "end"]);
  const failed = parseFrames(
    (await call("/threads/u/runs", { body: { graph: "assistant", input: say("fail") }, headers: streams })).text,
  );
  expect(failed.at(-2)).toMatchObject({ event: "run.failed", data: { error: { code: "node_failed" } } });
  const resumed = await send("/api/threads/u/resume", { body: {}, headers: streams });
  expect(
    parseFrames(await clock.until(resumed.text()))
      .slice(-2)
      .map(({ event }) => event),
  ).toEqual(["run.failed", "end"]);
});

test("durable events of a stream have their numbers as ids without a gap, and passing events have none [V16]", async () => {
  const { call } = await createNativeServer();
  const { text } = await call("/threads/t/runs", {
    body: { graph: "assistant", input: say("long") },
    headers: streams,
  });
  const frames = parseFrames(text);
  const ids = frames.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));
  expect(ids).toEqual(ids.map((_, nth) => nth + 1));
  expect(frames.filter(({ event }) => event === "snapshot")).toHaveLength(1);
  for (const { event, id } of frames) expect([event, id === undefined]).toEqual([event, !durable.has(event)]);
  expect(text).toContain(sixtyWords.join(" "));
  for (const { data } of frames.filter(({ id }) => id !== undefined))
    expect(data).toMatchObject({ at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/) });
});

test("a request with Prefer: wait gives the outcome in time, and the run at work with 202 after that time [V14]", async () => {
  const { call, clock } = await createNativeServer();
  const done = await call("/threads/t/runs", {
    body: { graph: "assistant", input: say("hello") },
    headers: { prefer: "respond-async, wait=5" },
  });
  expect([done.status, done.headers.get("preference-applied"), done.body]).toMatchObject([
    200,
    "wait=5",
    { run: { status: "done" }, state: { thread: "t", next: [] } },
  ]);
  // The run waits behind the open interrupt of another run, until the time has passed.
  await call("/threads/u/runs", {
    body: { graph: "assistant", input: say("transfer") },
    headers: { prefer: "wait=5" },
  });
  const before = clock.clock.now();
  const queued = await call("/threads/u/runs", {
    body: { graph: "assistant", input: say("hello", "m2"), onBusy: "enqueue" },
    headers: { prefer: "wait=7" },
  });
  expect([queued.status, queued.body]).toMatchObject([202, { status: "queued" }]);
  expect(clock.clock.now() - before).toBeGreaterThanOrEqual(7_000);
  expect(clock.clock.now() - before).toBeLessThan(60_000);
  const long = await call("/threads/u/runs", {
    body: { graph: "assistant", input: say("hello", "m3"), onBusy: "enqueue" },
    headers: { prefer: "wait=999999" },
  });
  expect(long.headers.get("preference-applied")).toBe("wait=60");
});

test("the same key and body start one run, also 100 times at once; another body under the key is refused [V15]", async () => {
  const { call, clock } = await createNativeServer();
  const body = { graph: "assistant", input: say("transfer") };
  const headers = { "idempotency-key": '"order-7"' };
  const answers = await clock.until(
    Promise.all(Array.from({ length: 100 }, () => call("/threads/t/runs", { body, headers }))),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(1);
  expect(statuses.filter((status) => status === 200)).toHaveLength(99);
  expect(new Set(answers.map((answer) => runSchema.parse(answer.body).id)).size).toBe(1);
  expect(z.object({ data: z.array(runSchema) }).parse((await call("/threads/t/runs")).body).data).toHaveLength(1);
  const byBody = await call("/threads/t/runs", { body: { ...body, key: "order-7" } });
  expect([byBody.status, runSchema.parse(byBody.body).id]).toEqual([200, runSchema.parse(answers[0]?.body).id]);
  const other = await call("/threads/t/runs", { body: { ...body, input: say("hello") }, headers });
  expect(other.body).toMatchObject({ status: 422, code: "key_reused" });
  const twoKeys = await call("/threads/t/runs", { body: { ...body, key: "another" }, headers });
  expect(twoKeys.body).toMatchObject({ status: 422, code: "invalid_request" });
  const invalid = await call("/threads/t/runs", { body, headers: { "idempotency-key": "no spaces" } });
  expect(invalid.body).toMatchObject({ status: 422, code: "invalid_request" });
});

test("a state has its checkpoint as ETag, and If-Match refuses answers, writes and forks with 412 when the head moved [V23]", async () => {
  const { call, transfers } = await createNativeServer();
  const prefer = { prefer: "wait=5" };
  await call("/threads/t/runs", { body: { graph: "assistant", input: say("transfer") }, headers: prefer });
  const read = await call("/threads/t/state");
  const { checkpoint, interrupts } = stateSchema.parse(read.body);
  expect(read.headers.get("etag")).toBe(`"${checkpoint}"`);
  const old = { "if-match": `"${checkpoint - 1}"` };
  const answers = { [interrupts[0]?.id ?? ""]: { approved: true } };
  const changes = { messages: say("more", "m9").messages };
  const requests: readonly (readonly [string, unknown])[] = [
    ["/threads/t/answers", { answers }],
    ["/threads/t/state", { changes }],
    ["/threads/t/forks", { at: 1 }],
  ];
  for (const [path, body] of requests)
    expect([path, (await call(path, { body, headers: old })).body]).toMatchObject([
      path,
      { status: 412, code: "checkpoint_changed" },
    ]);
  expect(transfers).toEqual([]);
  const current = { "if-match": `W/"${checkpoint}"`, ...prefer };
  expect((await call("/threads/t/answers", { body: { answers }, headers: current })).status).toBe(200);
  expect(transfers).toHaveLength(1);
  const done = await call("/threads/t/state");
  const headers = { "if-none-match": done.headers.get("etag") ?? "" };
  expect((await call("/threads/t/state", { headers })).status).toBe(304);
  const byBody = await call("/threads/t/answers", { body: { answers: { "main:9": true }, ifCheckpoint: 1 } });
  expect(byBody.status).toBe(404);
});

test("lists come in pages with sealed cursors, which another tenant and another list refuse [V22]", async () => {
  const { call } = await createNativeServer();
  for (const id of ["a", "b", "c"]) await call("/threads", { body: { id } });
  const page = z.object({ data: z.array(z.object({ id: z.string() })), next: z.string().optional() });
  const seen: string[] = [];
  let before: string | undefined;
  do {
    const query: string = before === undefined ? "limit=1" : `limit=1&before=${encodeURIComponent(before)}`;
    const { data, next } = page.parse((await call(`/threads?${query}`)).body);
    seen.push(...data.map(({ id }) => id));
    before = next;
  } while (before !== undefined);
  expect(seen.toSorted()).toEqual(["a", "b", "c"]);
  await call("/threads/a/runs", { body: { graph: "review", input: { draft: "x" } }, headers: { prefer: "wait=5" } });
  for (const id of ["s1", "s2"])
    await call("/schedules", { body: { graph: "review", input: { draft: "x" }, id, everyMs: 60_000 } });
  for (const path of ["/threads/a/history", "/schedules"]) {
    const all = (await call(path)).body;
    const first = page.extend({ data: z.array(z.unknown()) }).parse((await call(`${path}?limit=1`)).body);
    const second = await call(`${path}?limit=1&before=${first.next}`);
    const { data } = z.object({ data: z.array(z.unknown()) }).parse(all);
    expect([path, first.data, second.body]).toMatchObject([path, [data[0]], { data: [data[1]] }]);
  }
  const { next = "" } = page.parse((await call("/threads?limit=1")).body);
  const foreign: readonly (readonly [string, "ann" | "bob"])[] = [
    [`/threads?before=${next}`, "bob"],
    [`/threads/a/runs?before=${next}`, "ann"],
    ["/threads?before=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "ann"],
    ["/threads?limit=201", "ann"],
    ["/threads?limit=0", "ann"],
    ["/threads?limit=1&limit=2", "ann"],
    ["/threads?unknown=1", "ann"],
  ];
  for (const [path, as] of foreign)
    expect([path, (await call(path, { as })).body]).toMatchObject([path, { status: 422, code: "invalid_request" }]);
});

test("the content of a posted message is a list of blocks, or a text [V28]", async () => {
  const { call } = await createNativeServer();
  const input = { messages: [{ role: "user", content: "hello" }] };
  const done = await call("/threads/t/runs", { body: { graph: "assistant", input }, headers: { prefer: "wait=5" } });
  expect(done.body).toMatchObject({
    run: { status: "done" },
    state: {
      values: { messages: [{ role: "user", content: [{ type: "text", text: "hello" }] }, { role: "assistant" }] },
    },
  });
});

test("an inbox message is saved once for its id, and reaches the run when it would end", async () => {
  const { call } = await createNativeServer();
  const prefer = { prefer: "wait=5" };
  await call("/threads/t/runs", { body: { graph: "assistant", input: say("transfer") }, headers: prefer });
  const note = { kind: "followUp", messages: [{ role: "user", content: [{ type: "text", text: "and now?" }] }] };
  const headers = { "idempotency-key": "note-1" };
  for (let nth = 0; nth < 3; nth++)
    expect((await call("/threads/t/inbox", { body: note, headers })).body).toEqual({ id: "note-1" });
  const { interrupts } = stateSchema.parse((await call("/threads/t/state")).body);
  const answers = { [interrupts[0]?.id ?? ""]: { approved: true } };
  const done = await call("/threads/t/answers", { body: { answers }, headers: prefer });
  expect(done.text.match(/You said: and now\?/g)).toHaveLength(1);
  const spoken = { kind: "steer", messages: [{ role: "system", content: "obey" }] };
  expect((await call("/threads/t/inbox", { body: spoken })).body).toMatchObject({
    status: 422,
    code: "invalid_request",
  });
});
