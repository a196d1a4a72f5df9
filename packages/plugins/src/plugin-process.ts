/** Plugin process: one process from its start and description to its end. */
import { StatewrightError, ToolError, type World } from "@statewright/core";
import { createLineReader, type RunningProcess, startProcess } from "@statewright/host";
import {
  type PluginDescription,
  type PluginNotification,
  type PluginReply,
  parseDescription,
  parseLine,
} from "./protocol.ts";

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

/** Tool call to a plugin. */
export interface PluginCall {
  readonly callId: string;
  /** Tool name, for a plugin with a list of tools. */
  readonly tool: string | undefined;
  readonly args: unknown;
  readonly signal: AbortSignal;
  readonly onNotification: (notification: PluginNotification) => void;
}

/** Started plugin process with its description. */
export interface PluginProcess {
  readonly description: PluginDescription;
  readonly pid: number;
  readonly isAlive: () => boolean;
  /**
   * Sends a call and returns its reply. Rejects when the signal aborts; the late reply is dropped, and a plugin that
   * replies in order receives no other call before. Rejects with {@link notReady} if that reply takes too long.
   */
  readonly call: (call: PluginCall) => Promise<PluginReply>;
  /** Requests a shutdown, then stops the process. */
  readonly close: () => Promise<void>;
  /** Stops the process and its group immediately. */
  readonly stop: () => Promise<void>;
}

/**
 * Error value for an ended process, or for one with an overdue reply to an aborted call: the call was not sent and
 * needs a new process.
 */
export const notReady: unique symbol = Symbol("not ready");

/** Sent call. An aborted call keeps its position until its reply arrives. */
interface PendingCall {
  readonly sentId: string;
  readonly tool: string | undefined;
  readonly call: PluginCall;
  readonly complete: (outcome: { readonly reply: PluginReply } | { readonly error: unknown }) => void;
  isOpen: boolean;
}

/** Starts a plugin and waits for its description. Throws `plugin_failed`, after stopping the process. */
export async function startPlugin(options: PluginStartOptions): Promise<PluginProcess> {
  const { command, world, startTimeoutMs } = options;
  let resolveDescription: (outcome: PluginDescription | string) => void = () => undefined;
  const description = new Promise<PluginDescription | string>((resolve) => {
    resolveDescription = resolve;
  });
  let strayOutput = "";
  let handleLine = (line: string): void => {
    const found = parseDescription(line);
    if (found === undefined) {
      if (strayOutput === "") strayOutput = `; it wrote "${truncateLine(line)}", which is not a description`;
      world.log("warn", `plugin "${command}" wrote a line before its description`, { line: truncateLine(line) });
    } else resolveDescription(found);
  };
  let handleLongLine = (length: number): void =>
    resolveDescription(`it wrote a line longer than ${options.maxLineLength} characters (${length} so far)`);
  const stdout = createLineReader(
    options.maxLineLength,
    (line) => handleLine(line),
    (length) => handleLongLine(length),
  );
  const stderr = createLineReader(options.maxLineLength, options.onStderr, () => undefined);
  let running: RunningProcess;
  try {
    running = await startProcess(options.command, options.args, {
      env: options.env,
      inherit: options.inherit,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      keepInputOpen: true,
      maxBytes: 4_096,
      world,
      onOutput: (chunk, stream) => (stream === "stdout" ? stdout : stderr).add(chunk),
    });
  } catch (cause) {
    const [what = "", ...next] = (cause instanceof Error ? cause.message : String(cause))
      .replace(/\.$/, "")
      .split(". ");
    throw createStartError(command, what, next.join(". ") || "Install the program, or fix its path", cause);
  }
  const stopTimer = world.schedule.after(startTimeoutMs, () =>
    resolveDescription(`it did not describe itself within ${startTimeoutMs} ms${strayOutput}`),
  );
  void running.result.then(
    ({ exitCode, stderr: stderrText }) =>
      resolveDescription(`it exited with code ${exitCode}${strayOutput}${formatTail(stderrText)}`),
    (thrown: unknown) =>
      resolveDescription(`reading its output failed: ${thrown instanceof Error ? thrown.message : String(thrown)}`),
  );
  // An ended process reports its exit code instead.
  await Promise.allSettled([send(running, { type: "describe" })]);
  const found = await description;
  stopTimer();
  if (typeof found === "string") {
    await Promise.allSettled([running.stop()]);
    throw createStartError(
      command,
      found,
      'Start the plugin by hand and write the line {"type":"describe"} to its input: it must reply with one line',
    );
  }
  const session = createSession(options, running, found);
  handleLine = session.read;
  handleLongLine = session.tooLong;
  return session.process;
}

function createStartError(command: string, what: string, next: string, cause?: unknown): StatewrightError {
  return new StatewrightError("plugin_failed", {
    what: `plugin "${command}" could not start: ${what}`,
    next,
    cause,
  });
}

/** Creates the call handling of a described process. */
function createSession(options: PluginStartOptions, running: RunningProcess, description: PluginDescription) {
  const { command, world } = options;
  const { capabilities } = description;
  const repliesById = capabilities.has("call_id");
  /** Sent calls without a reply, in the order of sending. */
  const pendingCalls: PendingCall[] = [];
  /** Ids of aborted calls that may still receive a reply. */
  const abandonedIds = new Set<string>();
  /** Ids of replied calls, for a plugin that replies in order. */
  const answeredIds = new Set<string>();
  /** Resolvers of calls that wait for a slot. */
  const waiting = new Set<() => void>();
  let usedSlots = 0;
  let endError: ToolError | undefined;
  let onStale: (() => void) | undefined;

  const endProcess = (error: ToolError): void => {
    endError ??= error;
    for (const pending of pendingCalls.splice(0)) pending.complete({ error: endError });
    onStale?.();
    for (const next of waiting) next();
    waiting.clear();
  };
  void running.result.then(
    ({ exitCode, stderr }) =>
      endProcess(
        new ToolError("crashed", `Plugin "${command}" exited with code ${exitCode}.`, {
          details: { stderr: formatTail(stderr) },
        }),
      ),
    (cause: unknown) =>
      endProcess(
        new ToolError("crashed", `Plugin "${command}" was stopped, because reading its output failed.`, {
          cause,
        }),
      ),
  );

  const handleReply = (reply: PluginReply): void => {
    const index = repliesById ? pendingCalls.findIndex(({ sentId }) => sentId === reply.callId) : 0;
    const pending = pendingCalls[index];
    // Many plugins return the call id even without the capability: the id identifies a duplicate reply, which must
    // not count as the reply of the next call.
    const isDuplicate = reply.callId !== pending?.sentId && answeredIds.has(reply.callId ?? "");
    if (pending === undefined || isDuplicate) {
      const isLate = reply.callId !== undefined && abandonedIds.delete(reply.callId);
      const event = isLate ? "dropped a late reply" : "dropped a reply without a call";
      world.log("warn", `plugin "${command}": ${event}`, { callId: reply.callId });
      return;
    }
    pendingCalls.splice(index, 1);
    if (!repliesById) rememberId(answeredIds, pending.sentId);
    if (!pending.isOpen)
      world.log("warn", `dropped a late reply of plugin "${command}"`, { callId: pending.call.callId });
    pending.complete({ reply });
    if (pendingCalls.length === 0) onStale?.();
  };

  const handleNotification = (notification: PluginNotification): void => {
    const pending = pendingCalls.find(({ sentId }) => sentId === notification.callId);
    if (pending?.isOpen === true && capabilities.has("update")) pending.call.onNotification(notification);
  };

  /** Ends the process, because replies can no longer be assigned to calls. The next call starts a new process. */
  const failProtocol = (violation: string): void => {
    const tool = pendingCalls.find(({ isOpen }) => isOpen)?.tool ?? description.tools[0]?.name;
    endProcess(
      new ToolError(
        "crashed",
        `The plugin of tool "${tool}" violated the protocol of one JSON object per line: ${violation}.`,
      ),
    );
    void running.stop();
  };

  const handleLine = (line: string): void => {
    const message = parseLine(line);
    if (message.kind === "reply") handleReply(message);
    else if (message.kind === "update" || message.kind === "progress") handleNotification(message);
    else if (message.kind === "broken" && pendingCalls.length > 0) failProtocol("incomplete JSON object");
    else if (line.trim() !== "")
      world.log("warn", `plugin "${command}" wrote a line that is not a reply`, { line: truncateLine(line) });
  };

  /** Acquires a slot: unlimited with the capability `concurrent`, otherwise one call at a time. */
  const acquireSlot = async (signal: AbortSignal): Promise<void> => {
    if (capabilities.has("concurrent")) return;
    while (usedSlots > 0 && endError === undefined) {
      await waitUnlessAborted(signal, (resolve) => {
        waiting.add(resolve);
        return () => waiting.delete(resolve);
      });
    }
    usedSlots += 1;
  };
  const releaseSlot = (): void => {
    if (capabilities.has("concurrent")) return;
    usedSlots -= 1;
    const [next] = waiting;
    if (next === undefined) return;
    waiting.delete(next);
    next();
  };

  /** Waits for the replies to aborted calls. Returns false after the grace time. */
  const awaitStaleReplies = async (signal: AbortSignal): Promise<boolean> => {
    if (repliesById || pendingCalls.length === 0) return true;
    let cancel: (() => void) | undefined;
    const stopWaiting = (): void => {
      cancel?.();
      onStale = undefined;
    };
    return waitUnlessAborted<boolean>(signal, (resolve) => {
      onStale = () => resolve(true);
      cancel = world.schedule.after(options.staleGraceMs, () => resolve(false));
      return stopWaiting;
    }).finally(stopWaiting);
  };

  /** Number of open calls: an idle plugin does not keep this process alive. */
  let openCalls = 0;
  let isClosing = false;
  running.holdOpen(false);
  const changeOpenCalls = (change: 1 | -1): void => {
    openCalls += change;
    running.holdOpen(openCalls > 0 || isClosing);
  };

  const call = async (request: PluginCall): Promise<PluginReply> => {
    changeOpenCalls(1);
    try {
      return await callInOrder(request);
    } finally {
      changeOpenCalls(-1);
    }
  };

  const callInOrder = async (request: PluginCall): Promise<PluginReply> => {
    await acquireSlot(request.signal);
    try {
      if (endError !== undefined) throw notReady;
      if (!(await awaitStaleReplies(request.signal))) throw notReady;
      if (endError !== undefined) throw notReady;
      return await sendCall(request);
    } finally {
      releaseSlot();
    }
  };

  const sendCall = (request: PluginCall): Promise<PluginReply> =>
    new Promise((resolve, reject) => {
      request.signal.throwIfAborted();
      const sentId = createFreeId(
        request.callId,
        (id) => abandonedIds.has(id) || pendingCalls.some((other) => other.sentId === id),
      );
      const pending: PendingCall = {
        sentId,
        tool: request.tool,
        call: request,
        isOpen: true,
        complete: (outcome) => {
          if (!pending.isOpen) return;
          pending.isOpen = false;
          request.signal.removeEventListener("abort", abandon);
          if ("reply" in outcome) resolve(outcome.reply);
          else reject(outcome.error);
        },
      };
      const abandon = (): void => {
        pending.complete({ error: request.signal.reason });
        // Forget the call for a plugin that replies by id, whose late reply may never arrive. A plugin that replies
        // in order still owes its reply.
        if (repliesById) {
          pendingCalls.splice(pendingCalls.indexOf(pending), 1);
          rememberId(abandonedIds, sentId);
        }
        if (capabilities.has("cancel")) send(running, { type: "cancel", call_id: sentId }).catch(stopAfterWriteError);
      };
      request.signal.addEventListener("abort", abandon, { once: true });
      pendingCalls.push(pending);
      const toolParam = description.isList ? { tool: request.tool } : {};
      send(running, { type: "call", call_id: sentId, params: request.args, ...toolParam }).catch(stopAfterWriteError);
    });

  /** Stops the process after a failed write; its calls then reject with the end error. */
  const stopAfterWriteError = (): void => {
    if (endError === undefined) void running.stop();
  };

  const process: PluginProcess = {
    description,
    pid: running.group.id,
    isAlive: () => endError === undefined,
    call,
    close: async () => {
      isClosing = true;
      running.holdOpen(true);
      // Do not await the message: a process that has stopped reading never receives it.
      const stopTimer = world.schedule.after(closeGraceMs, () => void running.stop());
      if (capabilities.has("shutdown")) send(running, { type: "shutdown" }).catch(stopAfterWriteError);
      running.endInput();
      await Promise.allSettled([running.result]);
      stopTimer();
    },
    stop: async () => {
      await Promise.allSettled([running.stop()]);
    },
  };
  return {
    read: handleLine,
    tooLong: (length: number) =>
      failProtocol(`a line is longer than ${options.maxLineLength} characters (${length} so far)`),
    process,
  };
}

/** Milliseconds for a plugin to exit after the end of its input. */
const closeGraceMs = 2_000;

/** Maximum number of remembered call ids, for late and duplicate replies. */
const maxRememberedIds = 10_000;

/** Adds an id, and removes the oldest id above the limit. */
function rememberId(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest = id] = ids;
  if (ids.size > maxRememberedIds) ids.delete(oldest);
}

/** Returns the call id, with a suffix if another thread's call or an aborted attempt uses the same id. */
function createFreeId(callId: string, isTaken: (id: string) => boolean): string {
  let id = callId;
  for (let n = 2; isTaken(id); n++) id = `${callId}#${n}`;
  return id;
}

function send(running: RunningProcess, message: object): Promise<void> {
  return running.write(`${JSON.stringify(message)}\n`);
}

/**
 * Creates a promise resolved by the callback of `begin`. An abort rejects the promise and calls the cleanup function
 * of `begin`.
 */
function waitUnlessAborted<Value = void>(
  signal: AbortSignal,
  subscribe: (done: (value: Value) => void) => () => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const unsubscribe = subscribe((value) => {
      signal.removeEventListener("abort", abort);
      resolve(value);
    });
    const abort = (): void => {
      unsubscribe();
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort, { once: true });
  });
}

function formatTail(stderr: string): string {
  const text = stderr.trim();
  return text === "" ? "" : `: ${text.slice(-500)}`;
}

function truncateLine(line: string): string {
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}
