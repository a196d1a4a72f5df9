/** A plugin that fails on purpose: a process of ours stands before the real one and spoils what is said by plan. */
import { processFile } from "../crash/process-file.ts";
import type { FaultPlan } from "./fault-plan.ts";

/** How a plugin fails; which of its calls is said by the plan. */
export interface PluginFaults extends FaultPlan {
  /**
   * `error` (the default): the call is answered with an error. `hang`: it is never answered. `slow`: it reaches the plugin
   * later, by `slowMs` of real time. `malformed`: it is answered with a line that is no message. `cut`: the process dies in the
   * middle of the answer.
   */
  readonly how?: "error" | "hang" | "slow" | "malformed" | "cut";
  /** Default 100. */
  readonly slowMs?: number;
}

/** A program and its arguments, as `loadPlugin` takes them. */
export interface PluginCommand {
  readonly command: string;
  readonly args?: readonly string[];
}

/** The command of the plugin behind one that fails by plan; other options of `loadPlugin` stay beside it. */
export function faultyPlugin<Command extends PluginCommand>(plugin: Command, plan: PluginFaults): Command {
  const proxy = processFile("plugin-proxy");
  const { command, args = [] } = plugin;
  return { ...plugin, command: process.execPath, args: [proxy, JSON.stringify(plan), command, ...args] };
}
