/** SIGKILL of an MCP server over stdio, and exit of its host: the host finds its thread in the next server process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";

const script = fileURLToPath(new URL("../../support/processes/mcp-process.ts", import.meta.url));

function place(): { readonly folder: string; readonly did: () => readonly string[]; readonly go: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "statewright-mcp-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    did: () => readFileSync(join(folder, "did.txt"), "utf8").trim().split("\n"),
    go: () => writeFileSync(join(folder, "go"), ""),
  };
}

/** MCP host with its server process. */
async function host(folder: string, mode: "legacy" | "modern", person?: (kill: () => void) => string | undefined) {
  const client = new Client(
    { name: "host", version: "1.0.0" },
    {
      capabilities: person === undefined ? {} : { elicitation: {} },
      versionNegotiation: { mode: mode === "legacy" ? mode : { pin: "2026-07-28" } },
    },
  );
  const env = { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" };
  const transport = new StdioClientTransport({ command: process.execPath, args: [script], cwd: folder, env });
  const kill = (): void => {
    process.kill(transport.pid ?? 0, "SIGKILL");
  };
  if (person !== undefined)
    client.setRequestHandler("elicitation/create", () => {
      const answer = person(kill);
      return answer === undefined ? { action: "cancel" } : { action: "accept", content: { answer } };
    });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return { client, kill };
}

test("an MCP host continues its thread after each SIGKILL of the server, in both protocol generations, with no repeated effect", async () => {
  const { folder, did, go } = place();
  const call = { name: "order", arguments: { item: "tea", thread: "tea-1" } };

  const first = await host(folder, "legacy");
  const onprogress = ({ message }: { readonly message?: string | undefined }): void => {
    if (message === "under way") first.kill();
  };
  await expect(first.client.callTool(call, { onprogress })).rejects.toThrow();
  expect(did()).toEqual(["reserved tea", "paid tea"]);

  go();
  const second = await host(folder, "modern", (kill) => {
    kill();
    return undefined;
  });
  await expect(second.client.callTool(call)).rejects.toThrow();

  const third = await host(folder, "legacy", () => "Hill 2");
  const ended = await third.client.callTool({ name: "order_continue", arguments: { thread: "tea-1" } });
  expect(ended.structuredContent).toEqual({
    thread: "tea-1",
    status: "done",
    output: { item: "tea", street: "Hill 2" },
  });
  third.kill();

  // The host may have missed the answer: a repeated call to a new server process returns the recorded answer.
  const fourth = await host(folder, "modern", () => "nowhere");
  expect((await fourth.client.callTool(call)).structuredContent).toEqual(ended.structuredContent);
  expect(did()).toEqual(["reserved tea", "paid tea", "sent to Hill 2"]);
});

test("an MCP server whose host has exited finishes its step, saves it and exits", async () => {
  const { folder, did, go } = place();
  const server = spawn(process.execPath, [script], { cwd: folder, stdio: "pipe" });
  const ended = once(server, "exit");
  let text = "";
  for (const stream of [server.stdout, server.stderr])
    stream.on("data", (chunk) => {
      text += String(chunk);
    });
  const say = (message: object): void => {
    server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  };
  const about = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
  say({ id: 1, method: "initialize", params: about });
  say({ method: "notifications/initialized" });
  const params = { name: "order", arguments: { item: "tea", thread: "left" }, _meta: { progressToken: 1 } };
  say({ id: 2, method: "tools/call", params });
  await expect.poll(() => text, { timeout: 60_000 }).toContain('"under way"');
  // A message that is too deep or invalid does not end the server.
  server.stdin.write("no JSON\n");
  say({ id: 3, method: "tools/list", params: JSON.parse(`{"a":${"[".repeat(200)}${"]".repeat(200)}}`) });
  await expect
    .poll(() => text, { timeout: 60_000 })
    .toContain("Invalid request: the message is nested deeper than 72 levels.");
  server.stdin.end();
  await expect.poll(() => text, { timeout: 60_000 }).toContain("its client disconnected");
  go();
  expect(await ended).toEqual([0, null]);
  expect(did()).toEqual(["reserved tea", "paid tea", "process ended"]);

  const next = await host(folder, "legacy", () => "Hill 2");
  const result = await next.client.callTool({ name: "order_continue", arguments: { thread: "left" } });
  expect(result.structuredContent).toMatchObject({ status: "done", output: { street: "Hill 2" } });
  expect(did()).toEqual(["reserved tea", "paid tea", "process ended", "sent to Hill 2"]);
});
