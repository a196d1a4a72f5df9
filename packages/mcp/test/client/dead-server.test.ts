/** MCP servers that exit during active calls: each call ends at once with the cause, and leaves no table entry. */
import { join } from "node:path";
import { getMessageText } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { expect, test } from "vitest";
import { openSession } from "../../src/client/mcp-session.ts";
import { callTool, startCalls } from "../support/calls.ts";
import { createRecordingPath, endServers, listSent, serve } from "../support/mcp.ts";

endServers();

const fixture = join(import.meta.dirname, "../fixtures/mcp.mjs");

/** Counts the entries of each Map and Set of an object. */
function listTables(owner: object): Readonly<Record<string, number>> {
  const tables = Object.entries(owner).filter(([, value]) => value instanceof Map || value instanceof Set);
  return Object.fromEntries(tables.map(([name, table]) => [name, (table as Map<unknown, unknown>).size]));
}

function listCalls(file: string): readonly unknown[] {
  return listSent(file).flatMap(({ method, params }) =>
    method === "tools/call" ? [(params as { readonly name: string }).name] : [],
  );
}

test("a killed MCP server process ends all its active calls at once and leaves no table entry", async () => {
  const file = createRecordingPath();
  const session = await openSession({
    name: "hand",
    transport: {
      kind: "stdio",
      command: process.execPath,
      args: [fixture, "usual", file],
      env: {},
      inherit: [],
      cwd: undefined,
      onStderr: () => undefined,
    },
    authorizationCode: undefined,
    protocol: "initialize",
    canElicit: false,
    sampling: undefined,
    roots: undefined,
    startTimeoutMs: 30_000,
    maxMessageLength: 2 ** 20,
    world: systemWorld(),
    onToolsChanged: () => undefined,
  });
  const before = listTables(session.client);
  const definition = session.definitions.find(({ name }) => name === "hold") ?? session.definitions[0];
  if (definition === undefined) throw new Error("it has no tools");
  const { signal } = new AbortController();
  const call = () => session.call({ definition, args: {}, signal, onProgress: () => undefined });
  const ended = Promise.allSettled([call(), call(), call()]);
  await expect.poll(() => listCalls(file)).toEqual(["hold", "hold", "hold"]);
  expect(listTables(session.client)).not.toEqual(before);
  process.kill(session.pid ?? 0, "SIGKILL");
  expect((await ended).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(session.getEndReason()).toBe("the server exited with code 137");
  expect(listTables(session.client)).toEqual(before);
  await session.close();
});

test("active calls report the exit of their MCP server, and a waiting unsent call runs in the next process", async () => {
  const file = createRecordingPath();
  const server = await serve("usual", { elicitation: "ask", file });
  const live = startCalls(server.tools, [
    { name: "hold", args: {} },
    { name: "echo", args: { say: "mine" } },
  ]);
  await expect.poll(() => listCalls(file)).toEqual(["hold"]);
  process.kill(server.pid ?? 0, "SIGKILL");
  const [lost, next] = await live.answers();
  expect(lost === undefined ? "" : getMessageText(lost)).toBe(
    'MCP server "hand" was lost during the call: the server exited with code 137. The outcome of the call is unknown.',
  );
  expect(next === undefined ? "" : getMessageText(next)).toMatch(/^mine /);
  expect(listCalls(file)).toEqual(["hold", "echo"]);
});

test("a request to an MCP server killed a moment ago reports its exit, whether or not the pipe accepted the request", async () => {
  const server = await serve();
  const kill = (): boolean => process.kill(server.pid ?? 0, "SIGKILL");
  const how = "the server exited with code 137";
  kill();
  expect(await callTool(server.tools, {})).toContain(`was lost during the call: ${how}.`);
  expect(await callTool(server.tools, { say: "again" })).toMatch(/^again /);
  kill();
  await expect(server.resources.list()).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringContaining(how),
  });
});
