/** Host names that a server answers to: a defence against DNS rebinding. */

/** Loopback host names. */
export const loopback: readonly string[] = Object.freeze(["localhost", "127.0.0.1", "[::1]"]);

/** Returns true for an address to bind that other machines cannot reach. */
export function isLoopbackAddress(address: string): boolean {
  return loopback.includes(address) || address === "::1";
}

const hostPattern = /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** Returns the host name of a Host header in lower case, without the port; undefined for an invalid or double header. */
export function parseHostName(host: string): string | undefined {
  return hostPattern.exec(host)?.[1]?.toLowerCase();
}

/** Returns the host name of a request, without the port. A request without the header has the host of its URL. */
export function getHostName(request: Request): string | undefined {
  return parseHostName(request.headers.get("host") ?? new URL(request.url).host);
}
