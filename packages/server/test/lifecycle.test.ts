/** Drain, end and failures of a server. */
import { engine, type MemoryStore, memoryStore, StatewrightError, type Store } from "@statewright/core";
import { faults, virtualClock } from "@statewright/testing";
import { expect, onTestFinished, test } from "vitest";
import { createBareServer } from "./support/create-bare-server.ts";
import { createGatedGraph } from "./support/create-gated-graph.ts";
import { createTestRequest, createTestServer } from "./support/create-test-server.ts";
import { echoProtocol } from "./support/echo-protocol.ts";

test("a drain refuses new runs at once and lets reads go on, streams end after the step is saved, and another process continues the run [V128]", async () => {
  const store: MemoryStore = memoryStore();
  const gated = createGatedGraph();
  const { server, clock, send } = await createTestServer({ store, graphs: [gated.graph], protocols: [echoProtocol] });
  const begun = { body: { graph: "gated", texts: ["x"] } };
  const posted = server.fetch(createTestRequest("/echo/threads/t/runs", begun));
  await clock.until(gated.isEntered);
  const events = await send("/echo/threads/t/events");
  let hasEnded = false;
  const text = events.text().finally(() => {
    hasEnded = true;
  });
  expect((await send("/readyz")).status).toBe(200);

  const drained = server.drain();
  expect((await send("/readyz")).status).toBe(503);
  expect((await send("/livez")).status).toBe(200);
  const refused = await send("/echo/threads/u/runs", begun);
  expect([refused.status, refused.headers.get("retry-after"), refused.headers.get("connection")]).toEqual([
    503,
    "5",
    "close",
  ]);
  expect(await refused.json()).toMatchObject({ code: "draining" });
  expect((await send("/echo/threads")).status).toBe(200);
  expect((await send("/echo/threads/t/events")).status).toBe(503);
  await clock.waitUntilIdle();
  expect(hasEnded).toBe(false);

  gated.open();
  await clock.until(drained);
  const sent = await text;
  expect(sent).toMatch(/event: step\.committed\n.*\n: [a-z ]+\n$/s);
  expect(await (await clock.until(posted)).json()).toMatchObject({ status: "paused" });

  const next = virtualClock();
  const results: unknown[] = [];
  const continued = new Promise<void>((resolve) => {
    const host = engine({
      store: store.peer(),
      graphs: [createGatedGraph().graph],
      world: next,
      onRun: (run) => {
        run.result.then((result) => {
          results.push(result);
          resolve();
        });
      },
    });
    onTestFinished(() => host.stop({ now: true }));
    void host.start();
  });
  await next.until(continued);
  expect(results).toMatchObject([{ status: "done", state: { log: ["first", "second"] } }]);
});

test("a drain with a limit aborts the runs that have not saved their step, and closes the streams", async () => {
  const gated = createGatedGraph();
  const { server, clock, send } = await createTestServer({ graphs: [gated.graph], protocols: [echoProtocol] });
  const posted = server.fetch(createTestRequest("/echo/threads/t/runs", { body: { graph: "gated", texts: ["x"] } }));
  await clock.until(gated.isEntered);
  const events = await send("/echo/threads/t/events");
  const text = events.text();
  const drained = server.drain({ graceMs: 1_000 });
  await clock.waitUntilIdle();
  gated.open();
  await clock.until(drained);
  expect(await text).toContain("the server is stopping");
  expect((await clock.until(posted)).status).toBe(200);
});

test("a store that is locked or closed answers 503 with Retry-After, and the server lives on [V119]", async () => {
  const inner = memoryStore();
  const locking = faults.store(inner, { on: "read", error: "store_locked" });
  let isLocked = false;
  const store = new Proxy(inner, {
    get: (_target, name) => {
      const current: Store = isLocked ? locking : inner;
      const value: unknown = Reflect.get(current, name);
      return typeof value === "function" ? value.bind(current) : value;
    },
  });
  const { send, sendJson, clock } = await createTestServer({ store, protocols: [echoProtocol] });
  await sendJson("/echo/threads/t/runs", { body: { graph: "review", texts: ["x"] } });
  isLocked = true;
  const locked = await send("/echo/threads/t");
  expect([locked.status, locked.headers.get("retry-after"), await locked.json()]).toMatchObject([
    503,
    "1",
    { code: "store_locked" },
  ]);
  isLocked = false;
  expect((await send("/echo/threads/t")).status).toBe(200);
  await inner.close();
  const closed = await send("/echo/threads/t");
  expect([closed.status, await closed.json()]).toMatchObject([503, { code: "store_closed" }]);
  expect([(await send("/livez")).status, (await send("/readyz")).status]).toEqual([200, 503]);
  await clock.waitUntilIdle();
});

test("a stream whose store is locked ends with a comment, so that its reader comes back, and another failure has its last frame [V119]", async () => {
  const codes = ["store_locked", "node_failed"] as const;
  const { send } = createBareServer({
    routes: codes.map((code) => ({
      method: "GET",
      path: `/streams/${code.replace("_", "-")}`,
      action: "thread.read",
      isRead: true,
      handle: ({ stream }) =>
        stream(
          async function* () {
            yield { event: "first", data: 1 };
            throw new StatewrightError(code, { what: "a secret", next: "Wait" });
          },
          { formatFailure: (problem) => [{ event: "error", data: { code: problem.code } }] },
        ),
    })),
  });
  const locked = await send("/bare/streams/store-locked");
  expect(locked.text).toMatch(/^: open\nevent: first\ndata: 1\n\n: store_locked\n$/);
  const failed = await send("/bare/streams/node-failed");
  expect(failed.text).toMatch(/event: error\ndata: {"code":"internal"}\n\n$/);
});
