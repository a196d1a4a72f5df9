/** HTTP access control: host name of the server, origin of the page, and bearer token. */
import { createSha256, invalidOption } from "@statewright/core/adapter";
import {
  type AuthenticationOptions,
  type Caller,
  createAuthenticator,
  createTokenFinder,
  getBearerToken,
  getHostName,
  loopback,
} from "@statewright/host/access";
import { checkCallerId, isCallerId, type McpCaller } from "./caller.ts";

/** Access options of an HTTP server. */
export interface McpAccess {
  /** Token of a single client `local`. At least 16 characters. */
  readonly token?: string;
  /** Tokens by client id. A client sees only its own threads. */
  readonly tokens?: Readonly<Record<string, string>>;
  /** Returns the client id of a token from another token issuer, or undefined for an invalid token. */
  readonly authorize?: (token: string) => string | undefined | Promise<string | undefined>;
  /**
   * Access option of `serve` of `@statewright/server`, for one process with both servers: `authenticate`, `token` or
   * `tokens`, and `authorize`, which is asked for the action `run.start` before each request. The tenant of the caller,
   * or with the scope `caller` its id, is the client id. Instead of `token`, `tokens` and `authorize`.
   */
  readonly access?: SharedAccess;
  /** Allowed host names of the server, without port. Default: `localhost`, `127.0.0.1`, `[::1]`. */
  readonly hosts?: readonly string[];
  /** Allowed origins of web pages, such as `https://app.example`. Default: none. */
  readonly origins?: readonly string[];
}

/** Part of the access options of `serve` that an MCP server uses. */
export interface SharedAccess extends AuthenticationOptions {
  /** Returns true if the caller may call tools and graphs. Default: each caller may. */
  readonly authorize?:
    | ((caller: Caller, request: { readonly action: "run.start" }) => boolean | Promise<boolean>)
    | undefined;
  /** Whether the callers of a tenant share its threads, or each caller has its own. Default `tenant`. */
  readonly scope?: "tenant" | "caller" | undefined;
}

/** Access checks of requests. */
export interface Access {
  /** Returns the refusal of a request with a forbidden host or origin; otherwise undefined. */
  readonly refuse: (request: Request) => Response | undefined;
  /** Returns the client of the request's token. */
  readonly findCaller: (request: Request) => Promise<McpCaller | undefined>;
  /** Returns the request's origin if it is allowed. */
  readonly findAllowedOrigin: (request: Request) => string | undefined;
}

/** Returns the client id of a request. */
type FindClient = (request: Request) => Promise<string | undefined>;

/**
 * Validates the access options. Throws `invalid_option` for a missing or too short token, and for a token of two
 * clients.
 */
export function createAccess(options: McpAccess): Access {
  const { hosts = loopback, origins = [] } = options;
  const findClient = createClientFinder(options);
  const allowedHosts = new Set(hosts.map((host) => host.toLowerCase()));
  const allowedOrigins = new Set(origins);
  return {
    refuse: (request) => {
      if (!allowedHosts.has(getHostName(request) ?? "")) return createRefusal(403, "Forbidden: unknown host name");
      const origin = request.headers.get("origin");
      if (origin !== null && !allowedOrigins.has(origin)) return createRefusal(403, "Forbidden: origin not allowed");
      return undefined;
    },
    findCaller: async (request) => {
      const id = await findClient(request);
      return id === undefined ? undefined : { id: checkCallerId(id) };
    },
    findAllowedOrigin: (request) => {
      const origin = request.headers.get("origin");
      return origin !== null && allowedOrigins.has(origin) ? origin : undefined;
    },
  };
}

/** Returns true if the options name a way to know the clients. */
export function hasAuthentication({ token, tokens, authorize, access }: McpAccess): boolean {
  return token !== undefined || tokens !== undefined || authorize !== undefined || access !== undefined;
}

function createClientFinder({ token, tokens, authorize, access }: McpAccess): FindClient {
  const given = Object.entries({ token, tokens, authorize, access }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (given.length !== 1)
    throw invalidOption({
      where: "serveMcp",
      expected: "exactly one of token, tokens and authorize",
      found: given.join(" and ") || "none",
      fix: "Pass token, tokens or authorize",
    });
  if (access !== undefined) return createSharedFinder(access);
  const findOwner =
    authorize ??
    createTokenFinder(
      "serveMcp",
      Object.entries(tokens ?? (token === undefined ? {} : { local: token })).map(([id, secret]) => ({
        name: id,
        token: secret,
        owner: checkCallerId(id),
      })),
    );
  return async (request) => {
    const bearer = getBearerToken(request);
    return bearer === undefined ? undefined : findOwner(bearer);
  };
}

function createSharedFinder({ authorize, scope = "tenant", ...authentication }: SharedAccess): FindClient {
  const authenticate = createAuthenticator("serveMcp", authentication);
  return async (request) => {
    const caller = await authenticate(request);
    if (caller === undefined) return undefined;
    if (authorize !== undefined && (await authorize(caller, { action: "run.start" })) !== true) return undefined;
    return toClientId(scope === "tenant" ? caller.tenant : caller.id);
  };
}

/** Returns a name as a client id; a longer name, or one with other characters, becomes a hash. */
function toClientId(name: string): string {
  if (isCallerId(name)) return name;
  const hash = createSha256();
  hash.add(new TextEncoder().encode(name));
  return `h${hash.finish().slice(0, 31)}`;
}

/** Creates a refusal as a JSON-RPC error response. */
export function createRefusal(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32_000, message }, id: null }, { status, headers });
}
