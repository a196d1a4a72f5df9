/** Plugin with planned faults: a proxy process between the test and the real plugin spoils selected calls. */
import { getProcessFile } from "../crash/process-file.ts";
import type { FaultPlan } from "./fault-plan.ts";

/** Faults of a plugin. The plan selects the calls. */
export interface PluginFaults extends FaultPlan {
  /**
   * Kind of the fault. `error` (the default): an error response. `hang`: no response. `slow`: the plugin receives the
   * call after `slowMs` of real time. `malformed`: the response is a line that is no message. `cut`: the process
   * exits in the middle of the response.
   */
  readonly how?: "error" | "hang" | "slow" | "malformed" | "cut";
  /** Delay of a slow call in milliseconds. Default 100. */
  readonly slowMs?: number;
}

/** Program and arguments, as in the options of `loadPlugin`. */
export interface PluginCommand {
  readonly command: string;
  readonly args?: readonly string[];
}

/** Returns the plugin command behind a proxy process with planned faults; other options of `loadPlugin` are kept. */
export function createFaultyPlugin<Command extends PluginCommand>(plugin: Command, plan: PluginFaults): Command {
  const proxy = getProcessFile("plugin-proxy");
  const { command, args = [] } = plugin;
  return { ...plugin, command: process.execPath, args: [proxy, JSON.stringify(plan), command, ...args] };
}
