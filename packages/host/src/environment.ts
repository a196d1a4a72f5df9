/** Environment variables of a child process, and lookup of its command. */
import { accessSync, constants, type Stats, statSync } from "node:fs";
import { delimiter, isAbsolute, resolve } from "node:path";
import { getSystemCode, HostError } from "./host-error.ts";

/** Environment variables of a child process. */
export interface EnvironmentOptions {
  /** Variables set for the child process, by name. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Variables inherited from the environment of this process in addition to the allowlist: names, or `all`. None by
   * default.
   */
  readonly inherit?: readonly string[] | "all";
}

const inheritedNames = /^(?:PATH|HOME|LANG|LC_[A-Z]+|TERM|TMPDIR|TZ)$/;
const inheritedNamesOnWindows =
  /^(?:PATH|PATHEXT|SYSTEMROOT|COMSPEC|TEMP|TMP|USERPROFILE|HOMEDRIVE|HOMEPATH|APPDATA)$/i;
const validName = /^[A-Za-z_][A-Za-z0-9_]*$/;
const windows = process.platform === "win32";

/**
 * Creates the environment of a child process: the allowlist and `inherit` of this process, then `env`. Throws on a
 * name that no shell accepts.
 */
export function createChildEnvironment(command: string, options: EnvironmentOptions): Record<string, string> {
  const { env = {}, inherit = [] } = options;
  const variables = new Map<string, string>();
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && isInherited(name, inherit)) variables.set(name, value);
  }
  for (const [name, value] of Object.entries(env)) {
    if (!windows && !validName.test(name)) throw createInvalidVariableError(command, name);
    variables.set(name, value);
  }
  return Object.fromEntries(variables);
}

function isInherited(name: string, inherit: readonly string[] | "all"): boolean {
  if (windows) return inherit === "all" || inheritedNamesOnWindows.test(name) || inherit.includes(name);
  // Every child starts through a shell, and shells drop other names, some silently: such names are never inherited.
  return validName.test(name) && (inherit === "all" || inheritedNames.test(name) || inherit.includes(name));
}

function createInvalidVariableError(command: string, name: string): HostError {
  const rule = "Use only letters, digits and _, and no digit at the start.";
  return new HostError(
    "spawn_failed",
    `Cannot start ${command}: ${JSON.stringify(name)} is not a valid variable name. ${rule}`,
  );
}

/**
 * Returns the command to spawn: unchanged if executable, or as an absolute path for a name that starts with "-".
 * Throws `spawn_failed` for a missing command, a file without execute permission, or a `cwd` that is not a folder.
 */
export function resolveCommand(command: string, cwd: string, path: string | undefined): string {
  checkFolder(command, cwd);
  if (windows) return command;
  if (command.includes("/")) {
    const problem = findExecutableProblem(resolve(cwd, command));
    if (problem !== undefined) throw createSpawnError(command, problem);
    return command;
  }
  let problem = "ENOENT";
  for (const folder of (path ?? "/usr/bin:/bin").split(delimiter)) {
    const file = resolve(cwd, folder, command);
    const found = command === "" ? "ENOENT" : findExecutableProblem(file);
    if (found === undefined) return command.startsWith("-") ? file : command;
    if (found === "EACCES") problem = found;
  }
  throw createSpawnError(command, problem);
}

function checkFolder(command: string, cwd: string): void {
  const found = statPath(cwd);
  if (typeof found !== "string" && found.isDirectory()) return;
  const systemCode = typeof found === "string" ? found : "ENOTDIR";
  const advice = isAbsolute(cwd) ? "Create the folder, or pass another cwd." : "Pass cwd as an absolute path.";
  const message = `Cannot start ${command}: the working folder ${cwd} is not usable (${systemCode}). ${advice}`;
  throw new HostError("spawn_failed", message, { systemCode });
}

function findExecutableProblem(file: string): string | undefined {
  const found = statPath(file);
  if (typeof found === "string") return found;
  try {
    accessSync(file, constants.X_OK);
    return found.isFile() ? undefined : "EACCES";
  } catch (error) {
    return getSystemCode(error);
  }
}

/**
 * Synchronous like the spawn itself: a round trip through the thread pool per folder of PATH costs more than the
 * spawn.
 */
function statPath(file: string): Stats | string {
  try {
    return statSync(file, { throwIfNoEntry: false }) ?? "ENOENT";
  } catch (error) {
    return getSystemCode(error);
  }
}

/** Creates the error of a failed spawn, with the command and the fix. */
export function createSpawnError(command: string, systemCode: string): HostError {
  const code = systemCode === "E2BIG" ? "too_large" : "spawn_failed";
  const fix = fixes[systemCode] ?? "See the system code.";
  return new HostError(code, `Cannot start ${command} (spawn ${systemCode || "failed"}): ${fix}`, { systemCode });
}

const fixes: Readonly<Record<string, string>> = {
  ENOENT: "command not found. Install the command, correct its name, or pass its full path.",
  EACCES: "the file is not executable. Add the execute permission, or start its interpreter with the file as argument.",
  E2BIG: "arguments and environment are too large. Pass the data as input or in a file.",
  EAGAIN: "the process limit is reached. End some processes, or raise the limit (ulimit -u), then retry.",
  ENOMEM: "not enough memory for another process. Free some memory, then retry.",
  EMFILE: "this process has too many open files. Close some files, or raise the limit (ulimit -n), then retry.",
  ENFILE: "the system has too many open files. Close some files, then retry.",
  ERR_INVALID_ARG_VALUE: "an argument or a variable contains a zero byte. Remove the zero byte.",
};
