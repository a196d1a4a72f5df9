import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";

test("the program of the page gives an operator the right to run, a reader the right to read, and the tool the caller's account", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "secure-server-"));
  const program = fileURLToPath(new URL("secure-server.ts", import.meta.url));
  const env = { ...process.env, PORT: "0" };
  const child = spawn(process.execPath, [program], { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => {
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
    rmSync(cwd, { recursive: true, force: true });
  });
  const printed: string[] = [];
  const url = await new Promise<string>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      printed.push(line);
      if (line.startsWith("http")) resolve(line);
    });
  });
  const send = (as: "ann" | "bob", path: string, body?: object): Promise<Response> =>
    fetch(`${url}/api${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        authorization: `Bearer a-random-token-for-${as}`,
        prefer: "wait=60",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const message = { role: "user", content: [{ type: "text", text: "My account?" }] };
  const run = { graph: "assistant", input: { messages: [message] } };
  const started = await send("ann", "/threads/t/runs", run);
  expect([started.ok, await started.text()]).toEqual([true, expect.stringContaining('"status":"done"')]);
  const state = z.object({ values: z.unknown() }).loose();
  const read = state.parse(await (await send("bob", "/threads/t/state")).json());
  expect(JSON.stringify(read.values)).toContain("account of ann");
  const refused = await send("bob", "/threads/t/runs", run);
  expect(refused.status).toBe(404);
  expect((await fetch(`${url}/api/threads`)).status).toBe(401);
  expect(printed).toContain("audit: ann startRun t done");
});
