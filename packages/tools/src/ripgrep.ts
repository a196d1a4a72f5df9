/** Searches with ripgrep: creates the arguments and parses the output. */
import { ToolError, type World } from "@statewright/core";
import { HostError, startProcess } from "@statewright/host";
import { formatLine, type SearchReport, type SearchRequest } from "./search-hits.ts";

/** Installed ripgrep: program name or path, and the root folder of searches. */
interface RipgrepProgram {
  readonly program: string;
  readonly root: string;
  readonly world: World;
}

/**
 * Searches below a root with ripgrep, in files that match the glob. Throws `spawn_failed` when the program does not
 * exist, and an `invalid_args` ToolError for an invalid expression.
 */
export async function searchWithRipgrep(
  request: SearchRequest,
  { program, root, world }: RipgrepProgram,
): Promise<SearchReport> {
  const { maxHits, signal, onHit, matchesGlob } = request;
  let partialLine = "";
  let count = 0;
  let isTruncated = false;
  const running = await startProcess(program, createRipgrepArgv(request), {
    cwd: root,
    signal,
    world,
    maxBytes: 16 * 1024,
    onOutput: (chunk, stream) => {
      if (stream === "stderr" || isTruncated) return;
      const lines = (partialLine + chunk).split("\n");
      partialLine = lines.pop() ?? "";
      for (const line of lines) {
        const hit = parseHit(line);
        if (hit === undefined || matchesGlob?.(hit.path) === false) continue;
        if (count === maxHits) {
          isTruncated = true;
          void running.stop();
          return;
        }
        count++;
        onHit(hit);
      }
    },
  });
  const { exitCode, ended, stderr } = await running.result;
  if (ended === "cancelled") throw new HostError("cancelled", "The search was cancelled.");
  if (isTruncated || exitCode === 0 || exitCode === 1) return { isTruncated, skippedFiles: 0 };
  // Exit code 2: some files are unreadable, or the expression is invalid.
  if (exitCode === 2 && !/regex|glob/.test(stderr))
    return { isTruncated, skippedFiles: stderr.trim().split("\n").length };
  throw ToolError.invalidArgs(`The search failed: ${stderr.trim() || `exit code ${exitCode}`}`);
}

/** Creates the arguments of ripgrep; ignores the same files as `list_files`. */
export function createRipgrepArgv({
  pattern,
  glob,
  searchPath,
}: Pick<SearchRequest, "pattern" | "glob" | "searchPath">): string[] {
  return [
    "--no-config",
    "--color=never",
    "--no-heading",
    "--with-filename",
    "--line-number",
    "--null",
    "--sort=path",
    // More columns than shown, but bounded, so that a file with a huge line does not exhaust the memory.
    "--max-columns=1000",
    "--max-columns-preview",
    "--hidden",
    "--no-require-git",
    "--no-ignore-dot",
    "--no-ignore-exclude",
    "--no-ignore-global",
    // Ignore rules above the workspace do not apply; rules between the workspace and the searched folder apply.
    ...(searchPath === "" ? ["--no-ignore-parent"] : []),
    "--glob=!.git",
    "--glob=!node_modules",
    ...toTypeArguments(glob),
    `--regexp=${pattern}`,
    "--",
    searchPath === "" ? "./" : `./${searchPath}`,
  ];
}

/** Name globs with the same meaning in ripgrep and in this package. */
const plainGlob = /^[\w.?-]*\*?[\w.?-]*(?:\{[\w.-]+(?:,[\w.-]+)+\})?$/;

/**
 * Converts a glob to a file type of ripgrep, so that ripgrep opens no other files; its `--glob` option would also
 * open files named in .gitignore. Other globs are applied to the output lines by the caller.
 */
function toTypeArguments(glob: string | undefined): readonly string[] {
  return glob !== undefined && plainGlob.test(glob) ? [`--type-add=wanted:${glob}`, "--type=wanted"] : [];
}

/** Parses a line of output: `path`, a zero byte, `line:text`. */
function parseHit(output: string): { path: string; line: number; text: string } | undefined {
  const zero = output.indexOf("\0");
  const colon = output.indexOf(":", zero);
  if (zero === -1 || colon === -1) return undefined;
  const path = output.slice(output.startsWith("./") ? 2 : 0, zero);
  return { path, line: Number(output.slice(zero + 1, colon)), text: formatLine(output.slice(colon + 1)) };
}
