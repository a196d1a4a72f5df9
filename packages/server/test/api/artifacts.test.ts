/** Artifacts and uploaded files over the native API. */
import { createAgent } from "@statewright/agent";
import { defineTool, getMessageText, type ModelRequest } from "@statewright/core";
import { call as callTool, say as sayText, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createNativeServer, say } from "../support/native-server.ts";
import { type StoreKind, storeKinds } from "../support/test-store.ts";

const prefer = { prefer: "wait=5" };
const fileSchema = z.object({ id: z.string(), block: z.record(z.string(), z.unknown()) });
const octets = "application/octet-stream";

/** Agent whose tool makes an artifact with a hostile name and type, and whose model sees the files of the user. */
function createReporter(seen: ModelRequest[]) {
  const report = defineTool({
    name: "report",
    description: "Writes a report.",
    input: z.object({}),
    effect: "pure",
    run: () => ({
      content: "written",
      artifacts: [{ name: 'a"\r\nb/ü.html', mimeType: "text/html", body: "0123456789<script>" }],
    }),
  });
  return createAgent({
    name: "reporter",
    model: scriptedModel((request) => {
      seen.push(request);
      const newest = request.messages.at(-1);
      return newest?.role === "user" && getMessageText(newest) === "report" ? callTool("report", {}) : sayText("done");
    }),
    tools: [report],
  });
}

async function createFixture(store: StoreKind = "memory") {
  const seen: ModelRequest[] = [];
  return { seen, server: await createNativeServer({ store, graphs: [createReporter(seen)] }) };
}

describe.each(storeKinds)("with a %s store", (kind) => {
  test(`an artifact is listed, and downloaded whole or in a range, never shown in place, from a ${kind} store [V13]`, async () => {
    const { server } = await createFixture(kind);
    const { call } = server;
    const started = await call("/threads/t/runs", {
      body: { graph: "reporter", input: say("report") },
      headers: prefer,
    });
    expect(started.body).toMatchObject({ run: { status: "done" } });
    const listed = await call("/threads/t/artifacts");
    const { data } = z.object({ data: z.array(z.object({ key: z.string(), handle: z.string() })) }).parse(listed.body);
    expect(listed.body).toMatchObject({ data: [{ mimeType: "text/html", bytes: 18, isText: true, tool: "report" }] });
    const { key = "", handle = "" } = data[0] ?? {};
    const whole = await call(`/threads/t/artifacts/${key}`);
    expect([whole.status, whole.text]).toEqual([200, "0123456789<script>"]);
    const headers = Object.fromEntries(whole.headers);
    expect(headers).toMatchObject({
      "content-type": "text/html",
      "content-disposition": `attachment; filename="a___b/_.html"; filename*=UTF-8''a%22%0D%0Ab%2F%C3%BC.html`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
      "content-length": "18",
      etag: `"${key}"`,
    });
    const ranges: readonly (readonly [string, number, string, string | null])[] = [
      ["bytes=2-4", 206, "234", "bytes 2-4/18"],
      ["bytes=10-", 206, "<script>", "bytes 10-17/18"],
      ["bytes=-3", 206, "pt>", "bytes 15-17/18"],
      ["bytes=16-99", 206, "t>", "bytes 16-17/18"],
      ["bytes=18-", 416, "", "bytes */18"],
      ["bytes=0-1,3-4", 200, "0123456789<script>", null],
      ["lines=1-2", 200, "0123456789<script>", null],
    ];
    for (const [range, status, text, place] of ranges) {
      const answer = await call(`/threads/t/artifacts/${handle}`, { headers: { range } });
      expect([range, answer.status, answer.text, answer.headers.get("content-range")]).toEqual([
        range,
        status,
        text,
        place,
      ]);
    }
    const known = await call(`/threads/t/artifacts/${key}`, { headers: { "if-none-match": `"${key}"` } });
    expect([known.status, known.text]).toEqual([304, ""]);
    for (const path of ["/threads/t/artifacts/none", `/threads/u/artifacts/${key}`])
      expect((await call(path)).status).toBe(404);
    expect((await call(`/threads/t/artifacts/${key}`, { as: "bob" })).body).toMatchObject({ code: "unknown_thread" });
    const unknown = await call("/threads/t/artifacts?run=none");
    expect(unknown.body).toEqual({ data: [] });
  });

  test(`an uploaded file reaches the model as the content of a message, and no other thread, from a ${kind} store [V13]`, async () => {
    const { server, seen } = await createFixture(kind);
    const { call, upload } = server;
    await call("/threads", { body: { id: "t" } });
    const pixel = new Uint8Array([137, 80, 78, 71, 0, 255]);
    const uploaded = await upload("/threads/t/files?name=pixel.png", pixel, { type: "image/png" });
    const again = await upload("/threads/t/files?name=pixel.png", pixel, { type: "image/png" });
    const { id, block } = fileSchema.parse(uploaded.body);
    // The file waits 24 hours for its message.
    expect(uploaded.body).toMatchObject({
      name: "pixel.png",
      bytes: 6,
      expiresAt: expect.stringMatching(/^2025-01-02T00:00:0/),
    });
    expect([uploaded.status, fileSchema.parse(again.body).id, block]).toEqual([
      201,
      id,
      { type: "image", mimeType: "image/png", uploaded: { thread: id } },
    ]);
    const message = (content: unknown) => ({ messages: [{ role: "user", id: "m1", content }] });
    const content = [{ type: "text", text: "look" }, block];
    const elsewhere = await call("/threads/u/runs", { body: { graph: "reporter", input: message(content) } });
    expect(elsewhere.status).toBe(404);
    await call("/threads", { body: { id: "u" } });
    const foreign = await call("/threads/u/runs", { body: { graph: "reporter", input: message(content) } });
    expect(foreign.body).toMatchObject({ status: 422, code: "unknown_file" });
    const done = await call("/threads/t/runs", {
      body: { graph: "reporter", input: message(content) },
      headers: prefer,
    });
    expect(done.body).toMatchObject({ run: { status: "done" } });
    const data = Buffer.from(pixel).toString("base64");
    expect(seen.at(-1)?.messages.at(-1)).toMatchObject({ content: [{ text: "look" }, { type: "image", data }] });
  });
});

test("an upload of a simple media type, without content, above 10 MiB or to an unknown thread is refused [V13]", async () => {
  const { server } = await createFixture();
  const { upload, call, store } = server;
  await call("/threads", { body: { id: "t" } });
  for (const type of ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
    expect([type, (await upload("/threads/t/files", "x", { type })).body]).toMatchObject([type, { status: 415 }]);
  expect((await upload("/threads/t/files", "", { type: octets })).body).toMatchObject({ status: 422 });
  expect((await upload("/threads/t/files?mimeType=nonsense", "x", { type: octets })).body).toMatchObject({
    status: 422,
  });
  const large = new Uint8Array(10 * 2 ** 20 + 1);
  expect((await upload("/threads/t/files", large, { type: octets })).body).toMatchObject({ status: 413 });
  expect((await upload("/threads/none/files", "x", { type: octets })).body).toMatchObject({ status: 404 });
  expect((await upload("/threads/t/files", "x", { type: octets, as: "bob" })).body).toMatchObject({ status: 404 });
  const page = { namespace: "statewright.server/files/", deep: true, at: 0, limit: 10 };
  expect(await store.longTerm.page(page)).toEqual([]);
  expect((await upload("/threads/t/files?name=n.txt", "x", { type: octets })).status).toBe(201);
  expect(await store.longTerm.page(page)).toHaveLength(1);
  expect((await call("/threads/t", { method: "DELETE" })).status).toBe(204);
  expect(await store.longTerm.page(page)).toEqual([]);
});
