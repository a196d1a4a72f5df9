import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { type FetchOptions, fetchUrl, isPublicAddress } from "../src/index.ts";
import { createManualWorld, getFailure } from "./support/processes.ts";

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A server on this machine. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await new Promise((ready) => server.once("listening", ready));
  ends.push(
    () =>
      new Promise((closed) => {
        server.closeAllConnections();
        server.close(() => closed());
      }),
  );
  return String((server.address() as AddressInfo).port);
}

const local: FetchOptions = { allowPrivate: ["127.0.0.1"], resolve: async () => ["127.0.0.1"] };
const getText = (body: Uint8Array) => Buffer.from(body).toString();

test("fetchUrl resolves a name once, checks every address, connects to it, also for redirects, and caps bytes [R9]", async () => {
  const seen: string[] = [];
  let asked = 0;
  const port = await serve((request, response) => {
    seen.push(`${request.headers.host} ${request.url}`);
    if (request.url === "/away") response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data" }).end();
    else if (request.url === "/here") response.writeHead(302, { location: `http://[::1]:${port}/secret` }).end();
    else if (request.url === "/file") response.writeHead(302, { location: "file:///etc/passwd" }).end();
    else if (request.url === "/next") response.writeHead(301, { location: "/page" }).end();
    else if (request.url === "/round") response.writeHead(302, { location: "/round" }).end();
    else if (request.url === "/endless") {
      const writeMore = () => response.write("x".repeat(10_000), () => setImmediate(writeMore));
      writeMore();
    } else response.end("page");
  });

  // Only a pinned connection reaches the server: the name has no other address than the one given here.
  const resolve = async () => {
    asked++;
    return asked === 1 ? ["127.0.0.1"] : ["10.0.0.1"];
  };
  const page = await fetchUrl(`http://name.invalid:${port}/page`, { ...local, resolve });
  expect([page.status, getText(page.body), asked]).toEqual([200, "page", 1]);
  expect(seen).toEqual([`name.invalid:${port} /page`]);

  const mixed = { ...local, resolve: async () => ["127.0.0.1", "10.0.0.1"] };
  expect(await getFailure(fetchUrl(`http://name.invalid:${port}/page`, mixed))).toMatchObject({ code: "denied" });
  for (const path of ["away", "here", "file"])
    expect(await getFailure(fetchUrl(`http://name.invalid:${port}/${path}`, local))).toMatchObject({ code: "denied" });
  expect(seen).toHaveLength(4);
  expect((await fetchUrl(`http://name.invalid:${port}/next`, local)).url).toBe(`http://name.invalid:${port}/page`);
  expect(await getFailure(fetchUrl(`http://name.invalid:${port}/round`, local))).toMatchObject({ code: "too_large" });

  const endless = await fetchUrl(`http://name.invalid:${port}/endless`, { ...local, maxBytes: 25_000 });
  expect([endless.body.length, endless.truncated]).toEqual([25_000, true]);
});

test("fetchUrl refuses local and private addresses in all their spellings", async () => {
  for (const host of [
    "localhost",
    "127.0.0.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[fe80::1]",
    "[fd00::1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "10.1.2.3",
    "172.31.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
  ])
    expect(await getFailure(fetchUrl(`http://${host}/`)), host).toMatchObject({ code: "denied" });
  expect(["1.1.1.1", "172.32.0.1", "2606:4700::1111"].filter(isPublicAddress)).toHaveLength(3);
  expect(["", "example.com", "fe80::1%eth0"].filter(isPublicAddress)).toEqual([]);
});

test("fetchUrl refuses other schemes, credentials in the URL and hosts outside the list", async () => {
  for (const url of ["file:///etc/passwd", "ftp://example.com/", "nonsense", "http://me:secret@example.com/"]) {
    const failure = await getFailure(fetchUrl(url));
    expect(failure).toMatchObject({ code: "denied" });
    expect(String(failure)).not.toContain("me:secret");
  }
  const listed = { ...local, allowHosts: ["a.invalid"] };
  expect(await getFailure(fetchUrl("http://b.invalid/", listed))).toMatchObject({ code: "denied" });
  expect(await getFailure(fetchUrl("http://none.invalid/", { resolve: async () => [] }))).toMatchObject({
    code: "not_found",
  });
});

test("a redirect loop ends after 5 redirects in all, also when each redirect is to another host [FX95]", async () => {
  const paths: (string | undefined)[] = [];
  const port = await serve((request, response) => {
    paths.push(request.url);
    response.writeHead(302, { location: `http://host${paths.length}.invalid:${port}/${paths.length}` }).end();
  });
  expect(await getFailure(fetchUrl(`http://host0.invalid:${port}/0`, local))).toMatchObject({
    code: "too_large",
    message: expect.stringContaining("host0.invalid redirected more than 5 times"),
  });
  expect(paths).toEqual(["/0", "/1", "/2", "/3", "/4", "/5"]);
});

test("fetchUrl sends no secrets to a redirect on another host and does not repeat a form", async () => {
  const seen: unknown[] = [];
  const port = await serve((request, response) => {
    const { authorization, cookie } = request.headers;
    seen.push([request.method, request.headers.host, authorization, cookie]);
    if (request.url === "/") response.writeHead(303, { location: `http://other.invalid:${port}/done` }).end();
    else response.end();
  });
  const headers = { authorization: "Bearer x", cookie: "a=b" };
  await fetchUrl(`http://first.invalid:${port}/`, { ...local, method: "POST", body: "form", headers });
  expect(seen).toEqual([
    ["POST", `first.invalid:${port}`, "Bearer x", "a=b"],
    ["GET", `other.invalid:${port}`, undefined, undefined],
  ]);
});

test("fetchUrl gives up a host that never answers or never ends by timeout or signal, and leaves nothing open", async () => {
  const sockets = new Set<unknown>();
  const { world, advance } = createManualWorld();
  let resolveRequest = () => {};
  const port = await serve((request, response) => {
    sockets.add(request.socket);
    request.socket.once("close", () => sockets.delete(request.socket));
    if (request.url === "/drip") response.write("x");
    resolveRequest();
  });
  const asking = new Promise<void>((resolve) => {
    resolveRequest = resolve;
  });
  const late = getFailure(fetchUrl(`http://a.invalid:${port}/`, { ...local, world, timeoutMs: 1_000 }));
  await asking;
  advance(1_000);
  expect(await late).toMatchObject({ code: "timeout" });

  const stop = new AbortController();
  const cancelled = getFailure(
    fetchUrl(`http://a.invalid:${port}/drip`, { ...local, signal: stop.signal, onBytes: () => stop.abort() }),
  );
  expect(await cancelled).toMatchObject({ code: "cancelled" });
  expect(await getFailure(fetchUrl("http://a.invalid/", { signal: AbortSignal.abort() }))).toMatchObject({
    code: "cancelled",
  });
  const slow = new AbortController();
  const unresolved = getFailure(
    fetchUrl("http://a.invalid/", { resolve: () => new Promise(() => {}), signal: slow.signal }),
  );
  slow.abort();
  expect(await unresolved).toMatchObject({ code: "cancelled" });
  while (sockets.size > 0) await new Promise((next) => setImmediate(next));
});

test("fetchUrl fails at once for a protocol switch", async () => {
  const port = await serve((request) => {
    request.socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n");
  });
  expect(await getFailure(fetchUrl(`http://a.invalid:${port}/`, local))).toMatchObject({ code: "io" });
});
