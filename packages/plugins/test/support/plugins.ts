/** Plugin processes of a test: started from the fixtures and ended after it. */
import { join } from "node:path";
import type { LogLevel, World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { afterEach, expect } from "vitest";
import { loadPlugin, type Plugin, type PluginOptions } from "../../src/index.ts";

const fixture = join(import.meta.dirname, "../fixtures/plugin.mjs");
const open: Plugin[] = [];
const pids = new Set<number>();

/** Starts the fixture with a behaviour. */
export async function load(
  mode = "echo",
  options: Partial<PluginOptions> & { readonly extra?: string } = {},
): Promise<Plugin> {
  const { extra, ...rest } = options;
  const plugin = await loadPlugin({
    command: process.execPath,
    args: [fixture, mode, ...(extra === undefined ? [] : [extra])],
    ...rest,
  });
  keep(plugin);
  return plugin;
}

/** Ends a plugin after the test. */
export function keep(plugin: Plugin): void {
  open.push(plugin);
  if (plugin.pid !== undefined) pids.add(plugin.pid);
}

/** Returns whether a process exists. */
export function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Creates the system world with a recorded log. */
export function createLoggedWorld(): World & {
  readonly lines: { readonly level: LogLevel; readonly text: string; readonly fields: unknown }[];
} {
  const lines: { level: LogLevel; text: string; fields: unknown }[] = [];
  return { ...systemWorld({ log: (level, text, fields) => lines.push({ level, text, fields }) }), lines };
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((plugin) => plugin.close()));
  const left = [...pids].filter(isAlive);
  pids.clear();
  expect(left).toEqual([]);
});
