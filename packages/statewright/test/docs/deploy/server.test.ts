import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { anthropicServer } from "../../support/anthropic-server.ts";

const program = fileURLToPath(new URL("server.ts", import.meta.url));
const token = "a-token-of-the-test";
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

test("the deployed server answers its probes and a run of a client with the token, and ends at SIGTERM with exit code 0", async () => {
  const { url, stop } = await start();
  for (const path of ["/livez", "/readyz"]) expect((await fetch(`${url}${path}`)).status, path).toBe(200);
  const runs = `${url}/api/threads/t1/runs`;
  const messages = [{ role: "user", content: [{ type: "text", text: "Is it raining in Oslo?" }] }];
  const body = JSON.stringify({ graph: "assistant", input: { messages } });
  expect((await fetch(runs, { method: "POST", headers: { "content-type": "application/json" }, body })).status).toBe(
    401,
  );
  expect((await fetch(runs, { method: "POST", headers, body })).status).toBe(201);
  const events = await fetch(`${url}/api/threads/t1/events?end=idle`, { headers });
  const text = await events.text();
  expect(text).toContain("event: run.completed");
  expect(text).toContain("It rains in Oslo, 7 °C.");
  expect(await stop()).toBe(0);
});

/** Starts the program in a new folder, with a local server instead of the provider. */
async function start() {
  const folder = await mkdtemp(join(tmpdir(), "deploy-"));
  const model = await anthropicServer();
  const env = {
    PATH: process.env["PATH"],
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    NODE_OPTIONS: process.env["NODE_OPTIONS"],
    ANTHROPIC_BASE_URL: model.baseUrl,
    ANTHROPIC_API_KEY: "not-a-key",
    API_TOKEN: token,
    PORT: "0",
  };
  const child = spawn(process.execPath, [program], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
    await model.close();
    await rm(folder, { recursive: true, force: true });
  });
  const [line] = await once(child.stdout, "data");
  const url = /http\S+/.exec(String(line))?.[0] ?? "";
  return {
    url,
    stop: async (): Promise<unknown> => {
      child.kill("SIGTERM");
      return (await ended)[0];
    },
  };
}
