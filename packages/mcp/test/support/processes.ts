/** Processes and logs for tests of MCP servers. */
import type { LogLevel, World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";

/** Returns true for a running process. */
export function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Creates the system's world with a recorded log. */
export function createLoggedWorld(): World & {
  readonly lines: { readonly level: LogLevel; readonly text: string; readonly fields: unknown }[];
} {
  const lines: { level: LogLevel; text: string; fields: unknown }[] = [];
  return { ...systemWorld({ log: (level, text, fields) => lines.push({ level, text, fields }) }), lines };
}
