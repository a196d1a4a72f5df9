/** MCP server processes of a test: started from the fixture and ended after it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect } from "vitest";
import { connectMcp, type McpOptions, type McpProcessOptions, type McpServer } from "../../src/index.ts";
import { isAlive } from "./processes.ts";

const fixture = join(import.meta.dirname, "../fixtures/mcp.mjs");
const folders: string[] = [];
const open: McpServer[] = [];
const pids = new Set<number>();

/** Creates a path for the recorded input of a server. */
export function createRecordingPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "statewright-mcp-"));
  folders.push(folder);
  return join(folder, "sent");
}

/** Parses the messages of a recording. */
export function listSent(file: string): readonly Record<string, unknown>[] {
  return readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Starts the fixture in a mode. */
export function serve(
  mode = "usual",
  { file, ...options }: Partial<McpProcessOptions> & { readonly file?: string } = {},
): Promise<McpServer> {
  const args = [fixture, mode, ...(file === undefined ? [] : [file])];
  return connect({ name: "hand", command: process.execPath, args, ...options });
}

/** Formats a reference to an environment variable. */
export function formatVariable(name: string): string {
  return ["$", "{", name, "}"].join("");
}

/** Connects to a server that ends with the test. */
export async function connect(options: McpOptions): Promise<McpServer> {
  const server = await connectMcp(options);
  open.push(server);
  if (server.pid !== undefined) pids.add(server.pid);
  return server;
}

/** Ends the servers after each test of a file. */
export function endServers(): void {
  afterEach(async () => {
    await Promise.all(open.splice(0).map((server) => server.close()));
    const left = [...pids].filter(isAlive);
    pids.clear();
    expect(left).toEqual([]);
  });
  afterAll(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });
}
