/** Where a path leads before anything is opened: for policies that judge paths in a tool's arguments. */
import { lstat, readlink, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from "node:path";
import { systemCodeOf } from "./host-error.ts";

/** More links than this lead in a circle. */
const mostLinks = 40;

/**
 * Where a path really leads, from the root, with `/`, also when it names nothing yet; undefined when that lies outside the
 * root, or cannot be told. The path is relative to the root, or absolute. A `..` after a link is refused where it would
 * mean two places: what the system makes of it, and what the text says.
 */
export async function placeInside(root: string, path: string): Promise<string | undefined> {
  return (await placeOf(root, path))?.way.replaceAll(sep, "/");
}

/** The same place as an absolute path without links: one name for all paths that lead to one file. */
export async function realPlaceInside(root: string, path: string): Promise<string | undefined> {
  return (await placeOf(root, path))?.real;
}

async function placeOf(root: string, path: string): Promise<{ real: string; way: string } | undefined> {
  if (path.includes("\0")) return undefined;
  try {
    const realRoot = await realpath(root);
    const asWalked = await walked(isAbsolute(path) ? path : `${realRoot}${sep}${path}`);
    const asWritten = await walked(resolve(realRoot, path));
    if (asWalked === undefined || asWalked !== asWritten) return undefined;
    const way = relative(realRoot, asWalked);
    const leaves = way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way);
    return leaves ? undefined : { real: asWalked, way };
  } catch {
    // What cannot be looked at cannot be vouched for.
    return undefined;
  }
}

/** Follow a path part by part, as the system does. */
async function walked(path: string): Promise<string | undefined> {
  const { root: top } = parse(path);
  const ahead = partsOf(path.slice(top.length)).reverse();
  let at = top;
  let links = 0;
  for (let part = ahead.pop(); part !== undefined; part = ahead.pop()) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      at = dirname(at);
      continue;
    }
    const next = join(at, part);
    const target = await linkAt(next);
    if (target === undefined) {
      at = next;
      continue;
    }
    links += 1;
    if (links > mostLinks) return undefined;
    if (isAbsolute(target)) at = parse(target).root;
    ahead.push(...partsOf(target.slice(parse(target).root.length)).reverse());
  }
  return at;
}

/** Windows takes both slashes. */
function partsOf(path: string): string[] {
  return path.split(sep === "/" ? "/" : /[\\/]/);
}

/** Where a link points; undefined for what is no link, or is not there. */
async function linkAt(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
