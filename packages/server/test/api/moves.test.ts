/** Copies, exports and imports of threads, and differences of their checkpoints, over the native API. */
import { defineGraph, defineState, END, memoryStore, START } from "@statewright/core";
import { importThread } from "@statewright/core/inspect";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createNativeServer, say } from "../support/native-server.ts";
import { storeKinds } from "../support/test-store.ts";

const prefer = { prefer: "wait=5" };
const lines = "application/x-ndjson";
const imports = "/threads/imports";

describe.each(storeKinds)("with a %s store", (store) => {
  test(`an exported thread is imported by an admin of another tenant and goes on there, from a ${store} store [V13, V111]`, async () => {
    const source = await createNativeServer({ store });
    await source.call("/threads/t/runs", { body: { graph: "assistant", input: say("transfer") }, headers: prefer });
    const exported = await source.call("/threads/t/export", { as: "root" });
    expect([exported.status, exported.headers.get("content-disposition")]).toEqual([
      200,
      'attachment; filename="thread.jsonl"',
    ]);
    expect(JSON.parse(exported.text.split("\n", 1)[0] ?? "")).toMatchObject({ id: "t" });
    const target = await createNativeServer({ store: memoryStore() });
    const moved = await target.upload(`${imports}?id=moved`, exported.text, { as: "root", type: lines });
    expect([moved.status, moved.body]).toMatchObject([201, { id: "moved", owner: "root", status: "waiting" }]);
    const { data } = z
      .object({ data: z.array(z.object({ id: z.string() })) })
      .parse((await target.call("/interrupts?thread=moved")).body);
    const body = { answers: { [data[0]?.id ?? ""]: { approved: true } } };
    const done = await target.call("/threads/moved/answers", { body, headers: prefer });
    expect(done.body).toMatchObject({ run: { status: "done" } });
    expect(target.transfers).toEqual([{ to: "ann", amount: 5 }]);
    const again = await target.upload(imports, exported.text, { as: "root", type: lines });
    expect([again.status, again.body]).toMatchObject([201, { id: "t" }]);
    const twice = await target.upload(imports, exported.text, { as: "root", type: lines });
    expect(twice.body).toMatchObject({ status: 409, code: "thread_exists" });
  });
});

test("a run in an imported copy is found by its id by the tenant of the copy, beside the original of another tenant [V99]", async () => {
  const { call, store } = await createNativeServer();
  await call("/threads/t/runs", { body: { graph: "assistant", input: say("hello") }, headers: prefer });
  const { text } = await call("/threads/t/export", { as: "root" });
  await importThread(store, text, { as: "t.globex.copy", tenant: "globex", owner: "bob" });
  const page = z.object({ data: z.array(z.object({ id: z.string() })) });
  const [run] = page.parse((await call("/threads/copy/runs", { as: "bob" })).body).data;
  const [copied, original, foreign] = [
    await call(`/runs/${run?.id}`, { as: "bob" }),
    await call(`/runs/${run?.id}`),
    await call(`/runs/${run?.id}x`, { as: "bob" }),
  ];
  expect([copied.status, copied.body]).toMatchObject([200, { id: run?.id, thread: "copy" }]);
  expect([original.status, original.body]).toMatchObject([200, { id: run?.id, thread: "t" }]);
  expect(foreign.body).toMatchObject({ code: "unknown_run" });
});

test("an export and an import need the scope admin, and a changed, truncated, nested or foreign text is refused [V111]", async () => {
  const { call, upload, store } = await createNativeServer();
  await call("/threads/t/runs", { body: { graph: "assistant", input: say("hello") }, headers: prefer });
  expect((await call("/threads/t/export")).body).toMatchObject({ status: 403, code: "forbidden" });
  expect((await call("/threads/t/export", { as: "bob" })).status).toBe(403);
  const { text } = await call("/threads/t/export", { as: "root" });
  expect((await upload(`${imports}?id=x`, text, { type: lines })).body).toMatchObject({ status: 403 });
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const invalid: readonly string[] = [
    "",
    "{}",
    "not json",
    text.slice(0, -20),
    text.replace("You said: hello", "You said: Hello"),
    text.replace('"text"', '"__proto__"'),
    `${deep}\n${text}`,
    JSON.stringify({ $constructor: "Function", args: ["process.exit()"] }),
  ];
  for (const changed of invalid) {
    const answer = await upload(`${imports}?id=x`, changed, { as: "root", type: lines });
    expect([changed.slice(0, 40), answer.body]).toMatchObject([
      changed.slice(0, 40),
      { status: 422, code: "invalid_export" },
    ]);
  }
  expect((await upload(`${imports}?id=a/b`, text, { as: "root", type: lines })).body).toMatchObject({ status: 422 });
  expect(await store.thread("t.acme.x")).toBeUndefined();
});

test("a difference of two checkpoints has no private channel, and no checkpoint of another thread [V13]", async () => {
  const State = defineState({
    public: z.string().default(""),
    hidden: z.string().default(""),
  });
  const secret = "sentinel-5f1c";
  const graph = defineGraph({ name: "secretive", state: State, private: ["hidden"] })
    .nodes({ think: () => ({ hidden: secret, public: "seen" }) })
    .edges({ [START]: "think", think: END });
  const { call } = await createNativeServer({ graphs: [graph] });
  await call("/threads/t/runs", { body: { graph: "secretive", input: { public: "first" } }, headers: prefer });
  const { checkpoint } = z.object({ checkpoint: z.number() }).parse((await call("/threads/t/state")).body);
  const diff = await call(`/threads/t/diff?from=${checkpoint - 1}&to=${checkpoint}`);
  expect(diff.body).toEqual({
    from: checkpoint - 1,
    to: checkpoint,
    patch: [{ op: "replace", path: "/public", value: "seen" }],
  });
  for (const path of ["/state", "/history", "/events?end=idle"])
    expect((await call(`/threads/t${path}`)).text).not.toContain(secret);
  expect((await call("/threads/t/diff?from=1&to=999")).body).toMatchObject({ status: 404, code: "unknown_checkpoint" });
  expect((await call("/threads/t/diff?from=1")).body).toMatchObject({ status: 422, code: "invalid_request" });
});

test("a fork and a write from an old checkpoint leave the head where it is, and a node can be named as the writer [V13]", async () => {
  const { call } = await createNativeServer();
  const run = { graph: "review", input: { draft: "one" } };
  await call("/threads/t/runs", { body: run, headers: prefer });
  const forked = await call("/threads/t/forks", { body: { at: 1, name: "other", changes: { draft: "two" } } });
  expect(forked.body).toMatchObject({ branch: "other", state: { values: { draft: "two" } } });
  expect((await call("/threads/t/state")).body).toMatchObject({ branch: "main", values: { draft: "one" } });
  const written = await call("/threads/t/state", { body: { at: 1, changes: { log: ["written"] }, as: "write" } });
  expect(written.body).toMatchObject({ state: { values: { draft: "one", log: ["written"] }, next: ["ask"] } });
  const named = await call("/threads/t/forks", {
    body: { at: 1, as: "write", changes: { log: ["again"] }, moveHead: true },
  });
  expect(named.body).toMatchObject({ state: { values: { log: ["again"] } } });
  expect((await call("/threads/t/state")).body).toMatchObject({ values: { log: ["again"] } });
  expect((await call("/threads/t/forks", { body: { at: 1, as: "write" } })).status).toBe(422);
  expect((await call("/threads/t/forks", { body: { at: 1, name: "other" } })).status).toBe(409);
});
