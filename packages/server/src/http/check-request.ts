/** Checks of a request before its route is known: host name, sizes and origin. */
import { parseHostName } from "@statewright/host/access";
import type { Cors } from "./cors.ts";
import type { ServerLimits } from "./limits.ts";
import { RequestProblem } from "./problem.ts";
import { createProblem } from "./problem-table.ts";

/** What the checks need. */
export interface RequestRules {
  /** Host names of the server in lower case, without port. */
  readonly hosts: ReadonlySet<string>;
  /** Origin of the public URL; undefined without a public URL. */
  readonly publicOrigin: string | undefined;
  readonly limits: ServerLimits;
  readonly cors: Cors;
}

/**
 * Returns the Host header of a request: behind a trusted proxy, the host that the proxy names. A request without the
 * header has the host of its URL.
 */
export function getHost(
  request: Request,
  { address, trustProxy }: { readonly address: string | undefined; readonly trustProxy: ReadonlySet<string> },
): string {
  const { headers } = request;
  const forwarded = address !== undefined && trustProxy.has(address) ? headers.get("x-forwarded-host") : null;
  return forwarded ?? headers.get("host") ?? new URL(request.url).host;
}

/** Throws a problem: 421 for a foreign host name, 414, 431, or 403 for a page of a foreign origin. */
export function checkRequest(request: Request, host: string, rules: RequestRules): void {
  if (!rules.hosts.has(parseHostName(host) ?? "")) throw new RequestProblem(createProblem("misdirected_request"));
  const { limits } = rules;
  if (request.url.length > limits.urlLength) throw new RequestProblem(createProblem("url_too_long"));
  if (countHeaderBytes(request.headers) > limits.headerBytes)
    throw new RequestProblem(createProblem("headers_too_large"));
  if (!isAllowedOrigin(request, host, rules)) throw new RequestProblem(createProblem("origin_refused"));
}

function countHeaderBytes(headers: Headers): number {
  let bytes = 0;
  for (const [name, value] of headers) bytes += name.length + value.length + 4;
  return bytes;
}

/** Accepts requests without an origin, of the server's own pages, and of the listed origins. */
function isAllowedOrigin(request: Request, host: string, { cors, publicOrigin }: RequestRules): boolean {
  const origin = request.headers.get("origin");
  if (origin === null || origin === publicOrigin || cors.findOrigin(request) !== undefined) return true;
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}
