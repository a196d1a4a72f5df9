/**
 * Model with scripted answers: no network, no key, deterministic. Rejects every transcript that a provider would
 * reject.
 */
import {
  type AssistantMessage,
  getMessageText,
  type JsonObject,
  listToolCalls,
  type Message,
  type Model,
  type ModelCallOptions,
  type ModelDelta,
  type ModelReply,
  type ModelRequest,
  StatewrightError,
  type Usage,
  type World,
} from "@statewright/core";
import { invalidOption, systemWorld } from "@statewright/core/adapter";
import { checkTranscript } from "./transcript.ts";

/** Text part of a scripted reply. */
export interface ScriptedText {
  readonly kind: "text";
  readonly text: string;
  /** Streamed chunks; single words when absent. */
  readonly chunks: readonly string[] | undefined;
  /** Token usage of the reply; estimated from the text length when absent. */
  readonly usage: Usage | undefined;
}

/** Reasoning part of a scripted reply. */
export interface ScriptedThought {
  readonly kind: "thought";
  readonly text: string;
}

/** Tool call of a scripted reply. */
export interface ScriptedCall<Name extends string = string, Args extends JsonObject = JsonObject> {
  readonly kind: "call";
  readonly name: Name;
  readonly args: Args;
  readonly id: string | undefined;
  /** Token usage of the reply; estimated from the text length when absent. */
  readonly usage: Usage | undefined;
}

/** Part of a scripted reply. */
export type ScriptedPart = ScriptedText | ScriptedThought | ScriptedCall;

/** Failing request, or a request without an end. */
export interface ScriptedFailure {
  readonly kind: "failure" | "stall";
  readonly error: unknown;
  /** Parts streamed before the failure. */
  readonly after: readonly (ScriptedText | ScriptedThought)[];
}

/** Scripted reply: a part, several parts of a message, or a failure. */
export type ScriptedReply = ScriptedPart | ScriptedFailure | readonly ScriptedPart[];

/** Function that computes the reply from the request, for example from tool results. */
export type ScriptedDecision = (request: ModelRequest) => ScriptedReply;

/** Entry of a script. */
export type ScriptedEntry = ScriptedReply | ScriptedDecision;

/** Script of a model: a list of entries, or a function for every request. */
export type Script<Entry extends ScriptedEntry = ScriptedEntry> =
  | readonly Entry[]
  | ((request: ModelRequest) => Entry & ScriptedReply);

type EntryReply<Entry> = Entry extends (request: ModelRequest) => infer Reply ? Reply : Entry;
type ReplyPart<Reply> = Reply extends readonly (infer Part)[] ? Part : Reply;

/** Tool calls in the entries of a script, as types of the required tools. */
export type ScriptCalls<Entry extends ScriptedEntry> =
  ReplyPart<EntryReply<Entry>> extends infer Part
    ? Part extends ScriptedCall<infer Name, infer Args>
      ? { readonly name: Name; readonly args: Args }
      : never
    : never;

/** Scripted model. `script` exists only for the compiler: it carries the types of the scripted calls. */
export interface ScriptedModel<Calls = unknown> extends Model {
  readonly script?: Calls;
  /** Every received request, including refused requests. */
  readonly requests: readonly ModelRequest[];
}

/** Creates a text part, streamed word by word or in these chunks. */
export function say(text: string | readonly string[], options: { readonly usage?: Usage } = {}): ScriptedText {
  const { usage } = options;
  if (typeof text === "string") return { kind: "text", text, chunks: undefined, usage };
  return { kind: "text", text: text.join(""), chunks: text, usage };
}

/** Creates a reasoning part. */
export function think(text: string): ScriptedThought {
  return { kind: "thought", text };
}

/** Tool of a call: a result of `defineTool`, whose arguments the compiler checks, or the name of any tool. */
export type CalledTool = string | { readonly name: string; readonly given?: unknown };

/** Name of the tool of a call. */
export type CalledName<Tool extends CalledTool> = Tool extends { readonly name: infer Name extends string }
  ? Name
  : Tool & string;

/** Arguments of a call: those of the tool, or any for the name of a tool. */
export type CallArgs<Tool extends CalledTool, Args extends JsonObject> = Tool extends { readonly given?: infer Given }
  ? unknown extends Given
    ? Args
    : NonNullable<Given>
  : Args;

/**
 * Creates a tool call, for a script and for the matcher `toHaveCalledTools`. For a tool, wrong arguments do not compile;
 * a name is for tools that the test cannot import. Without an id, the calls of a conversation are numbered
 * (`call_1`, `call_2`). `usage` is the token usage of the whole reply: of several parts with a usage, the last one
 * counts.
 *
 * @example
 * ```ts
 * const model = scriptedModel([call(search, { query: "tea" }), say("Green tea")]);
 * expect(t).toHaveCalledTools([call(search, { query: "tea" })]);
 * ```
 */
export function call<const Tool extends CalledTool, const Args extends JsonObject>(
  tool: Tool,
  args: CallArgs<Tool, Args>,
  options: { readonly id?: string; readonly usage?: Usage } = {},
): ScriptedCall<CalledName<Tool>, Tool extends string ? Args : JsonObject> {
  const name = (typeof tool === "string" ? tool : tool.name) as CalledName<Tool>;
  return { kind: "call", name, args, id: options.id, usage: options.usage };
}

/** Parts streamed before a failure. */
type PrecedingParts = ScriptedText | ScriptedThought | readonly (ScriptedText | ScriptedThought)[];

/** Fails a request, after streaming the parts of `after`; a repeated request gets the next entry. */
export function failWith(error: unknown, options: { readonly after?: PrecedingParts } = {}): ScriptedFailure {
  return { kind: "failure", error, after: toList(options.after ?? []) };
}

/** Hangs a request, after streaming the parts of `after`; only an abort ends the request. */
export function stall(options: { readonly after?: PrecedingParts } = {}): ScriptedFailure {
  return { kind: "stall", error: undefined, after: toList(options.after ?? []) };
}

function toList<Part extends { readonly kind: string }>(parts: Part | readonly Part[]): readonly Part[] {
  return isList(parts) ? parts : [parts];
}

function isList<Part>(parts: Part | readonly Part[]): parts is readonly Part[] {
  return Array.isArray(parts);
}

/** Delays of a scripted model. */
export interface ScriptedPace {
  /** Clock of the delays, such as a `virtualClock`. Default: the clock of the system. */
  readonly world?: Pick<World, "schedule">;
  /** Delay before the first part of a reply, in milliseconds. */
  readonly firstMs?: number;
  /** Delay before each further part, in milliseconds. */
  readonly chunkMs?: number;
}

/** Options of a scripted model. */
export interface ScriptedModelOptions {
  /** Provider's id of the model. Default `scripted`. */
  readonly id?: string;
  /** Delays of the replies. Default: none. */
  readonly pace?: ScriptedPace;
  /**
   * Key of a request: a request with the key of an earlier one gets the reply of that request, and the script does not
   * advance. `transcript` is the messages: use it for a model that outlives a simulated crash. Default: each request gets
   * the next reply.
   */
  readonly key?: "transcript" | ((request: ModelRequest) => string);
}

/**
 * Creates a model with the replies of `script`, one for each request in order, also for equal requests. A model created
 * after a crash continues behind the replies in the transcript of its first request, also in a conversation with several
 * assistants, such as a team. For several conversations in several processes, pass a function, whose reply depends on
 * the request only. Throws `invalid_option` for an entry that is no reply. Requests reject with `invalid_transcript`, and with `model_failed` after the last entry of the script.
 */
export function scriptedModel<Entry extends ScriptedEntry>(
  script: Script<Entry>,
  options: ScriptedModelOptions = {},
): ScriptedModel<ScriptCalls<Entry>> {
  const { id = "scripted", pace, key } = options;
  checkScript(script);
  const requests: ModelRequest[] = [];
  const getReply = isDecision(script) ? script : createScriptReader(id, script, key);
  return {
    id,
    requests,
    respond: async (request, callOptions) => {
      requests.push(structuredClone(request));
      checkTranscript(request.messages);
      callOptions.signal.throwIfAborted();
      const reply = checkReply("the reply of a function", getReply(request));
      const writer = createDeltaWriter(callOptions, pace);
      if (isFailure(reply)) {
        await streamParts(reply.after, [], writer);
        if (reply.kind === "stall") await writer.waitForAbort();
        throw reply.error;
      }
      const parts = toList(reply);
      const content = createBlocks(parts, request.messages);
      await streamParts(parts, content, writer);
      const usage = parts.flatMap((part) => (part.kind !== "thought" && part.usage !== undefined ? [part.usage] : []));
      return {
        content,
        finish: content.some((block) => block.type === "call") ? "calls" : "stop",
        usage: usage.at(-1) ?? estimateUsage(request, content),
      };
    },
  };
}

function isDecision(script: Script): script is ScriptedDecision {
  return typeof script === "function";
}

/** Returns the entries in order. A request with a known key does not advance the script. */
function createScriptReader(
  id: string,
  script: readonly ScriptedEntry[],
  toKey: ScriptedModelOptions["key"],
): ScriptedDecision {
  const replies = new Map<string, ScriptedReply>();
  let position: number | undefined;
  return (request) => {
    const key = toKey === "transcript" ? JSON.stringify(request.messages) : toKey?.(request);
    const known = key === undefined ? undefined : replies.get(key);
    if (known !== undefined) return known;
    position ??= findScriptPosition(script, request);
    const entry = script[position];
    if (entry === undefined) throw createScriptEndError(id, script.length);
    position += 1;
    const reply = resolveReply(entry, request);
    if (key !== undefined && !isFailure(reply)) replies.set(key, reply);
    return reply;
  };
}

/**
 * Counts the script entries already used by another process: the last assistant messages of the transcript, or, with
 * several assistants in a single conversation, the matching messages since the last user message.
 */
function findScriptPosition(script: readonly ScriptedEntry[], request: ModelRequest): number {
  const { messages } = request;
  const answers = messages.flatMap((message, index) => (message.role === "assistant" ? [{ message, index }] : []));
  const isEntryAnswer = (entry: number, { message, index }: TranscriptAnswer): boolean => {
    const scriptEntry = script[entry];
    return (
      scriptEntry !== undefined &&
      isAnswer(resolveReply(scriptEntry, { ...request, messages: messages.slice(0, index) }), message)
    );
  };
  const skipFailures = (entry: number): number => (isFailure(script[entry]) ? skipFailures(entry + 1) : entry);
  for (let count = answers.length; count > 0; count--) {
    let entry = 0;
    const isMatch = answers.slice(-count).every((each) => {
      entry = skipFailures(entry) + 1;
      return isEntryAnswer(entry - 1, each);
    });
    if (isMatch) return entry;
  }
  const lastUserIndex = messages.findLastIndex(({ role }) => role === "user");
  return answers.reduce((entry, each) => {
    const next = skipFailures(entry);
    return each.index > lastUserIndex && isEntryAnswer(next, each) ? next + 1 : entry;
  }, 0);
}

/** Assistant message with the index in the conversation. */
interface TranscriptAnswer {
  readonly message: AssistantMessage;
  readonly index: number;
}

function isFailure(entry: ScriptedEntry | undefined): entry is ScriptedFailure {
  return (
    typeof entry === "object" &&
    entry !== null &&
    "kind" in entry &&
    (entry.kind === "failure" || entry.kind === "stall")
  );
}

function resolveReply(entry: ScriptedEntry, request: ModelRequest): ScriptedReply {
  return typeof entry === "function" ? entry(request) : entry;
}

/** Throws `invalid_option` for an entry that is neither a function nor a reply. */
function checkScript(script: Script): void {
  if (isDecision(script)) return;
  if (!Array.isArray(script)) throw createReplyError("script", script, "a list of replies, or a function");
  for (const [index, entry] of script.entries()) if (typeof entry !== "function") checkReply(`script[${index}]`, entry);
}

const partKinds: ReadonlySet<unknown> = new Set(["text", "thought", "call"]);

function checkReply(place: string, reply: ScriptedReply): ScriptedReply {
  if (isFailure(reply) || toList(reply).every(isPart)) return reply;
  throw createReplyError(place, reply, "made with say, think, call, failWith or stall, or a list of parts");
}

function isPart(part: unknown): boolean {
  return typeof part === "object" && part !== null && "kind" in part && partKinds.has(part.kind);
}

function createReplyError(option: string, got: unknown, expected: string): StatewrightError {
  const fix = "Use say(text) for a text, call(tool, args) for a tool call, and a list for several parts";
  return invalidOption({ where: "scriptedModel", option, expected, got, fix });
}

function isAnswer(reply: ScriptedReply, message: AssistantMessage): boolean {
  if (isFailure(reply)) return false;
  const parts = toList(reply);
  const text = parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  const expectedCalls = parts.flatMap((part) => (part.kind === "call" ? [[part.name, part.args]] : []));
  const actualCalls = listToolCalls(message).map((block) => [block.name, block.args]);
  return text === getMessageText(message) && JSON.stringify(expectedCalls) === JSON.stringify(actualCalls);
}

function createBlocks(parts: readonly ScriptedPart[], messages: readonly Message[]): readonly ReplyBlock[] {
  let last = findLastCallNumber(messages);
  return parts.map((part) => {
    if (part.kind === "call")
      return { type: "call", id: part.id ?? `call_${++last}`, name: part.name, args: part.args };
    return { type: part.kind === "text" ? "text" : "reasoning", text: part.text };
  });
}

type ReplyBlock = Extract<ModelReply["content"][number], { readonly type: "text" | "reasoning" | "call" }>;

function findLastCallNumber(messages: readonly Message[]): number {
  const ids = messages.flatMap((message) =>
    message.role === "assistant" ? listToolCalls(message).map(({ id }) => id) : [],
  );
  return Math.max(0, ...ids.map((id) => Number(/^call_(\d+)$/.exec(id)?.[1] ?? 0)));
}

/** Writer of deltas at the pace of the model. */
interface DeltaWriter {
  readonly write: (delta: ModelDelta) => Promise<void>;
  /** Never resolves; rejects when the request is aborted. */
  readonly waitForAbort: () => Promise<never>;
}

function createDeltaWriter({ signal, delta }: ModelCallOptions, pace: ScriptedPace | undefined): DeltaWriter {
  const { schedule } = pace?.world ?? systemWorld();
  let isFirst = true;
  const wait = async (): Promise<void> => {
    const ms = (isFirst ? pace?.firstMs : pace?.chunkMs) ?? 0;
    isFirst = false;
    if (ms === 0) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const cancel = schedule.after(ms, end);
      signal.addEventListener("abort", end);
    });
  };
  return {
    write: async (part) => {
      await wait();
      signal.throwIfAborted();
      delta?.(part);
      await Promise.resolve();
      signal.throwIfAborted();
    },
    waitForAbort: () =>
      new Promise((_resolve, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
  };
}

/** Streams the parts word by word; an abort stops the stream between two words. */
async function streamParts(
  parts: readonly ScriptedPart[],
  blocks: readonly ReplyBlock[],
  { write }: DeltaWriter,
): Promise<void> {
  for (const [index, part] of parts.entries()) {
    if (part.kind === "call") {
      const id = getCallId(blocks[index]);
      await write({ type: "call", id, name: part.name, argsText: JSON.stringify(part.args) });
      continue;
    }
    const chunks = (part.kind === "text" ? part.chunks : undefined) ?? part.text.match(/\s*\S+\s*/g) ?? [];
    for (const text of chunks) await write({ type: part.kind === "text" ? "text" : "reasoning", text });
  }
}

function getCallId(block: ReplyBlock | undefined): string {
  return block?.type === "call" ? block.id : "";
}

/** Estimates four characters per token: plausible and deterministic. */
function estimateUsage(request: ModelRequest, content: readonly ReplyBlock[]): ModelReply["usage"] {
  const countTokens = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4);
  return {
    inputTokens: countTokens([request.instructions ?? "", request.messages, request.tools]),
    outputTokens: countTokens(content),
  };
}

function createScriptEndError(id: string, length: number): StatewrightError {
  return new StatewrightError("model_failed", {
    what: `scriptedModel "${id}": expected at most ${length} requests, got another request after the end of the script`,
    next: "Add an answer for this request, find the unexpected request in model.requests, or use a function as script when steps run again, as on a branch",
    details: { retryable: false, kind: "invalid_request" },
  });
}
