/** CORS: exact origins, no credentials of the browser, preflight requests without authentication. */

/** Options of pages from other origins. */
export interface CorsOptions {
  /** Origins of pages that may call the server, such as `https://app.example`. Default: none. */
  readonly origins: readonly string[];
}

/** CORS of a server. */
export interface Cors {
  /** Returns the origin of a request if it is allowed. */
  readonly findOrigin: (request: Request) => string | undefined;
  /** Answers a preflight request of an allowed origin; undefined for another request. */
  readonly answerPreflight: (request: Request) => Response | undefined;
  /** Headers of a response for a page of the request's origin. */
  readonly listHeaders: (request: Request) => Readonly<Record<string, string>>;
}

const allowedHeaders = [
  "authorization",
  "x-api-key",
  "content-type",
  "accept",
  "last-event-id",
  "idempotency-key",
  "if-match",
  "if-none-match",
  "prefer",
  "range",
  "x-request-id",
  "x-auth-scheme",
].join(", ");

const exposedHeaders = [
  "content-location",
  "location",
  "etag",
  "retry-after",
  "x-request-id",
  "x-pagination-total",
  "x-pagination-next",
  "x-vercel-ai-ui-message-stream",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
].join(", ");

/** Seconds for which a browser keeps the answer to a preflight request. */
const maxAgeSeconds = 600;

/** Creates the CORS rules of a list of origins. */
export function createCors({ origins }: CorsOptions): Cors {
  const allowed: ReadonlySet<string> = new Set(origins);
  const findOrigin = ({ headers }: Request): string | undefined => {
    const origin = headers.get("origin");
    return origin !== null && allowed.has(origin) ? origin : undefined;
  };
  return {
    findOrigin,
    answerPreflight: (request) => {
      const origin = findOrigin(request);
      if (request.method !== "OPTIONS" || origin === undefined) return undefined;
      if (!request.headers.has("access-control-request-method")) return undefined;
      return new Response(null, { status: 204, headers: listPreflightHeaders(request) });
    },
    listHeaders: (request): Readonly<Record<string, string>> => {
      if (allowed.size === 0) return {};
      const origin = findOrigin(request);
      if (origin === undefined) return { vary: "Origin" };
      return { vary: "Origin", "access-control-allow-origin": origin, "access-control-expose-headers": exposedHeaders };
    },
  };
}

function listPreflightHeaders({ headers }: Request): Readonly<Record<string, string>> {
  return {
    "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "access-control-allow-headers": allowedHeaders,
    "access-control-max-age": String(maxAgeSeconds),
    ...(headers.get("access-control-request-private-network") === "true"
      ? { "access-control-allow-private-network": "true" }
      : {}),
  };
}
