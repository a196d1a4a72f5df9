/** Searches without ripgrep: reads files through the workspace, and matches lines with a linear-time regex engine. */
import type { World } from "@statewright/core";
import { HostError, isHostError, type Workspace } from "@statewright/host";
import { createLineMatcher, type LineMatcher } from "./line-matcher.ts";
import { formatLine, type SearchHit, type SearchReport, type SearchRequest } from "./search-hits.ts";

/** Maximum size of a searched file. */
const maxFileBytes = 4 * 2 ** 20;
/** Maximum number of searched files. */
const maxFiles = 100_000;
/** Number of concurrent file reads. */
const concurrentReads = 16;

/** Searches the files of a workspace. Throws an `invalid_args` ToolError for an invalid expression. */
export async function searchFiles(
  files: Workspace,
  request: SearchRequest,
  { schedule }: Pick<World, "schedule">,
): Promise<SearchReport> {
  // Node 22 cannot parse `await using`.
  const matcher = createLineMatcher(request.pattern, { signal: request.signal, schedule });
  try {
    return await searchWithMatcher(files, request, matcher);
  } finally {
    await matcher[Symbol.asyncDispose]();
  }
}

async function searchWithMatcher(
  files: Workspace,
  request: SearchRequest,
  matcher: LineMatcher,
): Promise<SearchReport> {
  const { searchPath, kind, maxHits, signal, onHit, onFiles, matchesGlob } = request;
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
      return read.kind === "text" ? await findLines(matcher, path, read.text, maxHits + 1) : [];
    } catch (error) {
      if (isHostError(error) && error.code !== "cancelled") return undefined;
      throw error;
    }
  }
}

/** Number of files between progress updates. */
const updateEveryFiles = 256;

/** Finds the matching lines of a text; undefined when the time of the search is over. */
async function findLines(
  matcher: LineMatcher,
  path: string,
  text: string,
  limit: number,
): Promise<readonly SearchHit[] | undefined> {
  const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  if (lines.at(-1) === "") lines.pop();
  const indices = await matcher.match(lines, limit);
  return indices?.map((index) => ({ path, line: index + 1, text: formatLine(lines[index] ?? "") }));
}
