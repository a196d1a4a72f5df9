/**
 * Handler of web requests. The order of the checks is the security of the server: probes, host, sizes, origin, route,
 * authentication, rate, role, right, media type; then the handler of the route.
 */
import type { Log, World } from "@statewright/core";
import { createId } from "@statewright/core/adapter";
import type { AccessRequest, Caller } from "../access/caller.ts";
import type { Access } from "../access/server-access.ts";
import type { NativeService } from "../service/native/native-service.ts";
import { checkRequest, getHost, type RequestRules } from "./check-request.ts";
import { limitActs } from "./limit-acts.ts";
import { parsePath, removeBasePath } from "./parse-path.ts";
import { type Problem, RequestProblem } from "./problem.ts";
import { formatProblem } from "./problem-response.ts";
import { createProblem } from "./problem-table.ts";
import { listRateHeaders, type RateLimit } from "./rate-limit.ts";
import { checkJsonBody, readBytes, readJson } from "./read-body.ts";
import { findLocationIds, type RequestLine } from "./request-log.ts";
import type { Protocol, Route, RouteCall, SseLine, StreamOptions } from "./route.ts";
import type { RouteTable } from "./route-table.ts";
import { toProblem } from "./to-problem.ts";

/** Stream that a route answers with, and what its caller may see. */
export interface StreamRequest {
  readonly request: Request;
  readonly caller: Caller;
  readonly protocol: Protocol;
  readonly source: (signal: AbortSignal) => AsyncIterable<SseLine>;
  readonly options: StreamOptions;
  /** Authenticates the request again and asks for the right again. */
  readonly hasRight: () => Promise<boolean>;
}

/** Parts of a handler. */
export interface HandlerParts extends RequestRules {
  readonly access: Access;
  readonly table: RouteTable;
  readonly world: World;
  readonly log: Log;
  readonly basePath: string;
  /** Path of the server for clients, without a slash at its end. */
  readonly publicPath: string;
  readonly role: "serve" | "readOnly";
  readonly exposeErrors: boolean;
  readonly limit: RateLimit | undefined;
  /** Addresses of proxies whose `x-forwarded-*` headers count. */
  readonly trustProxy: ReadonlySet<string>;
  readonly isDraining: () => boolean;
  /** Answers requests outside of all protocols, such as `/livez`. */
  readonly answerHealth: (path: string, method: string) => Promise<Response | undefined>;
  readonly forCaller: (caller: Caller, protocol: string) => NativeService;
  readonly createStream: (stream: StreamRequest) => Response;
}

/** Connection of a request; absent for a server that is mounted in another one. */
export interface Peer {
  readonly address: string | undefined;
}

/** What is known of a request so far, for its log line and its problem. */
interface Progress {
  readonly request: Request;
  readonly requestId: string;
  readonly peer: Peer | undefined;
  protocol?: Protocol;
  route?: Route;
  path?: string;
  params?: Readonly<Record<string, string>>;
  caller?: Caller;
  headers?: Readonly<Record<string, string>>;
  code?: string;
}

/** Handles a request. Never rejects. */
export type Handler = (request: Request, peer?: Peer) => Promise<Response>;

/** Milliseconds after which a client may repeat a request that a stopping server refused. */
const drainRetryMs = 5_000;

const idPattern = /^[A-Za-z0-9_.:-]{1,64}$/;

/** Creates the handler of a server. */
export function createHandler(parts: HandlerParts): Handler {
  return async (request, peer) => {
    const { world } = parts;
    const begunAt = world.clock.monotonic();
    const at = new Date(world.clock.now()).toISOString();
    const shownId = request.headers.get("x-request-id") ?? "";
    const requestId = idPattern.test(shownId) ? shownId : createId("req_", world.random);
    const progress: Progress = { request, requestId, peer };
    const response = await answerSafely(parts, progress);
    const ms = Math.round(world.clock.monotonic() - begunAt);
    parts.log("info", "request", { ...createRequestLine(parts, progress, response), at, ms } satisfies RequestLine);
    return response;
  };
}

function createRequestLine(
  { trustProxy }: HandlerParts,
  { request, requestId, peer, protocol, route, path, params, caller, code }: Progress,
  response: Response,
): Omit<RequestLine, "at" | "ms"> {
  const ids = findLocationIds(response);
  return {
    requestId,
    method: request.method,
    route: route === undefined ? undefined : path,
    protocol: protocol?.name,
    status: response.status,
    caller: caller?.id,
    tenant: caller?.tenant,
    thread: params?.["thread"] ?? ids.thread,
    run: params?.["run"] ?? ids.run,
    code,
    address: getAddress(request, peer, trustProxy),
  };
}

/** Address of the client. Only a listed proxy may name another one. */
function getAddress(request: Request, peer: Peer | undefined, trustProxy: ReadonlySet<string>): string | undefined {
  const address = peer?.address;
  if (address === undefined || !trustProxy.has(address)) return address;
  const forwarded = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim();
  return forwarded !== undefined && /^[0-9A-Fa-f.:]{2,45}$/.test(forwarded) ? forwarded : address;
}

async function answerSafely(parts: HandlerParts, progress: Progress): Promise<Response> {
  try {
    return addHeaders(await answer(parts, progress), parts, progress);
  } catch (error) {
    return answerFailure(parts, progress, error);
  }
}

/** Formats a failure in the form of the protocol. A failure of the format itself becomes a plain problem. */
function answerFailure(parts: HandlerParts, progress: Progress, error: unknown): Response {
  const { exposeErrors, log } = parts;
  const { requestId, protocol } = progress;
  const problem: Problem = { ...toProblem(error, { exposeErrors }), requestId };
  progress.code = problem.code;
  if (problem.status >= 500)
    log(problem.code === "internal" ? "error" : "warn", "a request failed", { requestId, code: problem.code, error });
  try {
    return addHeaders((protocol?.formatProblem ?? formatProblem)(problem), parts, progress);
  } catch (formatError) {
    log("error", "a problem could not be formatted", { requestId, error: formatError });
    return addHeaders(formatProblem({ ...createProblem("internal"), requestId }), parts, progress);
  }
}

async function answer(parts: HandlerParts, progress: Progress): Promise<Response> {
  const { access, cors } = parts;
  const { request, peer } = progress;
  if (!access.isConfigured) throw createUnauthorized();
  // Before the host check: a container platform probes the address of the process.
  const health = await answerProbe(request, parts);
  if (health !== undefined) return health;
  checkRequest(request, getHost(request, { address: peer?.address, trustProxy: parts.trustProxy }), parts);
  const preflight = cors.answerPreflight(request);
  if (preflight !== undefined) return preflight;
  const path = findPath(request, parts);
  const { protocol, route, params } = findRoute(parts, progress, path);
  const caller = await callHost("authenticate", () => access.authenticate(request));
  if (caller === undefined) throw createUnauthorized();
  progress.caller = caller;
  await checkRate(parts, progress, { caller, route });
  checkRole(parts, route);
  const asked = createAccessRequest(route, params);
  if (!(await callHost("authorize", () => access.hasRight(caller, asked)))) throw createRightProblem(asked);
  const { bodyBytes, fileBytes } = parts.limits;
  const maxBytes = route.maxBodyBytes ?? (route.body === "file" ? fileBytes : bodyBytes);
  checkBodyType(request, route, maxBytes);
  const response = await route.handle(createCall(parts, progress, { protocol, route, params, caller, maxBytes }));
  return request.method === "HEAD" ? removeBody(response) : response;
}

/** Calls a function of the options. Its failure is a failure of the server, whatever its code. */
async function callHost<Value>(option: string, run: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await run();
  } catch (cause) {
    if (cause instanceof RequestProblem) throw cause;
    throw new Error(`serve: the function \`${option}\` failed`, { cause });
  }
}

async function answerProbe(
  { url, method }: Request,
  { basePath, answerHealth }: HandlerParts,
): Promise<Response | undefined> {
  const path = removeBasePath(new URL(url).pathname, basePath);
  return path === undefined ? undefined : answerHealth(path, method);
}

/** Finds the path below the base path. Throws 404 for another base path and for an invalid path. */
function findPath({ url }: Request, { basePath }: HandlerParts): string {
  const { pathname } = new URL(url);
  const below = removeBasePath(pathname, basePath);
  if (below === undefined)
    throw new RequestProblem(
      createProblem("not_found", { detail: `The server is at "${basePath}". Pass the path of its mount as basePath.` }),
    );
  const path = parsePath(below);
  if (path === undefined) throw new RequestProblem(createProblem("not_found"));
  return path;
}

function findRoute(
  { table, basePath }: HandlerParts,
  progress: Progress,
  path: string,
): { readonly protocol: Protocol; readonly route: Route; readonly params: Readonly<Record<string, string>> } {
  const match = table.match(progress.request.method, path);
  if (match === undefined)
    throw new RequestProblem(createProblem("not_found", { detail: describeMount(table, path, basePath) }));
  if ("allow" in match)
    throw new RequestProblem(createProblem("method_not_allowed", { headers: { allow: match.allow.join(", ") } }));
  const { row, params } = match;
  progress.protocol = row.protocol;
  progress.route = row.route;
  progress.path = row.path;
  progress.params = params;
  return { protocol: row.protocol, route: row.route, params };
}

/** Sentence for a path that is a route behind a prefix of its mount. */
function describeMount({ match }: RouteTable, path: string, basePath: string): string | undefined {
  const segments = path.split("/");
  for (let count = 2; count < segments.length; count++) {
    if (match("GET", `/${segments.slice(count).join("/")}`) === undefined) continue;
    const mount = `${basePath}${segments.slice(0, count).join("/")}`;
    return `Mounted below ${mount}? Pass basePath: "${mount}".`;
  }
  return undefined;
}

async function checkRate(
  { limit }: HandlerParts,
  progress: Progress,
  { caller, route }: { readonly caller: Caller; readonly route: Route },
): Promise<void> {
  if (limit === undefined) return;
  const decision = await callHost("limit", () => limit(caller, route.action));
  progress.headers = listRateHeaders(decision);
  const { retryAfterMs } = decision;
  if (retryAfterMs !== undefined) throw new RequestProblem(createProblem("too_many_requests", { retryAfterMs }));
}

function checkRole({ role, isDraining }: HandlerParts, { action, isRead }: Route): void {
  if (role === "readOnly" && !isRead) throw new RequestProblem(createProblem("read_only"));
  if (isDraining() && !isRead && (action === "run.start" || action === "run.answer"))
    throw new RequestProblem(
      createProblem("draining", { retryAfterMs: drainRetryMs, headers: { connection: "close" } }),
    );
}

function createAccessRequest(
  { action }: Route,
  { thread, run, graph }: Readonly<Record<string, string>>,
): AccessRequest {
  return { action, thread, run, graph };
}

/** A named thread, run or graph without the right to it looks like one that does not exist. */
function createRightProblem({ action, thread, run, graph }: AccessRequest): RequestProblem {
  if (action === "admin") return new RequestProblem(createProblem("forbidden"));
  if (run !== undefined) return new RequestProblem(createProblem("unknown_run"));
  if (thread !== undefined) return new RequestProblem(createProblem("unknown_thread"));
  if (graph !== undefined) return new RequestProblem(createProblem("unknown_graph"));
  return new RequestProblem(createProblem("forbidden"));
}

/** A body of another media type is refused also by routes that read none: a foreign page can send it unasked. */
function checkBodyType(request: Request, { body = "json", method }: Route, maxBytes: number): void {
  if (method === "GET" || body === "file") return;
  if (request.headers.has("content-type") || request.headers.has("content-encoding")) checkJsonBody(request, maxBytes);
}

function createUnauthorized(): RequestProblem {
  return new RequestProblem(createProblem("unauthorized", { headers: { "www-authenticate": "Bearer" } }));
}

function createCall(
  parts: HandlerParts,
  { request, requestId }: Progress,
  target: {
    readonly protocol: Protocol;
    readonly route: Route;
    readonly params: Readonly<Record<string, string>>;
    readonly caller: Caller;
    readonly maxBytes: number;
  },
): RouteCall {
  const { limits, world, access } = parts;
  const { protocol, route, params, caller, maxBytes } = target;
  const body = { limits, world, maxBytes };
  let service: NativeService | undefined;
  return {
    request,
    requestId,
    params,
    query: new URL(request.url).searchParams,
    caller,
    get service() {
      service ??= limitActs(parts.forCaller(caller, protocol.name), limits);
      return service;
    },
    base: `${parts.publicPath}${protocol.prefix}`,
    readJson: (schema) => readJson(request, schema, body),
    readBytes: () => readBytes(request, body),
    stream: (source, options = {}) => {
      const hasRight = createRightCheck(access, { request, caller, asked: createAccessRequest(route, params) });
      return parts.createStream({ request, caller, protocol, source, options, hasRight });
    },
    watchWork: (what, work) => {
      work.catch((error: unknown) => {
        if (toProblem(error).code !== "nothing_to_do") parts.log("warn", `${what} failed`, { requestId, error });
      });
    },
  };
}

/** Returns the check of the right to an open stream. It keeps the head of the request only, and no part of the call. */
function createRightCheck(
  access: Access,
  { request, caller, asked }: { readonly request: Request; readonly caller: Caller; readonly asked: AccessRequest },
): () => Promise<boolean> {
  const { url, method } = request;
  // One string: thousands of streams are open.
  const head = [...request.headers].flat().join("\n");
  return async () => {
    const known = await access.authenticate(new Request(url, { method, headers: parseHead(head) }));
    if (known === undefined || known.id !== caller.id || known.tenant !== caller.tenant) return false;
    return access.hasRight(known, asked);
  };
}

/** Parses lines with a name and a value in turn; no header has a line break. */
function parseHead(head: string): Headers {
  const headers = new Headers();
  const lines = head.split("\n");
  for (let index = 0; index + 1 < lines.length; index += 2) headers.append(lines[index] ?? "", lines[index + 1] ?? "");
  return headers;
}

function removeBody(response: Response): Response {
  response.body?.cancel().catch(ignoreCancelError);
  return new Response(null, { status: response.status, headers: response.headers });
}

function ignoreCancelError(): void {
  // A HEAD request needs the headers only.
}

/** Adds the headers of every response. `vary` keeps its other names. */
function addHeaders(response: Response, { cors }: HandlerParts, progress: Progress): Response {
  const { request, requestId } = progress;
  const headers = new Headers(response.headers);
  const added = { ...cors.listHeaders(request), ...progress.headers, "x-request-id": requestId };
  for (const [name, value] of Object.entries(added))
    if (name === "vary") headers.append(name, value);
    else headers.set(name, value);
  return new Response(response.body, { status: response.status, headers });
}
