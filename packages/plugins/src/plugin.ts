/** A plugin: a program that keeps running and answers calls of its tools, one JSON object a line, in any language. */
import { createHash } from "node:crypto";
import {
  checkOptions,
  isToolError,
  optionNames,
  printable,
  StatewrightError,
  snakeCaseOf,
  systemWorld,
  type Tool,
  type ToolCall,
  ToolError,
  type ToolOutput,
  type ToolRuntime,
  type ToolSpecParts,
  toolSpec,
  type World,
} from "@statewright/core";
import { expand } from "./expand.ts";
import { jsonSchema } from "./json-schema.ts";
import { notReady, type PluginProcess, type Start, startPlugin } from "./plugin-process.ts";
import { isObject, type PluginReply, type PluginToolDefinition } from "./protocol.ts";
import { keeper, type MayStart } from "./supervisor.ts";

/** How a plugin is started, and what is done when it does not answer. */
export interface PluginOptions
  extends Pick<ToolSpecParts, "safety" | "retry" | "timeoutMs" | "graceMs" | "onError" | "limits"> {
  /** The program, found on PATH, or a path to it; no shell reads it. */
  readonly command: string;
  /** Its arguments; `${NAME}` stands for a variable of our environment. */
  readonly args?: readonly string[];
  /** Variables given to it; `${NAME}` as in `args`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Which of our variables it gets: all (default), none beyond the usual ones (`false`), or these too. */
  readonly inheritEnv?: boolean | readonly string[];
  readonly cwd?: string;
  /** What may be done with its calls again; what it says of itself counts where this is absent. Default `once`. */
  readonly effect?: ToolSpecParts["effect"];
  /** How long it may take to describe itself. Default 10,000 ms. */
  readonly startTimeoutMs?: number;
  /** When a call has timed out: wait for its late answer and throw it away (default), or end the process. */
  readonly onTimeout?: "wait" | "kill";
  /** How long the next call waits for a late answer before the process is started anew. Default 5,000 ms. */
  readonly staleGraceMs?: number;
  /** After it ended: start it with the next call (default), or let its calls fail. */
  readonly restart?: "lazy" | "never";
  /** How often it is started anew without having answered a call in between. Default 3. */
  readonly maxRestarts?: number;
  /** How long one line may be, in characters. Default 16,777,216. */
  readonly maxLineLength?: number;
  /** Each line that it writes to stderr. Default: the log. */
  readonly onStderr?: (line: string) => void;
  /** Clock, timers and log; the real ones by default, with a silent log. */
  readonly world?: World;
}

/** A plugin that was started. */
export interface Plugin {
  /** Its tools, as it described them last. */
  readonly tools: readonly Tool[];
  /** The process that answers now, if there is one. */
  readonly pid: number | undefined;
  /** End it and start it anew: changed code and changed definitions count from then on. */
  restart(): Promise<void>;
  /** Ask it to end, and see that it does. */
  close(): Promise<void>;
}

const names = optionNames<PluginOptions>({
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
 * Start a plugin, once for all calls. Throws `plugin_failed` when it cannot be started or does not describe itself, with no
 * process left; `invalid_option` for a variable that is not set; `invalid_tool` for a tool that no model can be shown.
 */
export function loadPlugin(given: PluginOptions | string): Promise<Plugin> {
  return loadPluginAs(given, undefined);
}

/** The same; `mayStart` is asked before its program is started anew by itself. */
export async function loadPluginAs(given: PluginOptions | string, mayStart: MayStart): Promise<Plugin> {
  const options: PluginOptions = typeof given === "string" ? { command: given } : given;
  const start = startOf(options);
  const { restart = "lazy", maxRestarts = defaults.maxRestarts, onTimeout = "wait" } = options;
  const { command, world } = start;
  const first = await startPlugin(start);
  let pinned = digestOf(first);
  const kept = keeper(first, {
    name: `plugin "${command}"`,
    verb: "started",
    restart,
    maxRestarts,
    mayStart,
    startAnew: async () => {
      const next = await startPlugin(start);
      if (digestOf(next) === pinned) return next;
      await next.stop();
      world.log("warn", `the plugin "${command}" describes other tools than before`, { command });
      const what = `The tools of the plugin "${command}" have changed since it was loaded`;
      throw ToolError.failed(`${what}. Restart it to take them.`, { modelMessage: `${what}: this call was not made.` });
    },
  });

  /** No process stays whose tools cannot be used. */
  async function toolsOrEnd(of: PluginProcess): Promise<readonly Tool[]> {
    try {
      return toolsOf(of, options, call);
    } catch (error) {
      await of.stop();
      throw error;
    }
  }

  /** Which of the tools, by the name that the plugin gave it. */
  async function call(definition: PluginToolDefinition, args: unknown, runtime: ToolRuntime): Promise<ToolOutput> {
    const { callId, signal, update, progress } = runtime;
    for (;;) {
      const at = await kept.ready();
      try {
        const reply = await at.call({
          callId,
          tool: definition.name,
          args,
          signal,
          onNews: (news) => {
            if (news.kind === "progress") progress(news.text);
            else update?.({ content: news.content, ...(news.details === undefined ? {} : { details: news.details }) });
          },
        });
        kept.answered();
        return outputOf(reply);
      } catch (error) {
        if (error === notReady) {
          if (at.isAlive())
            world.log("warn", `the plugin "${command}" still owes an answer and is started anew`, { callId });
          await at.stop();
          continue;
        }
        if (signal.aborted && isToolError(signal.reason) && signal.reason.kind === "timeout") {
          world.log("warn", `the plugin "${command}" did not answer in time`, { tool: definition.name, callId });
          if (onTimeout === "kill") await at.stop();
        }
        throw error;
      }
    }
  }

  let tools = await toolsOrEnd(first);
  return {
    get tools() {
      return tools;
    },
    get pid() {
      return kept.atWork?.pid;
    },
    restart: () =>
      kept.restart(async () => {
        const next = await startPlugin(start);
        tools = await toolsOrEnd(next);
        pinned = digestOf(next);
        return next;
      }),
    close: kept.close,
  };
}

function startOf(options: PluginOptions): Start {
  checkOptions("loadPlugin", options, names);
  const { command, args = [], env = {}, inheritEnv = true, onTimeout = "wait", restart = "lazy" } = options;
  if (typeof command !== "string" || command === "") {
    throw new StatewrightError("invalid_option", {
      what: "the command of a plugin is not a text",
      next: 'Give loadPlugin({ command: "python3", args: ["stats.py"] })',
    });
  }
  if (onTimeout !== "wait" && onTimeout !== "kill") throw unfit(command, "onTimeout", onTimeout, '"wait" or "kill"');
  if (restart !== "lazy" && restart !== "never") throw unfit(command, "restart", restart, '"lazy" or "never"');
  const environment = globalThis.process.env;
  const place = `the plugin "${command}"`;
  const world = options.world ?? systemWorld();
  return {
    command,
    args: args.map((arg) => expand(arg, environment, place)),
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, expand(value, environment, place)])),
    inherit: inheritEnv === true ? "all" : inheritEnv === false ? [] : inheritEnv,
    cwd: options.cwd,
    startTimeoutMs: options.startTimeoutMs ?? defaults.startTimeoutMs,
    staleGraceMs: options.staleGraceMs ?? defaults.staleGraceMs,
    maxLineLength: options.maxLineLength ?? defaults.maxLineLength,
    onStderr: options.onStderr ?? ((line) => world.log("info", printable(`${command}: ${line}`), { plugin: command })),
    world,
  };
}

function unfit(command: string, option: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `${option} of the plugin "${command}" is ${JSON.stringify(given)}`,
    next: `Give ${wanted}`,
  });
}

type MakeCall = (definition: PluginToolDefinition, args: unknown, runtime: ToolRuntime) => Promise<ToolOutput>;

function toolsOf({ description }: PluginProcess, options: PluginOptions, call: MakeCall): readonly Tool[] {
  const { safety, retry, timeoutMs, graceMs, onError, limits } = options;
  return description.tools.map((definition): Tool => {
    const { name: originalName, description: text, parameters, label, effect } = definition;
    const name = snakeCaseOf(originalName);
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
      call: (_state: unknown, runtime: ToolRuntime, { args }: ToolCall) => call(definition, args, runtime),
    });
  });
}

function outputOf({ content, isError, details, value }: PluginReply): ToolOutput {
  return {
    content,
    isError,
    ...(details === undefined ? {} : { details }),
    ...(value === undefined ? {} : { value }),
  };
}

/** Definitions are pinned: a process that is started anew by itself may not bring others. */
function digestOf({ description }: PluginProcess): string {
  const said = [description.isList, [...description.capabilities].sort(), description.tools];
  return createHash("sha256").update(JSON.stringify(said, sorted)).digest("hex");
}

function sorted(_key: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
