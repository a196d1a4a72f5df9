/** Searches without ripgrep: reads files through the workspace, and matches lines with a linear-time regex engine. */
import { ToolError } from "@statewright/core";
import { HostError, isHostError, type Workspace } from "@statewright/host";
import { RE2JS } from "re2js";
import { formatLine, type SearchHit, type SearchReport, type SearchRequest } from "./search-hits.ts";

/** Maximum size of a searched file. */
const maxFileBytes = 4 * 2 ** 20;
/** Maximum number of searched files. */
const maxFiles = 100_000;
/** Number of concurrent file reads. */
const concurrentReads = 16;

/** Searches the files of a workspace. Throws an `invalid_args` ToolError for an invalid expression. */
export async function searchFiles(files: Workspace, request: SearchRequest): Promise<SearchReport> {
  const { searchPath, kind, maxHits, signal, onHit, onFiles, matchesGlob } = request;
  const find = createLineFinder(request.pattern);
  let skippedFiles = 0;
  let count = 0;
  const paths =
    kind === "folder"
      ? await listFilesBelow()
      : matchesGlob === undefined || matchesGlob(searchPath)
        ? [searchPath]
        : [];
  for (let position = 0; position < paths.length; position += concurrentReads) {
    if (signal.aborted) throw new HostError("cancelled", "The search was cancelled.");
    const found = await Promise.all(paths.slice(position, position + concurrentReads).map((path) => findHits(path)));
    for (const hits of found) {
      if (hits === undefined) skippedFiles++;
      for (const hit of hits ?? []) {
        if (count === maxHits) return { isTruncated: true, skippedFiles };
        count++;
        onHit(hit);
      }
    }
    if (Math.floor(position / updateEveryFiles) !== Math.floor((position + concurrentReads) / updateEveryFiles))
      onFiles(position + concurrentReads);
  }
  return { isTruncated: false, skippedFiles };

  async function listFilesBelow(): Promise<readonly string[]> {
    const { entries, unreadable } = await files.list({
      ...(searchPath === "" ? {} : { path: searchPath }),
      limit: maxFiles,
      signal,
      filter: (path, entry) => entry === "file" && matchesGlob?.(path) !== false,
    });
    skippedFiles += unreadable.length;
    return entries.map(({ path }) => path);
  }

  /** Finds the matching lines of a file; undefined for a file that cannot be searched. */
  async function findHits(path: string): Promise<readonly SearchHit[] | undefined> {
    try {
      const read = await files.read(path, { maxBytes: maxFileBytes });
      if (read.truncated) return undefined;
      return read.kind === "text" ? find(path, read.text, maxHits + 1) : [];
    } catch (error) {
      if (isHostError(error)) return undefined;
      throw error;
    }
  }
}

/** Number of files between progress updates. */
const updateEveryFiles = 256;

type FindLines = (path: string, text: string, limit: number) => readonly SearchHit[];

/** Creates a function that finds the matching lines of a text. */
function createLineFinder(pattern: string): FindLines {
  const test = createLineTest(pattern);
  return (path, text, limit) => {
    const hits: SearchHit[] = [];
    if (!test.mayMatchText(text)) return hits;
    let line = 1;
    for (let start = 0; start < text.length && hits.length < limit; line++) {
      const end = text.indexOf("\n", start);
      const found = text.slice(start, end === -1 ? text.length : end);
      if (test.matchesLine(found)) hits.push({ path, line, text: formatLine(found) });
      start = end === -1 ? text.length : end + 1;
    }
    return hits;
  };
}

interface LineTest {
  /** Returns false when no line of the text matches; true when a line may match. */
  readonly mayMatchText: (text: string) => boolean;
  readonly matchesLine: (line: string) => boolean;
}

function createLineTest(pattern: string): LineTest {
  if (!/[\\^$.*+?()[\]{}|]/.test(pattern)) {
    const includesPattern = (text: string) => text.includes(pattern);
    return { mayMatchText: includesPattern, matchesLine: includesPattern };
  }
  const multilinePattern = compilePattern(pattern, RE2JS.MULTILINE);
  const inLine = compilePattern(pattern, 0);
  // Anchors of the text (`\A`, `\z`) match at other positions in the whole text than in a line.
  const isAnchored = /\\[AzZ]/.test(pattern);
  return {
    mayMatchText: (text) => isAnchored || multilinePattern.matcher(text).find(),
    matchesLine: (line) => inLine.matcher(line.endsWith("\r") ? line.slice(0, -1) : line).find(),
  };
}

function compilePattern(pattern: string, flags: number): RE2JS {
  try {
    return RE2JS.compile(pattern, flags);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw ToolError.invalidArgs(`The pattern is not a valid regular expression: ${reason}`, { cause });
  }
}
