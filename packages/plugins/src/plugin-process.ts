/** One life of a plugin's process: it is started, describes itself, answers calls, and ends. */
import { StatewrightError, ToolError, type World } from "@statewright/core";
import { type RunningProcess, startProcess } from "@statewright/host";
import { lineReader } from "./line-reader.ts";
import { type PluginDescription, type PluginNews, type PluginReply, readDescription, readLine } from "./protocol.ts";

/** What starts a process, with every variable in place. */
export interface Start {
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

/** A call on its way. */
export interface PluginCall {
  readonly callId: string;
  /** Which tool, for plugins that have sent a list. */
  readonly tool: string | undefined;
  readonly args: unknown;
  readonly signal: AbortSignal;
  readonly onNews: (news: PluginNews) => void;
}

/** A process that has described itself. */
export interface PluginProcess {
  readonly description: PluginDescription;
  readonly pid: number;
  readonly isAlive: () => boolean;
  /**
   * Make a call and give its reply. Rejects when the signal fires: what the plugin answers then is thrown away, before
   * anything else is sent to one that answers in order. Rejects with {@link notReady} where that takes too long.
   */
  readonly call: (call: PluginCall) => Promise<PluginReply>;
  /** Ask it to end, and end it. */
  readonly close: () => Promise<void>;
  /** End it now, with its group. */
  readonly stop: () => Promise<void>;
}

/** The process has ended, or still owes an answer to a call that was given up: another one is needed. Nothing was sent. */
export const notReady: unique symbol = Symbol("not ready");

/** A call that was sent. One that was given up stays in its place until its answer has come. */
interface Pending {
  readonly sentId: string;
  readonly tool: string | undefined;
  readonly call: PluginCall;
  readonly settle: (outcome: { readonly reply: PluginReply } | { readonly error: unknown }) => void;
  isOpen: boolean;
}

/** Start a plugin and wait until it has described itself. Throws `plugin_failed`, and no process is left then. */
export async function startPlugin(start: Start): Promise<PluginProcess> {
  const { command, world, startTimeoutMs } = start;
  let described: (outcome: PluginDescription | string) => void = () => undefined;
  const description = new Promise<PluginDescription | string>((resolve) => {
    described = resolve;
  });
  let wrote = "";
  let read = (line: string): void => {
    const found = readDescription(line);
    if (found === undefined) {
      if (wrote === "") wrote = `, and wrote "${short(line)}", which is no description`;
      world.log("warn", `the plugin "${command}" wrote a line that is no description`, { line: short(line) });
    } else described(found);
  };
  let tooLong = (length: number): void =>
    described(`a line of it is longer than ${start.maxLineLength} characters (${length} so far)`);
  const stdout = lineReader(
    start.maxLineLength,
    (line) => read(line),
    (length) => tooLong(length),
  );
  const stderr = lineReader(start.maxLineLength, start.onStderr, () => undefined);
  let running: RunningProcess;
  try {
    running = await startProcess(start.command, start.args, {
      env: start.env,
      inherit: start.inherit,
      ...(start.cwd === undefined ? {} : { cwd: start.cwd }),
      keepInputOpen: true,
      maxBytes: 4_096,
      world,
      onOutput: (chunk, stream) => (stream === "stdout" ? stdout : stderr).add(chunk),
    });
  } catch (cause) {
    const [what = "", ...next] = (cause instanceof Error ? cause.message : String(cause))
      .replace(/\.$/, "")
      .split(". ");
    throw failed(command, what, next.join(". ") || "Install it, or correct its path", cause);
  }
  const stopTimer = world.schedule.after(startTimeoutMs, () =>
    described(`it did not describe itself within ${startTimeoutMs} ms${wrote}`),
  );
  void running.result.then(
    ({ exitCode, stderr: said }) => described(`it ended with exit code ${exitCode}${wrote}${tail(said)}`),
    (thrown: unknown) =>
      described(`what took its output failed: ${thrown instanceof Error ? thrown.message : String(thrown)}`),
  );
  // One that has ended already says so by its exit code.
  await Promise.allSettled([send(running, { type: "describe" })]);
  const found = await description;
  stopTimer();
  if (typeof found === "string") {
    await Promise.allSettled([running.stop()]);
    throw failed(
      command,
      found,
      'Start it by hand and give it the line {"type":"describe"}: it must answer with one line',
    );
  }
  const life = lifeOf(start, running, found);
  read = life.read;
  tooLong = life.tooLong;
  return life.process;
}

function failed(command: string, what: string, next: string, cause?: unknown): StatewrightError {
  return new StatewrightError("plugin_failed", {
    what: `the plugin "${command}" could not be started: ${what}`,
    next,
    cause,
  });
}

/** What a process does between its description and its end. */
function lifeOf(start: Start, running: RunningProcess, description: PluginDescription) {
  const { command, world } = start;
  const { capabilities } = description;
  const byId = capabilities.has("call_id");
  /** Calls that were sent and are not answered, in the order of sending. */
  const sent: Pending[] = [];
  /** Ids of calls that were given up and may still be answered. */
  const abandoned = new Set<string>();
  /** Ids that a plugin which answers in order was sent and has answered. */
  const answered = new Set<string>();
  /** Calls that wait until the ones before them are done. */
  const waiting = new Set<() => void>();
  let atWork = 0;
  let end: ToolError | undefined;
  let onStale: (() => void) | undefined;

  const die = (error: ToolError): void => {
    end ??= error;
    for (const pending of sent.splice(0)) pending.settle({ error: end });
    onStale?.();
    for (const next of waiting) next();
    waiting.clear();
  };
  void running.result.then(
    ({ exitCode, stderr }) =>
      die(
        new ToolError("crashed", `The plugin "${command}" ended with exit code ${exitCode}.`, {
          details: { stderr: tail(stderr) },
        }),
      ),
    (cause: unknown) =>
      die(
        new ToolError("crashed", `The plugin "${command}" was ended: what took its output failed.`, {
          cause,
        }),
      ),
  );

  const answer = (reply: PluginReply): void => {
    const index = byId ? sent.findIndex(({ sentId }) => sentId === reply.callId) : 0;
    const pending = sent[index];
    // Many give the id back unasked: by it a second answer to an earlier call is known, and is not taken for the next one's.
    const isSecond = reply.callId !== pending?.sentId && answered.has(reply.callId ?? "");
    if (pending === undefined || isSecond) {
      const isLate = reply.callId !== undefined && abandoned.delete(reply.callId);
      const what = isLate ? "a late answer was dropped" : "an answer to a call that was not asked was dropped";
      world.log("warn", `the plugin "${command}": ${what}`, { callId: reply.callId });
      return;
    }
    sent.splice(index, 1);
    if (!byId) remember(answered, pending.sentId);
    if (!pending.isOpen)
      world.log("warn", `a late answer of the plugin "${command}" was dropped`, { callId: pending.call.callId });
    pending.settle({ reply });
    if (sent.length === 0) onStale?.();
  };

  const tell = (news: PluginNews): void => {
    const pending = sent.find(({ sentId }) => sentId === news.callId);
    if (pending?.isOpen === true && capabilities.has("update")) pending.call.onNews(news);
  };

  /** Which answer belongs to which call can no longer be told: the process ends, and the next call gets a new one. */
  const breakOff = (what: string): void => {
    const tool = sent.find(({ isOpen }) => isOpen)?.tool ?? description.tools[0]?.name;
    die(
      new ToolError(
        "crashed",
        `The plugin of the tool "${tool}" broke the rule of one JSON object on one line: ${what}.`,
      ),
    );
    void running.stop();
  };

  const read = (line: string): void => {
    const message = readLine(line);
    if (message.kind === "reply") answer(message);
    else if (message.kind === "update" || message.kind === "progress") tell(message);
    else if (message.kind === "broken" && sent.length > 0) breakOff("a line begins with { and is not whole");
    else if (line.trim() !== "")
      world.log("warn", `the plugin "${command}" wrote a line that is no answer`, { line: short(line) });
  };

  /** Wait for a place: all at once where the plugin can tell calls apart, one by one else. */
  const place = async (signal: AbortSignal): Promise<void> => {
    if (capabilities.has("concurrent")) return;
    while (atWork > 0 && end === undefined) {
      await unlessAborted(signal, (go) => {
        waiting.add(go);
        return () => waiting.delete(go);
      });
    }
    atWork += 1;
  };
  const leave = (): void => {
    if (capabilities.has("concurrent")) return;
    atWork -= 1;
    const [next] = waiting;
    if (next === undefined) return;
    waiting.delete(next);
    next();
  };

  /** Wait until the answers to calls that were given up have come and gone. */
  const settled = async (signal: AbortSignal): Promise<boolean> => {
    if (byId || sent.length === 0) return true;
    let cancel: (() => void) | undefined;
    const forget = (): void => {
      cancel?.();
      onStale = undefined;
    };
    return unlessAborted<boolean>(signal, (go) => {
      onStale = () => go(true);
      cancel = world.schedule.after(start.staleGraceMs, () => go(false));
      return forget;
    }).finally(forget);
  };

  /** An idle plugin does not keep our process alive. */
  let calls = 0;
  let isClosing = false;
  running.holdOpen(false);
  const count = (change: 1 | -1): void => {
    calls += change;
    running.holdOpen(calls > 0 || isClosing);
  };

  const call = async (given: PluginCall): Promise<PluginReply> => {
    count(1);
    try {
      return await callInTurn(given);
    } finally {
      count(-1);
    }
  };

  const callInTurn = async (given: PluginCall): Promise<PluginReply> => {
    await place(given.signal);
    try {
      if (end !== undefined) throw notReady;
      if (!(await settled(given.signal))) throw notReady;
      if (end !== undefined) throw notReady;
      return await sendCall(given);
    } finally {
      leave();
    }
  };

  const sendCall = (given: PluginCall): Promise<PluginReply> =>
    new Promise((resolve, reject) => {
      given.signal.throwIfAborted();
      const sentId = freeId(given.callId, (id) => abandoned.has(id) || sent.some((other) => other.sentId === id));
      const pending: Pending = {
        sentId,
        tool: given.tool,
        call: given,
        isOpen: true,
        settle: (outcome) => {
          if (!pending.isOpen) return;
          pending.isOpen = false;
          given.signal.removeEventListener("abort", giveUp);
          if ("reply" in outcome) resolve(outcome.reply);
          else reject(outcome.error);
        },
      };
      const giveUp = (): void => {
        pending.settle({ error: given.signal.reason });
        // A plugin that answers by id may answer late, or never: nothing waits for it. One that answers in order owes it.
        if (byId) {
          sent.splice(sent.indexOf(pending), 1);
          remember(abandoned, sentId);
        }
        if (capabilities.has("cancel")) send(running, { type: "cancel", call_id: sentId }).catch(gone);
      };
      given.signal.addEventListener("abort", giveUp, { once: true });
      sent.push(pending);
      const named = description.isList ? { tool: given.tool } : {};
      send(running, { type: "call", call_id: sentId, params: given.args, ...named }).catch(gone);
    });

  /** Its input is closed: it has ended, or will be ended, and calls learn of it then. */
  const gone = (): void => {
    if (end === undefined) void running.stop();
  };

  const process: PluginProcess = {
    description,
    pid: running.group.id,
    isAlive: () => end === undefined,
    call,
    close: async () => {
      isClosing = true;
      running.holdOpen(true);
      // One that has stopped reading never takes in what is sent to it, so nothing waits for that.
      const stopTimer = world.schedule.after(closeGraceMs, () => void running.stop());
      if (capabilities.has("shutdown")) send(running, { type: "shutdown" }).catch(gone);
      running.endInput();
      await Promise.allSettled([running.result]);
      stopTimer();
    },
    stop: async () => {
      await Promise.allSettled([running.stop()]);
    },
  };
  return {
    read,
    tooLong: (length: number) => breakOff(`a line is longer than ${start.maxLineLength} characters (${length} so far)`),
    process,
  };
}

/** How long a plugin may take to end by itself once its input is closed. */
const closeGraceMs = 2_000;

/** How many ids are remembered of calls that may still be answered, or answered again. */
const mostRemembered = 10_000;

/** Add an id, and forget the oldest when there are too many. */
function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest = id] = ids;
  if (ids.size > mostRemembered) ids.delete(oldest);
}

/** The id as it is given, unless another call is known under it: of another thread, or an attempt that was given up. */
function freeId(callId: string, isTaken: (id: string) => boolean): string {
  let id = callId;
  for (let n = 2; isTaken(id); n++) id = `${callId}#${n}`;
  return id;
}

function send(running: RunningProcess, message: object): Promise<void> {
  return running.write(`${JSON.stringify(message)}\n`);
}

/** A promise that `begin` keeps by calling what it is given; or the signal breaks it, and what `begin` gave takes it back. */
function unlessAborted<Value = void>(
  signal: AbortSignal,
  begin: (go: (value: Value) => void) => () => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const takeBack = begin((value) => {
      signal.removeEventListener("abort", abort);
      resolve(value);
    });
    const abort = (): void => {
      takeBack();
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort, { once: true });
  });
}

function tail(stderr: string): string {
  const text = stderr.trim();
  return text === "" ? "" : `: ${text.slice(-500)}`;
}

function short(line: string): string {
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}
