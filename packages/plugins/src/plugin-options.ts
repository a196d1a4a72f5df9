/** Options of a plugin, and their conversion to the start of its process. */
import type { World } from "@statewright/core";
import {
  checkChoice,
  checkOptions,
  escapeControlChars,
  invalidOption,
  listOptionNames,
  systemWorld,
  type ToolSpecParts,
} from "@statewright/core/adapter";
import { expandVariables } from "@statewright/host";
import type { PluginStartOptions } from "./plugin-process.ts";

/** Options of a plugin: its start, its tools, and the handling of timeouts. */
export interface PluginOptions
  extends Pick<ToolSpecParts, "safety" | "retry" | "timeoutMs" | "graceMs" | "onError" | "limits"> {
  /** Program on PATH, or its path; started without a shell. */
  readonly command: string;
  /** Arguments; `${NAME}` expands to an environment variable. */
  readonly args?: readonly string[];
  /** Additional environment variables; `${NAME}` expands as in `args`. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Inherited environment variables: all (default), the usual ones only (`false`), or these in addition to the usual
   * ones.
   */
  readonly inheritEnv?: boolean | readonly string[];
  /** Working folder of the process. Default: the folder of this process. */
  readonly cwd?: string;
  /** Effect of the tools. Default: the effect described by the plugin, else `once`. */
  readonly effect?: ToolSpecParts["effect"];
  /** Maximum milliseconds until the description. Default 10,000. */
  readonly startTimeoutMs?: number;
  /** After a timeout of a call: wait for the late reply and drop it (default), or kill the process. */
  readonly onTimeout?: "wait" | "kill";
  /** Maximum milliseconds that the next call waits for a late reply before a restart. Default 5,000. */
  readonly staleGraceMs?: number;
  /** After the end of the process: restart at the next call (default), or fail all calls. */
  readonly restart?: "lazy" | "never";
  /** Maximum restarts without an answered call in between. Default 3. */
  readonly maxRestarts?: number;
  /** Maximum characters of a line. Default 16,777,216. */
  readonly maxLineLength?: number;
  /** Receives each line of stderr. Default: the log. */
  readonly onStderr?: (line: string) => void;
  /** Clock, timers and log. Default: the system's, with a silent log. */
  readonly world?: World;
}

const knownOptions = listOptionNames<PluginOptions>({
  command: true,
  args: true,
  env: true,
  inheritEnv: true,
  cwd: true,
  effect: true,
  safety: true,
  retry: true,
  timeoutMs: true,
  graceMs: true,
  onError: true,
  limits: true,
  startTimeoutMs: true,
  onTimeout: true,
  staleGraceMs: true,
  restart: true,
  maxRestarts: true,
  maxLineLength: true,
  onStderr: true,
  world: true,
});

const defaults = { startTimeoutMs: 10_000, staleGraceMs: 5_000, maxLineLength: 2 ** 24 } as const;

/** Restarts without an answered call in between, unless the options say otherwise. */
export const defaultMaxRestarts = 3;

/** Converts the options of a plugin. Throws `invalid_option` for an invalid option and for an unset variable. */
export function createStartOptions(options: PluginOptions): PluginStartOptions {
  checkOptions("loadPlugin", options, knownOptions);
  const { command, args = [], env = {}, inheritEnv = true, onTimeout = "wait", restart = "lazy" } = options;
  if (typeof command !== "string" || command === "")
    throw invalidOption({
      where: "loadPlugin",
      option: "command",
      expected: "a non-empty string",
      got: command,
      fix: 'Pass loadPlugin({ command: "python3", args: ["stats.py"] })',
    });
  const location = `plugin "${command}"`;
  checkChoice(`loadPlugin of ${location}`, { onTimeout }, ["wait", "kill"]);
  checkChoice(`loadPlugin of ${location}`, { restart }, ["lazy", "never"]);
  const environment = globalThis.process.env;
  const world = options.world ?? systemWorld();
  return {
    command,
    args: args.map((arg) => expandVariables(arg, environment, location)),
    env: Object.fromEntries(
      Object.entries(env).map(([name, value]) => [name, expandVariables(value, environment, location)]),
    ),
    inherit: inheritEnv === true ? "all" : inheritEnv === false ? [] : inheritEnv,
    cwd: options.cwd,
    startTimeoutMs: options.startTimeoutMs ?? defaults.startTimeoutMs,
    staleGraceMs: options.staleGraceMs ?? defaults.staleGraceMs,
    maxLineLength: options.maxLineLength ?? defaults.maxLineLength,
    onStderr:
      options.onStderr ?? ((line) => world.log("info", escapeControlChars(`${command}: ${line}`), { plugin: command })),
    world,
  };
}
