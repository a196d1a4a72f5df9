/** Acts on many runs over the native API. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createNativeServer, type NativeServer, parseFrames, say } from "../support/native-server.ts";
import { storeKinds } from "../support/test-store.ts";

const prefer = { prefer: "wait=5" };
const runs = z.object({ data: z.array(z.object({ status: z.string() })) });

async function startRun({ call }: Pick<NativeServer, "call">, thread: string, text: string, as: "ann" | "bob" = "ann") {
  const body = { graph: "assistant", input: say(text), metadata: { kind: text } };
  expect((await call(`/threads/${thread}/runs`, { as, body, headers: prefer })).status).toBe(200);
}

async function getStatus({ call }: Pick<NativeServer, "call">, thread: string, as: "ann" | "bob" = "ann") {
  return runs.parse((await call(`/threads/${thread}/runs`, { as })).body).data[0]?.status;
}

describe.each(storeKinds)("with a %s store", (store) => {
  test(`runs of the tenant that match are counted, then cancelled, and those of other tenants stay, in a ${store} store [V13, V99]`, async () => {
    const server = await createNativeServer({ store });
    for (const thread of ["a", "b", "c"]) await startRun(server, thread, "transfer");
    await startRun(server, "done", "hello");
    await startRun(server, "a", "transfer", "bob");
    const filter = { graph: "assistant", metadata: { kind: "transfer" } };
    const act = (body: unknown, as: "ann" | "root" = "root") => server.call("/runs/bulk", { as, body });
    expect((await act({ action: "cancel", filter, dryRun: true })).body).toEqual({
      ...{ matched: 3, done: 0, skipped: 0, failed: 0, isComplete: false, errors: [] },
    });
    expect(await getStatus(server, "a")).toBe("waiting");
    expect((await act({ action: "cancel", filter, reason: "closing time" })).body).toEqual({
      ...{ matched: 3, done: 3, skipped: 0, failed: 0, isComplete: true, errors: [] },
    });
    expect(await Promise.all(["a", "b", "c", "done"].map((thread) => getStatus(server, thread)))).toEqual([
      ...["cancelled", "cancelled", "cancelled", "done"],
    ]);
    expect(await getStatus(server, "a", "bob")).toBe("waiting");
    expect((await act({ action: "cancel", filter: {} })).body).toMatchObject({ matched: 0, done: 0 });
    expect((await act({ action: "cancel", filter }, "ann")).body).toMatchObject({ status: 403, code: "forbidden" });
  });

  test(`failed runs are retried, paused runs resumed and threads deleted by a filter, in a ${store} store [V13]`, async () => {
    const server = await createNativeServer({ store });
    await startRun(server, "f1", "fail");
    await startRun(server, "f2", "fail");
    const act = async (body: unknown) => (await server.call("/runs/bulk", { as: "root", body })).body;
    expect(await act({ action: "resume", filter: {} })).toMatchObject({ matched: 0 });
    expect(await act({ action: "retry", filter: {} })).toMatchObject({ matched: 2, done: 2, failed: 0 });
    const attempts = z.object({ data: z.array(z.object({ attempt: z.number() })) });
    expect(attempts.parse((await server.call("/threads/f1/runs")).body).data).toMatchObject([{ attempt: 2 }]);
    await startRun(server, "w", "transfer");
    await server.call("/threads/w/pause", { body: {} });
    expect(await act({ action: "resume", filter: { thread: "w" } })).toMatchObject({ matched: 1, done: 1 });
    expect(await getStatus(server, "w")).toBe("waiting");
    // The retries of the model have delays.
    await server.clock.advance(10_000);
    expect(await act({ action: "delete", filter: { status: ["failed"] } })).toMatchObject({ matched: 2, done: 2 });
    expect((await server.call("/threads/f1")).status).toBe(404);
    expect((await server.call("/threads/w")).status).toBe(200);
  });
});

test("the progress of an act comes as a stream, and its last frame is the report [V13]", async () => {
  const server = await createNativeServer();
  for (const thread of ["a", "b", "c"]) await startRun(server, thread, "transfer");
  const headers = { accept: "text/event-stream" };
  const body = { action: "cancel", filter: {} };
  const frames = parseFrames((await server.call("/runs/bulk", { as: "root", body, headers })).text);
  expect(frames[0]).toMatchObject({ event: "progress", data: { matched: 3 } });
  expect(frames.at(-1)).toMatchObject({ event: "report", data: { matched: 3, done: 3, isComplete: true } });
});

test("an act without a condition deletes nothing, and a filter that the action cannot meet is refused [V13]", async () => {
  const server = await createNativeServer();
  await startRun(server, "a", "hello");
  const refused: readonly unknown[] = [
    { action: "delete", filter: {} },
    { action: "delete" },
    { action: "retry", filter: { status: "done" } },
    { action: "cancel", filter: { status: ["done"] } },
    { action: "cancel", filter: { tenant: "globex" } },
    { action: "cancel", filter: { since: "yesterday" } },
    { action: "wipe", filter: {} },
  ];
  for (const body of refused)
    expect([body, (await server.call("/runs/bulk", { as: "root", body })).body]).toMatchObject([
      body,
      { status: 422, code: "invalid_request" },
    ]);
  expect((await server.call("/threads/a")).status).toBe(200);
  const future = { action: "delete", filter: { since: "2030-01-01T00:00:00Z" }, dryRun: true };
  expect((await server.call("/runs/bulk", { as: "root", body: future })).body).toMatchObject({ matched: 0 });
});

test("a thread of the program with the tenant of the caller, but without its prefix, is not reached by an act [V99]", async () => {
  const server = await createNativeServer();
  const { graphs, engine } = server;
  const review = graphs.find(({ name }) => name === "review");
  if (review === undefined) throw new Error("no graph");
  await server.clock.until(engine.run(review, { thread: "own", tenant: "acme", input: { draft: "x" } }).result);
  const body = { action: "cancel", filter: { graph: "review" } };
  expect((await server.call("/runs/bulk", { as: "root", body })).body).toMatchObject({ matched: 0, done: 0 });
});
