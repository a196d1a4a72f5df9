/** MCP servers in a configuration: the connector of @statewright/mcp in `loadTools` of @statewright/plugins. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfiguredTools } from "@statewright/plugins";
import { toolTest } from "@statewright/testing/vitest";
import { defineTool, type Tool } from "statewright";
import { afterAll, afterEach, expect, test } from "vitest";
import * as z from "zod";
import { loadConfigured } from "../docs/tools/configured-mcp.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-configured-mcp-"));
const look = defineTool({
  name: "look",
  description: "Looks.",
  input: z.object({}),
  effect: "pure",
  run: () => "seen",
});
let open: ConfiguredTools | undefined;
afterEach(() => open?.close());
afterAll(() => rmSync(folder, { recursive: true }));

test("a YAML configuration loads an MCP server with its tools next to others, and closes it with them", async () => {
  const file = join(folder, "agent.yaml");
  writeFileSync(
    file,
    `
tools:
  preset: coding
  mcp:
    - name: hand
      command: ${process.execPath}
      args: [${join(import.meta.dirname, "../../../mcp/test/fixtures/mcp.mjs")}]
      env: { SECRET: given }
      only: [echo, "Files/Read"]
      prefix: true
`,
  );
  const configured = await loadConfigured(file, { coding: () => [look] });
  open = configured;
  const { tools, servers, plugins } = configured;
  expect(tools.map(({ spec }) => spec.name)).toEqual(["look", "hand_files_read", "hand_echo"]);
  const [server] = servers;
  expect(await say(tools, "hand_echo")).toBe(`given ${server?.pid}`);
  expect(plugins).toEqual([]);
  const pid = server?.pid;
  await configured.close();
  expect([isAlive(pid), server?.isClosed]).toEqual([false, true]);
});

async function say(tools: readonly Tool[], name: string): Promise<string> {
  const tool = tools.find(({ spec }) => spec.name === name);
  if (tool === undefined) throw new Error(`no tool "${name}"`);
  return (await toolTest(tool, { args: {} })).text;
}

function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
