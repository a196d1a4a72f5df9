/** Plugin: a long-running program in any language that serves tool calls, one JSON object per line. */
import { createHash } from "node:crypto";
import {
  isToolError,
  StatewrightError,
  type Tool,
  type ToolCall,
  ToolError,
  type ToolOutput,
  type ToolRuntime,
  type World,
} from "@statewright/core";
import {
  checkOptions,
  escapeControlChars,
  listOptionNames,
  systemWorld,
  type ToolSpecParts,
  toolSpec,
  toSnakeCase,
} from "@statewright/core/adapter";
import { createSupervisor, expandVariables, type StartCheck } from "@statewright/host";
import { isJsonObject, jsonSchema } from "@statewright/json-schema";
import { type PluginProcess, type PluginStartOptions, startPlugin } from "./plugin-process.ts";
import { notReady } from "./plugin-session.ts";
import type { PluginReply, PluginToolDefinition } from "./protocol.ts";

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
  /** Maximum characters of one line. Default 16,777,216. */
  readonly maxLineLength?: number;
  /** Receives each line of stderr. Default: the log. */
  readonly onStderr?: (line: string) => void;
  /** Clock, timers and log. Default: the system's, with a silent log. */
  readonly world?: World;
}

/** Started plugin. */
export interface Plugin {
  /** Tools of the last description. */
  readonly tools: readonly Tool[];
  /** Process id of the active process, if any. */
  readonly pid: number | undefined;
  /** Stops the process and starts it again, with changed code and definitions. */
  restart(): Promise<void>;
  /** Requests a shutdown, then stops the process. */
  close(): Promise<void>;
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

const defaults = {
  startTimeoutMs: 10_000,
  staleGraceMs: 5_000,
  maxRestarts: 3,
  maxLineLength: 2 ** 24,
} as const;

/**
 * Starts a plugin, once for all calls. Throws `plugin_failed` if the plugin does not start or does not describe
 * itself, after stopping its process; `invalid_option` for an unset variable; `invalid_tool` for an invalid tool.
 */
export function loadPlugin(options: PluginOptions | string): Promise<Plugin> {
  return loadCheckedPlugin(options, undefined);
}

/** Starts a plugin with a trust check before each automatic restart. */
export async function loadCheckedPlugin(pluginOptions: PluginOptions | string, canStart: StartCheck): Promise<Plugin> {
  const options: PluginOptions = typeof pluginOptions === "string" ? { command: pluginOptions } : pluginOptions;
  const startOptions = createStartOptions(options);
  const { restart = "lazy", maxRestarts = defaults.maxRestarts, onTimeout = "wait" } = options;
  const { command, world } = startOptions;
  const first = await startPlugin(startOptions);
  let acceptedDigest = hashDescription(first);
  const supervisor = createSupervisor(first, {
    name: `plugin "${command}"`,
    verb: "started",
    restart,
    maxRestarts,
    canStart,
    startNext: async () => {
      const next = await startPlugin(startOptions);
      if (hashDescription(next) === acceptedDigest) return next;
      await next.stop();
      world.log("warn", `the tools of plugin "${command}" changed`, { command });
      const fact = `The tools of plugin "${command}" changed since it was loaded`;
      throw ToolError.failed(`${fact}. Restart the plugin to accept the change.`, {
        modelMessage: `${fact}. The call was not made.`,
      });
    },
  });

  /** Creates the tools, or stops the process if its tools are invalid. */
  async function createToolsOrStop(process: PluginProcess): Promise<readonly Tool[]> {
    try {
      return createTools(process, options, callTool);
    } catch (error) {
      await process.stop();
      throw error;
    }
  }

  /** Calls a tool by the plugin's own name. */
  async function callTool(definition: PluginToolDefinition, args: unknown, runtime: ToolRuntime): Promise<ToolOutput> {
    const { callId, signal, update, progress } = runtime;
    for (;;) {
      const process = await supervisor.ensureActive();
      try {
        const reply = await process.call({
          callId,
          tool: definition.name,
          args,
          signal,
          onNotification: (notification) => {
            if (notification.kind === "progress") progress(notification.text);
            else
              update?.({
                content: notification.content,
                ...(notification.details === undefined ? {} : { details: notification.details }),
              });
          },
        });
        supervisor.resetRestarts();
        return toOutput(reply);
      } catch (error) {
        if (error === notReady) {
          if (process.isAlive())
            world.log("warn", `plugin "${command}" owes a late reply and is restarted`, { callId });
          await process.stop();
          continue;
        }
        if (signal.aborted && isToolError(signal.reason) && signal.reason.kind === "timeout") {
          world.log("warn", `plugin "${command}" timed out`, { tool: definition.name, callId });
          if (onTimeout === "kill") await process.stop();
        }
        throw error;
      }
    }
  }

  let tools = await createToolsOrStop(first);
  return {
    get tools() {
      return tools;
    },
    get pid() {
      return supervisor.active?.pid;
    },
    restart: () =>
      supervisor.restart(async () => {
        const next = await startPlugin(startOptions);
        tools = await createToolsOrStop(next);
        acceptedDigest = hashDescription(next);
        return next;
      }),
    close: supervisor.close,
  };
}

function createStartOptions(options: PluginOptions): PluginStartOptions {
  checkOptions("loadPlugin", options, knownOptions);
  const { command, args = [], env = {}, inheritEnv = true, onTimeout = "wait", restart = "lazy" } = options;
  if (typeof command !== "string" || command === "") {
    throw new StatewrightError("invalid_option", {
      what: "loadPlugin: expected command to be a non-empty string",
      next: 'Give loadPlugin({ command: "python3", args: ["stats.py"] })',
    });
  }
  if (onTimeout !== "wait" && onTimeout !== "kill")
    throw createOptionError(command, "onTimeout", onTimeout, '"wait" or "kill"');
  if (restart !== "lazy" && restart !== "never")
    throw createOptionError(command, "restart", restart, '"lazy" or "never"');
  const environment = globalThis.process.env;
  const location = `plugin "${command}"`;
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

function createOptionError(command: string, option: string, value: unknown, expected: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `loadPlugin: invalid option ${option} of plugin "${command}": ${JSON.stringify(value)}`,
    next: `Give ${expected}`,
  });
}

type ToolCaller = (definition: PluginToolDefinition, args: unknown, runtime: ToolRuntime) => Promise<ToolOutput>;

function createTools({ description }: PluginProcess, options: PluginOptions, callTool: ToolCaller): readonly Tool[] {
  const { safety, retry, timeoutMs, graceMs, onError, limits } = options;
  return description.tools.map((definition): Tool => {
    const { name: originalName, description: text, parameters, label, effect } = definition;
    const name = toSnakeCase(originalName);
    const spec = toolSpec({
      name,
      ...(name === originalName ? {} : { originalName }),
      ...(label === undefined ? {} : { label }),
      description: text,
      input: jsonSchema(parameters),
      effect: options.effect ?? effect ?? "once",
      safety,
      retry,
      timeoutMs,
      graceMs,
      onError,
      limits,
    });
    return Object.freeze({
      spec,
      call: (_state: unknown, runtime: ToolRuntime, { args }: ToolCall) => callTool(definition, args, runtime),
    });
  });
}

function toOutput({ content, isError, details, value }: PluginReply): ToolOutput {
  return {
    content,
    isError,
    ...(details === undefined ? {} : { details }),
    ...(value === undefined ? {} : { value }),
  };
}

/** Hashes the description: an automatic restart must not change the definitions. */
function hashDescription({ description }: PluginProcess): string {
  const canonical = [description.isList, [...description.capabilities].sort(), description.tools];
  return createHash("sha256").update(JSON.stringify(canonical, sortKeys)).digest("hex");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
