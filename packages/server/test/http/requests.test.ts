/** Checks of requests before and around the handlers of the routes. */
import { memoryStore } from "@statewright/core";
import { expect, test } from "vitest";
import { createJsonLog } from "../../src/index.ts";
import { bareToken, createBareServer } from "../support/create-bare-server.ts";

const runs = "/bare/threads/t/runs";

test("a request to a route reaches its handler with decoded parameters, the caller and the public path [V141]", async () => {
  const { send } = createBareServer({
    publicUrl: "https://agents.example/v1/",
    basePath: "/agents",
    hosts: ["localhost"],
  });
  const read = await send("/agents/bare/threads/a%3Ab/runs/r1");
  expect([read.status, JSON.parse(read.text)]).toEqual([
    200,
    {
      params: { thread: "a:b", run: "r1" },
      base: "/v1/bare",
      caller: { id: "local", tenant: "local", scopes: [], claims: {} },
    },
  ]);
  expect(JSON.parse((await send("/agents/bare/threads/newest")).text)).toMatchObject({ params: {} });
});

test("a path with an encoded slash, a control character, a reserved name, an empty segment or another id is not found [V141]", async () => {
  const { send, handled } = createBareServer();
  for (const path of [
    "/bare/threads/a%2Fb",
    "/bare/threads/a%5Cb",
    "/bare/threads/%00",
    "/bare/threads/%2e%2e%2f",
    "/bare/threads/%252e",
    "/bare/threads/%zz",
    "/bare/threads/constructor",
    "/bare/threads/__proto__",
    "/bare/threads/%D1%82",
    `/bare/threads/${"x".repeat(300)}`,
    "/bare/threads/",
    "/bare//threads/t",
    "//bare/threads/t",
    "/toString",
    "/bare",
    "/",
  ])
    expect([path, (await send(path)).status]).toEqual([path, 404]);
  expect(handled).toEqual([]);
});

test("another method on a known path is refused with 405 and the allowed methods, and HEAD answers without a body [V139]", async () => {
  const { send, handled } = createBareServer();
  const put = await send("/bare/threads/t", { method: "PUT" });
  expect([put.status, put.headers.get("allow"), put.code]).toEqual([405, "HEAD, GET, DELETE", "method_not_allowed"]);
  const get = await send(runs);
  expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"]);
  const strange = await send("/bare/threads/t", { method: "toString" });
  expect(strange.status).toBe(405);
  expect(handled).toEqual([]);
  const head = await send("/bare/threads/t", { method: "HEAD" });
  expect([head.status, head.text]).toEqual([200, ""]);
});

test("a path below an unknown mount is refused with a sentence that names the base path [V5]", async () => {
  const { send } = createBareServer();
  const mounted = await send("/agents/v1/bare/threads/t");
  expect(JSON.parse(mounted.text)).toMatchObject({
    status: 404,
    code: "not_found",
    detail: 'Mounted below /agents/v1? Pass basePath: "/agents/v1".',
  });
  const below = createBareServer({ basePath: "/agents" });
  expect((await below.send("/agents/bare/threads/t")).status).toBe(200);
  const cut = await below.send("/bare/threads/t");
  expect([cut.status, cut.text]).toEqual([404, expect.stringContaining('The server is at \\"/agents\\".')]);
  expect((await below.send("/agentsbare/threads/t")).status).toBe(404);
});

test("a server without access options refuses every request with 401, and one log line says why [V97]", async () => {
  const { server, lines, handled } = createBareServer({ access: undefined });
  const bare = createBareServer();
  for (const path of ["/bare/threads/t", "/livez", "/nothing"]) {
    const response = await server.fetch(
      new Request(`http://localhost${path}`, { headers: { "x-api-key": bareToken } }),
    );
    expect([path, response.status]).toEqual([path, 401]);
  }
  expect(handled).toEqual([]);
  expect(lines.filter(({ message }) => message.includes("no access option"))).toHaveLength(1);
  await expect(server.listen({ port: 0 })).rejects.toMatchObject({ code: "invalid_option" });
  const open = createBareServer({ access: "open" });
  expect((await open.send("/bare/threads/t", { headers: { authorization: undefined } })).status).toBe(200);
  expect((await bare.send("/bare/threads/t", { headers: { authorization: undefined } })).status).toBe(401);
});

test("no handler runs before the authentication and the right of its action, and a route without an action is refused [V98]", async () => {
  const asked: string[] = [];
  const steps: string[] = [];
  const { send, server, handled } = createBareServer({
    access: {
      authenticate: ({ headers }) => {
        steps.push("authenticate");
        return headers.has("authorization") ? { id: "ann", tenant: "acme" } : undefined;
      },
      authorize: (caller, { action, thread, run, graph }) => {
        steps.push("authorize");
        asked.push([caller.id, action, thread, run, graph].filter(Boolean).join(" "));
        return false;
      },
    },
  });
  for (const { method, path, action } of server.routes) {
    if (action === "public") continue;
    steps.length = 0;
    const url = path.replaceAll(/:([a-z]+)/g, "$1-1");
    const body = method === "POST" ? { body: JSON.stringify({ text: "x" }) } : {};
    const anonymous = await send(url, { method, ...body, headers: { authorization: undefined } });
    expect([path, anonymous.status, steps]).toEqual([path, 401, ["authenticate"]]);
    const denied = await send(url, { method, ...body });
    expect([path, [403, 404].includes(denied.status)]).toEqual([path, true]);
    expect(handled).toEqual([]);
  }
  expect(asked).toEqual([
    "ann thread.read thread-1",
    "ann thread.read thread-1 run-1",
    "ann thread.read",
    "ann run.start thread-1",
    "ann thread.delete thread-1",
    "ann graph.read graph-1",
    "ann thread.read",
  ]);
  expect(server.routes.filter(({ action }) => action === "public").map(({ path }) => path)).toEqual([
    "/livez",
    "/readyz",
  ]);
  const withoutAction = { method: "GET", path: "/x", isRead: true, handle: () => Response.json({}) };
  expect(() => createBareServer({ routes: [withoutAction as never] })).toThrow(/expected an action|must be an action/);
});

test("the action admin needs the scope admin, whatever authorize says [V110]", async () => {
  const access = {
    authenticate: ({ headers }: Request) => ({
      id: "ann",
      tenant: "acme",
      scopes: headers.has("x-admin") ? ["admin"] : [],
    }),
    authorize: () => true,
  };
  const { send, handled } = createBareServer({ access });
  const body = JSON.stringify({ text: "x" });
  expect((await send("/bare/wipe", { body })).code).toBe("forbidden");
  expect(handled).toEqual([]);
  expect((await send("/bare/wipe", { body, headers: { "x-admin": "1" } })).status).toBe(200);
});

test("a server that only reads refuses each change before its handler, in every protocol [V11]", async () => {
  const { send, server, handled } = createBareServer({ role: "readOnly" });
  for (const { method, path, isRead } of server.routes) {
    if (isRead) continue;
    const url = path.replaceAll(/:([a-z]+)/g, "$1-1");
    expect([path, (await send(url, { method })).code]).toEqual([path, "read_only"]);
  }
  expect(handled).toEqual([]);
  expect((await send("/bare/threads/t")).status).toBe(200);
});

test("a body that is not declared as JSON is refused before its handler: 415 [V108]", async () => {
  const { send, handled } = createBareServer();
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain; application/json",
    "application/json; charset=utf-16",
  ])
    expect([type, (await send(runs, { body: "{}", headers: { "content-type": type } })).status]).toEqual([type, 415]);
  expect((await send(runs, { body: "{}", headers: { "content-encoding": "gzip" } })).status).toBe(415);
  expect(
    (await send("/bare/threads/t", { method: "DELETE", body: "x", headers: { "content-type": "text/plain" } })).status,
  ).toBe(415);
  expect(handled).toEqual([]);
  expect(
    (await send(runs, { body: '{"text":"x"}', headers: { "content-type": 'application/json; charset="utf-8"' } }))
      .status,
  ).toBe(200);
});

test("a page of a foreign origin is refused, and a page of the server itself is not [V108]", async () => {
  const { send, handled } = createBareServer({ publicUrl: "https://agents.example" });
  for (const origin of ["https://evil.example", "null", "http://localhost.evil.example"])
    expect([origin, (await send(runs, { body: '{"text":"x"}', headers: { origin } })).code]).toEqual([
      origin,
      "origin_refused",
    ]);
  expect(handled).toEqual([]);
  for (const origin of ["http://localhost", "https://agents.example"])
    expect([origin, (await send(runs, { body: '{"text":"x"}', headers: { origin } })).status]).toEqual([origin, 200]);
});

test("listed origins may call and read, a preflight request needs no token, and no other origin is named [V107]", async () => {
  const { send } = createBareServer({ cors: { origins: ["https://app.example"] } });
  const preflight = { "access-control-request-method": "POST", authorization: undefined };
  const allowed = await send(runs, { method: "OPTIONS", headers: { origin: "https://app.example", ...preflight } });
  expect([allowed.status, Object.fromEntries(allowed.headers)]).toMatchObject([
    204,
    {
      "access-control-allow-origin": "https://app.example",
      "access-control-max-age": "600",
      "access-control-allow-headers": expect.stringContaining("last-event-id"),
      vary: "Origin",
    },
  ]);
  expect(allowed.headers.has("access-control-allow-credentials")).toBe(false);
  const read = await send("/bare/threads/t", { headers: { origin: "https://app.example" } });
  expect(read.headers.get("access-control-expose-headers")).toContain("content-location, location");
  for (const origin of ["https://evil.example", "null", "https://app.example.evil.example", "http://app.example"]) {
    const refused = await send(runs, { method: "OPTIONS", headers: { origin, ...preflight } });
    expect([origin, refused.status, refused.headers.has("access-control-allow-origin")]).toEqual([origin, 403, false]);
  }
  for (const origin of ["*", "null", "https://app.example/path", "app.example"])
    expect(() => createBareServer({ cors: { origins: [origin] } })).toThrow(/`origins` must be exact origins/);
});

test("a request for another host name is refused with 421 [V109]", async () => {
  const { send } = createBareServer({ publicUrl: "https://agents.example" });
  for (const host of ["localhost:4270", "127.0.0.1", "[::1]:80", "agents.example"])
    expect([host, (await send("/bare/threads/t", { host })).status]).toEqual([host, 200]);
  for (const host of ["evil.example", "127.0.0.1.evil.example", "0.0.0.0", "10.0.0.1", "localhost.example"])
    expect([host, (await send("/bare/threads/t", { host })).code]).toEqual([host, "misdirected_request"]);
  for (const host of ["localhost, evil.example", "localhost@evil.example", ""])
    expect([host, (await send("/bare/threads/t", { headers: { host } })).status]).toEqual([host, 421]);
});

test("a rate limit answers 429 with Retry-After and RateLimit headers, and fills again with time [V112]", async () => {
  const { send, clock, handled } = createBareServer({ limit: { requests: 2, perMs: 10_000 } });
  const first = await send("/bare/threads/t");
  expect([first.status, first.headers.get("ratelimit-limit"), first.headers.get("ratelimit-remaining")]).toEqual([
    200,
    "2",
    "1",
  ]);
  expect((await send("/bare/threads/t")).status).toBe(200);
  const third = await send("/bare/threads/t");
  expect([
    third.status,
    third.code,
    third.headers.get("retry-after"),
    third.headers.get("ratelimit-remaining"),
  ]).toEqual([429, "too_many_requests", "5", "0"]);
  expect(handled).toHaveLength(2);
  await clock.advance(5_000);
  expect((await send("/bare/threads/t")).status).toBe(200);
  const asked: string[] = [];
  const hook = createBareServer({
    limit: (caller, action) => {
      asked.push(`${caller.id} ${action}`);
      return { retryAfterMs: 1_500 };
    },
  });
  expect((await hook.send("/bare/threads/t")).headers.get("retry-after")).toBe("2");
  expect(asked).toEqual(["local thread.read"]);
});

test("a failure of a handler shows its request id and nothing else, and the log has the error [V119, V136]", async () => {
  const { send, lines } = createBareServer();
  const broken = await send("/bare/broken", { headers: { "x-request-id": "client-7" } });
  expect([broken.status, broken.headers.get("content-type"), JSON.parse(broken.text)]).toEqual([
    500,
    "application/problem+json",
    {
      type: "urn:statewright:error:internal",
      title: "The server failed. Its log has the details.",
      status: 500,
      code: "internal",
      instance: "urn:statewright:request:client-7",
    },
  ]);
  expect(lines.find(({ level }) => level === "error")).toMatchObject({
    message: "a request failed",
    fields: { requestId: "client-7", error: new Error("SELECT secret FROM /var/lib/agents.db") },
  });
});

test("each request has one log line with route, status, caller and ids, and without tokens, query or body [V135]", async () => {
  const { send, lines } = createBareServer();
  const ok = await send("/bare/threads/t1/runs/r1?secret=hidden");
  await send(runs, { body: '{"text":"private words"}' });
  await send("/nothing/private-path");
  const bad = await send("/bare/threads/t", {
    headers: { "x-request-id": "bad id\u00e9", authorization: "Bearer wrong-token-wrong-token" },
  });
  const requests = lines.filter(({ message }) => message === "request").map(({ fields }) => fields);
  expect(requests).toMatchObject([
    {
      method: "GET",
      route: "/bare/threads/:thread/runs/:run",
      protocol: "bare",
      status: 200,
      caller: "local",
      tenant: "local",
      thread: "t1",
      run: "r1",
      ms: 0,
      at: "2025-01-01T00:00:00.000Z",
    },
    { method: "POST", route: "/bare/threads/:thread/runs", status: 200, thread: "t" },
    { method: "GET", route: undefined, status: 404, code: "not_found" },
    { status: 401, caller: undefined, code: "unauthorized" },
  ]);
  expect(requests[0]?.["requestId"]).toBe(ok.headers.get("x-request-id"));
  expect(bad.headers.get("x-request-id")).toMatch(/^req_[a-z0-9]{20}$/);
  const text = JSON.stringify(lines);
  for (const secret of [bareToken, "hidden", "private words", "private-path", "wrong-token"])
    expect(text).not.toContain(secret);
});

test("unknown options and values of another form are refused, and fetch answers every request [V1]", async () => {
  expect(() => createBareServer({ port: 1 } as never)).toThrow(/serve has no option "port"/);
  expect(() => createBareServer({ role: "reader" } as never)).toThrow(/`role` must be "serve" or "readOnly"/);
  expect(() => createBareServer({ basePath: "agents/" })).toThrow(/`basePath` must be a path/);
  expect(() => createBareServer({ limits: { bodyBytes: 0 } })).toThrow(/limits.bodyBytes/);
  expect(() => createBareServer({ access: {} })).toThrow(/`access` must be one of authenticate, token and tokens/);
  expect(() => createBareServer({ access: { token: "short" } })).toThrow(/at least 16 characters/);
  const { server } = createBareServer({
    access: {
      authenticate: () => {
        throw new Error("the identity provider is away");
      },
    },
  });
  const response = await server.fetch(new Request("http://localhost/bare/threads/t"));
  expect(response.status).toBe(500);
  const loud = createBareServer({
    log: () => {
      throw new Error("the log is away");
    },
  });
  expect((await loud.send("/bare/threads/t")).status).toBe(200);
  expect(loud.lines.at(-1)).toMatchObject({ level: "error", message: "the option log of serve threw" });
  const broken = createBareServer({
    routes: [
      { method: "GET", path: "/nothing", action: "thread.read", isRead: true, handle: () => undefined as never },
      { method: "GET", path: "/error", action: "thread.read", isRead: true, handle: () => Response.error() },
    ],
  });
  for (const path of ["/bare/nothing", "/bare/error"]) expect((await broken.send(path)).status).toBe(500);
  const strange = createBareServer({ access: { authenticate: () => ({ id: "a b", tenant: "acme" }) } });
  expect((await strange.send("/bare/threads/t")).status).toBe(500);
});

test("probes say alive and ready without a token and without details: ready needs a serving engine and a writable store [V130]", async () => {
  const store = memoryStore();
  const { send, server } = createBareServer({ store });
  const anonymous = { headers: { authorization: undefined } };
  expect(await send("/livez", anonymous)).toMatchObject({ status: 200, text: "ok" });
  expect(await send("/readyz", anonymous)).toMatchObject({ status: 503, text: "not ready" });
  // A container platform probes the address of the process.
  expect((await send("/livez", { ...anonymous, host: "10.0.0.7:4270" })).status).toBe(200);
  expect((await send("/livez", { method: "POST" })).status).toBe(404);
  expect(server.routes.filter(({ protocol }) => protocol === "health")).toHaveLength(2);
});

test("a log as JSON writes one line per message, with the stack of errors [V135]", () => {
  const written: string[] = [];
  const log = createJsonLog((line) => written.push(line));
  log("info", "request", { status: 200 });
  log("error", "a request\nfailed", { error: new TypeError("away") });
  expect(
    written
      .join("")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { level: "info", message: "request", status: 200 },
    {
      level: "error",
      message: "a request\nfailed",
      error: { name: "TypeError", message: "away", stack: expect.stringContaining("TypeError: away") },
    },
  ]);
});
