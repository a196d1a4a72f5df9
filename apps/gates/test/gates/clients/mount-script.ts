/** The same script against the server in every HTTP host: a run, a stream, a reader that leaves. */
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import process from "node:process";
import { createInterface } from "node:readline";
import { expect, onTestFinished } from "vitest";
import * as z from "zod";

const headers = { authorization: "Bearer a-token-of-the-gate-0123456789", "content-type": "application/json" };

/** Process of an HTTP host with the mounted server. */
export interface Mount {
  readonly url: string;
  /** Resolves when a stream of the server has noticed that its reader left. */
  readonly readerLeft: Promise<void>;
}

/** Reserves a free port. */
export async function findPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Place of a host process. */
export interface MountPlace {
  readonly folder: string;
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts Node with a host that listens on a port of 127.0.0.1, until the test has finished. */
export async function startMount(args: readonly string[], { folder, port, env = {} }: MountPlace): Promise<Mount> {
  const child = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const readerLeft = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === "left") resolve();
    });
  });
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the host ended with ${child.exitCode}`);
    const response = await fetch(url).catch(() => undefined);
    await response?.text();
    if (response !== undefined) return { url, readerLeft };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Posts JSON, which the server echoes. */
export function postEcho(url: string): Promise<Response> {
  return fetch(`${url}/probe/echo`, { method: "POST", headers, body: '{"text":"in"}' });
}

const outcome = z.object({
  run: z.object({ status: z.string() }),
  state: z.object({ values: z.unknown() }),
});

/** Expects that the server works below `/agents`: JSON, a run, its events, and a reader that leaves. */
export async function playMountScript({ url, readerLeft }: Mount): Promise<void> {
  const base = `${url}/agents`;
  const posted = await postEcho(base);
  expect([posted.status, await posted.json()]).toEqual([200, { text: "in", base: "/agents/probe" }]);

  const started = await fetch(`${base}/api/threads/t1/runs`, {
    method: "POST",
    headers: { ...headers, prefer: "wait=60" },
    body: JSON.stringify({ graph: "empty", input: { text: "in" } }),
  });
  expect(outcome.parse(await started.json())).toEqual({ run: { status: "done" }, state: { values: { text: "in" } } });
  const events = await fetch(`${base}/api/threads/t1/events?views=steps&end=idle`, { headers });
  const names = [...(await events.text()).matchAll(/^event: (.*)$/gm)].map(([, name]) => name);
  expect(names).toEqual(["run.started", "step.committed", "step.committed", "run.completed", "snapshot", "end"]);

  const reader = new AbortController();
  const silent = await fetch(`${base}/probe/silent`, { headers, signal: reader.signal });
  expect(silent.headers.get("content-type")).toContain("text/event-stream");
  const first = await silent.body?.getReader().read();
  expect(new TextDecoder().decode(first?.value)).toMatch(/^:/);
  const leftAt = performance.now();
  reader.abort();
  await readerLeft;
  expect(performance.now() - leftAt).toBeLessThan(1_000);

  expect((await fetch(`${base}/api/threads`)).status).toBe(401);
  const origin = { origin: "https://page.example", "access-control-request-method": "PUT" };
  const preflight = await fetch(`${base}/api/threads`, { method: "OPTIONS", headers: origin });
  expect(preflight.headers.get("access-control-allow-origin")).toBe("https://page.example");
  const put = await fetch(`${base}/probe/echo`, { method: "PUT", headers, body: "{}" });
  expect([put.status, put.headers.get("allow")]).toEqual([405, "POST"]);
}
