/**
 * MCP session: a single connection to a server, from the handshake and the list of tools to the end of the connection.
 */
import {
  type CallToolResult,
  Client,
  type ClientCapabilities,
  type CreateMessageResult,
  type ElicitResult,
  type InputRequests,
  type InputResponses,
  isInputRequiredResult,
  type ListRootsResult,
  type Tool as McpToolDefinition,
  type Progress,
} from "@modelcontextprotocol/client";
import { StatewrightError, type Usage, type World } from "@statewright/core";
import { escapeControlChars, packageVersion } from "@statewright/core/adapter";
import { isHostError } from "@statewright/host";
import { truncateText } from "./call-error.ts";
import { type AnsweredElicitation, type McpElicitation, toElicitation, toElicitResult } from "./elicitation.ts";
import { describeRefusal, formatAddress, isUnauthorized, type Refusal } from "./http-refusal.ts";
import { createHttpTransport, type HttpTransport } from "./http-transport.ts";
import { type ListedTools, parseListedTool, toolPageSchema } from "./listed-tools.ts";
import type { RefusedMcpTool } from "./mcp-tools.ts";
import { createPins, type McpPins } from "./pins.ts";
import { type McpSampling, sample } from "./sampling.ts";
import { createStdioTransport, type ServerTransport } from "./stdio-transport.ts";

/** Options of a session. */
export interface SessionOptions {
  readonly name: string;
  readonly transport:
    | ({ readonly kind: "stdio" } & Omit<Parameters<typeof createStdioTransport>[0], "world" | "maxMessageLength">)
    | ({ readonly kind: "http" } & Omit<Parameters<typeof createHttpTransport>[0], "world" | "maxMessageLength">);
  /** Returns the authorization code or callback parameters after a login by a person. */
  readonly authorizationCode: (() => Promise<string | URLSearchParams>) | undefined;
  readonly protocol: "initialize" | "auto";
  readonly canElicit: boolean;
  readonly sampling: McpSampling | undefined;
  readonly roots: readonly { readonly uri: string; readonly name: string }[] | undefined;
  readonly startTimeoutMs: number;
  readonly maxMessageLength: number;
  readonly world: World;
  /** Called on a tool list change notification of the server. */
  readonly onToolsChanged: () => void;
}

/** Tool call to an MCP server. */
export interface McpCall {
  readonly definition: McpToolDefinition;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  /** Answers of people to elicitations; undefined if elicitation is not enabled. */
  readonly answers?: readonly AnsweredElicitation[] | undefined;
  /** Round to continue, for a call answered with elicitations. */
  readonly round?: McpRound | undefined;
}

/** State of a call between elicitations and answers, returned to the server with the answers. */
export interface McpRound {
  readonly requestState?: string | undefined;
  /** Elicitation keys by request id of the server. */
  readonly ids: Readonly<Record<string, string>>;
  /** Responses already given without a person. */
  readonly responses: InputResponses;
}

/** Outcome of a call: a result, or elicitations. */
export type McpOutcome =
  | { readonly kind: "done"; readonly result: CallToolResult; readonly usage: Usage | undefined }
  | { readonly kind: "asks"; readonly elicitations: readonly McpElicitation[]; readonly round: McpRound | undefined };

/** Open session. */
export interface McpSession {
  readonly client: Client;
  readonly pid: number | undefined;
  readonly definitions: readonly McpToolDefinition[];
  /** Listed entries that are not tool definitions, with the reason. */
  readonly malformed: readonly RefusedMcpTool[];
  /** Pins of the current definitions. */
  readonly pins: McpPins;
  /** Returns the end reason; undefined while the session is open. */
  readonly getEndReason: () => string | undefined;
  readonly isAlive: () => boolean;
  /** Calls a tool. Rejects with {@link notSent} if the session ended before the call was sent. */
  readonly call: (call: McpCall) => Promise<McpOutcome>;
  /** Runs a request with the client and keeps the process alive until its end. */
  readonly runRequest: <Value>(work: (client: Client) => Promise<Value>) => Promise<Value>;
  /** Lists the tools again. */
  readonly refreshTools: () => Promise<void>;
  readonly close: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Error value for a session that ended before a call was sent: the call needs a new session. */
export const notSent: unique symbol = Symbol("not sent");

/** Timeout passed to the SDK, in effect unlimited: timeouts come from the signals of calls. */
export const unlimitedMs: number = 2 ** 31 - 1;

/** Maximum pages and entries of a list. */
const maxPages = 64;
const maxEntries = 2_000;

/** Maximum length of a list, in characters of JSON. */
const maxListLength = 2 ** 23;

/** Maximum requests of a server back to the client within a single call. */
const maxRounds = 16;

/** Opens a session. Throws `mcp_failed`, after stopping all transports. */
export async function openSession(options: SessionOptions): Promise<McpSession> {
  const { world, startTimeoutMs } = options;
  const stop = new AbortController();
  let stopTimer = (): void => undefined;
  const startTimer = (): void => {
    stopTimer = world.schedule.after(startTimeoutMs, () =>
      stop.abort(new Error(`the handshake timed out after ${startTimeoutMs} ms`)),
    );
  };
  /** Runs `work` without the start timeout, because a login by a person has no time limit. */
  const runWithoutTimeout = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    stopTimer();
    const value = await work();
    startTimer();
    return value;
  };
  startTimer();
  const transports: ServerTransport[] = [];
  try {
    const { client, transport, calls } = await rejectOnAbort(
      stop.signal,
      connectClient(options, stop.signal, transports, runWithoutTimeout),
    );
    const session = await rejectOnAbort(stop.signal, createSession(options, client, transport, calls));
    stopTimer();
    return session;
  } catch (cause) {
    stopTimer();
    // The end reason of the process is more precise than the error of a closed pipe.
    const endReason = options.transport.kind === "stdio" ? transports.at(-1)?.getEndReason() : undefined;
    await Promise.all(transports.map((transport) => transport.stop()));
    throw createConnectError(options, stop.signal.aborted ? stop.signal.reason : cause, endReason);
  }
}

interface ConnectedClient {
  readonly client: Client;
  readonly transport: ServerTransport;
  readonly calls: ActiveCalls;
}

/** Connects the client, with a login by a person if required. */
async function connectClient(
  options: SessionOptions,
  signal: AbortSignal,
  transports: ServerTransport[],
  runWithoutTimeout: <Value>(work: () => Promise<Value>) => Promise<Value>,
): Promise<ConnectedClient> {
  for (let isLoggedIn = false; ; isLoggedIn = true) {
    const transport = createTransport(options);
    transports.push(transport);
    const calls: ActiveCalls = { active: new Set(), samplingCount: 0 };
    const client = createClient(options, calls);
    try {
      await client.connect(transport, { signal, timeout: unlimitedMs });
      return { client, transport, calls };
    } catch (error) {
      const { authorizationCode } = options;
      if (isLoggedIn || authorizationCode === undefined || !isUnauthorized(error) || !("finishAuth" in transport))
        throw error;
      await (transport as HttpTransport).finishAuth(await runWithoutTimeout(authorizationCode));
      await transport.stop();
    }
  }
}

function createTransport({ transport, maxMessageLength, world }: SessionOptions): ServerTransport {
  const shared = { maxMessageLength, world };
  return transport.kind === "stdio"
    ? createStdioTransport({ ...transport, ...shared })
    : createHttpTransport({ ...transport, ...shared });
}

/** Running calls, for requests of the server to the client. */
interface ActiveCalls {
  readonly active: Set<ActiveCall>;
  samplingCount: number;
}

interface ActiveCall {
  readonly answers: readonly AnsweredElicitation[] | undefined;
  /** Number of elicitations by key in this call. */
  readonly seenCounts: Map<string, number>;
  readonly onElicitation: (elicitation: McpElicitation) => void;
  usage: Usage | undefined;
}

function createClient(options: SessionOptions, calls: ActiveCalls): Client {
  const { name, world, canElicit, sampling, roots, protocol, onToolsChanged } = options;
  const capabilities: ClientCapabilities = {
    ...(canElicit ? { elicitation: { form: {} } } : {}),
    ...(sampling === undefined ? {} : { sampling: {} }),
    ...(roots === undefined ? {} : { roots: {} }),
  };
  const client = new Client(
    { name: "statewright", version: packageVersion },
    {
      capabilities,
      // Skip the SDK's validation: results are validated by the accepted definition, with a validator of linear
      // patterns.
      jsonSchemaValidator: {
        getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
      inputRequired: { autoFulfill: false },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => onToolsChanged() } },
      ...(protocol === "auto" ? { versionNegotiation: { mode: "auto", probe: { timeoutMs: 5_000 } } } : {}),
    },
  );
  client.onerror = (error) =>
    world.log("debug", escapeControlChars(`MCP server "${name}": ${truncateText(error.message)}`));
  client.setNotificationHandler("notifications/message", ({ params }) => {
    const { level, logger, data } = params;
    world.log(
      toLogLevel(level),
      escapeControlChars(`log of MCP server "${name}": ${truncateText(formatLogData(data))}`),
      { logger },
    );
  });
  if (canElicit)
    client.setRequestHandler("elicitation/create", (request): ElicitResult => {
      const [call] = calls.active;
      if (call?.answers === undefined || calls.active.size !== 1) return { action: "decline" };
      return answerElicitation(call, toElicitation(request));
    });
  if (sampling !== undefined)
    client.setRequestHandler("sampling/createMessage", (request, { mcpReq }) =>
      runSampling(sampling, calls, request, mcpReq.signal),
    );
  if (roots !== undefined) client.setRequestHandler("roots/list", (): ListRootsResult => createRootsResult(roots));
  return client;
}

function createRootsResult(roots: NonNullable<SessionOptions["roots"]>): ListRootsResult {
  return { roots: roots.map((root) => ({ ...root })) };
}

/**
 * Returns the stored answer, in the order of equal elicitations. A new elicitation ends the call; the call is
 * repeated with the answer.
 */
function answerElicitation(call: ActiveCall, elicitation: McpElicitation): ElicitResult {
  const seen = call.seenCounts.get(elicitation.key) ?? 0;
  call.seenCounts.set(elicitation.key, seen + 1);
  const stored = call.answers?.filter(({ key }) => key === elicitation.key)[seen];
  if (stored !== undefined) return toElicitResult(stored.answer);
  call.onElicitation(elicitation);
  throw new Error("No answer yet. The call is cancelled, and repeated after an answer.");
}

async function runSampling(
  sampling: McpSampling,
  calls: ActiveCalls,
  request: Parameters<typeof sample>[1],
  signal: AbortSignal,
): Promise<CreateMessageResult> {
  if (calls.active.size === 0) throw new Error("Sampling is allowed during tool calls only.");
  if (calls.samplingCount >= (sampling.maxRequests ?? 20))
    throw new Error("The limit of sampling requests is reached.");
  calls.samplingCount += 1;
  const { result, usage } = await sample(sampling, request, signal);
  const [call] = calls.active;
  if (call !== undefined && calls.active.size === 1 && usage !== undefined) call.usage = addUsage(call.usage, usage);
  return result;
}

function addUsage(a: Usage | undefined, b: Usage): Usage {
  if (a === undefined) return b;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof Usage>;
  return Object.fromEntries([...keys].map((key) => [key, (a[key] ?? 0) + (b[key] ?? 0)]));
}

async function createSession(
  options: SessionOptions,
  client: Client,
  transport: ServerTransport,
  calls: ActiveCalls,
): Promise<McpSession> {
  let pendingRequests = 0;
  transport.holdOpen(false);
  const runRequest = async <Value>(work: (client: Client) => Promise<Value>): Promise<Value> => {
    pendingRequests += 1;
    transport.holdOpen(true);
    try {
      return await work(client);
    } finally {
      pendingRequests -= 1;
      transport.holdOpen(pendingRequests > 0);
    }
  };
  /** Run calls one after the other: an elicitation can be assigned to its call only with a single running call. */
  let lastCall: Promise<unknown> = Promise.resolve();
  const runInOrder = async <Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Value> => {
    const previous = lastCall;
    let resolveTurn: () => void = () => undefined;
    lastCall = new Promise<void>((resolve) => {
      resolveTurn = resolve;
    }).then(() => previous);
    try {
      await rejectOnAbort(signal, previous);
      return await work();
    } finally {
      resolveTurn();
    }
  };
  let { definitions, malformed } = await runRequest(listTools);
  let pins = createPins(definitions);
  return {
    client,
    get pid() {
      return transport.pid;
    },
    get definitions() {
      return definitions;
    },
    get malformed() {
      return malformed;
    },
    get pins() {
      return pins;
    },
    getEndReason: () => transport.getEndReason(),
    isAlive: () => transport.getEndReason() === undefined,
    runRequest,
    call: (request) => {
      const sendCall = async () => {
        if (transport.getEndReason() !== undefined) throw notSent;
        return runRequest(() => callTool(options, client, calls, request));
      };
      const isAmbiguous = options.canElicit && client.getProtocolEra() !== "modern";
      return isAmbiguous ? runInOrder(request.signal, sendCall) : sendCall();
    },
    refreshTools: async () => {
      ({ definitions, malformed } = await runRequest(listTools));
      pins = createPins(definitions);
    },
    close: async () => {
      await client.close();
      await transport.close();
    },
    stop: () => transport.stop(),
  };
}

async function listTools(client: Client): Promise<ListedTools> {
  if (client.getServerCapabilities()?.tools === undefined) return { definitions: [], malformed: [] };
  let position = 0;
  const entries = await listAllPages("tools", async (params) => {
    const request = { method: "tools/list", params };
    const { tools, nextCursor } = await client.request(request, toolPageSchema, { timeout: unlimitedMs });
    return { entries: tools.map((tool) => parseListedTool(tool, ++position)), nextCursor };
  });
  return {
    definitions: entries.flatMap((entry) => ("definition" in entry ? [entry.definition] : [])),
    malformed: entries.flatMap((entry) => ("malformed" in entry ? [entry.malformed] : [])),
  };
}

/** Lists all pages of a list, within the limits. */
export async function listAllPages<Entry>(
  listName: string,
  loadPage: (params: { cursor?: string }) => Promise<{
    readonly entries: readonly Entry[];
    readonly nextCursor: string | undefined;
  }>,
): Promise<readonly Entry[]> {
  const collected: Entry[] = [];
  let size = 0;
  let cursor: string | undefined;
  for (let count = 0; count < maxPages; count++) {
    const { entries, nextCursor } = await loadPage(cursor === undefined ? {} : { cursor });
    collected.push(...entries);
    size += JSON.stringify(entries).length;
    if (size > maxListLength) throw new Error(`the list of ${listName} exceeds ${maxListLength} characters`);
    if (collected.length > maxEntries) throw new Error(`the list of ${listName} exceeds ${maxEntries} entries`);
    if (nextCursor === undefined) return collected;
    if (nextCursor === cursor) throw new Error(`the list of ${listName} repeats the same cursor`);
    cursor = nextCursor;
  }
  throw new Error(`the list of ${listName} exceeds ${maxPages} pages`);
}

async function callTool(
  options: SessionOptions,
  client: Client,
  calls: ActiveCalls,
  { definition, args, signal, onProgress, answers, round }: McpCall,
): Promise<McpOutcome> {
  const stop = new AbortController();
  // Do not reveal the abort reason to the server.
  const onAbort = (): void => stop.abort("The call was aborted.");
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const elicitations: McpElicitation[] = [];
  const call: ActiveCall = {
    answers,
    seenCounts: new Map(),
    onElicitation: (elicitation) => {
      elicitations.push(elicitation);
      stop.abort("A person must answer first.");
    },
    usage: undefined,
  };
  calls.active.add(call);
  try {
    let continuation: ContinuationParams = createContinuation(answers, round);
    for (let count = 0; count < maxRounds; count++) {
      const response: unknown = await client.callTool(
        { name: definition.name, arguments: { ...args }, ...continuation },
        {
          signal: stop.signal,
          timeout: unlimitedMs,
          allowInputRequired: true,
          toolDefinition: { ...definition, outputSchema: undefined },
          ...(onProgress === undefined ? {} : { onprogress: onProgress }),
        },
      );
      if (!isInputRequiredResult(response))
        return { kind: "done", result: response as CallToolResult, usage: call.usage };
      const { inputRequests = {}, requestState } = response;
      const handled = await answerRequests(options, calls, inputRequests, signal);
      if (handled.elicitations.length > 0) {
        if (answers === undefined) throw new Error("the server requested an elicitation, which is not enabled");
        const { elicitations: open, ids, responses } = handled;
        return { kind: "asks", elicitations: open, round: { ids, responses, requestState } };
      }
      continuation = { inputResponses: handled.responses, ...(requestState === undefined ? {} : { requestState }) };
    }
    throw new Error(`the server sent more than ${maxRounds} rounds of requests in one call`);
  } catch (error) {
    if (elicitations.length > 0 && !signal.aborted) return { kind: "asks", elicitations, round: undefined };
    throw error;
  } finally {
    calls.active.delete(call);
    signal.removeEventListener("abort", onAbort);
  }
}

interface ContinuationParams {
  readonly inputResponses?: InputResponses;
  readonly requestState?: string;
}

/** Creates the parameters to continue a call with answers. */
function createContinuation(
  answers: readonly AnsweredElicitation[] = [],
  round: McpRound | undefined,
): ContinuationParams {
  if (round === undefined) return {};
  const { ids, requestState } = round;
  const personResponses = Object.entries(ids).flatMap(([id, key]) => {
    const stored = answers.findLast((each) => each.key === key);
    return stored === undefined ? [] : [[id, toElicitResult(stored.answer)] as const];
  });
  return {
    inputResponses: { ...round.responses, ...Object.fromEntries(personResponses) },
    ...(requestState === undefined ? {} : { requestState }),
  };
}

/** Answers the requests of a server that need no person. Returns the elicitations unanswered. */
async function answerRequests(
  { sampling, roots }: SessionOptions,
  calls: ActiveCalls,
  requests: InputRequests,
  signal: AbortSignal,
): Promise<{
  readonly responses: InputResponses;
  readonly elicitations: readonly McpElicitation[];
  readonly ids: Readonly<Record<string, string>>;
}> {
  const responses: InputResponses = {};
  const elicitations: McpElicitation[] = [];
  const ids: Record<string, string> = {};
  for (const [id, request] of Object.entries(requests)) {
    if (request.method === "elicitation/create") {
      const elicitation = toElicitation(request);
      elicitations.push(elicitation);
      ids[id] = elicitation.key;
    } else if (request.method === "roots/list" && roots !== undefined) responses[id] = createRootsResult(roots);
    else if (request.method === "sampling/createMessage" && sampling !== undefined)
      responses[id] = await runSampling(sampling, calls, request, signal);
    else throw new Error(`the server requested ${request.method}, which is not enabled`);
  }
  return { responses, elicitations, ids };
}

/** Awaits a promise; rejects if the signal aborts first. */
export function rejectOnAbort<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function toLogLevel(level: string): "debug" | "info" | "warn" | "error" {
  if (level === "debug") return "debug";
  if (level === "info" || level === "notice") return "info";
  return level === "warning" ? "warn" : "error";
}

function formatLogData(data: unknown): string {
  return typeof data === "string" ? data : JSON.stringify(data);
}

function createConnectError(options: SessionOptions, cause: unknown, endReason: string | undefined): StatewrightError {
  const { name, transport } = options;
  const refusal = findRefusal(options, cause);
  if (refusal !== undefined) {
    const { what, next } = refusal;
    return new StatewrightError("mcp_failed", { what, next, cause });
  }
  const reason = endReason ?? (cause instanceof Error ? cause.message : String(cause));
  const location = transport.kind === "http" ? ` at ${formatAddress(transport.url)}` : "";
  return new StatewrightError("mcp_failed", {
    what: `MCP server "${name}"${location} is not reachable: ${truncateText(reason).replace(/\.$/, "")}`,
    next: suggestFix(transport.kind, cause),
    cause,
  });
}

function suggestFix(kind: "stdio" | "http", cause: unknown): string {
  if (isHostError(cause))
    return cause.code === "denied"
      ? "Use a public address, or add the private address to allowPrivate"
      : `Check that the server is running, and check its ${kind === "stdio" ? "command" : "url"}`;
  const checkHint =
    kind === "stdio" ? "Start the server by hand and check its output" : "Check the url and the log of the server";
  return `${checkHint}; a server of a later protocol revision needs protocol: "auto"`;
}

/** Describes the HTTP refusal of a server at a URL; undefined for other errors and for a process. */
export function findRefusal(
  { name, transport, authorizationCode }: SessionOptions,
  error: unknown,
): Refusal | undefined {
  if (transport.kind !== "http") return undefined;
  return describeRefusal(error, { ...transport, server: name, awaitsLogin: authorizationCode !== undefined });
}
