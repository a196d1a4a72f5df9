/** Bodies of requests: limits of size, depth and count, and values that no body may have. */
import { expect, test } from "vitest";
import { findJsonProblem } from "../../src/http/find-json-problem.ts";
import { createBareRequest, createBareServer } from "../support/create-bare-server.ts";
import { createTestServer, testTokens } from "../support/create-test-server.ts";

const runs = "/bare/threads/t/runs";

test("a body above the limit is refused by its declared size and by its received bytes, and the rest is not read [V114]", async () => {
  const { send, server, handled } = createBareServer({ limits: { bodyBytes: 1_000 } });
  expect((await send(runs, { body: `{"text":"${"x".repeat(1_000)}"}` })).code).toBe("body_too_large");
  expect((await send(runs, { body: '{"text":"x"}', headers: { "content-length": "1001" } })).status).toBe(413);
  let sent = 0;
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      sent += 100;
      controller.enqueue(new Uint8Array(100).fill(0x20));
    },
    cancel: () => {
      isCancelled = true;
    },
  });
  const response = await server.fetch(createBareRequest(runs, { body: endless }));
  expect([response.status, isCancelled, sent <= 1_300]).toEqual([413, true, true]);
  expect(handled).toHaveLength(2);
  expect((await send(runs, { body: `{"text":"${"x".repeat(900)}"}` })).status).toBe(200);
});

test("a chunked body of 2 GB is refused and grows the heap by less than 20 MB [V114]", async () => {
  const { server } = createBareServer();
  const chunk = new Uint8Array(65_536).fill(0x20);
  let left = 2 * 2 ** 30;
  let peak = 0;
  const before = process.memoryUsage();
  const measure = (): number => {
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers;
  };
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      left -= chunk.byteLength;
      peak = Math.max(peak, measure());
      if (left <= 0) controller.close();
      else controller.enqueue(chunk.slice());
    },
  });
  const response = await server.fetch(createBareRequest(runs, { body }));
  expect(response.status).toBe(413);
  expect(Math.max(peak, measure())).toBeLessThan(20 * 2 ** 20);
});

test("deep bodies, large bodies, reserved and repeated keys, lone surrogates and numbers out of range are refused with the place [V114]", async () => {
  const { send } = createBareServer();
  const refused: readonly (readonly [string, string, string])[] = [
    [`{"text":"x","more":${"[".repeat(65)}${"]".repeat(65)}}`, "body_too_large", ""],
    [`{"text":"x","more":[${"0,".repeat(100_000)}0]}`, "body_too_large", ""],
    ['{"text":"x","more":{"__proto__":{"isAdmin":true}}}', "invalid_request", "/more"],
    ['{"text":"x","constructor":1}', "invalid_request", ""],
    ['{"text":"x","more":[{"prototype":1}]}', "invalid_request", "/more/0"],
    ['{"text":"\\ud800"}', "invalid_request", "/text"],
    ['{"text":"x","more":{"a/b~c":[1e999]}}', "invalid_request", "/more/a~1b~0c/0"],
    ['{"text":"x","more":{"\\udc00":1}}', "invalid_request", "/more"],
    ['{"text":1}', "invalid_request", "/text"],
    ['{"text":"x","text":"y"}', "invalid_request", ""],
    [
      '{"text":"x","more":[{"a":"}\\\\"},{"b":[{"te\\u0078t":",{","c":{},"text":1}]}]}',
      "invalid_request",
      "/more/1/b/0",
    ],
    ['{"text":"x","unknown":1}', "invalid_request", ""],
    ["[]", "invalid_request", ""],
  ];
  for (const [body, code, pointer] of refused) {
    const answer = await send(runs, { body });
    const shown = body.slice(0, 60);
    expect([shown, answer.code]).toEqual([shown, code]);
    expect(JSON.parse(answer.text)).toMatchObject({ errors: [{ pointer }] });
  }
  expect(Object.hasOwn(Object.prototype, "isAdmin")).toBe(false);
  const alike = '{"text":"\\"text\\":","more":[{"text":"a","b":["text","text"]},{"text":{"text":{}}}]}';
  expect((await send(runs, { body: alike })).status).toBe(200);
  const nested = `{"text":"x","more":${"[".repeat(60)}${"]".repeat(60)}}`;
  expect((await send(runs, { body: nested })).status).toBe(200);
});

test("a body that is not UTF-8 or not whole JSON is refused with 400", async () => {
  const { send } = createBareServer();
  for (const body of ['{"text":', "", "{}{}", new Uint8Array([0x22, 0xff, 0x22])])
    expect([body, (await send(runs, { body })).status]).toEqual([body, 400]);
});

test("a request without a body counts as an empty object where one is enough, and a body without a type never does [V108]", async () => {
  const { server, send } = await createTestServer();
  const { url } = await server.listen({ port: 0, handleSigterm: false });
  const headers = { authorization: `Bearer ${testTokens.ann}` };
  const post = async (path: string, body?: Uint8Array<ArrayBuffer>) =>
    (await fetch(`${url}/api${path}`, { method: "POST", headers, ...(body === undefined ? {} : { body }) })).status;
  expect(await post("/threads")).toBe(201);
  await send("/api/threads", { body: { id: "t" } });
  expect(await post("/threads/t/cancel")).toBe(409);
  expect((await send("/api/threads/t/cancel", { method: "POST" })).status).toBe(409);
  expect(await post("/threads/t/runs")).toBe(415);
  expect(await post("/threads", new TextEncoder().encode("{}"))).toBe(415);
  expect((await send("/api/threads/t/cancel", { body: {}, headers: { "content-type": "text/plain" } })).status).toBe(
    415,
  );
});

test("a body that arrives too slowly is refused with 408, and its timer is removed [V114]", async () => {
  const { server, clock } = createBareServer();
  const silent = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => undefined) });
  const response = server.fetch(createBareRequest(runs, { body: silent }));
  await clock.waitUntilIdle();
  await clock.advance(30_000);
  expect((await response).status).toBe(408);
  expect(clock.timers).toBe(0);
});

test("a body that another parser has read gives 500 body_was_read with a sentence, never an empty input [V7]", async () => {
  const { server, handled } = createBareServer();
  const read = createBareRequest(runs, { body: '{"text":"x"}' });
  await read.json();
  const empty = createBareRequest(runs, { body: "", headers: { "content-length": "12" } });
  for (const request of [read, empty]) {
    const response = await server.fetch(request);
    expect([response.status, await response.json()]).toMatchObject([
      500,
      { code: "body_was_read", detail: expect.stringContaining("before the body parser of the host") },
    ]);
  }
  expect(handled).toHaveLength(2);
});

test("a file has a limit of its own, and any media type [V114]", async () => {
  const { send } = createBareServer({
    limits: { bodyBytes: 10, fileBytes: 100 },
    routes: [
      {
        method: "POST",
        path: "/files",
        action: "thread.write",
        isRead: false,
        body: "file",
        handle: async ({ readBytes }) => Response.json((await readBytes()).byteLength),
      },
    ],
  });
  const headers = { "content-type": "image/png" };
  expect(await send("/bare/files", { headers, body: "x".repeat(100) })).toMatchObject({ status: 200, text: "100" });
  expect((await send("/bare/files", { headers, body: "x".repeat(101) })).code).toBe("body_too_large");
});

test("a URL or headers above their limits are refused [V114]", async () => {
  const { send } = createBareServer();
  expect((await send(`/bare/threads/t?q=${"x".repeat(4_096)}`)).status).toBe(414);
  expect((await send("/bare/threads/t", { headers: { padding: "x".repeat(16_384) } })).status).toBe(431);
});

test("the check of a body visits no more values than the limits, and needs no stack for depth", () => {
  const limits = { bodyLevels: 64, bodyNodes: 1_000 };
  const deep: unknown = Array.from({ length: 100_000 }).reduce((value) => [value], 1);
  expect(findJsonProblem(deep, limits)).toMatchObject({ isTooLarge: true });
  let visits = 0;
  const watched = Array.from({ length: 5_000 }, () => {
    const item = {};
    return new Proxy(item, {
      ownKeys: (target) => {
        visits++;
        return Reflect.ownKeys(target);
      },
    });
  });
  expect(findJsonProblem(watched, limits)).toMatchObject({ isTooLarge: true });
  expect(visits).toBe(0);
});
