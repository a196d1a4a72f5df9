/** The one way to start a child process: own group, allowed environment, deadline, bounded output, death with us. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import { systemWorld, type World } from "@statewright/core";
import { Capture } from "./capture.ts";
import { commandToStart, type EnvironmentOptions, environmentFor, spawnError } from "./environment.ts";
import { HostError, systemCodeOf } from "./host-error.ts";
import {
  gated,
  groupExists,
  groupOf,
  type ProcessGroup,
  releaseGroup,
  selfGated,
  signalGroup,
  watchGroup,
} from "./process-group.ts";

/** Which of its two outputs a process wrote to. */
export type OutputStream = "stdout" | "stderr";

/** How to start and when to end a process. */
export interface ProcessOptions extends EnvironmentOptions {
  /** The folder that it starts in; ours by default. */
  readonly cwd?: string;
  /** The command is a POSIX shell, and the last of its arguments a script: it starts a little sooner. False by default. */
  readonly isShell?: boolean;
  /** Written to its input, which is then closed. Without it the input is empty. */
  readonly input?: string | Uint8Array;
  /** Milliseconds until it is stopped; no deadline by default. */
  readonly timeoutMs?: number;
  /** Stops it when aborted; aborted already, nothing is started. */
  readonly signal?: AbortSignal;
  /** Milliseconds between SIGTERM and SIGKILL when it is stopped; 2,000 by default. */
  readonly graceMs?: number;
  /** Milliseconds that what it left running may hold its output open after it ended by itself; 200 by default. */
  readonly lingerMs?: number;
  /** How many bytes of each output are kept: beginning and end, 1 MiB by default. */
  readonly maxBytes?: number;
  /** Called with decoded text as it comes, all of it, never with half a character. A throw stops the process. */
  readonly onOutput?: (chunk: string, stream: OutputStream) => void;
  /** Called with the bytes themselves as they come. A throw stops the process. */
  readonly onBytes?: (chunk: Uint8Array, stream: OutputStream) => void;
  /** Clock and timers; the real ones by default. */
  readonly world?: World;
}

/** ProcessOptions, or an input that stays open for `write`. */
export interface StartOptions extends ProcessOptions {
  /** Leave the input open: `write` adds to it, `endInput` closes it. False by default. */
  readonly keepInputOpen?: boolean;
}

/** How a process ended and what it wrote. */
export interface ProcessResult {
  /** Its exit code; 128 + n when signal n ended it. */
  readonly exitCode: number;
  /** The signal that ended it, such as `SIGTERM`. */
  readonly signal: string | undefined;
  /** `exited` by itself, or why it was stopped. */
  readonly ended: "exited" | "stopped" | "timeout" | "cancelled";
  readonly stdout: string;
  readonly stderr: string;
  /** Whether the middle of an output is missing; a line in its text says how much. */
  readonly truncated: boolean;
  readonly droppedBytes: { readonly stdout: number; readonly stderr: number };
  readonly durationMs: number;
}

/** A process that was started. */
export interface RunningProcess {
  /** Its process group, as data for a journal; see `endGroup`. */
  readonly group: ProcessGroup;
  /** How it ended, also when it was stopped; rejects only with what `onOutput` threw. Its group is dead by then. */
  readonly result: Promise<ProcessResult>;
  /** Write to an input that was kept open; waits while the process reads slowly. Throws `io` when it is closed. */
  write(data: string | Uint8Array): Promise<void>;
  /** Close its input. */
  endInput(): void;
  /** SIGTERM to its group, SIGKILL after `graceMs`; gives the result. */
  stop(): Promise<ProcessResult>;
  /** Whether this process stays alive for it, as it does at first; one that does not takes it along when it ends. */
  holdOpen(isHeld: boolean): void;
}

/**
 * Run a command to its end and give what it wrote and its exit code, whatever that is. `args` are handed over as they
 * are, no shell reads them. Throws `spawn_failed` (or `too_large`) when it cannot be started, `timeout` and `cancelled`
 * when it had to be stopped; these carry the result so far.
 */
export async function runProcess(
  command: string,
  args: readonly string[] = [],
  options: ProcessOptions = {},
): Promise<ProcessResult> {
  const running = await startProcess(command, args, options);
  const result = await running.result;
  if (result.ended === "timeout") {
    const message = `${command} did not end within ${options.timeoutMs} ms and was stopped. Give it more time or less work.`;
    throw new HostError("timeout", message, { result });
  }
  if (result.ended === "cancelled")
    throw new HostError("cancelled", `${command} was cancelled and stopped.`, { result });
  return result;
}

/**
 * Start a command in a process group of its own that dies with this process, and give it back while it runs. Whatever it
 * leaves running in its group is killed once it has ended. Throws `spawn_failed` (or `too_large`) when it cannot be
 * started, `cancelled` when the signal was aborted before.
 *
 * On Windows there are no groups: the tree of children is ended as far as `taskkill` finds it, and it can outlive us.
 */
export async function startProcess(
  command: string,
  args: readonly string[] = [],
  options: StartOptions = {},
): Promise<RunningProcess> {
  const { signal, world = systemWorld() } = options;
  const env = environmentFor(command, options);
  const cwd = options.cwd ?? process.cwd();
  const target = commandToStart(command, cwd, env["PATH"]);
  if (signal?.aborted) throw new HostError("cancelled", `${command} was cancelled before it was started.`);

  const withInput = options.input !== undefined || options.keepInputOpen === true;
  const child = await spawnChild(command, target, args, { cwd, env, withInput, isShell: options.isShell === true });
  // No await from here to the gate: a group is known to the watcher before its command runs.
  const group = groupOf(child.pid);
  if (!watchGroup(group)) {
    signalGroup(group.id, "SIGKILL", false);
    throw spawnError(command, "EAGAIN");
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
  how: {
    readonly cwd: string;
    readonly env: Record<string, string>;
    readonly withInput: boolean;
    readonly isShell: boolean;
  },
): Promise<Child> {
  const { cwd, env, withInput, isShell } = how;
  const input = withInput ? "pipe" : "ignore";
  const posix: SpawnOptions = { cwd, env, detached: true, stdio: [input, "pipe", "pipe", "pipe"] };
  const windows: SpawnOptions = { cwd, env, windowsHide: true, stdio: [input, "pipe", "pipe"] };
  const started = startedAs(target, args, env, isShell);
  let child: ChildProcess;
  try {
    child = spawn(started.command, started.args, process.platform === "win32" ? windows : posix);
  } catch (error) {
    throw spawnError(command, systemCodeOf(error));
  }
  if (child.pid === undefined) {
    const [error]: unknown[] = await once(child, "error");
    throw spawnError(command, systemCodeOf(error));
  }
  // A signal that cannot be sent, a reader that has gone: both show in how the process ends.
  child.on("error", ignore);
  child.stdin?.on("error", ignore);
  return { process: child, pid: child.pid, stdin: child.stdin };
}

/** What is started, so that the command waits until its group is known. */
function startedAs(
  target: string,
  args: readonly string[],
  env: Record<string, string>,
  isShell: boolean,
): { command: string; args: string[] } {
  if (process.platform === "win32") return { command: target, args: [...args] };
  return isShell ? { command: target, args: selfGated(args) } : gated(target, args, env);
}

/** Let the command begin; see `gated`. */
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
  const result = new Promise<ProcessResult>((settle, fail) => {
    resolve = settle;
    reject = fail;
  });
  // A result that nobody asks for must not end this process.
  result.catch(ignore);

  const later = (delayMs: number, work: () => void) => {
    cancelTimer();
    cancelTimer = schedule.after(delayMs, work);
  };
  const kill = (name: NodeJS.Signals) => signalChild(child, group, name, exit !== undefined);
  const stop = (reason: "stopped" | "timeout" | "cancelled") => {
    if (exit !== undefined) {
      // The command is done; what it left running has no claim to a grace.
      kill("SIGKILL");
    } else if (ended === "exited") {
      ended = reason;
      killAtMs = clock.monotonic() + graceMs;
      kill("SIGTERM");
      later(graceMs, () => kill("SIGKILL"));
    }
  };
  const hand = (text: string, bytes: Uint8Array | undefined, stream: OutputStream) => {
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
    child.process[stream]?.on("data", (chunk: Buffer) => hand(captures[stream].add(chunk), chunk, stream));
    child.process[stream]?.on("end", () => hand(captures[stream].end(), undefined, stream));
  }
  child.process.once("exit", (code, signalName) => {
    exit = { code, signal: signalName };
    if (!groupExists(group.id)) releaseGroup(group);
    later(ended === "exited" ? lingerMs : Math.max(0, killAtMs - clock.monotonic()), () => {
      kill("SIGKILL");
      // What left the group keeps the pipes but not us.
      later(lingerMs, () => closeOutput(child.process));
    });
  });
  child.process.once("close", () => {
    cancelTimer();
    signal?.removeEventListener("abort", onAbort);
    kill("SIGKILL");
    releaseGroup(group);
    if (failure === undefined) resolve(resultOf());
    else reject(failure.error);
  });
  const resultOf = (): ProcessResult => {
    const stdout = captures.stdout.captured();
    const stderr = captures.stderr.captured();
    return {
      exitCode: exitCodeOf(exit),
      signal: exit?.signal ?? undefined,
      ended,
      stdout: stdout.text,
      stderr: stderr.text,
      truncated: stdout.droppedBytes + stderr.droppedBytes > 0,
      droppedBytes: { stdout: stdout.droppedBytes, stderr: stderr.droppedBytes },
      durationMs: clock.monotonic() - startedMs,
    };
  };

  if (timeoutMs !== undefined) later(timeoutMs, () => stop("timeout"));
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted) onAbort();
  if (options.input !== undefined) child.stdin?.write(options.input);
  if (options.keepInputOpen !== true) child.stdin?.end();

  return {
    group,
    result,
    write: (data) => writeTo(command, child.stdin, data),
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
  const turn = isHeld ? "ref" : "unref";
  child[turn]();
  for (const pipe of child.stdio) if (pipe instanceof Socket && !pipe.destroyed) pipe[turn]();
}

/** Signal the group of a child; on Windows end its tree. */
function signalChild(child: Child, group: ProcessGroup, name: NodeJS.Signals, collected: boolean): void {
  if (process.platform !== "win32") signalGroup(group.id, name, collected);
  else if (!collected)
    spawn("taskkill", ["/pid", String(child.pid), "/t", "/f"], { stdio: "ignore" }).on("error", ignore);
}

function closeOutput(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
}

/** A signal gives no code: shells count it as 128 + n, and so do we. */
function exitCodeOf(
  exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined,
): number {
  if (exit?.signal) return 128 + constants.signals[exit.signal];
  return exit?.code ?? 1;
}

function writeTo(command: string, stdin: Writable | null, data: string | Uint8Array): Promise<void> {
  return new Promise((written, failed) => {
    const closed = (systemCode: string) => {
      const message = `Cannot write to ${command}: its input is closed. Start it with keepInputOpen, or look at its result.`;
      failed(new HostError("io", message, { systemCode }));
    };
    if (stdin === null || !stdin.writable) closed("EPIPE");
    else stdin.write(data, (error) => (error ? closed(systemCodeOf(error)) : written()));
  });
}
