import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { loadOpenApi, type OpenApiOptions } from "../src/index.ts";
import { call, createToolRuntime, type EchoServer, startEchoServer } from "./support/openapi.ts";

const document = {
  openapi: "3.1.0",
  security: [{ key: [] }],
  paths: { "/it": { get: { operationId: "look" }, post: { operationId: "act" } } },
  components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "X-Key" } } },
};
const secrets = { KEY: "key-5ecret" };
let server: EchoServer;
let other: EchoServer;

beforeAll(async () => {
  [server, other] = await Promise.all([startEchoServer(), startEchoServer()]);
});
afterEach(() => {
  server.answers.clear();
  server.observed.length = 0;
});
afterAll(() => Promise.all([server.close(), other.close()]));

const load = async (options: OpenApiOptions = {}) =>
  (
    await loadOpenApi(document, {
      baseUrl: server.base,
      allowPrivate: ["127.0.0.1"],
      auth: { key: "KEY" },
      tool: () => ({ retry: { attempts: 3, initialMs: 0, jitter: 0, on: ["unavailable"] } }),
      ...options,
    })
  ).tools;
const look = async (options?: OpenApiOptions) => call(await load(options), "look", {}, { secrets });
const act = async (options?: OpenApiOptions) => call(await load(options), "act", {}, { secrets });

test("an OpenAPI answer is data, text, an artifact or a location", async () => {
  expect((await look()).result).toMatchObject({ value: { method: "GET", url: "/it" }, details: { status: 200 } });
  server.answers.set("/it", { headers: { "content-type": "text/html" }, body: "<b>hello</b>" });
  expect((await look()).text).toBe("<b>hello</b>");
  server.answers.set("/it", { headers: { "content-type": "image/png" }, body: Buffer.from([1, 0, 2]) });
  expect((await look()).result).toMatchObject({ artifacts: [{ name: "answer", mimeType: "image/png", bytes: 3 }] });
  server.answers.set("/it", { status: 201, headers: { location: "/it/7" } });
  expect((await look()).text).toBe("[201, no content: /it/7]");
  server.answers.set("/it", { headers: { "content-type": "application/json" }, body: '{"a":' });
  expect((await look()).text).toBe('{"a":');
});

test("an OpenAPI answer is read up to its byte limit", async () => {
  server.answers.set("/it", { headers: { "content-type": "application/json" }, body: `"${"x".repeat(1_000)}"` });
  expect((await look({ maxBytes: 10 })).text).toBe('"xxxxxxxxx\n[truncated after 10 bytes]');
  server.answers.set("/it", { headers: { "content-type": "image/png" }, body: Buffer.alloc(1_000) });
  expect((await look({ maxBytes: 10 })).result.error?.message).toContain("exceeds 10 bytes of image/png");
});

test("an OpenAPI error status is an error of its kind with a bounded text", async () => {
  for (const [status, kind] of [
    [400, "invalid_args"],
    [401, "denied"],
    [404, "not_found"],
    [409, "failed"],
    [422, "invalid_args"],
    [500, "failed"],
  ] as const) {
    server.answers.set("/it", { status, headers: { "content-type": "text/plain" }, body: `no: ${"x".repeat(10_000)}` });
    const { result, text } = await act();
    expect([status, result.error?.kind, result.details]).toEqual([status, kind, { status }]);
    expect(text).toMatch(/^POST \/it \(act\) failed with status \d+: no: x{3996} \[truncated\]$/);
  }
});

test("an OpenAPI call is retried after Retry-After with the same key, and a failed call with possible effects is not retried", async () => {
  server.answers.set("/it", { status: 429, headers: { "retry-after": "0" } });
  expect((await act({ idempotencyKey: "X-Once" })).result).toMatchObject({
    attempts: 3,
    error: { kind: "unavailable" },
  });
  expect(new Set(server.observed.map(({ headers }) => headers["x-once"])).size).toBe(1);
  expect(server.observed[0]?.headers["x-once"]).toMatch(/^t\/[0-9a-z]{12}\/main\//);
  server.answers.set("/it", { status: 503 });
  expect((await act()).result).toMatchObject({ attempts: 1, error: { kind: "unknown_outcome" } });
  expect((await look()).result).toMatchObject({ attempts: 3, error: { kind: "unavailable" } });
  server.answers.set("/it", "drop");
  expect((await act()).result).toMatchObject({ attempts: 1, error: { kind: "unknown_outcome" } });
  expect((await look()).result).toMatchObject({ attempts: 3, error: { kind: "unavailable" } });
  const [, tool] = await load({ idempotencyKey: true });
  expect(tool?.spec.effect).toBe("idempotent");
});

test("Retry-After is parsed as seconds or a date", async () => {
  const [tool] = await load({ auth: false });
  const now = Date.parse("2026-01-01T00:00:00Z");
  const runtime = createToolRuntime({ clock: { now: () => now, monotonic: () => 0 } });
  const request = async (): Promise<unknown> => tool?.call({}, runtime, { id: "c", name: "look", args: {} });
  for (const [retryAfter, retryAfterMs] of [
    ["7", 7_000],
    ["Thu, 01 Jan 2026 00:00:09 GMT", 9_000],
    ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
    ["soon", undefined],
  ] as const) {
    server.answers.set("/it", { status: 429, headers: { "retry-after": retryAfter } });
    await expect(request(), retryAfter).rejects.toMatchObject({ retryAfterMs });
  }
});

test("private addresses, other hosts and redirects are refused unless allowed, and no secret reaches another origin", async () => {
  expect((await look({ allowPrivate: false })).result.error?.kind).toBe("denied");
  expect((await look({ allowHosts: ["api.example"] })).result.error?.kind).toBe("denied");
  expect(server.observed).toEqual([]);
  server.answers.set("/it", { status: 302, headers: { location: `${other.base}/there` } });
  expect((await look()).result.error).toMatchObject({
    kind: "denied",
    message: expect.stringContaining("not allowed"),
  });
  expect(other.observed).toEqual([]);
  expect((await look({ maxRedirects: 1 })).result.isError).toBe(false);
  expect(server.observed.at(-1)?.headers["x-key"]).toBe("key-5ecret");
  expect(other.observed[0]?.url).toBe("/there");
  expect(JSON.stringify(other.observed)).not.toContain("5ecret");
});

test("an OpenAPI call ends by its signal and its timeout", async () => {
  server.answers.set("/it", "hang");
  expect((await look({ tool: () => ({ timeoutMs: 1, retry: { attempts: 1 } }) })).result.error?.kind).toBe("timeout");
  const [tool] = await load({ auth: false });
  const stop = new AbortController();
  const runtime = createToolRuntime({ signal: stop.signal });
  const request = async (): Promise<unknown> => tool?.call({}, runtime, { id: "c", name: "look", args: {} });
  const pending = request();
  stop.abort();
  await expect(pending).rejects.toMatchObject({ kind: "cancelled" });
});
