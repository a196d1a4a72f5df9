/** Paths in results and messages: relative to the root, with `/`. */
import { sep } from "node:path";

/** Returns a path for a message; the root is `.`. */
export function formatPath(path: string): string {
  return path === "" ? "." : path;
}

/** Returns a path with `/` on every system. */
export function toSlashes(path: string): string {
  return sep === "/" ? path : path.replaceAll(sep, "/");
}
