/** One life of a connection to a server: it is opened, lists its tools, answers calls, and ends. */
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
import { printable, StatewrightError, type Usage, type World } from "@statewright/core";
import { isHostError } from "@statewright/host";
import { cutShort } from "./call-error.ts";
import { type AnsweredQuestion, type McpQuestion, questionOf, resultOfAnswer } from "./elicitation.ts";
import { addressOf, httpRefusal, isUnauthorized, type Refusal } from "./http-refusal.ts";
import { type HttpTransport, httpTransport } from "./http-transport.ts";
import { type McpPins, pinsOf } from "./pins.ts";
import { type McpSampling, sample } from "./sampling.ts";
import { type OwnedTransport, stdioTransport } from "./stdio-transport.ts";

/** What opens a connection. */
export interface SessionStart {
  readonly name: string;
  readonly transport:
    | ({ readonly kind: "stdio" } & Omit<Parameters<typeof stdioTransport>[0], "world" | "maxMessageLength">)
    | ({ readonly kind: "http" } & Omit<Parameters<typeof httpTransport>[0], "world" | "maxMessageLength">);
  /** A person logs in, where the server wants that: what came back in the address. */
  readonly authorizationCode: (() => Promise<string | URLSearchParams>) | undefined;
  readonly protocol: "initialize" | "auto";
  readonly asks: boolean;
  readonly sampling: McpSampling | undefined;
  readonly roots: readonly { readonly uri: string; readonly name: string }[] | undefined;
  readonly startTimeoutMs: number;
  readonly maxMessageLength: number;
  readonly world: World;
  /** The server says that its tools are others now. */
  readonly onToolsChanged: () => void;
}

/** A call on its way to the server. */
export interface McpCall {
  readonly definition: McpToolDefinition;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  /** What people have answered; absent where nobody can be asked. */
  readonly answered?: readonly AnsweredQuestion[] | undefined;
  /** Where a call goes on that was answered by questions. */
  readonly round?: McpRound | undefined;
}

/** What a server gave with its questions, and wants back with the answers. */
export interface McpRound {
  readonly requestState?: string | undefined;
  /** Keys of its questions, by its names of them. */
  readonly ids: Readonly<Record<string, string>>;
  /** What it was answered already without a person. */
  readonly responses: InputResponses;
}

/** How a call ended for now. */
export type McpOutcome =
  | { readonly kind: "done"; readonly result: CallToolResult; readonly usage: Usage | undefined }
  | { readonly kind: "asks"; readonly questions: readonly McpQuestion[]; readonly round: McpRound | undefined };

/** A connection at work. */
export interface McpSession {
  readonly client: Client;
  readonly pid: number | undefined;
  readonly definitions: readonly McpToolDefinition[];
  /** Of what the server says now. */
  readonly pins: McpPins;
  /** How it ended; undefined while it has not. */
  readonly ended: () => string | undefined;
  readonly isAlive: () => boolean;
  /** Rejects with {@link notSent} where it has ended before it was this call's turn. */
  readonly call: (call: McpCall) => Promise<McpOutcome>;
  /** Do something with the client; our process stays alive meanwhile. */
  readonly ask: <Value>(work: (client: Client) => Promise<Value>) => Promise<Value>;
  /** List the tools anew. */
  readonly refresh: () => Promise<void>;
  readonly close: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** The connection has ended, and nothing of the call was sent: another one is needed. */
export const notSent: unique symbol = Symbol("not sent");

/** The SDK's own limit of time: ours come from the signals of calls. */
export const unlimitedMs: number = 2 ** 31 - 1;

/** How many pages and entries a list may have. */
const mostPages = 64;
const mostEntries = 2_000;

/** How much a list may hold, in characters of JSON. */
const mostListed = 2 ** 23;

/** How often a server may ask back within one call. */
const mostRounds = 16;

/** Open a connection. Throws `mcp_failed`, and nothing of it is left then. */
export async function openSession(start: SessionStart): Promise<McpSession> {
  const { world, startTimeoutMs } = start;
  const stop = new AbortController();
  let stopTimer = (): void => undefined;
  const startTimer = (): void => {
    stopTimer = world.schedule.after(startTimeoutMs, () =>
      stop.abort(new Error(`it did not greet within ${startTimeoutMs} ms`)),
    );
  };
  /** A person takes the time that it takes. */
  const person = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    stopTimer();
    const value = await work();
    startTimer();
    return value;
  };
  startTimer();
  const opened: OwnedTransport[] = [];
  try {
    const { client, transport, calls } = await unlessAborted(stop.signal, greeted(start, stop.signal, opened, person));
    const session = await unlessAborted(stop.signal, lifeOf(start, client, transport, calls));
    stopTimer();
    return session;
  } catch (cause) {
    stopTimer();
    // How a process ended says more than that its pipe was closed.
    const how = start.transport.kind === "stdio" ? opened.at(-1)?.ended() : undefined;
    await Promise.all(opened.map((transport) => transport.stop()));
    throw failed(start, stop.signal.aborted ? stop.signal.reason : cause, how);
  }
}

interface Greeted {
  readonly client: Client;
  readonly transport: OwnedTransport;
  readonly calls: CallsAtWork;
}

/** Connect, and log a person in where the server wants that. */
async function greeted(
  start: SessionStart,
  signal: AbortSignal,
  opened: OwnedTransport[],
  person: <Value>(work: () => Promise<Value>) => Promise<Value>,
): Promise<Greeted> {
  for (let isLoggedIn = false; ; isLoggedIn = true) {
    const transport = transportOf(start);
    opened.push(transport);
    const calls: CallsAtWork = { open: new Set(), sampled: 0 };
    const client = clientOf(start, calls);
    try {
      await client.connect(transport, { signal, timeout: unlimitedMs });
      return { client, transport, calls };
    } catch (error) {
      const { authorizationCode } = start;
      if (isLoggedIn || authorizationCode === undefined || !isUnauthorized(error) || !("finishAuth" in transport))
        throw error;
      await (transport as HttpTransport).finishAuth(await person(authorizationCode));
      await transport.stop();
    }
  }
}

function transportOf({ transport, maxMessageLength, world }: SessionStart): OwnedTransport {
  const shared = { maxMessageLength, world };
  return transport.kind === "stdio"
    ? stdioTransport({ ...transport, ...shared })
    : httpTransport({ ...transport, ...shared });
}

/** What the server's requests back to us are about. */
interface CallsAtWork {
  readonly open: Set<CallAtWork>;
  sampled: number;
}

interface CallAtWork {
  readonly answered: readonly AnsweredQuestion[] | undefined;
  /** How often a question was asked in this call. */
  readonly seen: Map<string, number>;
  readonly asks: (question: McpQuestion) => void;
  usage: Usage | undefined;
}

function clientOf(start: SessionStart, calls: CallsAtWork): Client {
  const { name, world, asks, sampling, roots, protocol, onToolsChanged } = start;
  const capabilities: ClientCapabilities = {
    ...(asks ? { elicitation: { form: {} } } : {}),
    ...(sampling === undefined ? {} : { sampling: {} }),
    ...(roots === undefined ? {} : { roots: {} }),
  };
  const client = new Client(
    { name: "statewright", version: "0.1.0" },
    {
      capabilities,
      // Results are checked by the definition that was taken, and by a validator that patterns cannot hold up.
      jsonSchemaValidator: {
        getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
      inputRequired: { autoFulfill: false },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => onToolsChanged() } },
      ...(protocol === "auto" ? { versionNegotiation: { mode: "auto", probe: { timeoutMs: 5_000 } } } : {}),
    },
  );
  client.onerror = (error) => world.log("debug", printable(`the MCP server "${name}": ${cutShort(error.message)}`));
  client.setNotificationHandler("notifications/message", ({ params }) => {
    const { level, logger, data } = params;
    world.log(levelOf(level), printable(`the MCP server "${name}" says: ${cutShort(textOfLog(data))}`), { logger });
  });
  if (asks)
    client.setRequestHandler("elicitation/create", (request): ElicitResult => {
      const [call] = calls.open;
      if (call?.answered === undefined || calls.open.size !== 1) return { action: "decline" };
      return answerOrAsk(call, questionOf(request));
    });
  if (sampling !== undefined)
    client.setRequestHandler("sampling/createMessage", (request, { mcpReq }) =>
      sampled(sampling, calls, request, mcpReq.signal),
    );
  if (roots !== undefined) client.setRequestHandler("roots/list", (): ListRootsResult => rootsResult(roots));
  return client;
}

function rootsResult(roots: NonNullable<SessionStart["roots"]>): ListRootsResult {
  return { roots: roots.map((root) => ({ ...root })) };
}

/** What was answered before, in order; a question that is new ends the call, which is made again with the answer. */
function answerOrAsk(call: CallAtWork, question: McpQuestion): ElicitResult {
  const seen = call.seen.get(question.key) ?? 0;
  call.seen.set(question.key, seen + 1);
  const known = call.answered?.filter(({ key }) => key === question.key)[seen];
  if (known !== undefined) return resultOfAnswer(known.answer);
  call.asks(question);
  throw new Error("Nobody has answered yet. The call is cancelled, and made again when somebody has.");
}

async function sampled(
  sampling: McpSampling,
  calls: CallsAtWork,
  request: Parameters<typeof sample>[1],
  signal: AbortSignal,
): Promise<CreateMessageResult> {
  if (calls.open.size === 0) throw new Error("Sampling is allowed in calls only.");
  if (calls.sampled >= (sampling.maxRequests ?? 20)) throw new Error("No more sampling requests are allowed.");
  calls.sampled += 1;
  const { result, usage } = await sample(sampling, request, signal);
  const [only] = calls.open;
  if (only !== undefined && calls.open.size === 1 && usage !== undefined) only.usage = sumOf(only.usage, usage);
  return result;
}

function sumOf(a: Usage | undefined, b: Usage): Usage {
  if (a === undefined) return b;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof Usage>;
  return Object.fromEntries([...keys].map((key) => [key, (a[key] ?? 0) + (b[key] ?? 0)]));
}

async function lifeOf(
  start: SessionStart,
  client: Client,
  transport: OwnedTransport,
  calls: CallsAtWork,
): Promise<McpSession> {
  let inFlight = 0;
  transport.holdOpen(false);
  const ask = async <Value>(work: (client: Client) => Promise<Value>): Promise<Value> => {
    inFlight += 1;
    transport.holdOpen(true);
    try {
      return await work(client);
    } finally {
      inFlight -= 1;
      transport.holdOpen(inFlight > 0);
    }
  };
  /** Whose a question is can be told only where one call is at work. */
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = async <Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Value> => {
    const before = turn;
    let over: () => void = () => undefined;
    turn = new Promise<void>((resolve) => {
      over = resolve;
    }).then(() => before);
    try {
      await unlessAborted(signal, before);
      return await work();
    } finally {
      over();
    }
  };
  let definitions = await ask(listTools);
  let pins = pinsOf(definitions);
  return {
    client,
    get pid() {
      return transport.pid;
    },
    get definitions() {
      return definitions;
    },
    get pins() {
      return pins;
    },
    ended: transport.ended,
    isAlive: () => transport.ended() === undefined,
    ask,
    call: (given) => {
      const make = async () => {
        if (transport.ended() !== undefined) throw notSent;
        return ask(() => callTool(start, client, calls, given));
      };
      const isAmbiguous = start.asks && client.getProtocolEra() !== "modern";
      return isAmbiguous ? inTurn(given.signal, make) : make();
    },
    refresh: async () => {
      definitions = await ask(listTools);
      pins = pinsOf(definitions);
    },
    close: async () => {
      await client.close();
      await transport.close();
    },
    stop: () => transport.stop(),
  };
}

async function listTools(client: Client): Promise<readonly McpToolDefinition[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  return allPages("tools", async (params) => {
    const { tools, nextCursor } = await client.request({ method: "tools/list", params }, { timeout: unlimitedMs });
    return { entries: tools, nextCursor };
  });
}

/** All pages of a list, as far as a list may go. */
export async function allPages<Entry>(
  what: string,
  page: (params: { cursor?: string }) => Promise<{
    readonly entries: readonly Entry[];
    readonly nextCursor: string | undefined;
  }>,
): Promise<readonly Entry[]> {
  const all: Entry[] = [];
  let size = 0;
  let cursor: string | undefined;
  for (let count = 0; count < mostPages; count++) {
    const { entries, nextCursor } = await page(cursor === undefined ? {} : { cursor });
    all.push(...entries);
    size += JSON.stringify(entries).length;
    if (size > mostListed) throw new Error(`its list of ${what} has more than ${mostListed} characters`);
    if (all.length > mostEntries) throw new Error(`its list of ${what} has more than ${mostEntries} entries`);
    if (nextCursor === undefined) return all;
    if (nextCursor === cursor) throw new Error(`its list of ${what} goes in a circle`);
    cursor = nextCursor;
  }
  throw new Error(`its list of ${what} has more than ${mostPages} pages`);
}

async function callTool(
  start: SessionStart,
  client: Client,
  calls: CallsAtWork,
  { definition, args, signal, onProgress, answered, round }: McpCall,
): Promise<McpOutcome> {
  const stop = new AbortController();
  // Why a call is given up is not the server's business.
  const onAbort = (): void => stop.abort("The call was given up.");
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const questions: McpQuestion[] = [];
  const call: CallAtWork = {
    answered,
    seen: new Map(),
    asks: (question) => {
      questions.push(question);
      stop.abort("A person has to answer first.");
    },
    usage: undefined,
  };
  calls.open.add(call);
  try {
    let back: Back = answersBack(answered, round);
    for (let count = 0; count < mostRounds; count++) {
      const given: unknown = await client.callTool(
        { name: definition.name, arguments: { ...args }, ...back },
        {
          signal: stop.signal,
          timeout: unlimitedMs,
          allowInputRequired: true,
          toolDefinition: { ...definition, outputSchema: undefined },
          ...(onProgress === undefined ? {} : { onprogress: onProgress }),
        },
      );
      if (!isInputRequiredResult(given)) return { kind: "done", result: given as CallToolResult, usage: call.usage };
      const { inputRequests = {}, requestState } = given;
      const next = await answersTo(start, calls, inputRequests, signal);
      if (next.questions.length > 0) {
        if (answered === undefined) throw new Error("it asks a person, and nobody can be asked");
        const { questions: open, ids, responses } = next;
        return { kind: "asks", questions: open, round: { ids, responses, requestState } };
      }
      back = { inputResponses: next.responses, ...(requestState === undefined ? {} : { requestState }) };
    }
    throw new Error(`it asked back more than ${mostRounds} times in one call`);
  } catch (error) {
    if (questions.length > 0 && !signal.aborted) return { kind: "asks", questions, round: undefined };
    throw error;
  } finally {
    calls.open.delete(call);
    signal.removeEventListener("abort", onAbort);
  }
}

interface Back {
  readonly inputResponses?: InputResponses;
  readonly requestState?: string;
}

/** What goes back to a server that has answered a call with questions. */
function answersBack(answered: readonly AnsweredQuestion[] = [], round: McpRound | undefined): Back {
  if (round === undefined) return {};
  const { ids, requestState } = round;
  const people = Object.entries(ids).flatMap(([id, key]) => {
    const known = answered.findLast((each) => each.key === key);
    return known === undefined ? [] : [[id, resultOfAnswer(known.answer)] as const];
  });
  return {
    inputResponses: { ...round.responses, ...Object.fromEntries(people) },
    ...(requestState === undefined ? {} : { requestState }),
  };
}

/** What a server asks back with, answered as far as no person is needed. */
async function answersTo(
  { sampling, roots }: SessionStart,
  calls: CallsAtWork,
  requests: InputRequests,
  signal: AbortSignal,
): Promise<{
  readonly responses: InputResponses;
  readonly questions: readonly McpQuestion[];
  readonly ids: Readonly<Record<string, string>>;
}> {
  const responses: InputResponses = {};
  const questions: McpQuestion[] = [];
  const ids: Record<string, string> = {};
  for (const [id, request] of Object.entries(requests)) {
    if (request.method === "elicitation/create") {
      const question = questionOf(request);
      questions.push(question);
      ids[id] = question.key;
    } else if (request.method === "roots/list" && roots !== undefined) responses[id] = rootsResult(roots);
    else if (request.method === "sampling/createMessage" && sampling !== undefined)
      responses[id] = await sampled(sampling, calls, request, signal);
    else throw new Error(`it asks for ${request.method}, which it is not given`);
  }
  return { responses, questions, ids };
}

/** What a promise gives, unless the signal fires before. */
export function unlessAborted<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function levelOf(level: string): "debug" | "info" | "warn" | "error" {
  if (level === "debug") return "debug";
  if (level === "info" || level === "notice") return "info";
  return level === "warning" ? "warn" : "error";
}

function textOfLog(data: unknown): string {
  return typeof data === "string" ? data : JSON.stringify(data);
}

function failed(start: SessionStart, cause: unknown, ended: string | undefined): StatewrightError {
  const { name, transport } = start;
  const refusal = refusalOf(start, cause);
  if (refusal !== undefined) {
    const { what, next } = refusal;
    return new StatewrightError("mcp_failed", { what, next, cause });
  }
  const why = ended ?? (cause instanceof Error ? cause.message : String(cause));
  const at = transport.kind === "http" ? ` at ${addressOf(transport.url)}` : "";
  return new StatewrightError("mcp_failed", {
    what: `the MCP server "${name}"${at} could not be reached: ${cutShort(why).replace(/\.$/, "")}`,
    next: nextAfter(transport.kind, cause),
    cause,
  });
}

function nextAfter(kind: "stdio" | "http", cause: unknown): string {
  if (isHostError(cause))
    return cause.code === "denied"
      ? "Give a public address, or name the private one in allowPrivate"
      : `See whether it is started, and look at its ${kind === "stdio" ? "command" : "url"}`;
  const look = kind === "stdio" ? "Start it by hand, and look at what it writes" : "Look at its url and at its log";
  return `${look}; a server of a later revision needs protocol: "auto"`;
}

/** What a server at an address says by its status; undefined for anything else, and for a process. */
export function refusalOf({ name, transport, authorizationCode }: SessionStart, error: unknown): Refusal | undefined {
  if (transport.kind !== "http") return undefined;
  return httpRefusal(error, { ...transport, server: name, waitsForPerson: authorizationCode !== undefined });
}
