/** The support desk behind HTTP, as its page shows it: a server and a clerk in two processes. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const program = fileURLToPath(new URL("../../src/agents/support-server.ts", import.meta.url));

test("a clerk in another process approves the refund of a customer of the support server, which pays once", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "support-"));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const env = { ...process.env, PORT: "0", BANK_KEY: "test" };
  const server = spawn(process.execPath, [program], { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void server.kill("SIGKILL"));
  let printed = "";
  server.stdout.on("data", (text: Buffer) => {
    printed += text.toString();
  });
  await once(server.stdout, "data");
  const url = `${printed.trim()}/api/threads/c1`;
  const headers = { authorization: "Bearer session-of-ada", "content-type": "application/json", prefer: "wait=20" };
  const input = { messages: [{ role: "user", content: "My headphones broke." }] };
  const body = JSON.stringify({ graph: "support", input });
  expect(await (await fetch(`${url}/runs`, { method: "POST", headers, body })).text()).toContain('"status":"waiting"');
  expect((await fetch(url, { headers: { ...headers, authorization: "Bearer session-of-bob" } })).status).toBe(404);
  expect((await fetch(url, { headers: {} })).status).toBe(401);

  const clerk = await promisify(execFile)(process.execPath, [program, "approve", "Kim"], { cwd, env });
  expect(clerk.stdout).toContain('Kim approved for ada: {"callId":"call_2","tool":"refund"');
  const events = (await fetch(`${url}/events`, { headers })).body?.pipeThrough(new TextDecoderStream());
  for await (const text of events ?? []) if (text.includes("event: run.completed")) break;
  const state = await (await fetch(`${url}/state`, { headers })).text();
  expect(state).toContain("Your 99 euros are on their way.");
  expect(printed.match(/the bank pays order 7/g)).toHaveLength(1);
  server.kill("SIGTERM");
  expect(await once(server, "exit")).toEqual([0, null]);
});
