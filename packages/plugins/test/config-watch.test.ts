import { mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineTool, getMessageText } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { type ConfigChange, type ConfiguredTools, loadTools, type ToolConfigOptions } from "../src/index.ts";
import { callTool, startCalls } from "./support/calls.ts";
import { createLoggedWorld, isAlive } from "./support/plugins.ts";

const fixture = join(import.meta.dirname, "fixtures/plugin.mjs");
const named = (name: string) =>
  defineTool({ name, description: "Looks.", input: z.object({}), effect: "pure", run: () => "seen" });
const presets = { one: () => [named("look")], two: () => [named("look"), named("see")] };
const plugin = (mode: string) => `{ path: ${process.execPath}, args: [${JSON.stringify(fixture)}, ${mode}] }`;
let folder: string;
let file: string;
let open: ConfiguredTools | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "statewright-watch-"));
  file = join(folder, "agent.yaml");
});
afterEach(async () => {
  await open?.close();
  rmSync(folder, { recursive: true });
});

/** Loads a configuration and returns its reported changes one by one. */
async function watched(text: string, options: ToolConfigOptions = {}) {
  writeFileSync(file, text);
  const observed: ConfigChange[] = [];
  let wake = (): void => undefined;
  const watch = (change: ConfigChange): void => {
    observed.push(change);
    wake();
  };
  const configured = await loadTools(file, { presets, watch, ...options });
  open = configured;
  const next = async (): Promise<ConfigChange> => {
    for (;;) {
      const change = observed.shift();
      if (change !== undefined) return change;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return { configured, next };
}

/** Replaces the file like an editor: a new file takes its name. */
function replace(text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

test("a changed configuration file is applied: written in place, renamed into place, recreated, and through a link", async () => {
  const { configured, next } = await watched("tools: { preset: one }");
  expect(configured.registry.names()).toEqual(["look"]);
  writeFileSync(file, "tools: { preset: two }");
  expect(await next()).toEqual({ added: ["see"], removed: [], replaced: ["look"] });
  expect(configured.registry.names()).toEqual(["look", "see"]);
  replace("tools: { preset: one }");
  expect(await next()).toMatchObject({ removed: ["see"], replaced: ["look"] });
  unlinkSync(file);
  expect(await next()).toMatchObject({ added: [], error: { code: "invalid_option" } });
  expect(configured.tools).toHaveLength(1);
  symlinkSync("other.yaml", `${file}.link`);
  writeFileSync(join(folder, "other.yaml"), "tools: { preset: two }");
  renameSync(`${file}.link`, file);
  expect(await next()).toMatchObject({ added: ["see"] });
});

test("an invalid configuration file changes nothing and is reported once, also in the log, and the next file applies", async () => {
  const world = createLoggedWorld();
  const pids: number[] = [];
  const plugins = { world, onStderr: (line: string) => pids.push(Number(line)) };
  writeFileSync(join(folder, "pid.mjs"), `console.error(process.pid); await import(${JSON.stringify(fixture)});`);
  const { configured, next } = await watched(`tools: { plugins: [${plugin("echo")}] }`, { plugins });
  const [pid] = configured.plugins.map((each) => each.pid);
  replace("tools: [");
  expect(await next()).toMatchObject({ error: { code: "invalid_option" } });
  replace(`tools: { plugins: [${plugin("echo")}, { path: no-such-command }] }`);
  expect(await next()).toMatchObject({ error: { code: "plugin_failed" } });
  expect(world.lines.filter(({ text }) => text.includes("was not reloaded"))).toHaveLength(2);
  expect(configured.plugins.map((each) => each.pid)).toEqual([pid]);
  expect(await callTool([...configured.registry.tools().values()], { say: "still" })).toBe("still");
  // A name of another registrant is not removed from the registry.
  configured.registry.register(named("see"));
  const other = `{ path: ${process.execPath}, args: [pid.mjs, echo, name=other] }`;
  replace(`tools: { preset: two, plugins: [${plugin("echo")}, ${other}] }`);
  expect(await next()).toMatchObject({ error: { code: "invalid_tool" } });
  expect(pids.map(isAlive)).toEqual([false]);
  expect(configured.registry.names()).toEqual(["echo", "see"]);
  replace(`tools: { preset: one, plugins: [${plugin("echo")}] }`);
  expect(await next()).toEqual({ added: ["look"], removed: [], replaced: [] });
  expect(configured.plugins.map((each) => each.pid)).toEqual([pid]);
});

test("a configuration listener that throws is logged, and the change still applies", async () => {
  let logged = (_text: string): void => undefined;
  const said = new Promise<string>((resolve) => {
    logged = resolve;
  });
  const world = systemWorld({ log: (level, text) => (level === "error" ? logged(text) : undefined) });
  const watch = (): void => {
    throw new Error("x");
  };
  writeFileSync(file, "tools: { preset: one }");
  open = await loadTools(file, { presets, watch, plugins: { world } });
  replace("tools: { preset: two }");
  expect(await said).toContain("failed");
  expect(open.registry.names()).toEqual(["look", "see"]);
});

test("a plugin removed from the configuration ends after its calls, restarts once for a call advertised earlier, and ends again", async () => {
  let resolveHeard = (): void => undefined;
  const onStderr = (): void => resolveHeard();
  const { configured, next } = await watched(`tools: { plugins: [${plugin("echo")}] }`, { plugins: { onStderr } });
  const pid = Number(configured.plugins[0]?.pid);
  const offered = configured.tools;
  const isHeld = new Promise<void>((resolve) => {
    resolveHeard = resolve;
  });
  const live = startCalls(offered, [{ args: { say: "slow", hold: true, stderr: "held" } }]);
  await isHeld;
  replace("tools: { preset: one }");
  expect(await next()).toMatchObject({ added: ["look"], removed: ["echo"] });
  expect(isAlive(pid)).toBe(true);
  process.kill(pid, "SIGUSR2");
  expect((await live.answers()).map(getMessageText)).toEqual(["slow"]);
  expect(await callTool(offered, { say: "late" })).toBe("late");
  expect(isAlive(pid)).toBe(false);
  await configured.close();
  expect(await callTool(offered, { say: "too late" })).toContain("is closed");
});
