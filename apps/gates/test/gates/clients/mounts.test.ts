/** The server mounted in other HTTP hosts, each in a process of its own: the programs of the docs page. */
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { installClients } from "../../../src/clients/install-clients.ts";

const programs = join(import.meta.dirname, "mounts");
const headers = { authorization: "Bearer a-token-of-the-gate-0123456789", "content-type": "application/json" };

let installed = "";
beforeAll(async () => {
  installed = await installClients({
    name: "mounts",
    dependencies: {
      hono: "4.13.19",
      "@hono/node-server": "2.1.8",
      express: "5.3.0",
      fastify: "5.12.8",
      h3: "2.0.8",
    },
  });
}, 300_000);

interface Host {
  readonly url: string;
  /** Resolves when a stream of the server has noticed that its reader left. */
  readonly readerLeft: Promise<void>;
}

/** Reserves a free port. */
async function findPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Starts a program with its port replaced, beside the installed packages. `change` edits its text. */
async function startHost(name: string, { basePath = "/agents", change = (text: string) => text } = {}): Promise<Host> {
  const folder = mkdtempSync(join(tmpdir(), "statewright-mounts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync(join(installed, "node_modules"), join(folder, "node_modules"), "junction");
  const port = await findPort();
  const text = readFileSync(join(programs, `${name}.mjs`), "utf8");
  writeFileSync(join(folder, "program.mjs"), change(text).replace("3000", String(port)));
  writeFileSync(
    join(folder, "server.mjs"),
    `export { server } from ${JSON.stringify(pathToFileURL(join(programs, "server.ts")).href)};\n`,
  );
  const child: ChildProcess = spawn(process.execPath, [join(folder, "program.mjs")], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, BASE_PATH: basePath },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const readerLeft = new Promise<void>((resolve) => {
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (line === "left") resolve();
      });
  });
  const url = `http://127.0.0.1:${port}`;
  await waitForHost(url, child);
  return { url, readerLeft };
}

/** Resolves when the host accepts requests. */
async function waitForHost(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the host ended with ${child.exitCode}`);
    const response = await fetch(url).catch(() => undefined);
    await response?.text();
    if (response !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function postText(url: string): Promise<Response> {
  return fetch(`${url}/probe/echo`, { method: "POST", headers, body: '{"text":"in"}' });
}

test.each(["hono", "express", "fastify", "h3", "node-http"])(
  "mounted in %s, the server reads JSON below its prefix, sends the first byte at once, and notices a reader that leaves [V8]",
  async (name) => {
    const { url, readerLeft } = await startHost(name);
    const posted = await postText(`${url}/agents`);
    expect([posted.status, await posted.json()]).toEqual([200, { text: "in", base: "/agents/probe" }]);
    const reader = new AbortController();
    const silent = await fetch(`${url}/agents/probe/silent`, { headers, signal: reader.signal });
    expect(silent.headers.get("content-type")).toContain("text/event-stream");
    const first = await silent.body?.getReader().read();
    expect(new TextDecoder().decode(first?.value)).toMatch(/^:/);
    const leftAt = performance.now();
    reader.abort();
    await readerLeft;
    expect(performance.now() - leftAt).toBeLessThan(1_000);
    expect((await fetch(`${url}/agents/api/threads`)).status).toBe(401);
  },
  60_000,
);

test("as a route handler of Next, the server answers each exported method [V8]", async () => {
  const folder = mkdtempSync(join(tmpdir(), "statewright-mounts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  copyFileSync(join(programs, "next.mjs"), join(folder, "route.mjs"));
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "server.mjs"),
    `export { server } from ${JSON.stringify(pathToFileURL(join(programs, "server.ts")).href)};\n`,
  );
  const route: Readonly<Record<string, (request: Request) => Promise<Response>>> = await import(
    pathToFileURL(join(folder, "route.mjs")).href
  );
  expect(Object.keys(route).sort()).toEqual(["DELETE", "GET", "PATCH", "POST"]);
  const request = new Request("http://localhost/agents/probe/echo", { method: "POST", headers, body: '{"text":"in"}' });
  expect(await (await route["POST"]?.(request))?.json()).toEqual({ text: "in", base: "/agents/probe" });
  expect((await route["GET"]?.(new Request("http://localhost/agents/livez")))?.status).toBe(200);
});

test("a mount of Express that cuts its prefix is served with an empty base path, and otherwise its 404 names the base path [V5, V8]", async () => {
  const change = (text: string): string => text.replace('app.all("/agents/{*path}", ', 'app.use("/agents", ');
  const cut = await startHost("express", { basePath: "", change });
  const posted = await postText(`${cut.url}/agents`);
  expect([posted.status, await posted.json()]).toEqual([200, { text: "in", base: "/probe" }]);
  const wrong = await startHost("express", { change });
  const refused = await postText(`${wrong.url}/agents`);
  expect([refused.status, await refused.text()]).toEqual([
    404,
    expect.stringContaining('The server is at \\"/agents\\"'),
  ]);
}, 60_000);

test("a body that Express or Fastify has parsed gives 500 body_was_read, never an empty input [V7, V8]", async () => {
  const parsing = await startHost("express", {
    change: (text) => text.replace("const app = express();", "const app = express();\napp.use(express.json());"),
  });
  const fromExpress = await postText(`${parsing.url}/agents`);
  expect([fromExpress.status, await fromExpress.json()]).toMatchObject([500, { code: "body_was_read" }]);
  const fastify = await startHost("fastify", {
    change: (text) => text.replace(/^app\.(?:removeAll|addContent).*$/gm, ""),
  });
  const fromFastify = await postText(`${fastify.url}/agents`);
  expect([fromFastify.status, await fromFastify.json()]).toMatchObject([500, { code: "body_was_read" }]);
}, 60_000);
