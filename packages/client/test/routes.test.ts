/** Every route of the native API, by the typed client. */
import { expect, test } from "vitest";
import { ask, startTestServer } from "./support/test-server.ts";

const input = ask("hello", "m1");

/** Routes below `/api` that a client has no method for. */
const unused = ["GET /api/openapi.json"];

test("the client has a method for each route of the native API [V13, V25]", async () => {
  const { client, server, requests } = await startTestServer();
  const thread = client.thread("t");
  expect(await client.getInfo()).toMatchObject({ name: "statewright", role: "serve" });
  expect(await client.listGraphs()).toMatchObject([{ name: "assistant" }]);
  expect(await client.getGraph("assistant")).toMatchObject({ inputChannels: ["messages"] });

  await client.createThread({ id: "t" });
  expect(await thread.get()).toMatchObject({ id: "t" });
  expect((await client.listThreads({ q: "t" })).data).toMatchObject([{ id: "t" }]);
  expect(await thread.update({ title: "Talk" })).toMatchObject({ title: "Talk" });
  const file = await thread.upload(new Uint8Array([137, 80, 78, 71]), { mimeType: "image/png", name: "dot.png" });
  expect(file.block).toMatchObject({ type: "image" });

  const done = await thread.runToRest("assistant", { input });
  expect([done.run.status, (await thread.runs()).data.length]).toEqual(["done", 1]);
  const { checkpoint } = await thread.state();
  expect((await thread.history({ limit: 1 })).data).toMatchObject([{ checkpoint }]);
  expect(await thread.diff(1, checkpoint)).toMatchObject({ from: 1, to: checkpoint });
  expect(await thread.fork({ at: 1, name: "second" })).toMatchObject({ branch: "second" });
  expect((await thread.branches()).map(({ name }) => name)).toEqual(["main", "second"]);
  expect((await thread.updateState({ changes: {}, as: "model" })).checkpoint).toBeGreaterThan(checkpoint);
  const edited = await thread.edit({ role: "user", id: "m1", content: "hi" });
  expect((await thread.wait(edited.id)).run.status).toBe("done");
  expect(await thread.artifacts()).toEqual({ data: [] });
  await expect(thread.artifact("none")).rejects.toMatchObject({ code: "unknown_artifact" });
  expect(await thread.copy("copy")).toMatchObject({ id: "copy" });

  const reading = new AbortController();
  const changes = client.streamInterrupts({ signal: reading.signal })[Symbol.asyncIterator]();
  expect(await changes.next()).toMatchObject({ value: { type: "snapshot", interrupts: { data: [] } } });
  const asked = client.thread("u");
  await asked.runToRest("assistant", { input: ask("transfer", "m1") });
  const { value: opened } = await changes.next();
  expect(opened).toMatchObject({ type: "opened", interrupt: { thread: "u", key: "approve" } });
  await asked.send([{ role: "user", content: "hurry" }], { kind: "followUp", id: "n1" });
  await asked.pause();
  await asked.resume();
  await asked.cancel({ wait: true });
  expect(await changes.next()).toMatchObject({ value: { type: "closed", thread: "u" } });
  reading.abort();
  expect((await client.listInterrupts()).data).toEqual([]);
  await expect(asked.answer({ answers: { none: true } })).rejects.toMatchObject({ code: "unknown_interrupt" });

  const content = { graph: "assistant", cron: "0 9 * * *", input: ask("tick", "m1") };
  expect(await client.createSchedule({ ...content, id: "daily" })).toMatchObject({ id: "daily", status: "active" });
  expect(await client.putSchedule("daily", { ...content, cron: "0 10 * * *" })).toMatchObject({ cron: "0 10 * * *" });
  expect((await client.listSchedules()).data).toMatchObject([{ id: "daily" }]);
  expect(await client.pauseSchedule("daily")).toMatchObject({ status: "paused" });
  expect(await client.resumeSchedule("daily")).toMatchObject({ status: "active" });
  const queued = await client.runSchedule("daily", { key: "now" });
  expect((await client.runSchedule("daily", { key: "now" })).id).toBe(queued.id);
  expect(await client.getSchedule("daily")).toMatchObject({ graph: "assistant" });
  expect(await client.listSlots("daily", 2)).toHaveLength(2);
  expect(await client.listSlots({ everyMs: 60_000 }, 3)).toHaveLength(3);
  await client.deleteSchedule("daily");

  // The caller of the test has no scope admin.
  for (const call of [
    () => thread.export(),
    () => client.importThread("{}", { id: "moved" }),
    () => client.changeRuns({ action: "cancel", filter: {}, dryRun: true }),
  ])
    await expect(call()).rejects.toMatchObject({ code: "forbidden", status: 403 });
  await thread.delete();

  const reached = server.routes.filter(({ method, path }) => {
    const pattern = new RegExp(`^${method} ${path.replaceAll(/:[a-z]+/g, "[^/]+")}$`);
    return requests.some((request) => pattern.test(request));
  });
  const missing = server.routes
    .filter(({ protocol }) => protocol === "api")
    .filter((route) => !reached.includes(route));
  expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual(unused);
});

test("an exported thread is imported by a client with the scope admin [V25]", async () => {
  const access = { tokens: { root: { token: "a-token-of-an-admin", tenant: "acme", scopes: ["admin"] } } };
  const { client } = await startTestServer({ access, token: "a-token-of-an-admin" });
  const thread = client.thread("t");
  await thread.runToRest("assistant", { input });
  expect(await client.importThread(await thread.export(), { id: "moved" })).toMatchObject({ id: "moved" });
  expect(await client.thread("moved").state()).toMatchObject({ thread: "moved", status: "done" });
  const report = await client.changeRuns({ action: "delete", filter: { thread: "moved" } });
  expect(report).toMatchObject({ matched: 1, done: 1, isComplete: true });
});
