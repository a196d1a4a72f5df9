/** The server mounted in other HTTP hosts, each in a process of its own: the programs of the docs page. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { installClients } from "../../../src/clients/install-clients.ts";
import { findPort, type Mount, playMountScript, postEcho, startMount } from "./mount-script.ts";

const programs = join(import.meta.dirname, "mounts");

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

/** Starts a program with its port replaced, beside the installed packages. `change` edits its text. */
async function startHost(name: string, { basePath = "/agents", change = (text: string) => text } = {}): Promise<Mount> {
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
  return startMount([join(folder, "program.mjs")], { folder, port, env: { BASE_PATH: basePath } });
}

test.each(["hono", "express", "fastify", "h3", "node-http"])(
  "mounted in %s, the server runs a graph, streams its events, sends the first byte at once, and notices a reader that leaves [V8]",
  async (name) => {
    await playMountScript(await startHost(name));
  },
  60_000,
);

test("a mount of Express that cuts its prefix is served with an empty base path, and otherwise its 404 names the base path [V5, V8]", async () => {
  const change = (text: string): string => text.replace('app.all("/agents/{*path}", ', 'app.use("/agents", ');
  const cut = await startHost("express", { basePath: "", change });
  const posted = await postEcho(`${cut.url}/agents`);
  expect([posted.status, await posted.json()]).toEqual([200, { text: "in", base: "/probe" }]);
  const wrong = await startHost("express", { change });
  const refused = await postEcho(`${wrong.url}/agents`);
  expect([refused.status, await refused.text()]).toEqual([
    404,
    expect.stringContaining('The server is at \\"/agents\\"'),
  ]);
}, 60_000);

test("a body that Express or Fastify has parsed gives 500 body_was_read, never an empty input [V7, V8]", async () => {
  const parsing = await startHost("express", {
    change: (text) => text.replace("const app = express();", "const app = express();\napp.use(express.json());"),
  });
  const fromExpress = await postEcho(`${parsing.url}/agents`);
  expect([fromExpress.status, await fromExpress.json()]).toMatchObject([500, { code: "body_was_read" }]);
  const fastify = await startHost("fastify", {
    change: (text) => text.replace(/^app\.(?:removeAll|addContent).*$/gm, ""),
  });
  const fromFastify = await postEcho(`${fastify.url}/agents`);
  expect([fromFastify.status, await fromFastify.json()]).toMatchObject([500, { code: "body_was_read" }]);
}, 60_000);
