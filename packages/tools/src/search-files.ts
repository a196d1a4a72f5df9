/** A search without ripgrep: files are walked and read through the workspace, lines found by a linear engine. */
import { ToolError } from "@statewright/core";
import { HostError, isHostError, type Workspace } from "@statewright/host";
import { RE2JS } from "re2js";
import { type SearchHit, type SearchReport, type SearchRequest, shownLine } from "./search-hits.ts";

/** Larger files are not searched. */
const mostBytes = 4 * 2 ** 20;
/** How many files are looked at, at most. */
const mostFiles = 100_000;
/** How many files are read at once. */
const readers = 16;

/** Search the files of a workspace. Throws an `invalid_args` ToolError for an expression that is none. */
export async function searchFiles(
  files: Workspace,
  request: SearchRequest,
  fits: ((path: string) => boolean) | undefined,
): Promise<SearchReport> {
  const { place, kind, maxHits, signal, onHit, onFiles } = request;
  const find = finder(request.pattern);
  let unread = 0;
  let count = 0;
  const paths = kind === "folder" ? await filesBelow() : fits === undefined || fits(place) ? [place] : [];
  for (let at = 0; at < paths.length; at += readers) {
    if (signal.aborted) throw new HostError("cancelled", "The search was cancelled.");
    const found = await Promise.all(paths.slice(at, at + readers).map((path) => hitsOf(path)));
    for (const hits of found) {
      if (hits === undefined) unread++;
      for (const hit of hits ?? []) {
        if (count === maxHits) return { isCut: true, unread };
        count++;
        onHit(hit);
      }
    }
    if (Math.floor(at / updateEvery) !== Math.floor((at + readers) / updateEvery)) onFiles(at + readers);
  }
  return { isCut: false, unread };

  async function filesBelow(): Promise<readonly string[]> {
    const { entries, unreadable } = await files.list({
      ...(place === "" ? {} : { path: place }),
      limit: mostFiles,
      signal,
      wanted: (path, entry) => entry === "file" && fits?.(path) !== false,
    });
    unread += unreadable.length;
    return entries.map(({ path }) => path);
  }

  /** The lines of a file; nothing for one that cannot be searched. */
  async function hitsOf(path: string): Promise<readonly SearchHit[] | undefined> {
    try {
      const read = await files.read(path, { maxBytes: mostBytes });
      if (read.truncated) return undefined;
      return read.kind === "text" ? find(path, read.text, maxHits + 1) : [];
    } catch (error) {
      if (isHostError(error)) return undefined;
      throw error;
    }
  }
}

/** After so many files is told how far the search has come. */
const updateEvery = 256;

type Find = (path: string, text: string, most: number) => readonly SearchHit[];

/** What finds the lines of a text. */
function finder(pattern: string): Find {
  const has = lineTest(pattern);
  return (path, text, most) => {
    const hits: SearchHit[] = [];
    if (!has.somewhere(text)) return hits;
    let line = 1;
    for (let start = 0; start < text.length && hits.length < most; line++) {
      const end = text.indexOf("\n", start);
      const found = text.slice(start, end === -1 ? text.length : end);
      if (has.inLine(found)) hits.push({ path, line, text: shownLine(found) });
      start = end === -1 ? text.length : end + 1;
    }
    return hits;
  };
}

interface LineTest {
  /** Whether a line of the text may fit; false is certain. */
  readonly somewhere: (text: string) => boolean;
  readonly inLine: (line: string) => boolean;
}

function lineTest(pattern: string): LineTest {
  if (!/[\\^$.*+?()[\]{}|]/.test(pattern)) {
    const isIn = (text: string) => text.includes(pattern);
    return { somewhere: isIn, inLine: isIn };
  }
  const inLines = compiled(pattern, RE2JS.MULTILINE);
  const inLine = compiled(pattern, 0);
  // What asks for the ends of the text finds other ends in the whole than in a line.
  const isAnchored = /\\[AzZ]/.test(pattern);
  return {
    somewhere: (text) => isAnchored || inLines.matcher(text).find(),
    inLine: (line) => inLine.matcher(line.endsWith("\r") ? line.slice(0, -1) : line).find(),
  };
}

function compiled(pattern: string, flags: number): RE2JS {
  try {
    return RE2JS.compile(pattern, flags);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw ToolError.invalidArgs(`The pattern is no regular expression that can be used: ${why}`, { cause });
  }
}
