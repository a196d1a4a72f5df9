/**
 * `requests`: generated requests to each protocol of a server. Each gets a response below 500, nothing is logged as a
 * failure, and no promise is rejected without a handler.
 */
import { type Server, serve } from "@statewright/server";
import { uiStream } from "@statewright/server/ai-sdk";
import { langgraph } from "@statewright/server/langgraph";
import { createChance, type VirtualClock, virtualClock } from "@statewright/testing";
import { engine, longTermStore, memoryStore } from "statewright";
import { createRandomRequest, type FuzzedProtocol, listRoutes, type RandomRequest } from "./random-request.ts";
import { createServedGraphs } from "./served-graphs.ts";

/** Result of a series of sessions. */
export interface RequestsReport {
  readonly requests: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

/** Requests of a session, which has one server and one seed. */
const requestsPerSession = 100;

/** Milliseconds after which a client leaves a request. */
const maxWaitMs = 600_000;

const token = "token-of-the-fuzz-0123456789";

/** Sends `count` requests to a protocol, in sessions of a hundred; each session has its own seed. */
export async function fuzzRequests(protocol: FuzzedProtocol, count: number, from = 0): Promise<RequestsReport> {
  const sums = { requests: 0, statuses: {} as Record<string, number>, violations: [] as string[] };
  for (let seed = from; sums.requests < count; seed++) {
    const violations = await runSession(protocol, seed, (status) => {
      sums.requests += 1;
      sums.statuses[status] = (sums.statuses[status] ?? 0) + 1;
    });
    for (const violation of violations) sums.violations.push(`seed ${seed}: ${protocol}: ${violation}`);
  }
  return sums;
}

/** Server of a session. */
interface Session {
  readonly server: Server;
  readonly clock: VirtualClock;
  /** Failures that the server or the engine has logged. */
  readonly failures: string[];
}

async function runSession(
  protocol: FuzzedProtocol,
  seed: number,
  onStatus: (status: number) => void,
): Promise<readonly string[]> {
  const failures: string[] = [];
  const clock = virtualClock();
  const store = memoryStore();
  const host = engine({ store, graphs: createServedGraphs(), world: clock });
  await host.start();
  const server = serve({
    engine: host,
    access: { tokens: { ann: { token, tenant: "acme", scopes: ["admin"] } } },
    protocols: [langgraph({ longTerm: longTermStore(store) }), uiStream()],
    log: (level, message, details) => {
      if (level === "error") failures.push(`${message}: ${describeFailure(details)}`);
    },
  });
  const onRejection = (error: unknown): void => {
    failures.push(`unhandled rejection: ${describeError(error)}`);
  };
  process.on("unhandledRejection", onRejection);
  try {
    return await sendRequests({ server, clock, failures }, { protocol, seed, onStatus });
  } finally {
    await clock.until(server.close());
    await clock.until(host.stop({ now: true }));
    await store.close();
    process.off("unhandledRejection", onRejection);
  }
}

async function sendRequests(
  session: Session,
  {
    protocol,
    seed,
    onStatus,
  }: { readonly protocol: FuzzedProtocol; readonly seed: number; readonly onStatus: (status: number) => void },
): Promise<readonly string[]> {
  const { server, failures } = session;
  const chance = createChance(seed);
  const routes = listRoutes(protocol, server.routes);
  const document = server.openapi();
  const texts: string[] = [];
  const violations: string[] = [];
  for (const { thread, text } of [
    { thread: "t1", text: "transfer" },
    { thread: "t2", text: "hello" },
  ])
    await send(session, createFirstRequest(thread, text));
  for (let nth = 0; nth < requestsPerSession; nth++) {
    const request = createRandomRequest({ protocol, routes, document, chance, texts });
    const { status, text } = await send(session, request);
    onStatus(status);
    keepTexts(texts, text);
    const found = failures.splice(0);
    if (status >= 500) found.push(`status ${status}: ${text.slice(0, 200)}`);
    if (Reflect.has({}, "polluted")) found.push("the prototype of Object was changed");
    const shown = `${request.method} ${request.path.slice(0, 200)} ${request.body?.slice(0, 600) ?? ""}`;
    for (const failure of found) violations.push(`request ${nth}: ${failure}\n  ${shown}`);
  }
  return violations;
}

function createFirstRequest(thread: string, text: string): RandomRequest {
  const messages = [{ role: "user", id: "m1", content: [{ type: "text", text }] }];
  const body = JSON.stringify({ graph: "assistant", input: { messages } });
  return { method: "POST", path: `/api/threads/${thread}/runs`, headers: { "content-type": "application/json" }, body };
}

/** Sends a request and reads the beginning of its response; a stream is left after its first parts. */
async function send(
  { server, clock }: Session,
  { method, path, headers, body }: RandomRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  const left = new AbortController();
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: left.signal,
    ...(body === undefined ? {} : { body }),
  });
  // A wait for a run that rests forever has no end: its client leaves.
  const stay = clock.schedule.after(maxWaitMs, () => left.abort());
  const response = await clock.until(server.fetch(request));
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let part = 0; reader !== undefined && (!isStream || part < 4); part++) {
    const { done, value } = await clock.until(reader.read());
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  stay();
  left.abort();
  await clock.until(reader?.cancel() ?? Promise.resolve());
  return { status: response.status, text };
}

/** Keeps ids of a response for later requests. */
function keepTexts(texts: string[], text: string): void {
  for (const [, found] of text.slice(0, 20_000).matchAll(/"([A-Za-z0-9_.:~-]{3,64})"/g))
    if (found !== undefined && /\d/.test(found) && !texts.includes(found)) texts.push(found);
  texts.splice(0, Math.max(0, texts.length - 60));
}

function describeFailure(details: unknown): string {
  const error: unknown = typeof details === "object" && details !== null ? Reflect.get(details, "error") : undefined;
  return error === undefined ? JSON.stringify(details) : describeError(error);
}

function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message).slice(0, 900) : String(error);
}
