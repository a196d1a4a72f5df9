import { getEventListeners, once } from "node:events";
import { createServer, type Server } from "node:http";
import { call } from "@statewright/testing";
import { createAgent } from "statewright";
import { afterEach, beforeEach, expect, test } from "vitest";
import { download } from "../src/download.ts";
import { fetchPages } from "../src/pages.ts";
import { getResultText, runConversation, startConversation, startConversationWith } from "./support/talk.ts";

let server: Server;
let address = "";
let requests = 0;
let closed: Promise<unknown>;

beforeEach(async () => {
  requests = 0;
  server = createServer((request, response) => {
    requests += 1;
    if (request.url === "/slow") {
      closed = once(response, "close");
      response.writeHead(200, { "content-type": "text/plain" });
      response.write("the first part");
      return;
    }
    response.end(request.url === "/small" ? "twelve bytes" : "x".repeat(2_000));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the server has no port");
  address = `http://127.0.0.1:${bound.port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

test("download reports the number of downloaded bytes [S4.18]", async () => {
  const url = `${address}/small`;
  const { results } = await runConversation([download], [call(download, { url })]);
  expect(getResultText(results()[0])).toBe(`Downloaded 12 bytes from ${url}`);
  expect(results()[0]?.details).toEqual({ size: 12 });
});

test("a cancelled download closes the socket of its request [S4.18]", async () => {
  const live = startConversation([download], [call(download, { url: `${address}/slow` })]);
  await once(server, "request");
  live.handle.cancel("enough");
  expect(await live.end()).toBe("cancelled");
  await closed;
  expect(requests).toBe(1);
});

test("a download with an aborted signal sends no request [S4.18]", async () => {
  const live = startConversation([download], [call(download, { url: `${address}/small` })]);
  live.handle.cancel("at once");
  expect(await live.end()).toBe("cancelled");
  expect(requests).toBe(0);
});

test("a thousand downloads leave no listener on the signal of their run [S4.18]", async () => {
  const { signal } = new AbortController();
  const calls = Array.from({ length: 1_000 }, (_, index) =>
    call(download, { url: `${address}/small` }, { id: `c${index}` }),
  );
  const live = startConversationWith([calls], (model, world) =>
    createAgent({ name: "downloader", model, tools: [download], maxToolConcurrency: 20 }).run({
      input: "Go.",
      world,
      signal,
    }),
  );
  expect(await live.end()).toBe("done");
  expect(live.results().filter(({ isError }) => isError)).toEqual([]);
  expect(requests).toBe(1_000);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("fetch_pages emits an update for each page during the fetch [S3.15]", async () => {
  const urls = ["/small", "/large", "/other"].map((path) => `${address}${path}`);
  const { updates, results } = await runConversation([fetchPages], [call(fetchPages, { urls })]);
  expect(updates()).toEqual(
    urls.map((url, index) => ({ content: `[${index + 1}/3] fetching ${url}…`, details: { done: index } })),
  );
  expect(getResultText(results()[0])?.split("\n")[1]).toBe(`${urls[1]}: 2000 characters`);
});
