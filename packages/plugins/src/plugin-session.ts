/** Session with a described plugin: calls and replies, from the description to the end of the process. */
import { ToolError, type World } from "@statewright/core";
import type { RunningProcess } from "@statewright/host";
import { CallSlots } from "./call-slots.ts";
import { type PendingCall, PendingCalls, type PluginCall } from "./pending-calls.ts";
import { type PluginDescription, type PluginReply, parseLine } from "./protocol.ts";

/** Process of a plugin, and the limits of its calls. */
export interface PluginSessionOptions {
  readonly command: string;
  readonly running: RunningProcess;
  readonly description: PluginDescription;
  readonly staleGraceMs: number;
  readonly maxLineLength: number;
  readonly world: World;
}

/**
 * Error value for an ended process, or for one with an overdue reply to an aborted call: the call was not sent and
 * needs a new process.
 */
export const notReady: unique symbol = Symbol("not ready");

/** Milliseconds for a plugin to exit after the end of its input. */
const closeGraceMs = 2_000;

/** Calls to one process. An idle plugin does not keep this process alive. */
export class PluginSession {
  readonly description: PluginDescription;
  readonly #options: PluginSessionOptions;
  readonly #pending: PendingCalls;
  readonly #slots: CallSlots;
  #endError: ToolError | undefined;
  #openCalls = 0;
  #isClosing = false;

  constructor(options: PluginSessionOptions) {
    const { command, running, description, world } = options;
    const { capabilities } = description;
    this.description = description;
    this.#options = options;
    this.#pending = new PendingCalls({ command, matching: capabilities.has("call_id") ? "id" : "order", world });
    this.#slots = new CallSlots(capabilities.has("concurrent") ? "concurrent" : "one");
    running.holdOpen(false);
    void running.result.then(
      ({ exitCode, stderr }) =>
        this.#end(
          new ToolError("crashed", `Plugin "${command}" exited with code ${exitCode}.`, {
            details: { stderr: formatTail(stderr) },
          }),
        ),
      (cause: unknown) =>
        this.#end(
          new ToolError("crashed", `Plugin "${command}" was stopped, because reading its output failed.`, { cause }),
        ),
    );
  }

  get pid(): number {
    return this.#options.running.group.id;
  }

  isAlive(): boolean {
    return this.#endError === undefined;
  }

  /** See `call` of `PluginProcess`. */
  async call(request: PluginCall): Promise<PluginReply> {
    this.#changeOpenCalls(1);
    try {
      return await this.#callInOrder(request);
    } finally {
      this.#changeOpenCalls(-1);
    }
  }

  /** Requests a shutdown, then stops the process. */
  async close(): Promise<void> {
    const { running, world } = this.#options;
    this.#isClosing = true;
    running.holdOpen(true);
    // Do not await the message: a process that has stopped reading never receives it.
    const stopTimer = world.schedule.after(closeGraceMs, () => void running.stop());
    if (this.description.capabilities.has("shutdown")) this.#send({ type: "shutdown" });
    running.endInput();
    await Promise.allSettled([running.result]);
    stopTimer();
  }

  /** Stops the process and its group immediately. */
  async stop(): Promise<void> {
    await Promise.allSettled([this.#options.running.stop()]);
  }

  /** Handles a line of the plugin. */
  handleLine(line: string): void {
    const { command, world } = this.#options;
    const message = parseLine(line);
    if (message.kind === "reply") this.#pending.handleReply(message);
    else if (message.kind === "update" || message.kind === "progress") {
      if (this.description.capabilities.has("update")) this.#pending.notify(message);
    } else if (message.kind === "broken" && this.#pending.size > 0) this.#failProtocol(message.problem);
    else if (line.trim() !== "")
      world.log("warn", `plugin "${command}" wrote a line that is not a reply`, { line: truncateLine(line) });
  }

  /** Ends the process after a line above the limit. */
  handleLongLine(length: number): void {
    this.#failProtocol(`a line is longer than ${this.#options.maxLineLength} characters (${length} so far)`);
  }

  #end(error: ToolError): void {
    this.#endError ??= error;
    this.#pending.end(this.#endError);
    this.#slots.end();
  }

  /** Ends the process, because replies can no longer be assigned to calls. The next call starts a new process. */
  #failProtocol(violation: string): void {
    const tool = this.#pending.openTool ?? this.description.tools[0]?.name;
    const rule = "the protocol of one JSON object per line";
    this.#end(new ToolError("crashed", `The plugin of tool "${tool}" violated ${rule}: ${violation}.`));
    void this.#options.running.stop();
  }

  #changeOpenCalls(change: 1 | -1): void {
    this.#openCalls += change;
    this.#options.running.holdOpen(this.#openCalls > 0 || this.#isClosing);
  }

  async #callInOrder(request: PluginCall): Promise<PluginReply> {
    const { signal } = request;
    await this.#slots.acquire(signal);
    try {
      if (!this.isAlive()) throw notReady;
      if (!(await this.#pending.awaitStaleReplies(signal, this.#options.staleGraceMs))) throw notReady;
      if (!this.isAlive()) throw notReady;
      return await this.#sendCall(request);
    } finally {
      this.#slots.release();
    }
  }

  #sendCall(request: PluginCall): Promise<PluginReply> {
    const { signal } = request;
    const { isList, capabilities } = this.description;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const sentId = this.#pending.createId(request.callId);
      const pending: PendingCall = {
        sentId,
        call: request,
        isOpen: true,
        complete: (outcome) => {
          if (!pending.isOpen) return;
          pending.isOpen = false;
          signal.removeEventListener("abort", abandon);
          if ("reply" in outcome) resolve(outcome.reply);
          else reject(outcome.error);
        },
      };
      const abandon = (): void => {
        pending.complete({ error: signal.reason });
        this.#pending.abandon(pending);
        if (capabilities.has("cancel")) this.#send({ type: "cancel", call_id: sentId });
      };
      signal.addEventListener("abort", abandon, { once: true });
      this.#pending.add(pending);
      const toolParam = isList ? { tool: request.tool } : {};
      this.#send({ type: "call", call_id: sentId, params: request.args, ...toolParam });
    });
  }

  /** Sends a message. A failed write stops the process; its calls then reject with the end error. */
  #send(message: object): void {
    const { running } = this.#options;
    writeMessage(running, message).catch(() => {
      if (this.isAlive()) void running.stop();
    });
  }
}

/** Writes a message as a single line of JSON. */
export function writeMessage(running: RunningProcess, message: object): Promise<void> {
  return running.write(`${JSON.stringify(message)}\n`);
}

/** Returns the end of stderr for messages, after a colon. */
export function formatTail(stderr: string): string {
  const text = stderr.trim();
  return text === "" ? "" : `: ${text.slice(-500)}`;
}

/** Shortens a line for messages. */
export function truncateLine(line: string): string {
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}
