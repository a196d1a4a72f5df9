/** The tools of the survey. The model sees their arguments; the source tree is injected and never shown to it. */
import { createHash } from "node:crypto";
import { isHostError, runProcess } from "@statewright/host";
import { defineTool, ToolError, type ToolReturn, type ToolRuntime } from "statewright";
import * as z from "zod";
import { Here } from "./audit-state.ts";
import { logged } from "./effects-log.ts";
import { count } from "./format-text.ts";
import { isBusy, listFiles, maxEntries, readText } from "./source-tree.ts";

/** What every tool gets beside the model's arguments. */
const inject = {
  root: Here.from((here) => here.root),
  log: Here.from((here) => here.log),
  hold: Here.from((here) => here.hold),
  hiccup: Here.from((here) => here.hiccup),
};
type Injected = { readonly root: string; readonly log: string; readonly hold: boolean; readonly hiccup: boolean };
type Runtime = ToolRuntime<unknown, Injected>;

const nothing = z.object({});
const reads = { access: "read", filesystem: "read" } as const;

/** A host that is short of file handles or locks says that nothing happened, and is asked again. */
const retry = { attempts: 3, initialMs: 50, on: ["unavailable"] } as const;

const listFilesTool = defineTool({
  name: "list_files",
  description: "List the files of the source tree with their paths.",
  input: nothing,
  inject,
  effect: "pure",
  safety: reads,
  retry,
  run: (_args, runtime) =>
    effect(runtime, async ({ injected, signal, attempt }) => {
      if (injected.hiccup && attempt === 1)
        throw ToolError.unavailable("too many open files (made up by the demo, so that you see a retry)");
      const { files, more, unreadable } = await listFiles(injected.root, signal);
      const shown = files.slice(0, 400);
      const left = files.length - shown.length;
      const notes = [
        left > 0 ? `(and ${left} more files)` : "",
        more ? `(the tree is larger: only its first ${maxEntries} entries are looked at)` : "",
        unreadable.length > 0 ? `(cannot be read: ${unreadable.join(", ")})` : "",
      ];
      if (files.length === 0 && unreadable.length === 0)
        return measured("files", "none: the tree is empty", "(the tree is empty)");
      const fact = `${count(files.length, "file")}${more ? ", the first of a larger tree" : ""}${unreadable.length > 0 ? `, ${count(unreadable.length, "path")} could not be read` : ""}`;
      return measured("files", fact, [...shown, ...notes.filter((note) => note !== "")].join("\n"));
    }),
});

export const readFileTool = defineTool({
  name: "read_file",
  description: "Read the beginning of one file of the source tree.",
  input: z.object({ path: z.string().describe("Path as list_files gives it") }),
  inject,
  effect: "pure",
  safety: reads,
  retry,
  run: ({ path }, runtime) =>
    effect(runtime, async ({ injected }) => {
      const file = await readText(injected.root, path);
      if (file.kind === "text") return beginning(file.text);
      if (file.kind === "missing") throw ToolError.notFound(`There is no file "${path}".`);
      if (file.kind === "outside") throw ToolError.invalidArgs(`"${path}" is not in the source tree.`);
      throw ToolError.failed(
        file.kind === "unreadable" ? `"${path}" cannot be read.` : `"${path}" is ${file.kind}, not a text to read.`,
      );
    }),
});

const gitHistoryTool = defineTool({
  name: "git_history",
  description: "Read the newest commits of the source tree and the files that change most.",
  input: z.object({ commits: z.int().min(1).max(500).default(200) }),
  inject,
  effect: "pure",
  safety: { ...reads, process: true },
  timeoutMs: 20_000,
  run: ({ commits }, runtime) =>
    effect(runtime, async ({ injected, signal }) => {
      const log = await gitLog(injected.root, commits, signal);
      return "absent" in log ? measured("history", log.absent, log.absent) : summary(log.text);
    }),
});

const countLinesTool = defineTool({
  name: "count_lines",
  description: "Count the lines of every file, by language.",
  input: nothing,
  inject,
  effect: "pure",
  safety: reads,
  retry,
  run: (_args, runtime) =>
    effect(runtime, async () => {
      const lines = new Map<string, number>();
      const skipped = await eachText(runtime, (path, text) => {
        const kind = kindOf(path);
        lines.set(kind, (lines.get(kind) ?? 0) + text.split("\n").length);
      });
      const total = [...lines.values()].reduce((sum, number) => sum + number, 0);
      const largest = top(lines, 4).map(([kind, number]) => `${kind} ${number.toLocaleString("en")}`);
      const fact = `${count(total, "line")}${largest.length > 0 ? ` (${largest.join(", ")})` : ""}${skipped > 0 ? `; ${count(skipped, "file")} not read as text` : ""}`;
      return measured("lines", fact, fact);
    }),
});

const scanTodosTool = defineTool({
  name: "scan_todos",
  description: "Find the TODO, FIXME and HACK comments of every file.",
  input: nothing,
  inject,
  effect: "pure",
  safety: reads,
  retry,
  run: (_args, runtime) =>
    effect(runtime, async () => {
      const found: string[] = [];
      await eachText(runtime, (path, text) => {
        for (const [index, line] of text.split("\n").entries())
          if (/(\/\/|#|\*|--|<!--)\s*(TODO|FIXME|HACK)\b/.test(line))
            found.push(`${path}:${index + 1}: ${line.trim().slice(0, 120)}`);
      });
      const fact =
        found.length === 0
          ? "no TODO, FIXME or HACK comments"
          : `${count(found.length, "comment")} TODO, FIXME or HACK`;
      return measured("todos", fact, [fact, ...found.slice(0, 20)].join("\n"));
    }),
});

const findCopiesTool = defineTool({
  name: "find_copies",
  description: "Find files that are exact copies of each other.",
  input: nothing,
  inject,
  effect: "pure",
  safety: reads,
  retry,
  run: (_args, runtime) =>
    effect(runtime, async () => {
      const byHash = new Map<string, string[]>();
      await eachText(runtime, (path, text) => {
        if (text.length < 200) return;
        const hash = createHash("sha256").update(text).digest("hex");
        byHash.set(hash, [...(byHash.get(hash) ?? []), path]);
      });
      const copies = [...byHash.values()].filter((paths) => paths.length > 1);
      const fact =
        copies.length === 0 ? "no file is a copy of another" : `${count(copies.length, "text")} in more than one file`;
      return measured("copies", fact, [fact, ...copies.slice(0, 10).map((paths) => paths.join(" = "))].join("\n"));
    }),
});

/** Every tool, as the graph gives them to its tool node and to the model. */
export const tools = [
  listFilesTool,
  readFileTool,
  gitHistoryTool,
  countLinesTool,
  scanTodosTool,
  findCopiesTool,
] as const;

/** Do the work of a tool between its two lines in the effects log; a host that is short of something is asked again. */
function effect<Value>(
  runtime: Runtime,
  work: (runtime: Runtime) => Promise<ToolReturn<Value>>,
): Promise<ToolReturn<Value>> {
  const { injected, idempotencyKey: key, toolName: name } = runtime;
  return logged(injected.log, { key, name }, () => work(runtime).catch(busyAsUnavailable));
}

function busyAsUnavailable(error: unknown): never {
  if (isHostError(error) && isBusy(error.systemCode))
    throw ToolError.unavailable(`The host is busy (${error.systemCode}).`);
  throw error;
}

/** The first 4,000 characters, cut between two words: half a secret would not be known as one. */
function beginning(text: string): string {
  return text.length <= 4_000 ? text : `${text.slice(0, 4_000).replace(/\S*$/, "")}[… cut here]`;
}

/** A text for the model, and a fact that goes straight into the graph's state. */
function measured(name: string, fact: string, content: string): ToolReturn<never> {
  return { content, command: { update: { facts: { [name]: fact } } } };
}

/** Give the text of every file to `work`, with a line of progress now and then. Returns how many had no text. */
async function eachText(runtime: Runtime, work: (path: string, text: string) => void): Promise<number> {
  const { injected, signal, progress } = runtime;
  const { files } = await listFiles(injected.root, signal);
  const half = Math.floor(files.length / 2);
  let skipped = 0;
  for (const [index, path] of files.entries()) {
    signal.throwIfAborted();
    if (index === half) await halfway(runtime, half, files.length);
    const file = await readText(injected.root, path);
    if (file.kind === "text") work(path, file.text);
    else skipped += 1;
    if (index > half && index % 500 === 0) progress(`${index.toLocaleString("en")} of ${count(files.length, "file")}`);
  }
  if (files.length === 0) await halfway(runtime, 0, 0);
  return skipped;
}

/** Say that half is done. In the process that the demo will kill, stay there: at work, with nothing recorded yet. */
async function halfway(runtime: Runtime, done: number, of: number): Promise<void> {
  const { injected, toolName, idempotencyKey, emit, progress, signal } = runtime;
  progress(
    `${done.toLocaleString("en")} of ${count(of, "file")}${injected.hold ? "; holds here until this process is killed" : ""}`,
  );
  if (!injected.hold) return;
  emit("held", { tool: toolName, key: idempotencyKey });
  await new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(ToolError.cancelled()), { once: true });
  });
}

/** The log of git, or why there is none. Nothing that the repository's own settings name is executed. */
async function gitLog(
  root: string,
  commits: number,
  signal: AbortSignal,
): Promise<{ readonly text: string } | { readonly absent: string }> {
  const safe = ["-c", "log.showSignature=false", "-c", "core.fsmonitor=false", "-c", "core.pager=cat"];
  const what = [
    "log",
    `--max-count=${commits}`,
    "--format=%x01%h %as %s",
    "--name-only",
    "--no-ext-diff",
    "--no-textconv",
  ];
  try {
    const { exitCode, stdout, stderr } = await runProcess("git", ["-C", root, ...safe, ...what, "--", "."], {
      signal,
      env: { LC_ALL: "C", GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0" },
    });
    if (exitCode === 0) return { text: stdout };
    if (/not a git repository/i.test(stderr))
      return { absent: "no git history: this folder is not in a git repository" };
    if (/does not have any commits/i.test(stderr)) return { absent: "no git history: nothing was committed yet" };
    if (/dubious ownership/i.test(stderr))
      return { absent: "no git history: git refuses a repository of another user" };
    throw ToolError.failed(`git ended with exit code ${exitCode}: ${stderr.trim().split("\n")[0] ?? ""}`);
  } catch (error) {
    if (!isHostError(error)) throw error;
    if (error.code === "cancelled") throw ToolError.cancelled();
    if (error.systemCode === "ENOENT") return { absent: "no git history: this host has no git" };
    throw ToolError.failed(error.message);
  }
}

function summary(log: string): ToolReturn<never> {
  const commits = log.split("\u0001").filter((commit) => commit.trim() !== "");
  const changes = new Map<string, number>();
  for (const commit of commits)
    for (const path of commit.split("\n").slice(1)) if (path !== "") changes.set(path, (changes.get(path) ?? 0) + 1);
  const hot = top(changes, 5).map(([path, times]) => `${path} (${times})`);
  const heads = commits.map((commit) => commit.split("\n")[0] ?? "");
  const fact =
    heads.length === 0
      ? "no git history: no commit touches this folder"
      : `${count(heads.length, "commit")} read, the newest on ${heads[0]?.split(" ")[1] ?? "?"}`;
  return measured("history", fact, [fact, ...heads.slice(0, 15), "", "Changed most:", ...hot].join("\n"));
}

function top(counts: ReadonlyMap<string, number>, most: number): readonly (readonly [string, number])[] {
  return [...counts].sort(([one, few], [other, many]) => many - few || (one < other ? -1 : 1)).slice(0, most);
}

/** The language of a file, by its extension; good enough to count by. */
function kindOf(path: string): string {
  const [, extension] = /\.([A-Za-z0-9]+)$/.exec(path) ?? [];
  return extension?.toLowerCase() ?? "other";
}
