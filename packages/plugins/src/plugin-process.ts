/** Plugin process: a single process from its start and description to its end. */
import { StatewrightError, type World } from "@statewright/core";
import { createLineReader, type RunningProcess, startProcess } from "@statewright/host";
import type { PluginCall } from "./pending-calls.ts";
import { formatTail, PluginSession, truncateLine, writeMessage } from "./plugin-session.ts";
import { type PluginDescription, type PluginReply, parseDescription } from "./protocol.ts";

/** Options of a plugin process, with expanded variables. */
export interface PluginStartOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly inherit: readonly string[] | "all";
  readonly cwd: string | undefined;
  readonly startTimeoutMs: number;
  readonly staleGraceMs: number;
  readonly maxLineLength: number;
  readonly onStderr: (line: string) => void;
  readonly world: World;
}

/** Started plugin process with its description. */
export interface PluginProcess {
  readonly description: PluginDescription;
  readonly pid: number;
  readonly isAlive: () => boolean;
  /**
   * Sends a call and returns its reply. Rejects when the signal aborts; the late reply is dropped, and a plugin that
   * replies in order receives no other call before. Rejects with `notReady` if that reply takes too long.
   */
  readonly call: (call: PluginCall) => Promise<PluginReply>;
  /** Requests a shutdown, then stops the process. */
  readonly close: () => Promise<void>;
  /** Stops the process and its group immediately. */
  readonly stop: () => Promise<void>;
}

/** Reads the lines of a process: the description first, then the messages of the session. */
class PluginOutput {
  /** Resolves with the description, or with the problem as a string. */
  readonly description: Promise<PluginDescription | string>;
  /** Output before the description, for messages. */
  strayOutput = "";
  session: PluginSession | undefined;
  readonly #options: PluginStartOptions;
  #resolve: (outcome: PluginDescription | string) => void = () => undefined;

  constructor(options: PluginStartOptions) {
    this.#options = options;
    this.description = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Ends the wait for the description. */
  fail(problem: string): void {
    this.#resolve(problem);
  }

  handleLine(line: string): void {
    if (this.session !== undefined) {
      this.session.handleLine(line);
      return;
    }
    const { command, world } = this.#options;
    const found = parseDescription(line);
    if (found !== undefined) {
      this.#resolve(found);
      return;
    }
    const shown = truncateLine(line);
    if (this.strayOutput === "") this.strayOutput = `; it wrote "${shown}", which is not a description`;
    world.log("warn", `plugin "${command}" wrote a line before its description`, { line: shown });
  }

  handleLongLine(length: number): void {
    if (this.session !== undefined) this.session.handleLongLine(length);
    else this.fail(`it wrote a line longer than ${this.#options.maxLineLength} characters (${length} so far)`);
  }
}

/** Starts a plugin and waits for its description. Throws `plugin_failed`, after stopping the process. */
export async function startPlugin(options: PluginStartOptions): Promise<PluginProcess> {
  const { command, world, startTimeoutMs, staleGraceMs, maxLineLength } = options;
  const output = new PluginOutput(options);
  const running = await startPluginProcess(options, output);
  const stopTimer = world.schedule.after(startTimeoutMs, () =>
    output.fail(`it did not describe itself within ${startTimeoutMs} ms${output.strayOutput}`),
  );
  void running.result.then(
    ({ exitCode, stderr }) => output.fail(`it exited with code ${exitCode}${output.strayOutput}${formatTail(stderr)}`),
    (thrown: unknown) =>
      output.fail(`reading its output failed: ${thrown instanceof Error ? thrown.message : String(thrown)}`),
  );
  // An ended process reports its exit code instead.
  await Promise.allSettled([writeMessage(running, { type: "describe" })]);
  const description = await output.description;
  stopTimer();
  if (typeof description === "string") {
    await Promise.allSettled([running.stop()]);
    throw createStartError({
      command,
      what: description,
      next: 'Start the plugin by hand and write the line {"type":"describe"} to its input: it must reply with one line',
    });
  }
  output.session = new PluginSession({ command, running, description, staleGraceMs, maxLineLength, world });
  return output.session;
}

/** Starts the process. Throws `plugin_failed` for a program that cannot be started. */
async function startPluginProcess(options: PluginStartOptions, output: PluginOutput): Promise<RunningProcess> {
  const { command, args, env, inherit, cwd, maxLineLength, world } = options;
  const stdout = createLineReader(
    maxLineLength,
    (line) => output.handleLine(line),
    (length) => output.handleLongLine(length),
  );
  const stderr = createLineReader(maxLineLength, options.onStderr, () => undefined);
  try {
    return await startProcess(command, args, {
      env,
      inherit,
      ...(cwd === undefined ? {} : { cwd }),
      keepInputOpen: true,
      maxBytes: 4_096,
      world,
      onOutput: (chunk, stream) => (stream === "stdout" ? stdout : stderr).add(chunk),
    });
  } catch (cause) {
    const [what = "", ...next] = (cause instanceof Error ? cause.message : String(cause))
      .replace(/\.$/, "")
      .split(". ");
    throw createStartError({
      command,
      what,
      next: next.join(". ") || "Install the program, or fix its path",
      cause,
    });
  }
}

function createStartError({
  command,
  what,
  next,
  cause,
}: {
  readonly command: string;
  readonly what: string;
  readonly next: string;
  readonly cause?: unknown;
}): StatewrightError {
  return new StatewrightError("plugin_failed", {
    what: `plugin "${command}" could not start: ${what}`,
    next,
    cause,
  });
}
