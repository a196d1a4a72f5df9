/** Streams of the native API: events of a thread, and open interrupts of all threads. */
import { memoryStore, run, StatewrightError, type Store } from "@statewright/core";
import { pruneThread } from "@statewright/core/inspect";
import { sqliteStore } from "@statewright/sqlite";
import { virtualClock } from "@statewright/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { createNativeServer, type NativeServer, parseFrames, say } from "../support/native-server.ts";
import { createStorePath, storeKinds } from "../support/test-store.ts";

const prefer = { prefer: "wait=5" };

async function startRun({ call }: Pick<NativeServer, "call">, thread: string, text: string, id = "m1"): Promise<void> {
  const started = await call(`/threads/${thread}/runs`, {
    body: { graph: "assistant", input: say(text, id) },
    headers: prefer,
  });
  expect(started.status).toBe(200);
}

async function readEvents(
  { call }: Pick<NativeServer, "call">,
  query: string,
  headers: Readonly<Record<string, string>> = {},
) {
  const answer = await call(`/threads/t/events?end=idle${query}`, { headers });
  expect([answer.status, answer.text]).toEqual([200, answer.text]);
  return parseFrames(answer.text);
}

test("a stream begins with a comment, then the durable events above the number, a snapshot, and the end when the thread rests [V16, V17, V19]", async () => {
  const server = await createNativeServer();
  await startRun(server, "t", "hello");
  const { text, headers } = await server.call("/threads/t/events?end=idle");
  expect(text.startsWith(": ")).toBe(true);
  expect(headers.get("content-type")).toContain("text/event-stream");
  const frames = parseFrames(text);
  const names = frames.map(({ event, id }) => `${event} ${id ?? "-"}`);
  expect(names[0]).toBe("run.started 1");
  expect(names.slice(-3)).toEqual([`run.completed ${frames.at(-3)?.id}`, "snapshot -", "end -"]);
  const after = await readEvents(server, "&after=2");
  expect(after[0]?.id).toBe("3");
});

test("the header Last-Event-ID wins over the parameter, and a number above the newest event is refused [V16, V19]", async () => {
  const server = await createNativeServer();
  await startRun(server, "t", "hello");
  const all = await readEvents(server, "");
  const newest = Number(all.findLast(({ id }) => id !== undefined)?.id);
  const resumed = await readEvents(server, "&after=1", { "last-event-id": String(newest - 1) });
  expect(resumed.filter(({ id }) => id !== undefined).map(({ id }) => id)).toEqual([String(newest)]);
  const late = await server.call(`/threads/t/events?after=${newest + 1}`);
  expect(late.body).toMatchObject({ status: 409, code: "event_unknown" });
  const strange = await server.call("/threads/t/events", { headers: { "last-event-id": "abc" } });
  expect(strange.body).toMatchObject({ status: 422, code: "invalid_request" });
  expect((await server.call("/threads/none/events")).body).toMatchObject({ status: 404, code: "unknown_thread" });
});

test("a stream stays open over the runs of its thread, and ends with the news of its deletion [V19]", async () => {
  const server = await createNativeServer();
  await startRun(server, "t", "hello");
  const stream = await server.open("/threads/t/events");
  await stream.readUntil(({ event }) => event === "run.completed");
  await startRun(server, "t", "again", "m2");
  const second = await stream.readUntil(({ event }) => event === "run.completed");
  expect(second.some(({ event }) => event === "run.started")).toBe(true);
  expect((await server.call("/threads/t", { method: "DELETE" })).status).toBe(204);
  const last = await stream.readUntil(({ event }) => event === "end");
  expect(last.slice(-2).map(({ event }) => event)).toEqual(["deleted", "end"]);
  await stream.close();
});

test("views select kinds of events and keep their numbers [V20]", async () => {
  const server = await createNativeServer();
  await startRun(server, "t", "lookup");
  const all = await readEvents(server, "");
  const ids = all.flatMap(({ id }) => id ?? []);
  const steps = await readEvents(server, "&views=steps");
  expect(steps.flatMap(({ id }) => id ?? [])).toEqual(ids);
  const named = (frames: typeof all): readonly string[] => frames.map(({ event, id }) => `${event} ${id}`);
  expect(named(await readEvents(server, "&views=all,tools"))).toEqual(named(all));
  const tools = await readEvents(server, "&views=tools&views=messages");
  expect(tools.map(({ event }) => event)).toEqual(["snapshot", "end"]);
  const unknown = await server.call("/threads/t/events?views=everything");
  expect(unknown.body).toMatchObject({ status: 422, errors: [{ pointer: "/views/0" }] });
});

test("events that retention removed come as one frame gap with their numbers [V19]", async () => {
  const server = await createNativeServer();
  await startRun(server, "t", "hello");
  for (const nth of [2, 3, 4]) await startRun(server, "t", `hello ${nth}`, `m${nth}`);
  await pruneThread(server.store, { thread: "t.acme.t", keepLast: 1 });
  const frames = await readEvents(server, "");
  const gap = frames.find(({ event }) => event === "gap");
  expect(gap).toMatchObject({ data: { from: expect.any(Number), to: expect.any(Number) } });
  expect(gap).not.toHaveProperty("id");
});

describe.each(storeKinds)("with a %s store", (store) => {
  test(`the stream of open interrupts has what is open, then each that opens or closes, of this tenant only, from a ${store} store [V27]`, async () => {
    const server = await createNativeServer({ store });
    await startRun(server, "before", "transfer");
    const stream = await server.open("/interrupts/events");
    const foreign = await server.open("/interrupts/events", { as: "bob" });
    const [snapshot] = await stream.readUntil(({ event }) => event === "snapshot");
    expect(snapshot).toMatchObject({ data: { data: [{ thread: "before", key: "approve", graph: "assistant" }] } });
    const begun = server.clock.clock.now();
    await startRun(server, "t", "transfer");
    const opened = await stream.readUntil(({ event }) => event === "interrupt.opened");
    expect(server.clock.clock.now() - begun).toBeLessThanOrEqual(250);
    expect(opened).toMatchObject([{ data: { thread: "t", payload: { args: { to: "ann" } } } }]);
    const { id } = z.object({ id: z.string() }).parse(opened[0]?.data);
    const body = { answers: { [id]: { approved: true } } };
    expect((await server.call("/threads/t/answers", { body, headers: prefer })).status).toBe(200);
    expect(await stream.readUntil(({ event }) => event === "interrupt.closed")).toEqual([
      { event: "interrupt.closed", data: { id, thread: "t" } },
    ]);
    expect((await server.call("/threads/before", { method: "DELETE" })).status).toBe(204);
    expect(await stream.readUntil(() => true)).toMatchObject([
      { event: "interrupt.closed", data: { thread: "before" } },
    ]);
    await server.call("/threads/b/runs", {
      as: "bob",
      body: { graph: "assistant", input: say("transfer") },
      headers: prefer,
    });
    const ofBob = await foreign.readUntil(({ event }) => event === "interrupt.opened");
    expect(ofBob.map(({ event, data }) => [event, data])).toMatchObject([
      ["snapshot", { data: [] }],
      ["interrupt.opened", { thread: "b" }],
    ]);
    await stream.close();
    await foreign.close();
  });
});

test("an interrupt that another process opens is reported within a second [V27]", async () => {
  const clock = virtualClock();
  const path = createStorePath();
  const [store, other] = [sqliteStore(path, { world: clock }), sqliteStore(path, { world: clock })];
  onTestFinished(async () => {
    await store.close();
    await other.close();
  });
  const server = await createNativeServer({ store, clock });
  const stream = await server.open("/interrupts/events");
  await stream.readUntil(({ event }) => event === "snapshot");
  const review = server.graphs.find(({ name }) => name === "review");
  if (review === undefined) throw new Error("no graph");
  const begun = clock.clock.now();
  const options = { store: other, world: clock, thread: "t.acme.t", tenant: "acme", owner: "ann" };
  await clock.until(run(review, { ...options, input: { draft: "x" } }).result);
  const opened = await stream.readUntil(({ event }) => event === "interrupt.opened");
  expect(opened.at(-1)).toMatchObject({ data: { thread: "t", key: "approve" } });
  expect(clock.clock.now() - begun).toBeLessThanOrEqual(1_000);
  await stream.close();
});

/** Limit of the reads about a changed thread. */
const changedPage = 200;

/** Counts the reads of the open interrupts of changed threads, and can fail them. */
function createCountedStore() {
  const state = { reads: 0, isBroken: false };
  const store: Store = new Proxy<Store>(memoryStore(), {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (name !== "openInterrupts") return typeof member === "function" ? member.bind(target) : member;
      return async (filter: Parameters<Store["openInterrupts"]>[0]) => {
        const isCounted = filter?.limit === changedPage;
        if (isCounted) state.reads += 1;
        if (isCounted && state.isBroken)
          throw new StatewrightError("store_unreachable", { what: "the store is away", next: "Try again" });
        return await target.openInterrupts(filter);
      };
    },
  });
  return { store, state };
}

test("many readers of the open interrupts cost no more reads of the store than one, and none is left after the last [V27]", async () => {
  const countReads = async (readers: number): Promise<number> => {
    const { store, state } = createCountedStore();
    const server = await createNativeServer({ store });
    const streams = await Promise.all(Array.from({ length: readers }, () => server.open("/interrupts/events")));
    for (const stream of streams) await stream.readUntil(({ event }) => event === "snapshot");
    state.reads = 0;
    await startRun(server, "t", "transfer");
    for (const stream of streams) await stream.readUntil(({ event }) => event === "interrupt.opened");
    const { reads } = state;
    for (const stream of streams) await stream.close();
    state.reads = 0;
    await startRun(server, "u", "transfer");
    expect(state.reads).toBe(0);
    return reads;
  };
  const one = await countReads(1);
  expect(one).toBeGreaterThan(0);
  expect(await countReads(20)).toBeLessThanOrEqual(one);
});

test("a store that fails ends the streams of open interrupts with a comment, and the next stream reads it again [V27]", async () => {
  const { store, state } = createCountedStore();
  const server = await createNativeServer({ store });
  const stream = await server.open("/interrupts/events");
  await stream.readUntil(({ event }) => event === "snapshot");
  state.isBroken = true;
  await startRun(server, "t", "transfer");
  await expect(stream.readUntil(() => false)).rejects.toThrow(": store_unreachable");
  state.isBroken = false;
  const next = await server.open("/interrupts/events");
  const [snapshot] = await next.readUntil(({ event }) => event === "snapshot");
  expect(snapshot).toMatchObject({ data: { data: [{ thread: "t" }] } });
  await startRun(server, "u", "transfer");
  expect((await next.readUntil(({ event }) => event === "interrupt.opened")).at(-1)).toMatchObject({
    data: { thread: "u" },
  });
  await next.close();
});

test("the list of open interrupts is filtered by thread and graph, and comes in pages [V27]", async () => {
  const server = await createNativeServer();
  for (const thread of ["a", "b", "c"]) await startRun(server, thread, "transfer");
  await server.call("/threads/d/runs", { body: { graph: "review", input: { draft: "x" } }, headers: prefer });
  const page = z.object({
    data: z.array(z.object({ thread: z.string(), raisedAt: z.string() })),
    next: z.string().optional(),
  });
  const first = page.parse((await server.call("/interrupts?limit=2")).body);
  expect(first.data.map(({ thread }) => thread)).toEqual(["d", "c"]);
  const second = page.parse((await server.call(`/interrupts?limit=2&before=${first.next}`)).body);
  expect([second.data.map(({ thread }) => thread), second.next]).toEqual([["b", "a"], undefined]);
  expect(page.parse((await server.call("/interrupts?graph=review")).body).data).toMatchObject([{ thread: "d" }]);
  expect(page.parse((await server.call("/interrupts?thread=b")).body).data).toMatchObject([{ thread: "b" }]);
  expect((await server.call("/interrupts?thread=a", { as: "bob" })).status).toBe(404);
});
