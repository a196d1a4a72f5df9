/** Thousands of open event streams of several tenants at one server process. The readers are a process of their own. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { serve } from "@statewright/server";
import { channel, defineGraph, defineState, END, engine, type Model, memoryStore, START } from "statewright";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import type { ReadersRequest } from "../../../src/servers/tenant-readers.ts";

const timeoutMs = 300_000;
const text = "The answer of";

/** Answers with the text and the last word of the request, which is the name of the tenant. */
const model: Model = {
  id: "echo",
  respond: async ({ messages }, { delta }) => {
    const [part] = messages.at(-1)?.content ?? [];
    const answer = `${text} ${typeof part === "object" && part.type === "text" ? part.text : ""}.`;
    delta?.({ type: "text", text: answer });
    return { content: [{ type: "text", text: answer }], finish: "stop" };
  },
};

const talk = defineGraph({ name: "talk", state: defineState({ messages: channel.messages() }) })
  .nodes({
    answer: async ({ messages }, runtime) => ({
      messages: [await runtime.model({ model, request: { messages, tools: [] } })],
    }),
  })
  .edges({ [START]: "answer", answer: END });

/** Throws where the system allows a process fewer open files than the test needs. */
function checkFileLimit(needed: number): void {
  const report = z.object({ userLimits: z.object({ open_files: z.object({ hard: z.unknown() }) }) });
  const limit = Number(report.parse(process.report.getReport()).userLimits.open_files.hard);
  if (limit < needed)
    throw new Error(`connections: expected a limit of at least ${needed} open files, got ${limit}. Raise ulimit -Hn.`);
}

type ServeOptions = Parameters<typeof serve>[0];

async function openServer(
  tenants: readonly string[],
  options: { readonly limits?: ServeOptions["limits"]; readonly maxConnections?: number } = {},
) {
  const store = memoryStore();
  const host = engine({ store, graphs: [talk] });
  await host.start();
  const { limits, ...listen } = options;
  const server = serve({
    engine: host,
    access: {
      authenticate: ({ headers }) => ({
        id: headers.get("x-user") ?? "user",
        tenant: headers.get("x-tenant") ?? "none",
      }),
    },
    ...(limits === undefined ? {} : { limits }),
  });
  const { url, port } = await server.listen({ port: 0, handleSigterm: false, keepAliveTimeoutMs: 60_000, ...listen });
  onTestFinished(async () => {
    await server.close();
    await host.stop();
    await store.close();
  });
  const send = (tenant: string, path: string, body?: unknown): Promise<Response> =>
    fetch(`${url}${path}`, {
      headers: { "x-tenant": tenant, "content-type": "application/json" },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
  for (const tenant of tenants) expect((await send(tenant, "/api/threads", { id: "talk" })).status).toBe(201);
  return { port, send };
}

/** Starts the process of the readers. */
function startReaders(): (request: ReadersRequest) => Promise<number> {
  const program = fileURLToPath(new URL("../../../src/servers/tenant-readers.ts", import.meta.url));
  const child = fork(program, { execArgv: ["--no-warnings"] });
  onTestFinished(async () => {
    const exited = once(child, "exit");
    child.disconnect();
    await exited;
  });
  return async (request) => {
    const answered = once(child, "message");
    child.send(request);
    const [answer] = await answered;
    return z.number().parse(answer);
  };
}

const names = (count: number): readonly string[] => Array.from({ length: count }, (_, nth) => `tenant-${nth}`);

test("6,400 callers of 8 tenants read their own answers at the same time from one process with raised limits, and requests beside them are answered [V9]", {
  timeout: timeoutMs,
}, async () => {
  checkFileLimit(8_000);
  const tenants = names(8);
  const { port, send } = await openServer(tenants, { limits: { streams: 6_500 }, maxConnections: 7_000 });
  const ask = startReaders();
  expect(await ask({ kind: "open", port, tenants, callers: 800 })).toBe(6_400);
  for (const tenant of tenants)
    expect(await (await send(tenant, "/api/threads")).json()).toHaveProperty("data.length", 1);
  const started = await Promise.all(
    tenants.map((tenant) => {
      const messages = [{ role: "user", id: "q", content: [{ type: "text", text: tenant }] }];
      return send(tenant, "/api/threads/talk/runs", { graph: "talk", input: { messages } });
    }),
  );
  expect(started.map(({ status }) => status)).toEqual(tenants.map(() => 201));
  expect(await ask({ kind: "read", text })).toBe(0);
});

test("a server holds 5,000 streams and 6,000 connections by default, refuses the next of each, and answers requests meanwhile [V9, V117]", {
  timeout: timeoutMs,
}, async () => {
  checkFileLimit(8_000);
  const tenants = names(5);
  const { port, send } = await openServer(tenants);
  const ask = startReaders();
  expect(await ask({ kind: "open", port, tenants, callers: 1_000 })).toBe(5_000);
  const refused = await send("tenant-0", "/api/threads/talk/events");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(await refused.json()).toMatchObject({ code: "too_many_streams" });
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  const open = async (): Promise<Socket> => {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    await once(socket, "connect");
    return socket;
  };
  // The connection of the requests of this test is one of them, and stays open.
  for (let count = 0; count < 999; count++) await open();
  expect(await (await send("tenant-1", "/api/threads")).json()).toHaveProperty("data.length", 1);
  await once(await open(), "close");
  expect(await (await send("tenant-2", "/api/threads")).json()).toHaveProperty("data.length", 1);
});
