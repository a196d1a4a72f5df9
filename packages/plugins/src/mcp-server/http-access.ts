/** Who may speak to a server over HTTP: by the name it is called by, the page that calls, and the token that is shown. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { StatewrightError } from "@statewright/core";
import { checkCaller, type McpCaller } from "./caller.ts";

/** Who may speak to it. */
export interface McpAccess {
  /** The token of the one client there is, `local`. At least 16 characters. */
  readonly token?: string;
  /** Several clients, each with its token: none sees threads of another. */
  readonly tokens?: Readonly<Record<string, string>>;
  /** Tells which client a token belongs to, where others make the tokens; nothing for one that is not good. */
  readonly authorize?: (token: string) => string | undefined | Promise<string | undefined>;
  /** Names by which the server may be called, without port. Default: `localhost`, `127.0.0.1`, `[::1]`. */
  readonly hosts?: readonly string[];
  /** Pages that may call it, such as `https://app.example`. Default: none. */
  readonly origins?: readonly string[];
}

/** Decides about requests. */
export interface Access {
  /** The answer to a request that is refused for where it comes from; nothing for any other. */
  readonly refusal: (request: Request) => Response | undefined;
  /** The client whose token a request shows. */
  readonly callerOf: (request: Request) => Promise<McpCaller | undefined>;
  /** The page that a request comes from, where it may call. */
  readonly originOf: (request: Request) => string | undefined;
}

/** The names of this machine for itself. */
export const loopback: readonly string[] = Object.freeze(["localhost", "127.0.0.1", "[::1]"]);

const shortestToken = 16;

/** A token that nobody guesses. */
export function freshToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Read who may speak to a server. Throws `invalid_option` for tokens that are none, too short, or of two clients. */
export function accessOf({ token, tokens, authorize, hosts = loopback, origins = [] }: McpAccess): Access {
  if ([token, tokens, authorize].filter((each) => each !== undefined).length !== 1)
    throw unfit("is given no token, or more than one kind of them", "Give token, tokens or authorize");
  const known = Object.entries(tokens ?? (token === undefined ? {} : { local: token })).map(([id, secret]) => {
    if (typeof secret !== "string" || secret.length < shortestToken)
      throw unfit(
        `has a token for "${id}" that is shorter than ${shortestToken} characters`,
        "Make one by chance: freshToken()",
      );
    return { id: checkCaller(id), digest: digestOf(secret) };
  });
  if (new Set(known.map(({ digest }) => digest.toString("hex"))).size < known.length)
    throw unfit("has one token for two clients", "Give each client a token of its own");
  const find = authorize ?? ((shown: string) => findIn(known, shown));
  const allowedHosts = new Set(hosts.map((host) => host.toLowerCase()));
  const allowedOrigins = new Set(origins);
  return {
    refusal: (request) => {
      if (!allowedHosts.has(nameIn(request) ?? "")) return refused(403, "Forbidden: this server has another name");
      const origin = request.headers.get("origin");
      if (origin !== null && !allowedOrigins.has(origin)) return refused(403, "Forbidden: this page may not call");
      return undefined;
    },
    callerOf: async (request) => {
      const shown = /^Bearer ([A-Za-z0-9._~+/=-]{1,8192})$/i.exec(request.headers.get("authorization") ?? "")?.[1];
      const id = shown === undefined ? undefined : await find(shown);
      return id === undefined ? undefined : { id: checkCaller(id) };
    },
    originOf: (request) => {
      const origin = request.headers.get("origin");
      return origin !== null && allowedOrigins.has(origin) ? origin : undefined;
    },
  };
}

interface KnownClient {
  readonly id: string;
  readonly digest: Buffer;
}

/** The client with this token, found in the same time whatever is shown. */
function findIn(known: readonly KnownClient[], shown: string): string | undefined {
  const digest = digestOf(shown);
  let found: string | undefined;
  for (const client of known) if (timingSafeEqual(client.digest, digest)) found = client.id;
  return found;
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** The name that a request calls the server by, without its port. */
function nameIn(request: Request): string | undefined {
  const host = request.headers.get("host") ?? new URL(request.url).host;
  return /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase();
}

/** A request that is not served, in the form in which the protocol says so. */
export function refused(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32_000, message }, id: null }, { status, headers });
}

function unfit(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `the server of serveMcp ${what}`, next });
}
