/** Plugins in six languages with start command and expected answers; a recording replaces a language that is not installed. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** One call and its expected answer. */
export interface Example {
  readonly args: Readonly<Record<string, string | readonly number[] | readonly unknown[] | object>>;
  readonly answer: string | RegExp;
  readonly isError: boolean;
}

/** A plugin in one language. */
export interface Language {
  readonly name: string;
  readonly tool: string;
  readonly recording: string;
  /** Returns the start command, with build output in the given folder; undefined when the language is not installed. */
  readonly start: (folder: string) => readonly [command: string, ...args: string[]] | undefined;
  readonly good: Example;
  readonly bad: Example;
}

const tools = join(import.meta.dirname, "../../tools");
const recordings = join(import.meta.dirname, "../recorded");
const replayer = join(import.meta.dirname, "replay.mjs");

/** Whether a program is there and runs. */
function has(command: string, ...args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const stats = { name: "stats", good: "n=5  min=1.00  max=5.00  mean=3.00  stddev=1.41" };
const query = {
  tool: "json_query",
  good: { args: { json: '{"users":[{"name":"ann"}]}', path: "users.0.name" }, answer: '"ann"', isError: false },
  bad: { args: { json: "{}", path: "a" }, answer: 'there is nothing at "a"', isError: true },
};
const system = {
  tool: "sys_info",
  good: { args: { part: "system" }, answer: /\S/, isError: false },
  bad: { args: { part: "weather" }, answer: "part must be system, disk or memory", isError: true },
};

export const languages: readonly Language[] = [
  {
    name: "Python",
    tool: stats.name,
    recording: "python.txt",
    start: () => (has("python3", "--version") ? ["python3", join(tools, "python/stats.py")] : undefined),
    good: { args: { numbers: [1, 2, 3, 4, 5] }, answer: stats.good, isError: false },
    bad: { args: { numbers: [1, 2, "x"] }, answer: "element 2 is not a number", isError: true },
  },
  {
    name: "TypeScript (Node)",
    ...query,
    recording: "typescript.txt",
    start: () => [process.execPath, join(tools, "typescript/json_query.ts")],
  },
  {
    name: "TypeScript (Deno)",
    ...query,
    recording: "typescript.txt",
    start: () => (has("deno", "--version") ? ["deno", "run", join(tools, "typescript/json_query.ts")] : undefined),
  },
  {
    name: "sh",
    ...system,
    recording: "bash.txt",
    start: () => (has("sh", "-c", "exit 0") ? ["sh", join(tools, "bash/sys_info.sh")] : undefined),
  },
  {
    name: "bash",
    ...system,
    recording: "bash.txt",
    start: () => (has("bash", "--version") ? ["bash", join(tools, "bash/sys_info.sh")] : undefined),
  },
  {
    name: "Rust",
    tool: "file_info",
    recording: "rust.txt",
    start: (folder) => {
      const program = join(folder, "file_info");
      return has("rustc", join(tools, "rust/file_info.rs"), "-o", program) ? [program] : undefined;
    },
    good: { args: { path: "/" }, answer: "/: folder", isError: false },
    bad: { args: { path: "no/such/file" }, answer: /^Cannot read no\/such\/file: /, isError: true },
  },
  {
    name: "Go",
    tool: "run_command",
    recording: "go.txt",
    start: (folder) => {
      const program = join(folder, "bash_plugin");
      return has("go", "build", "-o", program, join(tools, "go/bash_plugin.go")) ? [program] : undefined;
    },
    good: { args: { command: "echo hello" }, answer: "hello\n", isError: false },
    bad: { args: { command: "" }, answer: "command is empty", isError: true },
  },
  {
    name: "Ruby",
    tool: "template",
    recording: "ruby.txt",
    start: () => (has("ruby", "--version") ? ["ruby", join(tools, "ruby/template.rb")] : undefined),
    good: { args: { template: "Dear {{who}}", values: { who: "Ann" } }, answer: "Dear Ann", isError: false },
    bad: { args: { template: "{{x}}", values: {} }, answer: "there is no value for x", isError: true },
  },
];

/** Request and response lines recorded with the language installed. */
export function readRecording({ recording }: Language): {
  readonly sent: readonly string[];
  readonly answered: readonly string[];
} {
  const lines = readFileSync(join(recordings, recording), "utf8").split("\n");
  const marked = (mark: string) => lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length));
  return { sent: marked("> "), answered: marked("< ") };
}

/** Returns the command that replays the recording line for line and ignores every other line. */
export function replay({ recording }: Language): readonly [command: string, ...args: string[]] {
  return [process.execPath, replayer, join(recordings, recording)];
}

/** Creates a folder for build output, with a function that removes it. */
export function buildFolder(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "statewright-plugins-"));
  return { path, remove: () => rmSync(path, { recursive: true }) };
}

/** Records the languages replaced by recordings, for the test summary. */
export function noteAbsent(names: readonly string[]): void {
  const reports = join(import.meta.dirname, "../../.reports");
  mkdirSync(reports, { recursive: true });
  writeFileSync(join(reports, "absent.txt"), names.join("\n"));
}
