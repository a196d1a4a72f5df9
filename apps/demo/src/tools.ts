/** Tools of the survey. The model passes the arguments; the source tree is injected and not visible to the model. */
import { createHash } from "node:crypto";
import { isHostError, runProcess } from "@statewright/host";
import { defineTool, ToolError, type ToolReturn, type ToolRuntime } from "statewright";
import * as z from "zod";
import { AuditContext } from "./audit-state.ts";
import { countLines } from "./checks.ts";
import { runLoggedEffect } from "./effects-log.ts";
import { formatCount } from "./format-text.ts";
import { isBusy, isRootReadme, type Listing, listFiles, maxEntries, readText } from "./source-tree.ts";

/** Injected values of every tool. */
const inject = {
  root: AuditContext.from((here) => here.root),
  log: AuditContext.from((here) => here.log),
  hold: AuditContext.from((here) => here.hold),
  failFirstAttempt: AuditContext.from((here) => here.failFirstAttempt),
};
type Injected = {
  readonly root: string;
  readonly log: string;
  readonly hold: boolean;
  readonly failFirstAttempt: boolean;
};
type Runtime = ToolRuntime<unknown, Injected>;

const noInput = z.object({});
const readSafety = { access: "read", filesystem: "read" } as const;

/** Retries after a shortage of file handles or locks: such an error has no side effect. */
const retry = { attempts: 3, initialMs: 50, on: ["unavailable"] } as const;

const listFilesTool = defineTool({
  name: "list_files",
  description: "List the files of the source tree, or of one of its folders, with their paths.",
  input: z.object({ folder: z.string().optional().describe("Folder to list; the whole tree by default") }),
  inject,
  effect: "pure",
  safety: readSafety,
  retry,
  run: ({ folder }, runtime) =>
    runEffect(runtime, async ({ injected, signal, attempt }) => {
      if (injected.failFirstAttempt && attempt === 1)
        throw ToolError.unavailable("too many open files (simulated by the demo to show a retry)");
      const listing = await listFiles(injected.root, signal, folder);
      // The facts describe the whole tree; the listing of one folder is for the model only.
      if (folder !== undefined) return formatListing(listing);
      return {
        content: formatListing(listing),
        command: {
          update: {
            facts: { files: summarizeListing(listing) },
            counts: { filesListed: listing.files.length },
            readme: listing.files.find(isRootReadme) ?? null,
          },
        },
      };
    }),
});

export const readFileTool = defineTool({
  name: "read_file",
  description: "Read the beginning of one file of the source tree.",
  input: z.object({ path: z.string().describe("Path as returned by list_files") }),
  inject,
  effect: "pure",
  safety: readSafety,
  retry,
  run: ({ path }, runtime) =>
    runEffect(runtime, async ({ injected }) => {
      const file = await readText(injected.root, path);
      if (file.kind === "text") return truncateText(file.text);
      if (file.kind === "missing") throw ToolError.notFound(`File "${path}" does not exist.`);
      if (file.kind === "outside") throw ToolError.invalidArgs(`"${path}" is outside the source tree.`);
      throw ToolError.failed(
        file.kind === "unreadable"
          ? `"${path}" is not readable.`
          : `"${path}" is ${file.kind}, not a readable text file.`,
      );
    }),
});

const gitHistoryTool = defineTool({
  name: "git_history",
  description: "Read the newest commits of the source tree and the files that change most.",
  input: z.object({ commits: z.int().min(1).max(500).default(200) }),
  inject,
  effect: "pure",
  safety: { ...readSafety, process: true },
  timeoutMs: 20_000,
  run: ({ commits }, runtime) =>
    runEffect(runtime, async ({ injected, signal }) => {
      const log = await readGitLog(injected.root, commits, signal);
      return "absent" in log ? createFactResult("history", log.absent, log.absent) : summarizeGitLog(log.text);
    }),
});

const countLinesTool = defineTool({
  name: "count_lines",
  description: "Count the lines of every file, by language.",
  input: noInput,
  inject,
  effect: "pure",
  safety: readSafety,
  retry,
  run: (_args, runtime) =>
    runEffect(runtime, async () => {
      const lines = new Map<string, number>();
      const { visited, skipped } = await visitTexts(runtime, (path, text) => {
        const kind = getExtension(path);
        lines.set(kind, (lines.get(kind) ?? 0) + countLines(text));
      });
      const total = [...lines.values()].reduce((sum, number) => sum + number, 0);
      const largest = listTopEntries(lines, 4).map(([kind, number]) => `${kind} ${number.toLocaleString("en")}`);
      const fact = `${formatCount(total, "line")}${largest.length > 0 ? ` (${largest.join(", ")})` : ""}${skipped > 0 ? `; ${formatCount(skipped, "file")} not read as text` : ""}`;
      return { content: fact, command: { update: { facts: { lines: fact }, counts: { filesRead: visited } } } };
    }),
});

const scanTodosTool = defineTool({
  name: "scan_todos",
  description: "Find the TODO, FIXME and HACK comments of every file.",
  input: noInput,
  inject,
  effect: "pure",
  safety: readSafety,
  retry,
  run: (_args, runtime) =>
    runEffect(runtime, async () => {
      const found: string[] = [];
      await visitTexts(runtime, (path, text) => {
        for (const [index, line] of text.split("\n").entries())
          if (/(\/\/|#|\*|--|<!--)\s*(TODO|FIXME|HACK)\b/.test(line))
            found.push(`${path}:${index + 1}: ${line.trim().slice(0, 120)}`);
      });
      const fact =
        found.length === 0
          ? "no TODO, FIXME or HACK comments"
          : `${formatCount(found.length, "comment")} TODO, FIXME or HACK`;
      return createFactResult("todos", fact, [fact, ...found.slice(0, 20)].join("\n"));
    }),
});

const findCopiesTool = defineTool({
  name: "find_copies",
  description: "Find files that are exact copies of each other.",
  input: noInput,
  inject,
  effect: "pure",
  safety: readSafety,
  retry,
  run: (_args, runtime) =>
    runEffect(runtime, async () => {
      const byHash = new Map<string, string[]>();
      await visitTexts(runtime, (path, text) => {
        if (text.length < 200) return;
        const hash = createHash("sha256").update(text).digest("hex");
        byHash.set(hash, [...(byHash.get(hash) ?? []), path]);
      });
      const copies = [...byHash.values()].filter((paths) => paths.length > 1);
      const fact =
        copies.length === 0 ? "no duplicate files" : `${formatCount(copies.length, "text")} in more than one file`;
      return createFactResult(
        "copies",
        fact,
        [fact, ...copies.slice(0, 10).map((paths) => paths.join(" = "))].join("\n"),
      );
    }),
});

/** All tools, for the tool node and the model. */
export const tools = [
  listFilesTool,
  readFileTool,
  gitHistoryTool,
  countLinesTool,
  scanTodosTool,
  findCopiesTool,
] as const;

/** Runs a tool between its two lines in the effects log. A busy host becomes a retryable error. */
function runEffect<Value>(
  runtime: Runtime,
  work: (runtime: Runtime) => Promise<ToolReturn<Value>>,
): Promise<ToolReturn<Value>> {
  const { injected, idempotencyKey: key, toolName: name } = runtime;
  return runLoggedEffect(injected.log, { key, name }, () => work(runtime).catch(rethrowBusyAsUnavailable));
}

function rethrowBusyAsUnavailable(error: unknown): never {
  if (isHostError(error) && isBusy(error.systemCode))
    throw ToolError.unavailable(`Host is busy (${error.systemCode}).`);
  throw error;
}

/**
 * Returns the first 4,000 characters, truncated between words: a truncated secret would not match the redaction
 * patterns.
 */
function truncateText(text: string): string {
  return text.length <= 4_000 ? text : `${text.slice(0, 4_000).replace(/\S*$/, "")}[… truncated]`;
}

/** Maximum length of the listing for the model: longer results are saved as artifacts. */
const maxListingLength = 6_000;

/** Formats a listing for the model: paths by depth, and the number of omitted files by top-level folder. */
function formatListing({ files, more, unreadable, skipped }: Listing): string {
  if (files.length === 0 && unreadable.length === 0) return "(the tree is empty)";
  const byDepth = files.toSorted((left, right) => left.split("/").length - right.split("/").length);
  const shown = takeUpToLength(byDepth, maxListingLength);
  const omitted = new Map<string, number>();
  for (const path of byDepth.slice(shown.length)) {
    const folder = `${path.slice(0, Math.max(0, path.indexOf("/")))}/`;
    omitted.set(folder, (omitted.get(folder) ?? 0) + 1);
  }
  const rest = listTopEntries(omitted, 20).map(([folder, count]) => `${folder} ${count.toLocaleString("en")}`);
  const notes = [
    omitted.size > 0 ? `(and ${formatCount(files.length - shown.length, "more file")}: ${rest.join(", ")})` : "",
    more ? `(the tree is larger: only the first ${maxEntries.toLocaleString("en")} entries are listed)` : "",
    unreadable.length > 0 ? `(not readable: ${unreadable.join(", ")})` : "",
    skipped.length > 0 ? `(skipped folders: ${skipped.join(", ")})` : "",
  ];
  return [...shown, ...notes.filter((note) => note !== "")].join("\n");
}

/** Takes the first paths whose lines have at most `maxLength` characters. */
function takeUpToLength(paths: readonly string[], maxLength: number): readonly string[] {
  let length = 0;
  const end = paths.findIndex((path) => {
    length += path.length + 1;
    return length > maxLength;
  });
  return end === -1 ? paths : paths.slice(0, end);
}

function summarizeListing({ files, more, unreadable, skipped }: Listing): string {
  if (files.length === 0 && unreadable.length === 0) return "none: the tree is empty";
  return [
    `${formatCount(files.length, "file")}${more ? ", the first of a larger tree" : ""}`,
    ...(unreadable.length > 0 ? [`${formatCount(unreadable.length, "path")} not readable`] : []),
    ...(skipped.length > 0 ? [`skipped folders: ${skipped.join(", ")}`] : []),
  ].join(", ");
}

/** Creates a tool result with text for the model and a fact for the graph state. */
function createFactResult(name: string, fact: string, content: string): ToolReturn<never> {
  return { content, command: { update: { facts: { [name]: fact } } } };
}

/** Calls `work` with the text of every file and reports progress. Returns the numbers of files with and without text. */
async function visitTexts(
  runtime: Runtime,
  work: (path: string, text: string) => void,
): Promise<{ readonly visited: number; readonly skipped: number }> {
  const { injected, signal, progress } = runtime;
  const { files } = await listFiles(injected.root, signal);
  const half = Math.floor(files.length / 2);
  let skipped = 0;
  for (const [index, path] of files.entries()) {
    signal.throwIfAborted();
    if (index === half) await reportHalfway(runtime, half, files.length);
    const file = await readText(injected.root, path);
    if (file.kind === "text") work(path, file.text);
    else skipped += 1;
    if (index > half && index % 500 === 0)
      progress(`${index.toLocaleString("en")} of ${formatCount(files.length, "file")}`);
  }
  if (files.length === 0) await reportHalfway(runtime, 0, 0);
  return { visited: files.length - skipped, skipped };
}

/**
 * Reports progress at half of the files. With `hold` it suspends until the demo kills the process, so that the
 * journal has a started effect without a result.
 */
async function reportHalfway(runtime: Runtime, done: number, total: number): Promise<void> {
  const { injected, toolName, idempotencyKey, emit, progress, signal } = runtime;
  progress(
    `${done.toLocaleString("en")} of ${formatCount(total, "file")}${injected.hold ? "; suspended until this process is killed" : ""}`,
  );
  if (!injected.hold) return;
  emit("tool.suspended", { tool: toolName, key: idempotencyKey });
  await new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(ToolError.cancelled()), { once: true });
  });
}

/** Returns the git log, or the reason for its absence. Executes no command from the repository's own settings. */
async function readGitLog(
  root: string,
  commits: number,
  signal: AbortSignal,
): Promise<{ readonly text: string } | { readonly absent: string }> {
  const configArgs = ["-c", "log.showSignature=false", "-c", "core.fsmonitor=false", "-c", "core.pager=cat"];
  const logArgs = [
    "log",
    `--max-count=${commits}`,
    "--format=%x01%h %as %s",
    "--name-only",
    "--no-ext-diff",
    "--no-textconv",
  ];
  try {
    const { exitCode, stdout, stderr } = await runProcess("git", ["-C", root, ...configArgs, ...logArgs, "--", "."], {
      signal,
      env: { LC_ALL: "C", GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0" },
    });
    if (exitCode === 0) return { text: stdout };
    if (/not a git repository/i.test(stderr))
      return { absent: "no git history: this folder is not in a git repository" };
    if (/does not have any commits/i.test(stderr)) return { absent: "no git history: the repository has no commits" };
    if (/dubious ownership/i.test(stderr))
      return { absent: "no git history: git refuses a repository owned by another user" };
    throw ToolError.failed(`git exited with code ${exitCode}: ${stderr.trim().split("\n")[0] ?? ""}`);
  } catch (error) {
    if (!isHostError(error)) throw error;
    if (error.code === "cancelled") throw ToolError.cancelled();
    if (error.systemCode === "ENOENT") return { absent: "no git history: this host has no git" };
    throw ToolError.failed(error.message);
  }
}

function summarizeGitLog(log: string): ToolReturn<never> {
  const commits = log.split("\u0001").filter((commit) => commit.trim() !== "");
  const changes = new Map<string, number>();
  for (const commit of commits)
    for (const path of commit.split("\n").slice(1)) if (path !== "") changes.set(path, (changes.get(path) ?? 0) + 1);
  const mostChanged = listTopEntries(changes, 5).map(([path, times]) => `${path} (${times})`);
  const commitLines = commits.map((commit) => commit.split("\n")[0] ?? "");
  const fact =
    commitLines.length === 0
      ? "no git history: no commit touches this folder"
      : `${formatCount(commitLines.length, "commit")} read, the newest on ${commitLines[0]?.split(" ")[1] ?? "?"}`;
  return createFactResult(
    "history",
    fact,
    [fact, ...commitLines.slice(0, 15), "", "Changed most:", ...mostChanged].join("\n"),
  );
}

function listTopEntries(counts: ReadonlyMap<string, number>, limit: number): readonly (readonly [string, number])[] {
  return [...counts]
    .sort(([keyA, countA], [keyB, countB]) => countB - countA || (keyA < keyB ? -1 : 1))
    .slice(0, limit);
}

/** Returns the file extension, as an approximation of the language. */
function getExtension(path: string): string {
  const [, extension] = /\.([A-Za-z0-9]+)$/.exec(path) ?? [];
  return extension?.toLowerCase() ?? "other";
}
