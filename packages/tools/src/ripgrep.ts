/** A search by ripgrep: its arguments, and what its lines say. */
import { ToolError, type World } from "@statewright/core";
import { HostError, startProcess } from "@statewright/host";
import { type SearchReport, type SearchRequest, shownLine } from "./search-hits.ts";

/**
 * Search below a root with ripgrep, in files that fit. Throws `spawn_failed` where the program is not there, an
 * `invalid_args` ToolError for an expression that it does not take.
 */
export async function searchWithRipgrep(
  root: string,
  program: string,
  request: SearchRequest,
  fits: ((path: string) => boolean) | undefined,
  world: World,
): Promise<SearchReport> {
  const { maxHits, signal, onHit } = request;
  let rest = "";
  let count = 0;
  let isCut = false;
  const running = await startProcess(program, ripgrepArgv(request), {
    cwd: root,
    signal,
    world,
    maxBytes: 16 * 1024,
    onOutput: (chunk, stream) => {
      if (stream === "stderr" || isCut) return;
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const hit = hitOf(line);
        if (hit === undefined || fits?.(hit.path) === false) continue;
        if (count === maxHits) {
          isCut = true;
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
  if (isCut || exitCode === 0 || exitCode === 1) return { isCut, unread: 0 };
  // With 2 some files could not be read, or the expression is none.
  if (exitCode === 2 && !/regex|glob/.test(stderr)) return { isCut, unread: stderr.trim().split("\n").length };
  throw ToolError.invalidArgs(`The search cannot be made: ${stderr.trim() || `exit code ${exitCode}`}`);
}

/** The arguments: what is searched and left out is the same as with `list_files`. */
export function ripgrepArgv({ pattern, glob, place }: Pick<SearchRequest, "pattern" | "glob" | "place">): string[] {
  return [
    "--no-config",
    "--color=never",
    "--no-heading",
    "--with-filename",
    "--line-number",
    "--null",
    "--sort=path",
    // More of a line than is shown, and not so much that a file of one line fills the memory.
    "--max-columns=1000",
    "--max-columns-preview",
    "--hidden",
    "--no-require-git",
    "--no-ignore-dot",
    "--no-ignore-exclude",
    "--no-ignore-global",
    // Rules above the workspace are none of its own; those between it and the place to look at count.
    ...(place === "" ? ["--no-ignore-parent"] : []),
    "--glob=!.git",
    "--glob=!node_modules",
    ...typeOf(glob),
    `--regexp=${pattern}`,
    "--",
    place === "" ? "./" : `./${place}`,
  ];
}

/** A glob about names that ripgrep reads as we do. */
const plainGlob = /^[\w.?-]*\*?[\w.?-]*(?:\{[\w.-]+(?:,[\w.-]+)+\})?$/;

/**
 * A glob as a type of files, so that ripgrep opens no others: its own option for globs would also open what .gitignore names.
 * Others than plain ones are left to whoever reads the lines.
 */
function typeOf(glob: string | undefined): readonly string[] {
  return glob !== undefined && plainGlob.test(glob) ? [`--type-add=wanted:${glob}`, "--type=wanted"] : [];
}

/** `path`, a zero byte, `line:text`. */
function hitOf(output: string): { path: string; line: number; text: string } | undefined {
  const zero = output.indexOf("\0");
  const colon = output.indexOf(":", zero);
  if (zero === -1 || colon === -1) return undefined;
  const path = output.slice(output.startsWith("./") ? 2 : 0, zero);
  return { path, line: Number(output.slice(zero + 1, colon)), text: shownLine(output.slice(colon + 1)) };
}
