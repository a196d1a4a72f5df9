/** Paths of requests: segments decoded once and checked, so that no id can become another path. */

/** Grammar of ids, as in core, without the names that every object inherits. */
const segmentPattern = /^[A-Za-z0-9_.:@~-]{1,200}$/;
const reservedNames: ReadonlySet<string> = new Set([".", "..", "__proto__", "constructor", "prototype"]);

/**
 * Returns the path with its segments decoded; undefined for an empty or double slash, and for a segment that cannot be
 * decoded or does not fit the grammar of ids. The root is `/`.
 */
export function parsePath(pathname: string): string | undefined {
  if (pathname === "/" || pathname === "") return "/";
  const [first, ...segments] = pathname.split("/");
  if (first !== "") return undefined;
  const decoded = segments.map(decodeSegment);
  return decoded.includes(undefined) ? undefined : `/${decoded.join("/")}`;
}

function decodeSegment(segment: string): string | undefined {
  let decoded: string;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    return undefined;
  }
  return segmentPattern.test(decoded) && !reservedNames.has(decoded) ? decoded : undefined;
}

/**
 * Removes the base path of a mount from a path. Returns undefined for a path outside of it. A base path is `""` or
 * begins with a slash and does not end with one.
 */
export function removeBasePath(pathname: string, basePath: string): string | undefined {
  if (basePath === "") return pathname;
  if (pathname === basePath) return "/";
  return pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : undefined;
}
