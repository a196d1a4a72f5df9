/** What the tools that run commands share: one command in a group of its own, watched, bounded, and its end told. */
import { join } from "node:path";
import {
  type ArtifactDraft,
  isToolError,
  type JsonSchemaInput,
  jsonSchemaInput,
  optionNames,
  StatewrightError,
  systemWorld,
  ToolError,
  type ToolOutput,
  type ToolRuntime,
  type ToolSafety,
} from "@statewright/core";
import { isHostError, type RunningProcess, startProcess, workspace } from "@statewright/host";
import { OutputLog } from "./output-log.ts";
import { pacedUpdates } from "./paced-updates.ts";
import { hostFailure } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** How commands are run. */
export interface ShellOptions extends ToolOptions {
  /** The shell, found on PATH, or a path to it; in the place of bash any POSIX shell. */
  readonly shell?: string;
  /** Variables that commands get by value. */
  readonly env?: Readonly<Record<string, string>>;
  /** Variables of ours that commands get beyond PATH, HOME, LANG, LC_*, TERM, TMPDIR and TZ: their names, or `all`. */
  readonly inherit?: readonly string[] | "all";
  /** How long a command may run when the call does not say, in milliseconds. Default 120,000. */
  readonly timeoutMs?: number;
  /** The most that a call may ask for. Default 600,000. */
  readonly maxTimeoutMs?: number;
  /** How long a command that has to end may take before it is killed. Default 2,000 ms. */
  readonly graceMs?: number;
  /** How much of the end of an output the model sees, in bytes; with more, the whole is an artifact. Default 6,000. */
  readonly tailBytes?: number;
  /** How much of an output is kept, in bytes: its beginning and its end. Default 8 MiB. */
  readonly logBytes?: number;
  /** What an exit code other than 0 is: a result like any other (default), or an error. */
  readonly nonZero?: "result" | "error";
}

const shellNames = optionNames<Omit<ShellOptions, keyof ToolOptions>>({
  shell: true,
  env: true,
  inherit: true,
  timeoutMs: true,
  maxTimeoutMs: true,
  graceMs: true,
  tailBytes: true,
  logBytes: true,
  nonZero: true,
});

/** Throws `invalid_option` for what a shell cannot be made with. */
export function checkShellOptions(maker: string, options: ShellOptions): void {
  checkToolOptions(maker, options, shellNames);
  const { nonZero = "result" } = options;
  if (nonZero === "result" || nonZero === "error") return;
  throw new StatewrightError("invalid_option", {
    what: `nonZero of ${maker} is ${JSON.stringify(nonZero)}`,
    next: 'Give "result" or "error"',
  });
}

/** What the model gives to a shell. */
export interface ShellArgs {
  readonly command: string;
  readonly timeout_ms?: number;
  readonly cwd?: string;
}

/** What people and programs learn of a command. */
export interface ShellDetails {
  readonly exitCode: number;
  /** The signal that ended it. */
  readonly signal: string | null;
  readonly success: boolean;
}

/** What every shell says of itself. */
export const shellSafety: ToolSafety = {
  access: "destructive",
  process: true,
  network: true,
  filesystem: "write",
  confirm: "policy",
};

const defaults = {
  timeoutMs: 120_000,
  maxTimeoutMs: 600_000,
  tailBytes: 6_000,
  logBytes: 8 * 2 ** 20,
  graceMs: 2_000,
} as const;

/** How much of the end of an output a partial result shows, in bytes. */
const updateBytes = 2_000;

/** The arguments of a shell. */
export function shellInput(options: ShellOptions, example: string): JsonSchemaInput<ShellArgs> {
  const { timeoutMs = defaults.timeoutMs, maxTimeoutMs = defaults.maxTimeoutMs } = options;
  return jsonSchemaInput<ShellArgs>({
    type: "object",
    properties: {
      command: { type: "string", minLength: 1, description: `The command, as it is typed. Example: ${example}` },
      timeout_ms: {
        type: "integer",
        minimum: 1,
        maximum: maxTimeoutMs,
        description: `Milliseconds after which the command is stopped. Default ${timeoutMs}.`,
      },
      cwd: { type: "string", description: "The folder to run in, from the workspace. Default: the workspace itself." },
    },
    required: ["command"],
    additionalProperties: false,
  });
}

/** How a shell is called. */
export interface Shell {
  readonly command: string;
  readonly argv: (command: string) => readonly string[];
  /** Its last argument is the script, and its exit code 127 says that a command was not found. */
  readonly isPosix: boolean;
  readonly artifactName: string;
}

/** Run one command to its end. Throws what the model has to read as an error. */
export async function runInShell(
  shell: Shell,
  options: ShellOptions,
  args: ShellArgs,
  runtime: Pick<ToolRuntime, "signal" | "update">,
): Promise<ToolOutput> {
  const { schedule } = options.world ?? systemWorld();
  const { timeoutMs = defaults.timeoutMs, maxTimeoutMs = defaults.maxTimeoutMs } = options;
  const limitMs = Math.min(args.timeout_ms ?? timeoutMs, maxTimeoutMs);
  const log = new OutputLog(options.logBytes ?? defaults.logBytes);
  const updates = pacedUpdates(runtime, schedule, () => ({
    content: log.isBinary ? binaryLine(log) : log.tail(updateBytes),
    details: { outputBytes: log.totalBytes },
  }));
  let running: RunningProcess;
  try {
    running = await startProcess(shell.command, shell.argv(args.command), {
      cwd: await folderOf(options.root, args.cwd),
      isShell: shell.isPosix,
      env: options.env ?? {},
      inherit: options.inherit ?? [],
      timeoutMs: limitMs,
      graceMs: options.graceMs ?? defaults.graceMs,
      signal: runtime.signal,
      // The log keeps the output; a second copy would double it.
      maxBytes: 0,
      onBytes: (chunk, stream) => {
        log.add(chunk, stream);
        updates.touch();
      },
      ...(options.world === undefined ? {} : { world: options.world }),
    });
  } catch (error) {
    throw stoppedBefore(error, runtime.signal);
  }
  const { ended, exitCode, signal = null } = await running.result.finally(() => updates.end());
  log.end();
  const shown = shownOutput(log, options.tailBytes ?? defaults.tailBytes);
  const details: ShellDetails = { exitCode, signal, success: exitCode === 0 };
  if (ended === "cancelled") throw cancelledWith(runtime.signal, shown, details);
  if (ended === "timeout") {
    const message = `The command did not end within ${limitMs} ms and was stopped, with all that it had started.`;
    throw withOutput("timeout", message, shown, details);
  }
  if (exitCode === 127 && shell.isPosix) {
    throw withOutput("not_found", "The shell did not find the command (exit code 127).", shown, details);
  }
  const end = signal === null ? `[exit code ${exitCode}]` : `[exit code ${exitCode}: ended by ${signal}]`;
  if (exitCode !== 0 && options.nonZero === "error")
    throw withOutput("failed", `The command failed (exit code ${exitCode}).`, shown, details);
  const artifacts = artifactsOf(log, shell.artifactName, options.tailBytes ?? defaults.tailBytes);
  return { content: shown === "" ? `[no output]\n${end}` : `${shown}${end}`, details, artifacts };
}

/** The folder to start in, as it really is. Refused before the start, in words that do not name the root. */
async function folderOf(root: string, cwd = "."): Promise<string> {
  const { path, kind } = await workspace(root).stat(cwd);
  if (kind === "folder") return join(root, path);
  throw ToolError.failed(`Cannot run in ${cwd}: it is not a folder. Give the path of a folder.`);
}

/** What the model sees, with a line end behind it; empty when nothing came. */
function shownOutput(log: OutputLog, tailBytes: number): string {
  if (log.isBinary) return `${binaryLine(log)}\n`;
  const text = log.tail(tailBytes);
  const left = log.totalBytes > tailBytes ? log.totalBytes - Buffer.byteLength(text) : 0;
  const head = left > 0 ? `[The first ${left} of ${log.totalBytes} bytes are not shown.]\n` : "";
  return `${head}${text}${text === "" || text.endsWith("\n") ? "" : "\n"}`;
}

function binaryLine(log: OutputLog): string {
  return `[The output is no text: ${log.totalBytes} bytes.]`;
}

function artifactsOf(log: OutputLog, name: string, tailBytes: number): readonly ArtifactDraft[] {
  if (log.isBinary) return [{ name: `${name}.bin`, mimeType: "application/octet-stream", body: log.body() }];
  if (log.totalBytes <= tailBytes) return [];
  return [{ name: `${name}.log`, mimeType: "text/plain", body: log.body().toString("utf8") }];
}

/** A start that did not happen: cancelled, or refused by the system. */
function stoppedBefore(error: unknown, signal: AbortSignal): unknown {
  if (isHostError(error) && error.code === "cancelled" && isToolError(signal.reason)) return signal.reason;
  return hostFailure(error);
}

/** A person, the run or the tool's own time limit has stopped it: only the last is told with what was written. */
function cancelledWith(signal: AbortSignal, shown: string, details: ShellDetails): ToolError {
  const reason: unknown = signal.reason;
  if (!isToolError(reason) || reason.kind !== "timeout") return ToolError.cancelled();
  return withOutput("timeout", `${reason.message}.`, shown, details);
}

function withOutput(
  kind: "timeout" | "not_found" | "failed",
  message: string,
  shown: string,
  details: ShellDetails,
): ToolError {
  return new ToolError(kind, message, { modelMessage: shown === "" ? message : `${shown}[${message}]`, details });
}
