import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type ToolPack, toolConformance } from "@statewright/testing/conformance";
import { afterAll, beforeAll, expect, test } from "vitest";
import { extractHtmlText } from "../src/html-text.ts";
import { webFetch } from "../src/index.ts";
import { runCall, startCalls } from "./support/tool-calls.ts";

let server: Server;
let base = "";

beforeAll(async () => {
  server = createServer((request, response) => {
    const answer = (type: string, body: string | Buffer, status = 200) =>
      response.writeHead(status, { "content-type": type }).end(body);
    if (request.url === "/page")
      answer("text/html; charset=utf-8", "<title>T</title><p>One &amp; <b>two</b></p><script>x()</script>");
    else if (request.url === "/data") answer("application/json", '{"a":1}');
    else if (request.url === "/picture") answer("image/png", Buffer.from([1, 0, 2]));
    else if (request.url === "/away") response.writeHead(302, { location: "http://10.0.0.1/" }).end();
    else if (request.url === "/endless") response.writeHead(200, { "content-type": "text/plain" }).write("begun");
    else answer("text/plain", "nothing here", 404);
  }).listen(0, "127.0.0.1");
  await new Promise((ready) => server.once("listening", ready));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const tool = () => webFetch({ allowPrivate: ["127.0.0.1"] });
const get = (path: string) => runCall(tool(), { url: `${base}${path}` });

test("web_fetch returns a page as text, data unchanged, and other content as an artifact", async () => {
  expect((await get("/page")).text).toBe(`[200 ${base}/page: text/html, 63 bytes]\nT\n\nOne & two`);
  expect((await get("/data")).text).toBe(`[200 ${base}/data: application/json, 7 bytes]\n{"a":1}`);
  const live = startCalls([tool()], [{ name: "web_fetch", args: { url: `${base}/picture` } }]);
  expect((await live.results())[0]?.artifacts).toMatchObject([{ mimeType: "image/png", bytes: 3 }]);
});

test("web_fetch returns a status of 400 or above as an error with its body, and denies a forbidden address", async () => {
  expect(await get("/none")).toMatchObject({ isError: true, text: expect.stringContaining("nothing here") });
  for (const came of [
    await get("/away"),
    await runCall(webFetch(), { url: base }),
    await runCall(tool(), { url: "file:///etc" }),
  ])
    expect(came.result.error?.kind).toBe("denied");
});

const pack = (): ToolPack => ({
  tools: [tool()],
  samples: {
    web_fetch: {
      good: { url: `${base}/data` },
      failing: { url: "http://10.0.0.1/" },
      long: { url: `${base}/endless` },
    },
  },
});
test.each(toolConformance)("web_fetch passes the tool suite: $name", ({ run }) => run(pack));

test("web_fetch shows an endless page in updates with details and stops on its signal [S4.38]", async () => {
  const stops = toolConformance.filter(({ name }) => name.includes("stops on its abort signal"));
  expect(stops).toHaveLength(1);
  for (const { run } of stops) await run(pack);
});

test("HTML is converted to page text in one pass, for any input", () => {
  const page = "<!-- no --><h1>A&nbsp;B</h1>\n<style>p{}</style><ul><li>1<li>2 &lt;x&gt; &#233;&#x1F600; &copy;</ul>";
  expect(extractHtmlText(page)).toBe("A B\n\n1\n2 <x> é😀 &copy;");
  expect(extractHtmlText(`${"İ".repeat(50)}<SCRIPT>var hidden = 1;</SCRIPT><P>shown`)).toBe(`${"İ".repeat(50)}\nshown`);
  expect(extractHtmlText("&#xD800;&#1114112;")).toBe("\uFFFD\uFFFD");
  expect(extractHtmlText("text < and more")).toBe("text");
  expect(extractHtmlText("<script>never ends")).toBe("");
  expect(extractHtmlText("<".repeat(200_000)).length).toBe(0);
  expect(extractHtmlText("<p>".repeat(100_000))).toBe("");
});
