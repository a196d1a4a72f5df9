/** HTTP access control: host name of the server, origin of the page, and bearer token. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { invalidOption } from "@statewright/core/adapter";
import { checkCallerId, type McpCaller } from "./caller.ts";

/** Access options of an HTTP server. */
export interface McpAccess {
  /** Token of a single client `local`. At least 16 characters. */
  readonly token?: string;
  /** Tokens by client id. A client sees only its own threads. */
  readonly tokens?: Readonly<Record<string, string>>;
  /** Returns the client id of a token from another token issuer, or undefined for an invalid token. */
  readonly authorize?: (token: string) => string | undefined | Promise<string | undefined>;
  /** Allowed host names of the server, without port. Default: `localhost`, `127.0.0.1`, `[::1]`. */
  readonly hosts?: readonly string[];
  /** Allowed origins of web pages, such as `https://app.example`. Default: none. */
  readonly origins?: readonly string[];
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

/** Loopback host names. */
export const loopback: readonly string[] = Object.freeze(["localhost", "127.0.0.1", "[::1]"]);

const minTokenLength = 16;

/** Creates a random token of 256 bits. */
export function createToken(): string {
  return randomBytes(32).toString("base64url");
}

/**
 * Validates the access options. Throws `invalid_option` for a missing or too short token, and for a token of two
 * clients.
 */
export function createAccess({ token, tokens, authorize, hosts = loopback, origins = [] }: McpAccess): Access {
  const given = Object.entries({ token, tokens, authorize }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (given.length !== 1)
    throw invalidOption({
      where: "serveMcp",
      expected: "exactly one of token, tokens and authorize",
      found: given.join(" and ") || "none",
      fix: "Pass token, tokens or authorize",
    });
  const clients = Object.entries(tokens ?? (token === undefined ? {} : { local: token })).map(([id, secret]) => {
    if (typeof secret !== "string" || secret.length < minTokenLength)
      throw invalidOption({
        where: "serveMcp",
        expected: `a token of at least ${minTokenLength} characters for "${id}"`,
        found: typeof secret === "string" ? `${secret.length} characters` : typeof secret,
        fix: 'Use a random token, such as randomBytes(32).toString("base64url")',
      });
    return { id: checkCallerId(id), digest: hashToken(secret) };
  });
  if (new Set(clients.map(({ digest }) => digest.toString("hex"))).size < clients.length)
    throw invalidOption({
      where: "serveMcp",
      option: "tokens",
      expected: "a different token for each client",
      found: "two clients with the same token",
      fix: "Use a different token for each client",
    });
  const findClient = authorize ?? ((bearer: string) => findClientId(clients, bearer));
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
      const bearer = /^Bearer ([A-Za-z0-9._~+/=-]{1,8192})$/i.exec(request.headers.get("authorization") ?? "")?.[1];
      const id = bearer === undefined ? undefined : await findClient(bearer);
      return id === undefined ? undefined : { id: checkCallerId(id) };
    },
    findAllowedOrigin: (request) => {
      const origin = request.headers.get("origin");
      return origin !== null && allowedOrigins.has(origin) ? origin : undefined;
    },
  };
}

interface KnownClient {
  readonly id: string;
  readonly digest: Buffer;
}

/** Finds the client of a token in constant time. */
function findClientId(clients: readonly KnownClient[], token: string): string | undefined {
  const digest = hashToken(token);
  let found: string | undefined;
  for (const client of clients) if (timingSafeEqual(client.digest, digest)) found = client.id;
  return found;
}

function hashToken(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** Returns the host name of a request, without port. */
function getHostName(request: Request): string | undefined {
  const host = request.headers.get("host") ?? new URL(request.url).host;
  return /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase();
}

/** Creates a refusal as a JSON-RPC error response. */
export function createRefusal(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32_000, message }, id: null }, { status, headers });
}
