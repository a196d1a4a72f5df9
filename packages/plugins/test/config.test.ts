import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineTool } from "@statewright/core";
import { afterAll, afterEach, expect, test } from "vitest";
import * as z from "zod";
import { type ConfiguredTools, loadTools, type ToolConfigOptions } from "../src/index.ts";
import { callTool } from "./support/calls.ts";
import { isAlive } from "./support/plugins.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-config-"));
const fixture = join(import.meta.dirname, "fixtures/plugin.mjs");
const look = defineTool({
  name: "look",
  description: "Looks.",
  input: z.object({}),
  effect: "pure",
  run: () => "seen",
});
const presets = { coding: () => [look], readonly: () => [look], none: () => [] };
let open: ConfiguredTools | undefined;
afterEach(() => open?.close());
afterAll(() => rmSync(folder, { recursive: true }));

async function load(
  text: string,
  options: ToolConfigOptions = { presets },
  name = "agent.yaml",
): Promise<ConfiguredTools> {
  const file = join(folder, name);
  writeFileSync(file, text);
  open = await loadTools(file, options);
  return open;
}

test("a YAML configuration loads a preset and plugins, with arguments as a list of texts passed unchanged [S3.39]", async () => {
  writeFileSync(
    join(folder, "args.mjs"),
    'process.stdin.on("data", () => console.log(JSON.stringify({ name: "args", description: JSON.stringify(process.argv.slice(2)), parameters: { type: "object" } })));',
  );
  const { tools, plugins } = await load(`
tools:
  preset: coding
  plugins:
    - path: ${process.execPath}
      args: [${fixture}]
    - path: ${process.execPath}
      args: [args.mjs, --verbose, "a b", ""]
`);
  expect(tools.map(({ spec }) => spec.name)).toEqual(["look", "echo", "args"]);
  expect(tools[2]?.spec.description).toBe('["--verbose","a b",""]');
  expect(await callTool(tools, { say: "hello" })).toBe("hello");
  expect(new Set(plugins.map(({ pid }) => pid)).size).toBe(2);
});

test("a plugin path is relative to the folder of its configuration, and JSON configurations load too [S3.39]", async () => {
  writeFileSync(join(folder, "plugin.sh"), `#!/bin/sh\nexec "${process.execPath}" "${fixture}"\n`, { mode: 0o755 });
  const { tools } = await load(JSON.stringify({ tools: { plugins: [{ path: "./plugin.sh" }] } }), {}, "agent.json");
  expect(await callTool(tools, { say: "hello" })).toBe("hello");
});

test("a configuration with MCP servers needs a connector, and options in its place are refused", async () => {
  const text = "tools: { mcp: [{ name: hand, command: node }] }";
  await expect(load(text)).rejects.toMatchObject({
    code: "invalid_option",
    message: expect.stringMatching(/MCP server "hand".*Install @statewright\/mcp and pass its mcpConnector\(\)/),
  });
  await expect(load(text, { mcp: { timeoutMs: 1 } as never })).rejects.toMatchObject({
    code: "invalid_option",
    message: expect.stringMatching(/`mcp` must be a connector.*Pass mcpConnector\(options\) of @statewright\/mcp/),
  });
});

test.each([
  ["an unknown preset", "tools: { preset: cooking }", /"cooking".*coding, readonly, none/],
  ["a preset without presets", "tools: { preset: coding }", /unknown preset "coding".*Pass presets to loadTools/, {}],
  ["an unknown key", "tools: { presets: coding }", /`tools`.*unknown key "presets".*preset, plugins/],
  ["an unknown key of a plugin", "tools: { plugins: [{ path: a, arg: b }] }", /`plugins\[0\]`.*"arg".*path, args, env/],
  [
    "an unknown key at the top",
    "tool: {}",
    /agent\.yaml: expected a map of known keys, got the unknown key "tool".*tools/,
  ],
  [
    "arguments that are not strings",
    "tools: { plugins: [{ path: a, args: [80] }] }",
    /`plugins\[0\]\.args` must be a list of strings, got a list.*quotes/,
  ],
  [
    "a plugin without a path",
    "tools: { plugins: [{}] }",
    /`plugins\[0\]\.path` must be a non-empty string, got undefined/,
  ],
  [
    "an MCP server without a command and a url",
    "tools: { mcp: [{ name: a }] }",
    /`mcp\[0\]` must be a map with either command or url, got neither/,
  ],
  ["an unknown key of an MCP server", "tools: { mcp: [{ name: a, cmd: b }] }", /`mcp\[0\]`.*"cmd".*command/],
  [
    "headers that are not strings",
    "tools: { mcp: [{ name: a, url: b, headers: { c: 1 } }] }",
    /`mcp\[0\]\.headers` must be a map of strings/,
  ],
  ["invalid YAML", "tools: [", /expected valid YAML or JSON, got /],
  ["a list of presets", "tools: { preset: [a] }", /`tools\.preset` must be a string, got a list/],
] as const)(
  "a configuration with %s is refused with the known values [S3.39]",
  async (_what, text, message, options: ToolConfigOptions = { presets }) => {
    await expect(load(text, options)).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringMatching(message),
    });
  },
);

test("a plugin that fails to start is named, and the other plugins are ended", async () => {
  const pids: number[] = [];
  const file = JSON.stringify(join(folder, "pid.mjs"));
  writeFileSync(join(folder, "pid.mjs"), `console.error(process.pid); await import(${JSON.stringify(fixture)});`);
  const text = `tools: { plugins: [{ path: ${process.execPath}, args: [${file}] }, { path: no-such-command }] }`;
  await expect(load(text, { plugins: { onStderr: (line) => pids.push(Number(line)) } })).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining("no-such-command"),
  });
  expect(pids.filter(isAlive)).toEqual([]);
});

test("a missing configuration file is named in the error", async () => {
  await expect(loadTools(join(folder, "missing.yaml"))).rejects.toMatchObject({
    code: "invalid_option",
    message: expect.stringContaining("missing.yaml"),
  });
});
