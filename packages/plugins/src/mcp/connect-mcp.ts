/** A server of the Model Context Protocol as a source of tools, resources and prompts. */
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { AuthProvider, OAuthClientProvider } from "@modelcontextprotocol/client";
import {
  checkOptions,
  isModel,
  isStatewrightError,
  optionNames,
  printable,
  StatewrightError,
  systemWorld,
  type Tool,
  type ToolCall,
  ToolError,
  type ToolRegistry,
  type ToolRuntime,
  toolSpec,
  type World,
} from "@statewright/core";
import { expand } from "../expand.ts";
import { type Keeper, keeper, type MayStart } from "../supervisor.ts";
import { callError, isSessionGone } from "./call-error.ts";
import { askingTool } from "./eliciting-tool.ts";
import { type Ask, type McpPrompts, type McpResources, promptsOf, requestFailed, resourcesOf } from "./mcp-lists.ts";
import { outputOfResult } from "./mcp-result.ts";
import {
  type McpCall,
  type McpOutcome,
  type McpSession,
  notSent,
  openSession,
  refusalOf,
  type SessionStart,
  unlessAborted,
} from "./mcp-session.ts";
import {
  type McpTool,
  type McpToolOptions,
  type RefusedMcpTool,
  refuseUnknown,
  type ToolMaking,
  toolsOfDefinitions,
} from "./mcp-tools.ts";
import { changeOf, changeText, type McpChange, type McpPins } from "./pins.ts";
import type { McpSampling } from "./sampling.ts";

/** What is said of a server, wherever it runs. */
export interface McpCommonOptions extends McpToolOptions {
  /** What people and messages call it, and what stands before the names of its tools where `prefix` says so. */
  readonly name: string;
  /** Put its name before the names of its tools, or this text. Default false. */
  readonly prefix?: boolean | string;
  /** The only tools that are taken, by the server's names. Default: all. */
  readonly only?: readonly string[];
  /** What is known of single tools, by the server's names. It stands above all that is said of all tools, and above hints. */
  readonly tools?: Readonly<Record<string, McpToolOptions>>;
  /** Believe what the server says of its tools' safety, where nothing else is said. Default false: hints only make a tool look worse. */
  readonly trustHints?: boolean;
  /** Questions of the server to people: `ask` them, durably, or `refuse` (default). */
  readonly elicitation?: "ask" | "refuse";
  /** Let it ask a model. Refused by default. */
  readonly sampling?: McpSampling;
  /** Folders that it is told of. Nothing holds it to them. */
  readonly roots?: readonly string[];
  /** The definitions that were taken before, from `pins`: others are a change. */
  readonly pins?: McpPins;
  /** Decide about tools that are new, gone or changed: true takes them. Without it they wait for `accept()`. */
  readonly onChange?: (change: McpChange) => boolean | Promise<boolean>;
  /** Greet as all servers know it (default), or look first whether it speaks the revision of 2026. */
  readonly protocol?: "initialize" | "auto";
  /** How long it may take to greet and to list its tools. Default 30,000 ms. */
  readonly startTimeoutMs?: number;
  /** After it ended: connect with the next call (default), or let its calls fail. */
  readonly restart?: "lazy" | "never";
  /** How often it is connected anew without having answered a call in between. Default 3. */
  readonly maxRestarts?: number;
  /** How long one message may be, in characters. Default 16,777,216. */
  readonly maxMessageLength?: number;
  /** Clock, timers and log; the real ones by default, with a silent log. */
  readonly world?: World;
}

/** A server that is a child process. */
export interface McpProcessOptions extends McpCommonOptions {
  /** The program, found on PATH, or a path to it; no shell reads it. */
  readonly command: string;
  /** Its arguments; `${NAME}` stands for a variable of our environment. */
  readonly args?: readonly string[];
  /** Variables given to it; `${NAME}` as in `args`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Which of our variables it gets: the usual ones alone (`false`, default), these too, or all (`true`). */
  readonly inheritEnv?: boolean | readonly string[];
  readonly cwd?: string;
  /** Each line that it writes to stderr. Default: the log. */
  readonly onStderr?: (line: string) => void;
}

/** A server at an address, by Streamable HTTP. */
export interface McpAddressOptions extends McpCommonOptions {
  readonly url: string | URL;
  /** Sent with every request; `${NAME}` stands for a variable of our environment. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Let it be on a private network: any, or these addresses. An address or `localhost` in `url` is named by itself. */
  readonly allowPrivate?: boolean | readonly string[];
  /** Tokens: `{ token: async () => … }`, or an OAuth client of the official SDK. */
  readonly authProvider?: AuthProvider | OAuthClientProvider;
  /** After the provider has sent a person to log in: the code, or the parameters, that came back with them. */
  readonly authorizationCode?: () => Promise<string | URLSearchParams>;
}

/** A server, by its process or its address. */
export type McpOptions = McpProcessOptions | McpAddressOptions;

/** A server that was connected. */
export interface McpServer extends AsyncDisposable {
  readonly name: string;
  /** What it calls itself. */
  readonly info: { readonly name: string; readonly version: string } | undefined;
  /** How it wants to be used, in its own words. They are in no prompt by themselves. */
  readonly instructions: string | undefined;
  /** Its tools, as they were taken last. */
  readonly tools: readonly Tool[];
  /** Tools that cannot be used, and why. */
  readonly refused: readonly RefusedMcpTool[];
  readonly resources: McpResources;
  readonly prompts: McpPrompts;
  /** The digests of the definitions that were taken: keep them, and give them back as `pins`. */
  readonly pins: McpPins;
  /** What the server says of its tools now, where that is not what was taken. */
  readonly change: McpChange | undefined;
  /** The process that answers now, if it is one. */
  readonly pid: number | undefined;
  /** Whether it was ended by `close`. */
  readonly isClosed: boolean;
  /** Take the tools as the server describes them now. */
  accept(): void;
  /** Keep its tools in a registry: those that are taken later come in, those that are gone leave. Gives what ends it. */
  registerIn(registry: ToolRegistry): () => void;
  /** End it and connect anew: whatever tools it describes then are taken. */
  restart(): Promise<void>;
  /** End it. */
  close(): Promise<void>;
}

type AllOptions = McpCommonOptions & Partial<Omit<McpProcessOptions & McpAddressOptions, keyof McpCommonOptions>>;

const names = optionNames<Required<AllOptions>>({
  name: true,
  prefix: true,
  only: true,
  tools: true,
  trustHints: true,
  elicitation: true,
  sampling: true,
  roots: true,
  pins: true,
  onChange: true,
  protocol: true,
  startTimeoutMs: true,
  restart: true,
  maxRestarts: true,
  maxMessageLength: true,
  world: true,
  command: true,
  args: true,
  env: true,
  inheritEnv: true,
  cwd: true,
  onStderr: true,
  url: true,
  headers: true,
  allowPrivate: true,
  authProvider: true,
  authorizationCode: true,
  effect: true,
  safety: true,
  retry: true,
  timeoutMs: true,
  graceMs: true,
  onError: true,
  limits: true,
  execution: true,
});

const toolNames = optionNames<McpToolOptions>({
  effect: true,
  safety: true,
  retry: true,
  timeoutMs: true,
  graceMs: true,
  onError: true,
  limits: true,
  execution: true,
});

const defaults = {
  startTimeoutMs: 30_000,
  maxRestarts: 3,
  maxMessageLength: 2 ** 24,
  timeoutMs: 60_000,
} as const;

/**
 * Connect to a server, once for all calls. Throws `mcp_failed` when it cannot be reached or does not greet, with no process
 * left; `invalid_option` for a variable that is not set or a tool that it does not have; `invalid_tool` for two tools of one
 * name.
 */
export function connectMcp(given: McpOptions): Promise<McpServer> {
  return connectMcpAs(given, undefined);
}

/** The same; `mayStart` is asked before it is connected anew by itself. */
export async function connectMcpAs(given: McpOptions, mayStart: MayStart): Promise<McpServer> {
  const options: AllOptions = given;
  const { name, timeoutMs, world } = check(options);
  const { restart = "lazy", maxRestarts = defaults.maxRestarts } = options;
  const asks = options.elicitation === "ask";
  /** Whether the server says that its tools are others since they were listed. */
  let isDirty = false;
  let onToolsChanged = (): void => {
    isDirty = true;
  };
  const start = startOf(options, world, () => onToolsChanged());
  const first = await openSession(start);
  const kept: Keeper<McpSession> = keeper(first, {
    name: `MCP server "${name}"`,
    verb: "connected",
    restart,
    maxRestarts,
    mayStart,
    startAnew: async (before) => {
      await before.stop();
      return openSession(start);
    },
    begun: compare,
  });
  let made: { readonly tools: readonly Tool[]; readonly refused: readonly RefusedMcpTool[] };
  let pins: McpPins = ofInterest(first);
  let change: McpChange | undefined;
  const followers = new Set<() => void>();

  const { prefix = false } = options;
  const making: ToolMaking = {
    server: name,
    prefix: prefix === true ? name : prefix === false ? "" : prefix,
    only: options.only,
    trustHints: options.trustHints === true,
    all: { ...toolPartsOf(options), timeoutMs },
    single: options.tools ?? {},
  };

  /** See what the server says of its tools now, and have it decided. */
  async function compare(with_: McpSession): Promise<void> {
    const seen = with_.pins;
    change = changeOf(pins, ofInterest(with_));
    if (change === undefined) return;
    world.log("warn", `the MCP server "${name}" describes other tools than before`, { ...change });
    const isTaken = await decided(change);
    // A yes is for what it was said to: what the server has described since is asked about by itself.
    if (isTaken && kept.last === with_ && changeOf(seen, with_.pins) === undefined) take(with_);
  }

  async function decided(of: McpChange): Promise<boolean> {
    try {
      return (await options.onChange?.(of)) === true;
    } catch (error) {
      world.log("error", `what decides about tools of the MCP server "${name}" failed`, { error: String(error) });
      return false;
    }
  }

  /** The pins of the tools that may be taken. */
  function ofInterest({ pins: all }: McpSession): McpPins {
    const { only } = options;
    if (only === undefined) return all;
    return Object.fromEntries(Object.entries(all).filter(([tool]) => only.includes(tool)));
  }

  /** From now on the tools are as the server describes them. */
  function take(from: McpSession): void {
    made = toolsFrom(from);
    pins = ofInterest(from);
    change = undefined;
    for (const follow of followers) {
      try {
        follow();
      } catch (error) {
        world.log("error", `a registry does not take the tools of the MCP server "${name}"`, { error: String(error) });
      }
    }
  }

  function toolsFrom({ definitions }: McpSession): typeof made {
    const { tools, refused } = toolsOfDefinitions(definitions, making);
    for (const { name: tool, why } of refused)
      world.log("warn", `a tool of the MCP server "${name}" cannot be used`, { tool, why });
    return { tools: tools.map((tool) => (asks ? askingToolOf(tool) : plainToolOf(tool))), refused };
  }

  function plainToolOf(tool: McpTool): Tool {
    return Object.freeze({
      spec: toolSpec(tool.parts),
      call: async (_state: unknown, { signal, update }: ToolRuntime, { args }: ToolCall) => {
        const outcome = await call(tool, {
          args: args as McpCall["args"],
          signal,
          onProgress: update === undefined ? undefined : (said) => update(progressOf(said)),
        });
        if (outcome.kind === "done") return outputOf(tool, outcome);
        throw ToolError.failed(`The MCP server "${name}" asks a person, and nobody can be asked.`);
      },
    });
  }

  function askingToolOf(tool: McpTool): Tool {
    return askingTool(
      name,
      tool,
      async (args, answered, round, { signal, progress }) => {
        const onProgress: McpCall["onProgress"] = (said) => progress(progressOf(said).content);
        const outcome = await call(tool, { args, answered, round, signal, onProgress });
        // A result that its schema refuses is a failure of this call, not of what is made of it later.
        if (outcome.kind === "done" && tool.check !== undefined) outputOf(tool, outcome);
        return outcome;
      },
      (outcome) => outputOf(tool, outcome),
    );
  }

  function outputOf(tool: McpTool, { result, usage }: Extract<McpOutcome, { kind: "done" }>) {
    const output = outputOfResult(result, tool.definition.name, tool.check);
    return usage === undefined ? output : { ...output, usage };
  }

  /** Make a call of a tool as it was taken. */
  async function call(tool: McpTool, given: Omit<McpCall, "definition">): Promise<McpOutcome> {
    const { definition, pin, parts } = tool;
    let isAgain = false;
    for (;;) {
      const at = await unlessAborted(given.signal, kept.ready());
      if (at.pins[definition.name] !== pin) throw ToolError.failed(otherText(name, definition.name));
      try {
        const outcome = await at.call({ ...given, definition });
        kept.answered();
        return outcome;
      } catch (error) {
        if (given.signal.aborted) throw given.signal.reason;
        if (error === notSent) continue;
        if (!isAgain && isSessionGone(error)) {
          isAgain = true;
          await at.stop();
          continue;
        }
        throw callError(error, {
          server: name,
          effect: parts.effect ?? "once",
          ended: at.ended(),
          refusal: refusalOf(start, error),
        });
      }
    }
  }

  const ask: Ask = async (what, signal, work) => {
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(signal?.reason);
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const stopTimer = world.schedule.after(timeoutMs, () =>
      stop.abort(new Error(`it took longer than ${timeoutMs} ms`)),
    );
    let at: McpSession | undefined;
    try {
      at = await kept.ready();
      return await at.ask((client) => work(client, stop.signal));
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      if (isStatewrightError(error)) throw error;
      const why = stop.signal.aborted ? stop.signal.reason : (at?.ended() ?? error);
      throw requestFailed(name, what, why, refusalOf(start, why));
    } finally {
      stopTimer();
      signal?.removeEventListener("abort", onAbort);
    }
  };

  /** A server that says so again and again is listed once at a time. */
  let isListing = false;
  /** While the first definitions are decided about no others come in their place. */
  let hasBegun = false;
  onToolsChanged = (): void => {
    isDirty = true;
    if (isListing || !hasBegun) return;
    isListing = true;
    void relist();
  };
  async function relist(): Promise<void> {
    while (isDirty && !kept.isClosed) {
      isDirty = false;
      const at = kept.last;
      try {
        await at.refresh();
        await compare(at);
      } catch (error) {
        world.log("warn", `the tools of the MCP server "${name}" could not be listed anew`, { error: String(error) });
      }
      if (isDirty) await new Promise<void>((go) => void world.schedule.after(relistPauseMs, go));
    }
    isListing = false;
  }

  try {
    const known = options.pins === undefined ? undefined : changeOf(options.pins, pins);
    if (known !== undefined && !(await decided(known))) throw otherThanPinned(name, known);
    refuseUnknown(making, first.definitions);
    made = toolsFrom(first);
    hasBegun = true;
    if (isDirty) onToolsChanged();
  } catch (error) {
    await kept.close();
    throw error;
  }

  return {
    name,
    get info() {
      return kept.last.client.getServerVersion();
    },
    get instructions() {
      return kept.last.client.getInstructions();
    },
    get tools() {
      return made.tools;
    },
    get refused() {
      return made.refused;
    },
    resources: resourcesOf(ask),
    prompts: promptsOf(ask),
    get pins() {
      return pins;
    },
    get change() {
      return change;
    },
    get pid() {
      return kept.atWork?.pid;
    },
    get isClosed() {
      return kept.isClosed;
    },
    accept: () => {
      if (change !== undefined) take(kept.last);
    },
    registerIn: (registry) => {
      let own: readonly Tool[] = [];
      const follow = (): void => {
        const next = made.tools;
        for (const { spec } of own)
          if (!next.some((tool) => tool.spec.name === spec.name)) registry.unregister(spec.name);
        for (const tool of next) {
          const isOwn = own.some(({ spec }) => spec.name === tool.spec.name);
          if (isOwn) registry.replace(tool);
          else registry.register(tool);
        }
        own = next;
      };
      follow();
      followers.add(follow);
      return () => {
        followers.delete(follow);
        for (const { spec } of own) registry.unregister(spec.name);
        own = [];
      };
    },
    restart: () =>
      kept.restart(async () => {
        const next = await openSession(start);
        try {
          take(next);
        } catch (error) {
          await next.stop();
          throw error;
        }
        return next;
      }),
    close: kept.close,
    [Symbol.asyncDispose]: kept.close,
  };
}

/** How long a server's tools are not listed again. */
const relistPauseMs = 100;

/** How long a request of ours may wait for its answer to begin beyond the time that calls have. */
const answerGraceMs = 30_000;

function check(options: AllOptions): { readonly name: string; readonly timeoutMs: number; readonly world: World } {
  checkOptions("connectMcp", options, names);
  const { name, command, url, elicitation, protocol, restart, sampling, timeoutMs = defaults.timeoutMs } = options;
  if (typeof name !== "string" || !/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(name))
    throw unfit("a server", "name", name, "a letter, then up to 63 letters, digits, dots, hyphens and underscores");
  const owner = `the MCP server "${name}"`;
  if ((command === undefined) === (url === undefined))
    throw unfit(owner, command === undefined ? "command" : "url", command ?? url, "a command or a url, one of them");
  const stray = (command === undefined ? ofProcess : ofAddress).find((option) => options[option] !== undefined);
  if (stray !== undefined)
    throw unfit(
      owner,
      stray,
      options[stray],
      `it only to a server with a ${command === undefined ? "command" : "url"}`,
    );
  oneOf(owner, "elicitation", elicitation, ["ask", "refuse"]);
  oneOf(owner, "protocol", protocol, ["initialize", "auto"]);
  oneOf(owner, "restart", restart, ["lazy", "never"]);
  for (const [tool, said] of Object.entries(options.tools ?? {}))
    checkOptions(`the tool "${tool}" of ${owner}`, said, toolNames);
  if (sampling !== undefined && !isModel(sampling.model)) throw unfit(owner, "sampling", sampling, "{ model }");
  return { name, timeoutMs, world: options.world ?? systemWorld() };
}

const ofProcess = ["args", "env", "inheritEnv", "cwd", "onStderr"] as const;
const ofAddress = ["headers", "allowPrivate", "authProvider", "authorizationCode"] as const;

function oneOf(owner: string, option: string, given: unknown, wanted: readonly string[]): void {
  if (given === undefined || wanted.includes(String(given))) return;
  throw unfit(owner, option, given, wanted.map((word) => `"${word}"`).join(" or "));
}

function unfit(owner: string, option: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `${option} of ${owner} is ${JSON.stringify(given)}`,
    next: `Give ${wanted}`,
  });
}

function toolPartsOf({ effect, safety, retry, graceMs, onError, limits, execution }: McpToolOptions): McpToolOptions {
  return { effect, safety, retry, graceMs, onError, limits, execution };
}

function startOf(options: AllOptions, world: World, onToolsChanged: () => void): SessionStart {
  const { name, roots, elicitation, timeoutMs = defaults.timeoutMs } = options;
  const longestMs = Math.max(timeoutMs, ...Object.values(options.tools ?? {}).map((tool) => tool.timeoutMs ?? 0));
  return {
    name,
    transport: transportOf(options, world, () => longestMs + answerGraceMs),
    authorizationCode: options.authorizationCode,
    protocol: options.protocol ?? "initialize",
    asks: elicitation === "ask",
    sampling: options.sampling,
    roots: roots?.map((folder) => ({ uri: pathToFileURL(resolve(folder)).href, name: basename(resolve(folder)) })),
    startTimeoutMs: options.startTimeoutMs ?? defaults.startTimeoutMs,
    maxMessageLength: options.maxMessageLength ?? defaults.maxMessageLength,
    world,
    onToolsChanged,
  };
}

function transportOf(options: AllOptions, world: World, timeoutMs: () => number): SessionStart["transport"] {
  const { name, command, url, inheritEnv = false } = options;
  const place = `the MCP server "${name}"`;
  const environment = globalThis.process.env;
  const expanded = (given: Readonly<Record<string, string>> = {}): Record<string, string> =>
    Object.fromEntries(Object.entries(given).map(([key, value]) => [key, expand(value, environment, place)]));
  if (command !== undefined)
    return {
      kind: "stdio",
      command,
      args: (options.args ?? []).map((arg) => expand(arg, environment, place)),
      env: expanded(options.env),
      inherit: inheritEnv === true ? "all" : inheritEnv === false ? [] : inheritEnv,
      cwd: options.cwd,
      onStderr: options.onStderr ?? ((line) => world.log("info", printable(`${name}: ${line}`), { server: name })),
    };
  const address = URL.parse(String(url));
  if (address === null || !/^https?:$/.test(address.protocol))
    throw unfit(place, "url", String(url), "a whole URL of http or https");
  return {
    kind: "http",
    url: address,
    headers: expanded(options.headers),
    allowPrivate: options.allowPrivate ?? false,
    authProvider: options.authProvider,
    timeoutMs,
  };
}

/** Progress as an update: a line for people, and the numbers. */
function progressOf({
  progress,
  total,
  message,
}: {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}): {
  readonly content: string;
  readonly details: Readonly<Record<string, number>>;
} {
  const numbers = total === undefined ? { progress } : { progress, total };
  return { content: message ?? Object.values(numbers).join("/"), details: numbers };
}

function otherText(server: string, tool: string): string {
  return `The tool "${tool}" of the MCP server "${server}" is not what it was when it was taken. Somebody has to accept the change first.`;
}

function otherThanPinned(name: string, change: McpChange): StatewrightError {
  return new StatewrightError("mcp_failed", {
    what: `the MCP server "${name}" offers other tools than those that were pinned: ${changeText(change)}`,
    next: "Look at them, then keep new pins, or decide with onChange",
    details: change,
  });
}
