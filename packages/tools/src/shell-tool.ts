/** Shared implementation of the shell tools: runs a command in a new process group, with bounded output. */
import { join } from "node:path";
import {
  type ArtifactDraft,
  isToolError,
  ToolError,
  type ToolOutput,
  type ToolRuntime,
  type ToolSafety,
} from "@statewright/core";
import {
  checkChoice,
  type JsonSchemaInput,
  jsonSchemaInput,
  listOptionNames,
  systemWorld,
} from "@statewright/core/adapter";
import { isHostError, type RunningProcess, startProcess, workspace } from "@statewright/host";
import { OutputLog } from "./output-log.ts";
import { createPacedUpdates } from "./paced-updates.ts";
import { toToolError } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** Shell, environment, timeouts and output limits of commands. */
export interface ShellOptions extends ToolOptions {
  /** Name of the shell on PATH, or its path. For `bash`, any POSIX shell. */
  readonly shell?: string;
  /** Environment variables of commands. */
  readonly env?: Readonly<Record<string, string>>;
  /** Names of inherited environment variables besides PATH, HOME, LANG, LC_*, TERM, TMPDIR and TZ; or `all`. */
  readonly inherit?: readonly string[] | "all";
  /** Default timeout of a command in milliseconds. Default 120,000. */
  readonly timeoutMs?: number;
  /** Maximum timeout that a call may request, in milliseconds. Default 600,000. */
  readonly maxTimeoutMs?: number;
  /** Milliseconds between the termination signal and the kill of a command. Default 2,000. */
  readonly graceMs?: number;
  /** Bytes at the end of the output shown to the model; larger output becomes an artifact. Default 6,000. */
  readonly tailBytes?: number;
  /** Maximum stored bytes of an output: the beginning and the end. Default 8 MiB. */
  readonly logBytes?: number;
  /** Treatment of a nonzero exit code: a normal result (default), or an error. */
  readonly nonZero?: "result" | "error";
}

const shellOptionNames = listOptionNames<Omit<ShellOptions, keyof ToolOptions>>({
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

/** Throws `invalid_option` for invalid shell options. */
export function checkShellOptions(factory: string, options: ShellOptions): void {
  checkToolOptions(factory, options, shellOptionNames);
  const { nonZero = "result" } = options;
  checkChoice(factory, { nonZero }, ["result", "error"]);
}

/** Arguments of a shell tool. */
export interface ShellArgs {
  readonly command: string;
  readonly timeout_ms?: number;
  readonly cwd?: string;
}

/** Details of a finished command for applications. */
export interface ShellDetails {
  readonly exitCode: number;
  /** Signal that ended the command; null for a normal exit. */
  readonly signal: string | null;
  readonly success: boolean;
}

/** Safety metadata of all shell tools. */
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

/** Bytes at the end of the output shown in a partial result. */
const updateBytes = 2_000;

/** Creates the input schema of a shell tool. */
export function createShellInput(options: ShellOptions, example: string): JsonSchemaInput<ShellArgs> {
  const { timeoutMs = defaults.timeoutMs, maxTimeoutMs = defaults.maxTimeoutMs } = options;
  return jsonSchemaInput<ShellArgs>({
    type: "object",
    properties: {
      command: { type: "string", minLength: 1, description: `The command line. Example: ${example}` },
      timeout_ms: {
        type: "integer",
        minimum: 1,
        maximum: maxTimeoutMs,
        description: `Milliseconds after which the command is stopped. Default ${timeoutMs}.`,
      },
      cwd: {
        type: "string",
        description: "The working folder, relative to the workspace. Default: the workspace itself.",
      },
    },
    required: ["command"],
    additionalProperties: false,
  });
}

/** Description of a shell. */
export interface Shell {
  readonly command: string;
  readonly createArgv: (command: string) => readonly string[];
  /** True when the script is the last argument, and exit code 127 means that a command was not found. */
  readonly isPosix: boolean;
  readonly artifactName: string;
}

/** Runs a command to the end. Throws a ToolError for errors reported to the model. */
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
  const updates = createPacedUpdates(runtime, schedule, () => ({
    content: log.isBinary ? describeBinary(log) : log.readTail(updateBytes),
    details: { outputBytes: log.totalBytes },
  }));
  let running: RunningProcess;
  try {
    running = await startProcess(shell.command, shell.createArgv(args.command), {
      cwd: await resolveFolder(options.root, args.cwd),
      isShell: shell.isPosix,
      env: options.env ?? {},
      inherit: options.inherit ?? [],
      timeoutMs: limitMs,
      graceMs: options.graceMs ?? defaults.graceMs,
      signal: runtime.signal,
      // The log stores the output; a second copy would double the memory.
      maxBytes: 0,
      onBytes: (chunk, stream) => {
        log.add(chunk, stream);
        updates.touch();
      },
      ...(options.world === undefined ? {} : { world: options.world }),
    });
  } catch (error) {
    throw toStartError(error, runtime.signal);
  }
  const { ended, exitCode, signal = null } = await running.result.finally(() => updates.end());
  log.end();
  const output = formatOutput(log, options.tailBytes ?? defaults.tailBytes);
  const details: ShellDetails = { exitCode, signal, success: exitCode === 0 };
  if (ended === "cancelled") throw toCancelError(runtime.signal, output, details);
  if (ended === "timeout") {
    const message = `The command did not end within ${limitMs} ms and was stopped, with all processes it had started.`;
    throw createOutputError("timeout", message, output, details);
  }
  if (exitCode === 127 && shell.isPosix) {
    throw createOutputError("not_found", "The shell did not find the command (exit code 127).", output, details);
  }
  const end = signal === null ? `[exit code ${exitCode}]` : `[exit code ${exitCode}: ended by ${signal}]`;
  if (exitCode !== 0 && options.nonZero === "error")
    throw createOutputError("failed", `The command failed (exit code ${exitCode}).`, output, details);
  const artifacts = createArtifacts(log, shell.artifactName, options.tailBytes ?? defaults.tailBytes);
  return { content: output === "" ? `[no output]\n${end}` : `${output}${end}`, details, artifacts };
}

/**
 * Resolves the real path of the working folder. Rejects an invalid folder before the start, with a message that does
 * not reveal the root.
 */
async function resolveFolder(root: string, cwd = "."): Promise<string> {
  const { path, kind } = await workspace(root).stat(cwd);
  if (kind === "folder") return join(root, path);
  throw ToolError.failed(`Cannot run in ${cwd}: it is not a folder. Use the path of a folder.`);
}

/** Formats the output for the model, with a trailing line end; empty without output. */
function formatOutput(log: OutputLog, tailBytes: number): string {
  if (log.isBinary) return `${describeBinary(log)}\n`;
  const text = log.readTail(tailBytes);
  const hiddenBytes = log.totalBytes > tailBytes ? log.totalBytes - Buffer.byteLength(text) : 0;
  const head = hiddenBytes > 0 ? `[The first ${hiddenBytes} of ${log.totalBytes} bytes are not shown.]\n` : "";
  return `${head}${text}${text === "" || text.endsWith("\n") ? "" : "\n"}`;
}

function describeBinary(log: OutputLog): string {
  return `[The output is binary: ${log.totalBytes} bytes.]`;
}

function createArtifacts(log: OutputLog, name: string, tailBytes: number): readonly ArtifactDraft[] {
  if (log.isBinary) return [{ name: `${name}.bin`, mimeType: "application/octet-stream", body: log.toBuffer() }];
  if (log.totalBytes <= tailBytes) return [];
  return [{ name: `${name}.log`, mimeType: "text/plain", body: log.toBuffer().toString("utf8") }];
}

/** Converts an error before the start of the command: a cancel, or a system error. */
function toStartError(error: unknown, signal: AbortSignal): unknown {
  if (isHostError(error) && error.code === "cancelled" && isToolError(signal.reason)) return signal.reason;
  return toToolError(error);
}

/**
 * Creates the error of a stopped command. Includes the output only for the tool's own timeout, not for a cancel by a
 * person or the run.
 */
function toCancelError(signal: AbortSignal, output: string, details: ShellDetails): ToolError {
  const reason: unknown = signal.reason;
  if (!isToolError(reason) || reason.kind !== "timeout") return ToolError.cancelled();
  return createOutputError("timeout", `${reason.message}.`, output, details);
}

function createOutputError(
  kind: "timeout" | "not_found" | "failed",
  message: string,
  output: string,
  details: ShellDetails,
): ToolError {
  return new ToolError(kind, message, { modelMessage: output === "" ? message : `${output}[${message}]`, details });
}
