/** Resolves paths without opening files, for policies that check the paths in tool arguments. */
import { lstat, readlink, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from "node:path";
import { getSystemCode } from "./host-error.ts";

/** Maximum number of links on a path; more count as a cycle. */
const maxLinks = 40;

/**
 * Resolves a path, relative or absolute, to its real path relative to the root, with `/`; the file need not exist.
 * Returns undefined for a path outside the root or an unresolvable path. A `..` after a link is refused if the system
 * and the text of the path lead to two different locations.
 */
export async function resolvePathInside(root: string, path: string): Promise<string | undefined> {
  return (await resolveInside(root, path))?.relativePath.replaceAll(sep, "/");
}

/** Resolves a path to its absolute real path: equal for all paths to the same file. */
export async function resolveRealPathInside(root: string, path: string): Promise<string | undefined> {
  return (await resolveInside(root, path))?.real;
}

async function resolveInside(root: string, path: string): Promise<{ real: string; relativePath: string } | undefined> {
  if (path.includes("\0")) return undefined;
  try {
    const realRoot = await realpath(root);
    const followed = await followPath(isAbsolute(path) ? path : `${realRoot}${sep}${path}`);
    const normalized = await followPath(resolve(realRoot, path));
    if (followed === undefined || followed !== normalized) return undefined;
    const relativePath = relative(realRoot, followed);
    const isOutside = relativePath === ".." || relativePath.startsWith(`..${sep}`) || isAbsolute(relativePath);
    return isOutside ? undefined : { real: followed, relativePath };
  } catch {
    // A path that cannot be inspected cannot be approved.
    return undefined;
  }
}

/** Resolves a path part by part, like the system. */
async function followPath(path: string): Promise<string | undefined> {
  const { root: top } = parse(path);
  const pending = splitPath(path.slice(top.length)).reverse();
  let at = top;
  let links = 0;
  for (let part = pending.pop(); part !== undefined; part = pending.pop()) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      at = dirname(at);
      continue;
    }
    const next = join(at, part);
    const target = await readLinkTarget(next);
    if (target === undefined) {
      at = next;
      continue;
    }
    links += 1;
    if (links > maxLinks) return undefined;
    if (isAbsolute(target)) at = parse(target).root;
    pending.push(...splitPath(target.slice(parse(target).root.length)).reverse());
  }
  return at;
}

/** Windows accepts both slashes. */
function splitPath(path: string): string[] {
  return path.split(sep === "/" ? "/" : /[\\/]/);
}

/** Returns the target of a link; undefined for a missing entry or an entry that is not a link. */
async function readLinkTarget(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch (error) {
    if (getSystemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
