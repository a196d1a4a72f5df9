/**
 * Starts child processes: own process group, allowlisted environment, timeout, bounded output, killed together with
 * this process.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import type { World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { Capture } from "./capture.ts";
import { createChildEnvironment, createSpawnError, type EnvironmentOptions, resolveCommand } from "./environment.ts";
import { getSystemCode, HostError } from "./host-error.ts";
import {
  addGateToScript,
  createGatedCommand,
  getProcessGroup,
  isGroupAlive,
  type ProcessGroup,
  releaseGroup,
  signalGroup,
  watchGroup,
} from "./process-group.ts";
import type { ProcessResult } from "./process-result.ts";

/** Output stream of a process. */
export type OutputStream = "stdout" | "stderr";

/** Options of a process: start, limits and callbacks. */
export interface ProcessOptions extends EnvironmentOptions {
  /** Working folder. Default: the working folder of this process. */
  readonly cwd?: string;
  /** The command is a POSIX shell with a script as last argument; saves one shell at the start. Default: false. */
  readonly isShell?: boolean;
  /** Data for stdin, which is then closed. Default: empty stdin. */
  readonly input?: string | Uint8Array;
  /** Timeout in milliseconds. No timeout by default. */
  readonly timeoutMs?: number;
  /** Stops the process when aborted; an already aborted signal prevents the start. */
  readonly signal?: AbortSignal;
  /** Milliseconds between SIGTERM and SIGKILL. Default: 2,000. */
  readonly graceMs?: number;
  /** Milliseconds for which remaining children may hold the output open after the process exited. Default: 200. */
  readonly lingerMs?: number;
  /** Maximum number of captured bytes per output: head and tail. Default: 1 MiB. */
  readonly maxBytes?: number;
  /** Callback with decoded text, complete and without split characters. An exception stops the process. */
  readonly onOutput?: (chunk: string, stream: OutputStream) => void;
  /** Callback with the raw bytes. An exception stops the process. */
  readonly onBytes?: (chunk: Uint8Array, stream: OutputStream) => void;
  /** Clock and timers. Default: the system's. */
  readonly world?: World;
}

/** Options of a process with an optional open stdin for `write`. */
export interface StartOptions extends ProcessOptions {
  /** Keeps stdin open: `write` appends data, `endInput` closes it. Default: false. */
  readonly keepInputOpen?: boolean;
}

/** Started process. */
export interface RunningProcess {
  /** Process group as data for a journal; see `killProcessGroup`. */
  readonly group: ProcessGroup;
  /**
   * Resolves with the result when the process and its group have ended, also after a stop; rejects only with an
   * exception of a callback.
   */
  readonly result: Promise<ProcessResult>;
  /** Writes to an open stdin, with backpressure. Throws `io` when stdin is closed. */
  write(data: string | Uint8Array): Promise<void>;
  /** Closes stdin. */
  endInput(): void;
  /** Sends SIGTERM to the group, SIGKILL after `graceMs`; resolves with the result. */
  stop(): Promise<ProcessResult>;
  /**
   * True (the state after the start) keeps this process alive until the child ends; false lets this process end and
   * kill the child.
   */
  holdOpen(isHeld: boolean): void;
}

/**
 * Runs a command to its end and returns its output and exit code, whatever the code. `args` are passed unchanged,
 * without a shell. Throws `spawn_failed` (or `too_large`) if the start fails, and `timeout` or `cancelled` with the
 * result so far.
 */
export async function runProcess(
  command: string,
  args: readonly string[] = [],
  options: ProcessOptions = {},
): Promise<ProcessResult> {
  const running = await startProcess(command, args, options);
  const result = await running.result;
  if (result.ended === "timeout") {
    const message = `${command} did not end within ${options.timeoutMs} ms and was stopped. Raise timeoutMs, or reduce the work.`;
    throw new HostError("timeout", message, { result });
  }
  if (result.ended === "cancelled")
    throw new HostError("cancelled", `${command} was cancelled and stopped.`, { result });
  return result;
}

/**
 * Starts a command in its own process group, which is killed together with this process. Processes left in the group
 * are killed when the command ends. Throws `spawn_failed` (or `too_large`) if the start fails, `cancelled` for an
 * aborted signal.
 *
 * Windows has no process groups: `taskkill` ends the tree of children as far as possible, and children can outlive
 * this process.
 */
export async function startProcess(
  command: string,
  args: readonly string[] = [],
  options: StartOptions = {},
): Promise<RunningProcess> {
  const { signal, world = systemWorld() } = options;
  const env = createChildEnvironment(command, options);
  const cwd = options.cwd ?? process.cwd();
  const target = resolveCommand(command, cwd, env["PATH"]);
  if (signal?.aborted) throw new HostError("cancelled", `${command} was cancelled before its start.`);

  const withInput = options.input !== undefined || options.keepInputOpen === true;
  const child = await spawnChild(command, target, args, { cwd, env, withInput, isShell: options.isShell === true });
  // No await between here and the gate: the group is registered with the watcher before its command runs.
  const group = getProcessGroup(child.pid);
  if (!watchGroup(group)) {
    signalGroup(group.id, "SIGKILL", false);
    throw createSpawnError(command, "EAGAIN");
  }
  openGate(child.process);
  return supervise(command, child, group, { ...options, world });
}

interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly stdin: Writable | null;
}

async function spawnChild(
  command: string,
  target: string,
  args: readonly string[],
  options: {
    readonly cwd: string;
    readonly env: Record<string, string>;
    readonly withInput: boolean;
    readonly isShell: boolean;
  },
): Promise<Child> {
  const { cwd, env, withInput, isShell } = options;
  const input = withInput ? "pipe" : "ignore";
  const posix: SpawnOptions = { cwd, env, detached: true, stdio: [input, "pipe", "pipe", "pipe"] };
  const windows: SpawnOptions = { cwd, env, windowsHide: true, stdio: [input, "pipe", "pipe"] };
  const started = createSpawnCommand(target, args, env, isShell);
  let child: ChildProcess;
  try {
    child = spawn(started.command, started.args, process.platform === "win32" ? windows : posix);
  } catch (error) {
    throw createSpawnError(command, getSystemCode(error));
  }
  if (child.pid === undefined) {
    const [error]: unknown[] = await once(child, "error");
    throw createSpawnError(command, getSystemCode(error));
  }
  // An unsendable signal or a closed reader is reported by the exit of the process.
  child.on("error", ignore);
  child.stdin?.on("error", ignore);
  return { process: child, pid: child.pid, stdin: child.stdin };
}

/** Returns the command to spawn, wrapped in a gate that waits for the registration of the group. */
function createSpawnCommand(
  target: string,
  args: readonly string[],
  env: Record<string, string>,
  isShell: boolean,
): { command: string; args: string[] } {
  if (process.platform === "win32") return { command: target, args: [...args] };
  return isShell ? { command: target, args: addGateToScript(args) } : createGatedCommand(target, args, env);
}

/** Opens the gate of a command; see `createGatedCommand`. */
function openGate(child: ChildProcess): void {
  const gate = child.stdio[3];
  if (!(gate instanceof Socket)) return;
  gate.on("error", ignore);
  gate.resume();
  gate.end("\n");
}

function ignore(): void {}

function supervise(
  command: string,
  child: Child,
  group: ProcessGroup,
  options: StartOptions & { readonly world: World },
): RunningProcess {
  const { world, signal, timeoutMs, graceMs = 2000, lingerMs = 200, maxBytes = 2 ** 20 } = options;
  const { clock, schedule } = world;
  const startedMs = clock.monotonic();
  const captures = { stdout: new Capture(maxBytes), stderr: new Capture(maxBytes) };
  let ended: ProcessResult["ended"] = "exited";
  let exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined;
  let failure: { readonly error: unknown } | undefined;
  let killAtMs = 0;
  let cancelTimer = () => {};

  let resolve: (result: ProcessResult) => void = ignore;
  let reject: (error: unknown) => void = ignore;
  const result = new Promise<ProcessResult>((resolvePromise, rejectPromise) => {
    resolve = resolvePromise;
    reject = rejectPromise;
  });
  // An unobserved result must not end this process by an unhandled rejection.
  result.catch(ignore);

  const setTimer = (delayMs: number, callback: () => void) => {
    cancelTimer();
    cancelTimer = schedule.after(delayMs, callback);
  };
  const kill = (name: NodeJS.Signals) => signalChild(child, group, name, exit !== undefined);
  const stop = (reason: "stopped" | "timeout" | "cancelled") => {
    if (exit !== undefined) {
      // The command has exited: its remaining children get no grace period.
      kill("SIGKILL");
    } else if (ended === "exited") {
      ended = reason;
      killAtMs = clock.monotonic() + graceMs;
      kill("SIGTERM");
      setTimer(graceMs, () => kill("SIGKILL"));
    }
  };
  const forwardOutput = (text: string, bytes: Uint8Array | undefined, stream: OutputStream) => {
    if (failure !== undefined) return;
    try {
      if (bytes !== undefined) options.onBytes?.(bytes, stream);
      if (text !== "") options.onOutput?.(text, stream);
    } catch (error) {
      failure = { error };
      stop("stopped");
    }
  };
  const onAbort = () => stop("cancelled");

  for (const stream of ["stdout", "stderr"] as const) {
    child.process[stream]?.on("data", (chunk: Buffer) => forwardOutput(captures[stream].add(chunk), chunk, stream));
    child.process[stream]?.on("end", () => forwardOutput(captures[stream].end(), undefined, stream));
  }
  child.process.once("exit", (code, signalName) => {
    exit = { code, signal: signalName };
    if (!isGroupAlive(group.id)) releaseGroup(group);
    setTimer(ended === "exited" ? lingerMs : Math.max(0, killAtMs - clock.monotonic()), () => {
      kill("SIGKILL");
      // A child outside the group can hold the pipes open; the output is closed anyway.
      setTimer(lingerMs, () => closeOutput(child.process));
    });
  });
  child.process.once("close", () => {
    cancelTimer();
    signal?.removeEventListener("abort", onAbort);
    kill("SIGKILL");
    releaseGroup(group);
    if (failure === undefined) resolve(createResult());
    else reject(failure.error);
  });
  const createResult = (): ProcessResult => {
    const stdout = captures.stdout.getOutput();
    const stderr = captures.stderr.getOutput();
    return {
      exitCode: getExitCode(exit),
      signal: exit?.signal ?? undefined,
      ended,
      stdout: stdout.text,
      stderr: stderr.text,
      truncated: stdout.droppedBytes + stderr.droppedBytes > 0,
      droppedBytes: { stdout: stdout.droppedBytes, stderr: stderr.droppedBytes },
      durationMs: clock.monotonic() - startedMs,
    };
  };

  if (timeoutMs !== undefined) setTimer(timeoutMs, () => stop("timeout"));
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted) onAbort();
  if (options.input !== undefined) child.stdin?.write(options.input);
  if (options.keepInputOpen !== true) child.stdin?.end();

  return {
    group,
    result,
    write: (data) => writeInput(command, child.stdin, data),
    endInput: () => child.stdin?.end(),
    stop: () => {
      stop("stopped");
      holdOpen(child.process, true);
      return result;
    },
    holdOpen: (isHeld) => holdOpen(child.process, isHeld),
  };
}

function holdOpen(child: ChildProcess, isHeld: boolean): void {
  const method = isHeld ? "ref" : "unref";
  child[method]();
  for (const pipe of child.stdio) if (pipe instanceof Socket && !pipe.destroyed) pipe[method]();
}

/** Signals the process group of a child; on Windows, ends its process tree. */
function signalChild(child: Child, group: ProcessGroup, name: NodeJS.Signals, collected: boolean): void {
  if (process.platform !== "win32") signalGroup(group.id, name, collected);
  else if (!collected)
    spawn("taskkill", ["/pid", String(child.pid), "/t", "/f"], { stdio: "ignore" }).on("error", ignore);
}

function closeOutput(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
}

/** A signal has no exit code: 128 + n, as in shells. */
function getExitCode(
  exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined,
): number {
  if (exit?.signal) return 128 + constants.signals[exit.signal];
  return exit?.code ?? 1;
}

function writeInput(command: string, stdin: Writable | null, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const rejectClosed = (systemCode: string) => {
      const message = `Cannot write to ${command}: its input is closed. Start the command with keepInputOpen, or check its result.`;
      reject(new HostError("io", message, { systemCode }));
    };
    if (stdin === null || !stdin.writable) rejectClosed("EPIPE");
    else stdin.write(data, (error) => (error ? rejectClosed(getSystemCode(error)) : resolve()));
  });
}
