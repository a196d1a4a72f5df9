/** MCP client: a server of the Model Context Protocol as a source of tools, resources and prompts. */
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { AuthProvider, OAuthClientProvider } from "@modelcontextprotocol/client";
import {
  isStatewrightError,
  StatewrightError,
  type Tool,
  type ToolCall,
  ToolError,
  type ToolRegistry,
  type ToolRuntime,
  type World,
} from "@statewright/core";
import {
  checkOptions,
  escapeControlChars,
  isModel,
  listOptionNames,
  systemWorld,
  toolSpec,
} from "@statewright/core/adapter";
import { createSupervisor, expandVariables, type StartCheck, type Supervisor } from "@statewright/host";
import { isSessionExpired, toCallError } from "./call-error.ts";
import { createElicitingTool } from "./eliciting-tool.ts";
import {
  createPrompts,
  createRequestError,
  createResources,
  type McpPrompts,
  type McpResources,
  type RequestRunner,
} from "./mcp-lists.ts";
import { toToolOutput } from "./mcp-result.ts";
import {
  findRefusal,
  type McpCall,
  type McpOutcome,
  type McpSession,
  notSent,
  openSession,
  rejectOnAbort,
  type SessionOptions,
} from "./mcp-session.ts";
import {
  checkToolNames,
  createMcpTools,
  type McpTool,
  type McpToolOptions,
  type RefusedMcpTool,
  type ToolSettings,
} from "./mcp-tools.ts";
import { comparePins, formatChange, type McpChange, type McpPins } from "./pins.ts";
import type { McpSampling } from "./sampling.ts";

/** Options of an MCP server, independent of its transport. */
export interface McpCommonOptions extends McpToolOptions {
  /** Name of the server in messages, and optional prefix of its tool names. */
  readonly name: string;
  /** Prefix of the tool names: the server's name (`true`) or this text. Default false. */
  readonly prefix?: boolean | string;
  /** Names of the tools to use, as named by the server. Default: all. */
  readonly only?: readonly string[];
  /**
   * Options of single tools, by the server's tool names. These options override the options for all tools and the
   * hints.
   */
  readonly tools?: Readonly<Record<string, McpToolOptions>>;
  /**
   * Trusts the safety hints of the server for unspecified options. Default false: hints can only make a tool less
   * safe.
   */
  readonly trustHints?: boolean;
  /** Elicitations of the server: `ask` creates durable interrupts, `refuse` (default) declines them. */
  readonly elicitation?: "ask" | "refuse";
  /** Lets the server request model calls. Refused by default. */
  readonly sampling?: McpSampling;
  /** Roots advertised to the server; not enforced. */
  readonly roots?: readonly string[];
  /** Digests of accepted definitions, from `pins`. Any other definition is a change. */
  readonly pins?: McpPins;
  /**
   * Decides about new, removed or changed tools; true accepts the change. Without this callback a change waits for
   * `accept()`.
   */
  readonly onChange?: (change: McpChange) => boolean | Promise<boolean>;
  /** Handshake: the `initialize` of all servers (default), or a detection of the 2026 revision first. */
  readonly protocol?: "initialize" | "auto";
  /** Maximum milliseconds for the handshake and the list of tools. Default 30,000. */
  readonly startTimeoutMs?: number;
  /** After the end of the server: reconnect at the next call (default), or fail all calls. */
  readonly restart?: "lazy" | "never";
  /** Maximum reconnects without an answered call in between. Default 3. */
  readonly maxRestarts?: number;
  /** Maximum characters of one message. Default 16,777,216. */
  readonly maxMessageLength?: number;
  /** Clock, timers and log. Default: the system's, with a silent log. */
  readonly world?: World;
}

/** MCP server as a child process. */
export interface McpProcessOptions extends McpCommonOptions {
  /** Program on PATH, or its path; started without a shell. */
  readonly command: string;
  /** Arguments; `${NAME}` expands to an environment variable. */
  readonly args?: readonly string[];
  /** Additional environment variables; `${NAME}` expands as in `args`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Inherited environment variables: the usual ones only (`false`, default), these in addition, or all (`true`). */
  readonly inheritEnv?: boolean | readonly string[];
  readonly cwd?: string;
  /** Receives each line of stderr. Default: the log. */
  readonly onStderr?: (line: string) => void;
}

/** MCP server at a URL, over Streamable HTTP. */
export interface McpAddressOptions extends McpCommonOptions {
  readonly url: string | URL;
  /** Headers of every request; `${NAME}` expands to an environment variable. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Allows private networks: any (`true`) or these addresses. An IP address or `localhost` in `url` is always
   * allowed.
   */
  readonly allowPrivate?: boolean | readonly string[];
  /** Credentials: `{ token: async () => … }`, or an OAuth client of the official SDK. */
  readonly authProvider?: AuthProvider | OAuthClientProvider;
  /** Returns the authorization code or the callback parameters after the provider's redirect to a login. */
  readonly authorizationCode?: () => Promise<string | URLSearchParams>;
}

/** MCP server as a process or at a URL. */
export type McpOptions = McpProcessOptions | McpAddressOptions;

/** Connected MCP server. */
export interface McpServer extends AsyncDisposable {
  readonly name: string;
  /** Name and version reported by the server. */
  readonly info: { readonly name: string; readonly version: string } | undefined;
  /** Instructions of the server. Not added to any prompt automatically. */
  readonly instructions: string | undefined;
  /** Tools of the last accepted definitions. */
  readonly tools: readonly Tool[];
  /** Unusable tools, with the reason. */
  readonly refused: readonly RefusedMcpTool[];
  readonly resources: McpResources;
  readonly prompts: McpPrompts;
  /** Digests of the accepted definitions. Store them, and pass them as `pins` at the next connect. */
  readonly pins: McpPins;
  /** Pending change of the definitions; undefined without a difference from the accepted definitions. */
  readonly pendingChange: McpChange | undefined;
  /** Process id of the active server process, if any. */
  readonly pid: number | undefined;
  /** True after `close`. */
  readonly isClosed: boolean;
  /** Accepts the current definitions of the server. */
  accept(): void;
  /**
   * Keeps a registry in sync with the accepted tools: adds new tools and removes deleted ones. Returns a function
   * that ends the sync.
   */
  syncRegistry(registry: ToolRegistry): () => void;
  /** Closes the connection and reconnects. Accepts the definitions of the new connection. */
  restart(): Promise<void>;
  /** Closes the connection. */
  close(): Promise<void>;
}

type AllOptions = McpCommonOptions & Partial<Omit<McpProcessOptions & McpAddressOptions, keyof McpCommonOptions>>;

const knownOptions = listOptionNames<Required<AllOptions>>({
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

const knownToolOptions = listOptionNames<McpToolOptions>({
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
 * Connects to an MCP server, once for all calls. Throws `mcp_failed` if the server is not reachable or the handshake
 * fails, after ending its process; `invalid_option` for an unset variable or an unknown tool; `invalid_tool` for
 * duplicate tool names.
 */
export function connectMcp(options: McpOptions): Promise<McpServer> {
  return connectCheckedMcp(options, undefined);
}

/** Connects to an MCP server with a trust check before each automatic reconnect. */
export async function connectCheckedMcp(mcpOptions: McpOptions, canStart: StartCheck): Promise<McpServer> {
  const options: AllOptions = mcpOptions;
  const { name, timeoutMs, world } = checkConnectOptions(options);
  const { restart = "lazy", maxRestarts = defaults.maxRestarts } = options;
  const canElicit = options.elicitation === "ask";
  /** True after a tool list change notification, until the next list. */
  let isDirty = false;
  let onToolsChanged = (): void => {
    isDirty = true;
  };
  const start = createSessionOptions(options, world, () => onToolsChanged());
  const first = await openSession(start);
  const supervisor: Supervisor<McpSession> = createSupervisor(first, {
    name: `MCP server "${name}"`,
    verb: "connected",
    restart,
    maxRestarts,
    canStart,
    startNext: async (previous) => {
      await previous.stop();
      return openSession(start);
    },
    onStarted: compareDefinitions,
  });
  let accepted: { readonly tools: readonly Tool[]; readonly refused: readonly RefusedMcpTool[] };
  let pins: McpPins = selectPins(first);
  let pendingChange: McpChange | undefined;
  const syncs = new Set<() => void>();

  const { prefix = false } = options;
  const toolSettings: ToolSettings = {
    server: name,
    prefix: prefix === true ? name : prefix === false ? "" : prefix,
    only: options.only,
    trustHints: options.trustHints === true,
    common: { ...pickToolOptions(options), timeoutMs },
    byName: options.tools ?? {},
  };

  /**
   * Compares the server's current definitions with the accepted ones, and lets `onChange` decide about a difference.
   */
  async function compareDefinitions(session: McpSession): Promise<void> {
    const seenPins = session.pins;
    pendingChange = comparePins(pins, selectPins(session));
    if (pendingChange === undefined) return;
    world.log("warn", `the tools of MCP server "${name}" changed`, { ...pendingChange });
    const isAccepted = await decideChange(pendingChange);
    // An approval covers only the checked definitions: later definitions need another decision.
    if (isAccepted && supervisor.latest === session && comparePins(seenPins, session.pins) === undefined)
      acceptDefinitions(session);
  }

  async function decideChange(candidate: McpChange): Promise<boolean> {
    try {
      return (await options.onChange?.(candidate)) === true;
    } catch (error) {
      world.log("error", `onChange of MCP server "${name}" failed`, { error: String(error) });
      return false;
    }
  }

  /** Selects the pins of the tools in `only`. */
  function selectPins({ pins: all }: McpSession): McpPins {
    const { only } = options;
    if (only === undefined) return all;
    return Object.fromEntries(Object.entries(all).filter(([tool]) => only.includes(tool)));
  }

  /** Accepts the definitions of a session. */
  function acceptDefinitions(session: McpSession): void {
    accepted = createTools(session);
    pins = selectPins(session);
    pendingChange = undefined;
    for (const sync of syncs) {
      try {
        sync();
      } catch (error) {
        world.log("error", `a registry rejected the tools of MCP server "${name}"`, { error: String(error) });
      }
    }
  }

  function createTools({ definitions }: McpSession): typeof accepted {
    const { tools, refused } = createMcpTools(definitions, toolSettings);
    for (const { name: tool, reason } of refused)
      world.log("warn", `unusable tool of MCP server "${name}"`, { tool, reason });
    return { tools: tools.map((tool) => (canElicit ? toElicitingTool(tool) : toPlainTool(tool))), refused };
  }

  function toPlainTool(tool: McpTool): Tool {
    return Object.freeze({
      spec: toolSpec(tool.parts),
      call: async (_state: unknown, { signal, update }: ToolRuntime, { args }: ToolCall) => {
        const outcome = await call(tool, {
          args: args as McpCall["args"],
          signal,
          onProgress: update === undefined ? undefined : (report) => update(toProgressUpdate(report)),
        });
        if (outcome.kind === "done") return toOutput(tool, outcome);
        throw ToolError.failed(`MCP server "${name}" requested an elicitation, which is not enabled.`);
      },
    });
  }

  function toElicitingTool(tool: McpTool): Tool {
    return createElicitingTool(
      name,
      tool,
      async (args, answers, round, { signal, progress }) => {
        const onProgress: McpCall["onProgress"] = (report) => progress(toProgressUpdate(report).content);
        const outcome = await call(tool, { args, answers, round, signal, onProgress });
        // Validate the result here, so that an invalid result fails this call and not a later read of the stored
        // result.
        if (outcome.kind === "done" && tool.check !== undefined) toOutput(tool, outcome);
        return outcome;
      },
      (outcome) => toOutput(tool, outcome),
    );
  }

  function toOutput(tool: McpTool, { result, usage }: Extract<McpOutcome, { kind: "done" }>) {
    const output = toToolOutput(result, tool.definition.name, tool.check);
    return usage === undefined ? output : { ...output, usage };
  }

  /** Calls a tool by its accepted definition. */
  async function call(tool: McpTool, given: Omit<McpCall, "definition">): Promise<McpOutcome> {
    const { definition, pin, parts } = tool;
    let isAgain = false;
    for (;;) {
      const at = await rejectOnAbort(given.signal, supervisor.ensureActive());
      if (at.pins[definition.name] !== pin) throw ToolError.failed(describeChangedTool(name, definition.name));
      try {
        const outcome = await at.call({ ...given, definition });
        supervisor.resetRestarts();
        return outcome;
      } catch (error) {
        if (given.signal.aborted) throw given.signal.reason;
        if (error === notSent) continue;
        if (!isAgain && isSessionExpired(error)) {
          isAgain = true;
          await at.stop();
          continue;
        }
        throw toCallError(error, {
          server: name,
          effect: parts.effect ?? "once",
          endReason: at.getEndReason(),
          refusal: findRefusal(start, error),
        });
      }
    }
  }

  const runRequest: RequestRunner = async (action, signal, work) => {
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(signal?.reason);
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const stopTimer = world.schedule.after(timeoutMs, () => stop.abort(new Error(`timed out after ${timeoutMs} ms`)));
    let session: McpSession | undefined;
    try {
      session = await supervisor.ensureActive();
      return await session.runRequest((client) => work(client, stop.signal));
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      if (isStatewrightError(error)) throw error;
      const reason = stop.signal.aborted ? stop.signal.reason : (session?.getEndReason() ?? error);
      throw createRequestError(name, action, reason, findRefusal(start, reason));
    } finally {
      stopTimer();
      signal?.removeEventListener("abort", onAbort);
    }
  };

  /** Lists tools one at a time, because a server may send change notifications in rapid succession. */
  let isListing = false;
  /** False during the decision about the first definitions: the decision must not see later definitions. */
  let isReady = false;
  onToolsChanged = (): void => {
    isDirty = true;
    if (isListing || !isReady) return;
    isListing = true;
    void relistTools();
  };
  async function relistTools(): Promise<void> {
    while (isDirty && !supervisor.isClosed) {
      isDirty = false;
      const session = supervisor.latest;
      try {
        await session.refreshTools();
        await compareDefinitions(session);
      } catch (error) {
        world.log("warn", `could not list the tools of MCP server "${name}" again`, { error: String(error) });
      }
      if (isDirty) await new Promise<void>((done) => void world.schedule.after(relistPauseMs, done));
    }
    isListing = false;
  }

  try {
    const pinChange = options.pins === undefined ? undefined : comparePins(options.pins, pins);
    if (pinChange !== undefined && !(await decideChange(pinChange))) throw createPinError(name, pinChange);
    checkToolNames(toolSettings, first.definitions);
    accepted = createTools(first);
    isReady = true;
    if (isDirty) onToolsChanged();
  } catch (error) {
    await supervisor.close();
    throw error;
  }

  return {
    name,
    get info() {
      return supervisor.latest.client.getServerVersion();
    },
    get instructions() {
      return supervisor.latest.client.getInstructions();
    },
    get tools() {
      return accepted.tools;
    },
    get refused() {
      return accepted.refused;
    },
    resources: createResources(runRequest),
    prompts: createPrompts(runRequest),
    get pins() {
      return pins;
    },
    get pendingChange() {
      return pendingChange;
    },
    get pid() {
      return supervisor.active?.pid;
    },
    get isClosed() {
      return supervisor.isClosed;
    },
    accept: () => {
      if (pendingChange !== undefined) acceptDefinitions(supervisor.latest);
    },
    syncRegistry: (registry) => {
      let registered: readonly Tool[] = [];
      const sync = (): void => {
        const next = accepted.tools;
        for (const { spec } of registered)
          if (!next.some((tool) => tool.spec.name === spec.name)) registry.unregister(spec.name);
        for (const tool of next) {
          const isRegistered = registered.some(({ spec }) => spec.name === tool.spec.name);
          if (isRegistered) registry.replace(tool);
          else registry.register(tool);
        }
        registered = next;
      };
      sync();
      syncs.add(sync);
      return () => {
        syncs.delete(sync);
        for (const { spec } of registered) registry.unregister(spec.name);
        registered = [];
      };
    },
    restart: () =>
      supervisor.restart(async () => {
        const next = await openSession(start);
        try {
          acceptDefinitions(next);
        } catch (error) {
          await next.stop();
          throw error;
        }
        return next;
      }),
    close: supervisor.close,
    [Symbol.asyncDispose]: supervisor.close,
  };
}

/** Minimum milliseconds between two lists of a server's tools. */
const relistPauseMs = 100;

/** Extra milliseconds of an HTTP request for its first response byte, beyond the timeout of a call. */
const answerGraceMs = 30_000;

function checkConnectOptions(options: AllOptions): {
  readonly name: string;
  readonly timeoutMs: number;
  readonly world: World;
} {
  checkOptions("connectMcp", options, knownOptions);
  const { name, command, url, elicitation, protocol, restart, sampling, timeoutMs = defaults.timeoutMs } = options;
  if (typeof name !== "string" || !/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(name))
    throw createOptionError(
      "a server",
      "name",
      name,
      "a letter, then up to 63 letters, digits, dots, hyphens and underscores",
    );
  const owner = `MCP server "${name}"`;
  if ((command === undefined) === (url === undefined))
    throw createOptionError(owner, command === undefined ? "command" : "url", command ?? url, "either command or url");
  const misplaced = (command === undefined ? processOnlyOptions : addressOnlyOptions).find(
    (option) => options[option] !== undefined,
  );
  if (misplaced !== undefined)
    throw createOptionError(
      owner,
      misplaced,
      options[misplaced],
      `it only for a server with a ${command === undefined ? "command" : "url"}`,
    );
  checkOneOf(owner, "elicitation", elicitation, ["ask", "refuse"]);
  checkOneOf(owner, "protocol", protocol, ["initialize", "auto"]);
  checkOneOf(owner, "restart", restart, ["lazy", "never"]);
  for (const [tool, toolOptions] of Object.entries(options.tools ?? {}))
    checkOptions(`tool "${tool}" of ${owner}`, toolOptions, knownToolOptions);
  if (sampling !== undefined && !isModel(sampling.model))
    throw createOptionError(owner, "sampling", sampling, "{ model }");
  return { name, timeoutMs, world: options.world ?? systemWorld() };
}

const processOnlyOptions = ["args", "env", "inheritEnv", "cwd", "onStderr"] as const;
const addressOnlyOptions = ["headers", "allowPrivate", "authProvider", "authorizationCode"] as const;

function checkOneOf(owner: string, option: string, value: unknown, expected: readonly string[]): void {
  if (value === undefined || expected.includes(String(value))) return;
  throw createOptionError(owner, option, value, expected.map((word) => `"${word}"`).join(" or "));
}

function createOptionError(owner: string, option: string, value: unknown, expected: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `connectMcp: invalid option ${option} of ${owner}: ${JSON.stringify(value)}`,
    next: `Give ${expected}`,
  });
}

function pickToolOptions({
  effect,
  safety,
  retry,
  graceMs,
  onError,
  limits,
  execution,
}: McpToolOptions): McpToolOptions {
  return { effect, safety, retry, graceMs, onError, limits, execution };
}

function createSessionOptions(options: AllOptions, world: World, onToolsChanged: () => void): SessionOptions {
  const { name, roots, elicitation, timeoutMs = defaults.timeoutMs } = options;
  const maxTimeoutMs = Math.max(timeoutMs, ...Object.values(options.tools ?? {}).map((tool) => tool.timeoutMs ?? 0));
  return {
    name,
    transport: createTransportOptions(options, world, () => maxTimeoutMs + answerGraceMs),
    authorizationCode: options.authorizationCode,
    protocol: options.protocol ?? "initialize",
    canElicit: elicitation === "ask",
    sampling: options.sampling,
    roots: roots?.map((folder) => ({ uri: pathToFileURL(resolve(folder)).href, name: basename(resolve(folder)) })),
    startTimeoutMs: options.startTimeoutMs ?? defaults.startTimeoutMs,
    maxMessageLength: options.maxMessageLength ?? defaults.maxMessageLength,
    world,
    onToolsChanged,
  };
}

function createTransportOptions(
  options: AllOptions,
  world: World,
  timeoutMs: () => number,
): SessionOptions["transport"] {
  const { name, command, url, inheritEnv = false } = options;
  const location = `MCP server "${name}"`;
  const environment = globalThis.process.env;
  const expandAll = (entries: Readonly<Record<string, string>> = {}): Record<string, string> =>
    Object.fromEntries(
      Object.entries(entries).map(([key, value]) => [key, expandVariables(value, environment, location)]),
    );
  if (command !== undefined)
    return {
      kind: "stdio",
      command,
      args: (options.args ?? []).map((arg) => expandVariables(arg, environment, location)),
      env: expandAll(options.env),
      inherit: inheritEnv === true ? "all" : inheritEnv === false ? [] : inheritEnv,
      cwd: options.cwd,
      onStderr:
        options.onStderr ?? ((line) => world.log("info", escapeControlChars(`${name}: ${line}`), { server: name })),
    };
  const address = URL.parse(String(url));
  if (address === null || !/^https?:$/.test(address.protocol))
    throw createOptionError(location, "url", String(url), "an absolute http or https URL");
  return {
    kind: "http",
    url: address,
    headers: expandAll(options.headers),
    allowPrivate: options.allowPrivate ?? false,
    authProvider: options.authProvider,
    timeoutMs,
  };
}

/** Converts progress to an update: a text for people, and the numbers. */
function toProgressUpdate({
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

function describeChangedTool(server: string, tool: string): string {
  return `Tool "${tool}" of MCP server "${server}" changed since its acceptance. A person must accept the change first.`;
}

function createPinError(name: string, change: McpChange): StatewrightError {
  return new StatewrightError("mcp_failed", {
    what: `the tools of MCP server "${name}" differ from the pins: ${formatChange(change)}`,
    next: "Review the tools, then store new pins, or decide in onChange",
    details: change,
  });
}
