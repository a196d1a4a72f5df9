/** Listener: addresses, connections, proxies, disconnects, and the end of the process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Log } from "@statewright/core";
import { serveHttp } from "@statewright/host";
import { expect, onTestFinished, test } from "vitest";
import { bareToken, createBareServer } from "./support/create-bare-server.ts";
import { createTestServer, testTokens } from "./support/create-test-server.ts";
import { echoProtocol } from "./support/echo-protocol.ts";

/** Opens a connection; it is closed after the test. */
async function open(port: number, host = "127.0.0.1"): Promise<Socket> {
  const socket = connect(port, host);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

test("a server listens on loopback only, and refuses other addresses without host names, with open access or with exposed errors [V9, V97]", async () => {
  const { server } = createBareServer();
  const { url, port } = await server.listen({ port: 0 });
  expect(url).toBe(`http://127.0.0.1:${port}`);
  const response = await fetch(`${url}/bare/threads/t`, { headers: { authorization: `Bearer ${bareToken}` } });
  expect(response.status).toBe(200);
  for (const { address, family, internal } of Object.values(networkInterfaces()).flatMap((each) => each ?? []))
    if (family === "IPv4" && !internal) await expect(open(port, address)).rejects.toThrow(/ECONNREFUSED/);
  const anywhere = { port: 0, host: "0.0.0.0" };
  await expect(server.listen(anywhere)).rejects.toThrow(/host names for the host "0.0.0.0".*Pass hosts or publicUrl/);
  const hosts = ["agents.example"];
  await expect(createBareServer({ access: "open", hosts }).server.listen(anywhere)).rejects.toThrow(/access "open"/);
  await expect(createBareServer({ exposeErrors: true, hosts }).server.listen(anywhere)).rejects.toThrow(/exposeErrors/);
  await expect(server.listen({ port: 0, size: 1 } as never)).rejects.toThrow(/listen has no option "size"/);
  const opened = await createBareServer({ access: "open" }).server.listen({ port: 0 });
  expect((await fetch(`${opened.url}/bare/threads/t`)).status).toBe(200);
});

test("a listener takes hundreds of connections by default, and as many as its option says [V9]", async () => {
  const { server } = createBareServer();
  const { url, port } = await server.listen({ port: 0, keepAliveTimeoutMs: 60_000 });
  await Promise.all(Array.from({ length: 300 }, () => open(port)));
  const headers = { authorization: `Bearer ${bareToken}` };
  expect((await fetch(`${url}/bare/threads/t`, { headers })).status).toBe(200);
  const small = createBareServer();
  const limited = await small.server.listen({ port: 0, maxConnections: 1 });
  await open(limited.port);
  const second = await open(limited.port);
  await once(second, "close");
});

test("x-forwarded headers count from a listed proxy only, and the public URL decides the paths of a server [V131]", async () => {
  const lines: unknown[] = [];
  const log: Log = (_level, message, fields) => {
    if (message === "request") lines.push(fields?.["address"]);
  };
  const forwarded = {
    authorization: `Bearer ${bareToken}`,
    "x-forwarded-for": "198.51.100.1, 203.0.113.7",
    "x-forwarded-host": "agents.example",
    "x-forwarded-proto": "https",
  };
  const publicUrl = "https://agents.example/v1";
  const options = { log, publicUrl, hosts: ["agents.example", "127.0.0.1"] };
  const trusting = await createBareServer({ ...options, trustProxy: ["127.0.0.1"] }).server.listen({ port: 0 });
  const behind = await fetch(`${trusting.url}/bare/threads/t`, { headers: forwarded });
  expect([behind.status, await behind.json()]).toMatchObject([200, { base: "/v1/bare" }]);
  const plain = await createBareServer(options).server.listen({ port: 0 });
  expect((await fetch(`${plain.url}/bare/threads/t`, { headers: forwarded })).status).toBe(200);
  expect(lines).toEqual(["203.0.113.7", "127.0.0.1"]);
  const evil = { ...forwarded, "x-forwarded-host": "evil.example" };
  expect((await fetch(`${plain.url}/bare/threads/t`, { headers: evil })).status).toBe(200);
  expect((await fetch(`${trusting.url}/bare/threads/t`, { headers: evil })).status).toBe(421);
});

test("a server behind serveHttp reads JSON, sends the first byte of a silent stream at once, and notices a reader that leaves [V8]", async () => {
  let left = (): void => undefined;
  const hasLeft = new Promise<void>((resolve) => {
    left = resolve;
  });
  const { server } = createBareServer({
    basePath: "/agents",
    routes: [
      {
        method: "GET",
        path: "/silent",
        action: "thread.read",
        isRead: true,
        handle: ({ stream }) =>
          stream(async function* (signal) {
            await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
            left();
            yield* [];
          }),
      },
    ],
  });
  const host = await serveHttp((request) => server.fetch(request), { port: 0 });
  onTestFinished(() => host.close());
  const url = `http://127.0.0.1:${host.port}/agents/bare`;
  const headers = { authorization: `Bearer ${bareToken}`, "content-type": "application/json" };
  const posted = await fetch(`${url}/threads/t/runs`, { method: "POST", headers, body: '{"text":"in"}' });
  expect([posted.status, await posted.json()]).toMatchObject([200, { base: "/agents/bare", body: { text: "in" } }]);
  const reader = new AbortController();
  const silent = await fetch(`${url}/silent`, { headers, signal: reader.signal });
  expect(silent.headers.get("content-type")).toBe("text/event-stream");
  expect(silent.headers.get("cache-control")).toBe("no-cache, no-transform");
  const first = await silent.body?.getReader().read();
  expect(new TextDecoder().decode(first?.value)).toBe(": open\n");
  reader.abort();
  await hasLeft;
});

test("a connection that ends in the middle of a body starts nothing, and one that ends before the answer has its run [V118]", async () => {
  let noteRequest = (_status: unknown): void => undefined;
  const { server, store, clock, sendJson } = await createTestServer({
    protocols: [echoProtocol],
    log: (_level, message, fields) => {
      if (message === "request") noteRequest(fields?.["status"]);
    },
  });
  const { port } = await server.listen({ port: 0 });
  const body = JSON.stringify({ graph: "review", texts: ["x"] });
  const head = (thread: string): string =>
    [
      `POST /echo/threads/${thread}/runs HTTP/1.1`,
      `host: 127.0.0.1:${port}`,
      `authorization: Bearer ${testTokens.ann}`,
      "content-type: application/json",
      `content-length: ${body.length}`,
      "",
      "",
    ].join("\r\n");
  const post = async (thread: string, sent: string): Promise<unknown> => {
    const status = new Promise<unknown>((resolve) => {
      noteRequest = resolve;
    });
    const socket = await open(port);
    socket.end(head(thread) + sent);
    socket.destroySoon();
    return clock.until(status);
  };
  expect(await post("half", body.slice(0, -5))).toBe(400);
  expect(await store.thread("t.acme.half")).toBeUndefined();
  expect(await post("whole", body)).toBe(200);
  expect(await sendJson("/echo/threads/whole")).toMatchObject({ status: 200, body: { status: "waiting" } });
});

interface Program {
  readonly lines: readonly string[];
  readonly port: number;
  readonly signal: (name: NodeJS.Signals) => void;
  readonly write: (text: string) => void;
  /** Resolves when the program has printed the line. */
  readonly waitFor: (line: string) => Promise<void>;
  /** Resolves with the exit code, or the name of the signal that ended the program. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

async function startProgram(): Promise<Program> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "fixtures/serve-until-sigterm.ts")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines: string[] = [];
  const waiting = new Map<string, () => void>();
  let setPort = (_port: number): void => undefined;
  const ready = new Promise<number>((resolve) => {
    setPort = resolve;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    if (line.startsWith("port ")) setPort(Number(line.slice(5)));
    waiting.get(line)?.();
  });
  const ended = once(child, "exit").then(([code, name]: unknown[]) => (code ?? name) as number | NodeJS.Signals);
  return {
    lines,
    port: await ready,
    signal: (name) => child.kill(name),
    write: (text) => child.stdin.write(text),
    waitFor: (line) =>
      lines.includes(line) ? Promise.resolve() : new Promise((resolve) => waiting.set(line, resolve)),
    ended,
  };
}

/** Starts a run. Resolves when it is at work, with its response. */
async function startRun({ port, waitFor }: Program): Promise<{ readonly response: Promise<string> }> {
  const socket = await open(port);
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString();
  });
  const body = JSON.stringify({ graph: "gated", texts: ["x"] });
  socket.write(
    `POST /echo/threads/t/runs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await waitFor("entered");
  return { response: once(socket, "close").then(() => text) };
}

test("a process at SIGTERM saves the step of its runs and exits with 0, and a second SIGTERM ends it at once [V128]", async () => {
  const [orderly, hurried] = await Promise.all([startProgram(), startProgram()]);
  const [{ response }] = await Promise.all([startRun(orderly), startRun(hurried)]);
  orderly.signal("SIGTERM");
  await fetchUntil(`http://127.0.0.1:${orderly.port}/readyz`, 503);
  orderly.write("open\n");
  expect(await response).toMatch(/^HTTP\/1.1 200 OK.*"status":"paused"/s);
  expect(await orderly.ended).toBe(0);
  expect(orderly.lines.at(-1)).toBe("run.paused");
  expect(orderly.lines).toContain("step.committed");
  hurried.signal("SIGTERM");
  await fetchUntil(`http://127.0.0.1:${hurried.port}/readyz`, 503);
  hurried.signal("SIGTERM");
  expect(await hurried.ended).toBe("SIGTERM");
  expect(hurried.lines).not.toContain("run.paused");
});

/** Repeats a request until it has the status. */
async function fetchUntil(url: string, status: number): Promise<void> {
  while ((await fetch(url)).status !== status);
}
