/** What a child process sees of our environment, and where its command is found. */
import { accessSync, constants, type Stats, statSync } from "node:fs";
import { delimiter, isAbsolute, resolve } from "node:path";
import { HostError, systemCodeOf } from "./host-error.ts";

/** Which variables a child process gets. */
export interface EnvironmentOptions {
  /** Variables given to the child by value. */
  readonly env?: Readonly<Record<string, string>>;
  /** Variables taken from our own environment beyond the allowlist: their names, or `all`. None by default. */
  readonly inherit?: readonly string[] | "all";
}

const allowed = /^(?:PATH|HOME|LANG|LC_[A-Z]+|TERM|TMPDIR|TZ)$/;
const allowedOnWindows = /^(?:PATH|PATHEXT|SYSTEMROOT|COMSPEC|TEMP|TMP|USERPROFILE|HOMEDRIVE|HOMEPATH|APPDATA)$/i;
const validName = /^[A-Za-z_][A-Za-z0-9_]*$/;
const windows = process.platform === "win32";

/** The environment of a child: the allowlist and `inherit` from ours, then `env`. Throws on a name no shell accepts. */
export function environmentFor(command: string, options: EnvironmentOptions): Record<string, string> {
  const { env = {}, inherit = [] } = options;
  const variables = new Map<string, string>();
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && isInherited(name, inherit)) variables.set(name, value);
  }
  for (const [name, value] of Object.entries(env)) {
    if (!windows && !validName.test(name)) throw invalidVariable(command, name);
    variables.set(name, value);
  }
  return Object.fromEntries(variables);
}

function isInherited(name: string, inherit: readonly string[] | "all"): boolean {
  if (windows) return inherit === "all" || allowedOnWindows.test(name) || inherit.includes(name);
  // A shell stands at the gate of every child and drops other names, some shells silently: so they are never handed on.
  return validName.test(name) && (inherit === "all" || allowed.test(name) || inherit.includes(name));
}

function invalidVariable(command: string, name: string): HostError {
  const rule = "Use letters, digits and _ only, and no digit first.";
  return new HostError("spawn_failed", `Cannot start ${command}: ${JSON.stringify(name)} names no variable. ${rule}`);
}

/**
 * The command as it is to be started: unchanged, once it is known that it can be, or by its path where its name could be
 * read as an option. Throws `spawn_failed` when there is no such command, it is no program, or `cwd` is not a folder.
 */
export function commandToStart(command: string, cwd: string, path: string | undefined): string {
  checkFolder(command, cwd);
  if (windows) return command;
  if (command.includes("/")) {
    const problem = whyNotExecutable(resolve(cwd, command));
    if (problem !== undefined) throw spawnError(command, problem);
    return command;
  }
  let problem = "ENOENT";
  for (const folder of (path ?? "/usr/bin:/bin").split(delimiter)) {
    const file = resolve(cwd, folder, command);
    const found = command === "" ? "ENOENT" : whyNotExecutable(file);
    if (found === undefined) return command.startsWith("-") ? file : command;
    if (found === "EACCES") problem = found;
  }
  throw spawnError(command, problem);
}

function checkFolder(command: string, cwd: string): void {
  const found = look(cwd);
  if (typeof found !== "string" && found.isDirectory()) return;
  const systemCode = typeof found === "string" ? found : "ENOTDIR";
  const advice = isAbsolute(cwd) ? "Create it, or give another cwd." : "Give cwd as an absolute path.";
  const message = `Cannot start ${command}: the working folder ${cwd} cannot be used (${systemCode}). ${advice}`;
  throw new HostError("spawn_failed", message, { systemCode });
}

function whyNotExecutable(file: string): string | undefined {
  const found = look(file);
  if (typeof found === "string") return found;
  try {
    accessSync(file, constants.X_OK);
    return found.isFile() ? undefined : "EACCES";
  } catch (error) {
    return systemCodeOf(error);
  }
}

/** Synchronous, as the spawn itself is: a way through the thread pool for each folder of PATH costs more than the spawn. */
function look(file: string): Stats | string {
  try {
    return statSync(file, { throwIfNoEntry: false }) ?? "ENOENT";
  } catch (error) {
    return systemCodeOf(error);
  }
}

/** A failed start as an error that names the command and the next step. */
export function spawnError(command: string, systemCode: string): HostError {
  const code = systemCode === "E2BIG" ? "too_large" : "spawn_failed";
  const next = nextSteps[systemCode] ?? "See the code of the operating system.";
  return new HostError(code, `Cannot start ${command} (spawn ${systemCode || "failed"}): ${next}`, { systemCode });
}

const nextSteps: Readonly<Record<string, string>> = {
  ENOENT: "there is no such command. Install it, correct its name, or give the full path of its file.",
  EACCES: "it is not an executable file. Give it the right to be executed, or start its interpreter with it.",
  E2BIG: "its arguments and environment are too large. Pass the data as input or in a file.",
  EAGAIN: "no more processes are allowed. End some, or raise the limit (ulimit -u), then try again.",
  ENOMEM: "there is no memory for another process. Free some, then try again.",
  EMFILE: "this process has too many open files. Close some, or raise the limit (ulimit -n), then try again.",
  ENFILE: "the system has too many open files. Close some, then try again.",
  ERR_INVALID_ARG_VALUE: "an argument or a variable holds a zero byte. Remove it.",
};
