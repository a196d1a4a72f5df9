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

/** Start, limits and callbacks of a process. */
export interface ProcessOptions extends EnvironmentOptions {
  /** Working folder. Default: the working folder of this process. */
  readonly cwd?: string;
  /** The command is a POSIX shell with a script as last argument; saves a shell at the start. Default: false. */
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

/** Start, limits and callbacks of a process with an optional open stdin for `write`. */
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
    signalGroup(group.id, "SIGKILL", "running");
    throw createSpawnError(command, "EAGAIN");
  }
  openGate(child.process);
  return new Supervisor(command, child, group, { ...options, world }).getRunningProcess();
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
  const { cwd, env, withInput } = options;
  const input = withInput ? "pipe" : "ignore";
  const posix: SpawnOptions = { cwd, env, detached: true, stdio: [input, "pipe", "pipe", "pipe"] };
  const windows: SpawnOptions = { cwd, env, windowsHide: true, stdio: [input, "pipe", "pipe"] };
  const started = createSpawnCommand(target, args, options);
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
  { env, isShell }: { readonly env: Record<string, string>; readonly isShell: boolean },
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

/** Exit of a process: an exit code, or the signal that ended the process. */
interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Started child process: forwards output, enforces timeout and abort signal, and ends the whole process group. */
class Supervisor {
  readonly #group: ProcessGroup;
  readonly #result: Promise<ProcessResult>;
  readonly #command: string;
  readonly #child: Child;
  readonly #options: StartOptions;
  readonly #world: World;
  readonly #startedMs: number;
  readonly #captures: Record<OutputStream, Capture>;
  #ended: ProcessResult["ended"] = "exited";
  #exit: Exit | undefined;
  #failure: { readonly error: unknown } | undefined;
  #killAtMs = 0;
  #cancelTimer: () => void = ignore;
  #resolve: (result: ProcessResult) => void = ignore;
  #reject: (error: unknown) => void = ignore;

  constructor(command: string, child: Child, group: ProcessGroup, options: StartOptions & { readonly world: World }) {
    const { world, maxBytes = 2 ** 20 } = options;
    this.#group = group;
    this.#command = command;
    this.#child = child;
    this.#options = options;
    this.#world = world;
    this.#startedMs = world.clock.monotonic();
    this.#captures = { stdout: new Capture(maxBytes), stderr: new Capture(maxBytes) };
    this.#result = new Promise<ProcessResult>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // An unobserved result must not end this process by an unhandled rejection.
    this.#result.catch(ignore);
    this.#listen();
    this.#limitTime();
    this.#sendInput();
  }

  getRunningProcess(): RunningProcess {
    const { process: child, stdin } = this.#child;
    return {
      group: this.#group,
      result: this.#result,
      write: (data) => writeInput(this.#command, stdin, data),
      endInput: () => stdin?.end(),
      stop: () => {
        this.#end("stopped");
        setReference(child, "ref");
        return this.#result;
      },
      holdOpen: (isHeld) => setReference(child, isHeld ? "ref" : "unref"),
    };
  }

  #listen(): void {
    const { process: child } = this.#child;
    for (const stream of ["stdout", "stderr"] as const) {
      const capture = this.#captures[stream];
      child[stream]?.on("data", (chunk: Buffer) => this.#forwardOutput(stream, capture.add(chunk), chunk));
      child[stream]?.on("end", () => this.#forwardOutput(stream, capture.end()));
    }
    child.once("exit", (code, signal) => this.#onExit({ code, signal }));
    child.once("close", () => this.#onClose());
  }

  #limitTime(): void {
    const { timeoutMs, signal } = this.#options;
    if (timeoutMs !== undefined) this.#setTimer(timeoutMs, () => this.#end("timeout"));
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (signal?.aborted) this.#onAbort();
  }

  #sendInput(): void {
    const { input, keepInputOpen } = this.#options;
    if (input !== undefined) this.#child.stdin?.write(input);
    if (keepInputOpen !== true) this.#child.stdin?.end();
  }

  #forwardOutput(stream: OutputStream, text: string, bytes?: Uint8Array): void {
    if (this.#failure !== undefined) return;
    try {
      if (bytes !== undefined) this.#options.onBytes?.(bytes, stream);
      if (text !== "") this.#options.onOutput?.(text, stream);
    } catch (error) {
      this.#failure = { error };
      this.#end("stopped");
    }
  }

  readonly #onAbort = (): void => this.#end("cancelled");

  #onExit(exit: Exit): void {
    const { lingerMs = 200 } = this.#options;
    this.#exit = exit;
    if (!isGroupAlive(this.#group.id)) releaseGroup(this.#group);
    const remainingMs = Math.max(0, this.#killAtMs - this.#world.clock.monotonic());
    this.#setTimer(this.#ended === "exited" ? lingerMs : remainingMs, () => {
      this.#signal("SIGKILL");
      // A child outside the group can hold the pipes open; the output is closed anyway.
      this.#setTimer(lingerMs, () => closeOutput(this.#child.process));
    });
  }

  #onClose(): void {
    this.#cancelTimer();
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#signal("SIGKILL");
    releaseGroup(this.#group);
    if (this.#failure === undefined) this.#resolve(this.#createResult());
    else this.#reject(this.#failure.error);
  }

  #end(reason: "stopped" | "timeout" | "cancelled"): void {
    const { graceMs = 2000 } = this.#options;
    if (this.#exit !== undefined) {
      // The command has exited: its remaining children get no grace period.
      this.#signal("SIGKILL");
    } else if (this.#ended === "exited") {
      this.#ended = reason;
      this.#killAtMs = this.#world.clock.monotonic() + graceMs;
      this.#signal("SIGTERM");
      this.#setTimer(graceMs, () => this.#signal("SIGKILL"));
    }
  }

  #signal(name: NodeJS.Signals): void {
    signalChild(this.#child, this.#group, name, this.#exit === undefined ? "running" : "collected");
  }

  #setTimer(delayMs: number, callback: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#world.schedule.after(delayMs, callback);
  }

  #createResult(): ProcessResult {
    const stdout = this.#captures.stdout.getOutput();
    const stderr = this.#captures.stderr.getOutput();
    return {
      exitCode: getExitCode(this.#exit),
      signal: this.#exit?.signal ?? undefined,
      ended: this.#ended,
      stdout: stdout.text,
      stderr: stderr.text,
      truncated: stdout.droppedBytes + stderr.droppedBytes > 0,
      droppedBytes: { stdout: stdout.droppedBytes, stderr: stderr.droppedBytes },
      durationMs: this.#world.clock.monotonic() - this.#startedMs,
    };
  }
}

/** Makes a child and its pipes keep the event loop of this process alive (`ref`), or not (`unref`). */
function setReference(child: ChildProcess, method: "ref" | "unref"): void {
  child[method]();
  for (const pipe of child.stdio) if (pipe instanceof Socket && !pipe.destroyed) pipe[method]();
}

/** Signals the process group of a child; on Windows, ends its process tree. */
function signalChild(child: Child, group: ProcessGroup, name: NodeJS.Signals, leader: "running" | "collected"): void {
  if (process.platform !== "win32") signalGroup(group.id, name, leader);
  else if (leader === "running")
    spawn("taskkill", ["/pid", String(child.pid), "/t", "/f"], { stdio: "ignore" }).on("error", ignore);
}

function closeOutput(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
}

/** A signal has no exit code: 128 + n, as in shells. */
function getExitCode(exit: Exit | undefined): number {
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
