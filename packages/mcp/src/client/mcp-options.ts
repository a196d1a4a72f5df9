/** Options of MCP servers: types, checks, and their conversion to the options of sessions and tools. */
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { AuthProvider, OAuthClientProvider } from "@modelcontextprotocol/client";
import type { World } from "@statewright/core";
import {
  checkChoice,
  checkOptions,
  escapeControlChars,
  invalidOption,
  isModel,
  listOptionNames,
} from "@statewright/core/adapter";
import { expandVariables } from "@statewright/host";
import type { SessionOptions } from "./mcp-session.ts";
import type { McpToolOptions, ToolSettings } from "./mcp-tools.ts";
import type { McpChange, McpPins } from "./pins.ts";
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
  /** Maximum characters of a message. Default 16,777,216. */
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
  /** Working folder of the process. Default: the folder of this process. */
  readonly cwd?: string;
  /** Receives each line of stderr. Default: the log. */
  readonly onStderr?: (line: string) => void;
}

/** MCP server at a URL, over Streamable HTTP. */
export interface McpAddressOptions extends McpCommonOptions {
  /** Address of the server. */
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

/** Options of both kinds of servers. */
export type AllMcpOptions = McpCommonOptions &
  Partial<Omit<McpProcessOptions & McpAddressOptions, keyof McpCommonOptions>>;

const knownOptions = listOptionNames<Required<AllMcpOptions>>({
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

/** Default values of options. */
export const defaults: Readonly<Record<"startTimeoutMs" | "maxRestarts" | "maxMessageLength" | "timeoutMs", number>> = {
  startTimeoutMs: 30_000,
  maxRestarts: 3,
  maxMessageLength: 2 ** 24,
  timeoutMs: 60_000,
};

/**
 * Throws `invalid_option` for unknown options, for an invalid value, and for an option of the other kind of server.
 */
export function checkConnectOptions(options: AllMcpOptions): void {
  checkOptions("connectMcp", options, knownOptions);
  const { name, elicitation = "refuse", protocol = "initialize", restart = "lazy", sampling } = options;
  if (typeof name !== "string" || !/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(name))
    throw invalidOption({
      where: "connectMcp",
      option: "name",
      expected: "a letter, then up to 63 letters, digits, dots, hyphens and underscores",
      got: name,
      fix: "Pass a short name of the server",
    });
  const owner = describeOwner(options);
  checkTarget(owner, options);
  checkChoice(owner, { elicitation }, ["ask", "refuse"]);
  checkChoice(owner, { protocol }, ["initialize", "auto"]);
  checkChoice(owner, { restart }, ["lazy", "never"]);
  for (const [tool, toolOptions] of Object.entries(options.tools ?? {}))
    checkOptions(`tool "${tool}" of ${owner}`, toolOptions, knownToolOptions);
  if (sampling !== undefined && !isModel(sampling.model))
    throw invalidOption({ where: owner, option: "sampling", expected: "{ model }", got: sampling });
}

function describeOwner({ name }: AllMcpOptions): string {
  return `connectMcp of MCP server "${name}"`;
}

const processOnlyOptions = ["args", "env", "inheritEnv", "cwd", "onStderr"] as const;
const addressOnlyOptions = ["headers", "allowPrivate", "authProvider", "authorizationCode"] as const;

/** Throws `invalid_option` unless the options describe either a process or a URL. */
function checkTarget(owner: string, options: AllMcpOptions): void {
  const { command, url } = options;
  if ((command === undefined) === (url === undefined))
    throw invalidOption({
      where: owner,
      expected: "either command or url",
      found: command === undefined ? "neither" : "both",
      fix: "Pass exactly one of command and url",
    });
  const [target, misplaced] =
    command === undefined ? (["url", processOnlyOptions] as const) : (["command", addressOnlyOptions] as const);
  const option = misplaced.find((each) => options[each] !== undefined);
  if (option === undefined) return;
  throw invalidOption({
    where: owner,
    option,
    expected: `unset for a server with a ${target}`,
    got: options[option],
    fix: `Remove ${option}: it is only for a server with a ${target === "url" ? "command" : "url"}`,
  });
}

/** Extra milliseconds of an HTTP request for its first response byte, beyond the timeout of a call. */
const answerGraceMs = 30_000;

/** Creates the settings of the conversion of tool definitions. */
export function createToolSettings(options: AllMcpOptions): ToolSettings {
  const { name, prefix = false, only, trustHints = false, tools = {}, timeoutMs = defaults.timeoutMs } = options;
  const { effect, safety, retry, graceMs, onError, limits, execution } = options;
  return {
    server: name,
    prefix: prefix === true ? name : prefix === false ? "" : prefix,
    only,
    trustHints,
    common: { effect, safety, retry, graceMs, onError, limits, execution, timeoutMs },
    byName: tools,
  };
}

/** Creates the options of each session of a server. */
export function createSessionOptions(options: AllMcpOptions, world: World, onToolsChanged: () => void): SessionOptions {
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
  options: AllMcpOptions,
  world: World,
  timeoutMs: () => number,
): SessionOptions["transport"] {
  const { name, command, url, inheritEnv = false } = options;
  const location = describeOwner(options);
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
    throw invalidOption({
      where: location,
      option: "url",
      expected: "an absolute http or https URL",
      got: String(url),
    });
  return {
    kind: "http",
    url: address,
    headers: expandAll(options.headers),
    allowPrivate: options.allowPrivate ?? false,
    authProvider: options.authProvider,
    timeoutMs,
  };
}
