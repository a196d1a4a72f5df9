/**
 * A model that answers from a script: no network, no key, the same answers every time. It is strict: a transcript that a
 * provider would refuse is refused here too.
 */
import {
  type AssistantMessage,
  callsOf,
  type JsonObject,
  type Message,
  type Model,
  type ModelCallOptions,
  type ModelDelta,
  type ModelReply,
  type ModelRequest,
  StatewrightError,
  textOf,
  type Usage,
  type World,
} from "@statewright/core";
import { checkTranscript } from "./transcript.ts";

/** Text that a scripted model says. */
export interface ScriptedText {
  readonly kind: "text";
  readonly text: string;
  /** How it streams; word by word when absent. */
  readonly chunks: readonly string[] | undefined;
  /** What the answer costs; made up from its length when absent. */
  readonly usage: Usage | undefined;
}

/** What a scripted model thinks before it answers. */
export interface ScriptedThought {
  readonly kind: "thought";
  readonly text: string;
}

/** A call that a scripted model makes. */
export interface ScriptedCall<Name extends string = string, Args extends JsonObject = JsonObject> {
  readonly kind: "call";
  readonly name: Name;
  readonly args: Args;
  readonly id: string | undefined;
}

/** What an answer is made of. */
export type ScriptedPart = ScriptedText | ScriptedThought | ScriptedCall;

/** A request that fails, or of which nothing more is heard. */
export interface ScriptedFailure {
  readonly kind: "failure" | "stall";
  readonly error: unknown;
  /** What streams before that. */
  readonly after: readonly (ScriptedText | ScriptedThought)[];
}

/** One answer: a part, several in one message, or a failure. */
export type ScriptedReply = ScriptedPart | ScriptedFailure | readonly ScriptedPart[];

/** An answer that is decided from what the model is shown, such as the results of tools. */
export type ScriptedDecision = (request: ModelRequest) => ScriptedReply;

/** An entry of a script. */
export type ScriptedEntry = ScriptedReply | ScriptedDecision;

/** What a scripted model answers: one entry after the other, or a decision for every request. */
export type Script<Entry extends ScriptedEntry = ScriptedEntry> =
  | readonly Entry[]
  | ((request: ModelRequest) => Entry & ScriptedReply);

type ReplyOf<Entry> = Entry extends (request: ModelRequest) => infer Reply ? Reply : Entry;
type PartOf<Reply> = Reply extends readonly (infer Part)[] ? Part : Reply;

/** The calls that a script with these entries may make, as the tools that it needs. */
export type CallsOf<Entry extends ScriptedEntry> =
  PartOf<ReplyOf<Entry>> extends infer Part
    ? Part extends ScriptedCall<infer Name, infer Args>
      ? { readonly name: Name; readonly args: Args }
      : never
    : never;

/** A scripted model. `script` exists only for the compiler: it carries the calls that the model knows. */
export interface ScriptedModel<Calls = unknown> extends Model {
  readonly script?: Calls;
  /** Every request as it arrived, also those that were refused. */
  readonly requests: readonly ModelRequest[];
}

/** Say a text: word by word, or in these chunks. */
export function say(text: string | readonly string[], options: { readonly usage?: Usage } = {}): ScriptedText {
  const { usage } = options;
  if (typeof text === "string") return { kind: "text", text, chunks: undefined, usage };
  return { kind: "text", text: text.join(""), chunks: text, usage };
}

/** Think, and say nothing yet. */
export function think(text: string): ScriptedThought {
  return { kind: "thought", text };
}

/** Call a tool. The call's id counts up in its conversation (`call_1`, `call_2`) unless one is given. */
export function call<const Name extends string, Args extends JsonObject>(
  name: Name,
  args: Args,
  options: { readonly id?: string } = {},
): ScriptedCall<Name, Args> {
  return { kind: "call", name, args, id: options.id };
}

/** What streams before a request comes to nothing. */
type Before = ScriptedText | ScriptedThought | readonly (ScriptedText | ScriptedThought)[];

/** Fail one request, in the middle of its stream where it says something first; asked the same again, the model goes on with the entry after it. */
export function failWith(error: unknown, options: { readonly after?: Before } = {}): ScriptedFailure {
  return { kind: "failure", error, after: partsOf(options.after ?? []) };
}

/** Fall silent, after a part of the answer where it says something first: only an abort ends the request. */
export function stall(options: { readonly after?: Before } = {}): ScriptedFailure {
  return { kind: "stall", error: undefined, after: partsOf(options.after ?? []) };
}

function partsOf<Part extends { readonly kind: string }>(parts: Part | readonly Part[]): readonly Part[] {
  return isList(parts) ? parts : [parts];
}

function isList<Part>(parts: Part | readonly Part[]): parts is readonly Part[] {
  return Array.isArray(parts);
}

/** How fast a scripted model writes, on a clock that a test moves. */
export interface ScriptedPace {
  readonly world: Pick<World, "schedule">;
  /** Before the first part of an answer, in milliseconds. */
  readonly firstMs?: number;
  /** Before each further part. */
  readonly chunkMs?: number;
}

/**
 * A model that answers from `script`. The same request gets the same answer; a model made anew, as after a crash, goes on
 * behind its answers in the first conversation that it is shown, also where others speak in it, as in a team. One that serves
 * several conversations in several processes takes a decision in place of a list: it depends on the request alone. Rejects with `invalid_transcript`, and with `model_failed` after the script's end.
 */
export function scriptedModel<Entry extends ScriptedEntry>(
  script: Script<Entry>,
  options: { readonly id?: string; readonly pace?: ScriptedPace } = {},
): ScriptedModel<CallsOf<Entry>> {
  const { id = "scripted", pace } = options;
  const requests: ModelRequest[] = [];
  const next = decides(script) ? script : follow(id, script);
  return {
    id,
    requests,
    respond: async (request, at) => {
      requests.push(structuredClone(request));
      checkTranscript(request.messages);
      at.signal.throwIfAborted();
      const reply = next(request);
      const tell = teller(at, pace);
      if (isFailure(reply)) {
        await stream(reply.after, [], tell);
        if (reply.kind === "stall") await tell.silence();
        throw reply.error;
      }
      const parts = partsOf(reply);
      const content = blocksOf(parts, request.messages);
      await stream(parts, content, tell);
      const usage = parts.flatMap((part) => (part.kind === "text" && part.usage !== undefined ? [part.usage] : []));
      return {
        content,
        finish: content.some((block) => block.type === "call") ? "calls" : "stop",
        usage: usage.at(-1) ?? usageOf(request, content),
      };
    },
  };
}

function decides(script: Script): script is ScriptedDecision {
  return typeof script === "function";
}

/** The entries one after the other. Answers are remembered by transcript, so that a request that is made again moves nothing. */
function follow(id: string, script: readonly ScriptedEntry[]): ScriptedDecision {
  const given = new Map<string, ScriptedReply>();
  let position: number | undefined;
  return (request) => {
    const transcript = JSON.stringify(request.messages);
    const known = given.get(transcript);
    if (known !== undefined) return known;
    position ??= standsAt(script, request);
    const entry = script[position];
    if (entry === undefined) throw ended(id, script.length);
    position += 1;
    const reply = replyOf(entry, request);
    if (!isFailure(reply)) given.set(transcript, reply);
    return reply;
  };
}

/**
 * How many of the script's first answers another process gave: they are the last ones of the transcript, or, where others speak
 * in the same conversation, stand in their order among those since a person spoke last.
 */
function standsAt(script: readonly ScriptedEntry[], request: ModelRequest): number {
  const { messages } = request;
  const spoken = messages.flatMap((message, index) => (message.role === "assistant" ? [{ message, index }] : []));
  const isSaid = (entry: number, { message, index }: Spoken): boolean => {
    const said = script[entry];
    return said !== undefined && isAnswer(replyOf(said, { ...request, messages: messages.slice(0, index) }), message);
  };
  const behindFailures = (entry: number): number => (isFailure(script[entry]) ? behindFailures(entry + 1) : entry);
  for (let back = spoken.length; back > 0; back--) {
    let entry = 0;
    const theirs = spoken.slice(-back).every((each) => {
      entry = behindFailures(entry) + 1;
      return isSaid(entry - 1, each);
    });
    if (theirs) return entry;
  }
  const asked = messages.findLastIndex(({ role }) => role === "user");
  return spoken.reduce((entry, each) => {
    const next = behindFailures(entry);
    return each.index > asked && isSaid(next, each) ? next + 1 : entry;
  }, 0);
}

/** An answer, and where it stands in its conversation. */
interface Spoken {
  readonly message: AssistantMessage;
  readonly index: number;
}

function isFailure(entry: ScriptedEntry | undefined): entry is ScriptedFailure {
  return typeof entry === "object" && "kind" in entry && (entry.kind === "failure" || entry.kind === "stall");
}

function replyOf(entry: ScriptedEntry, request: ModelRequest): ScriptedReply {
  return typeof entry === "function" ? entry(request) : entry;
}

function isAnswer(reply: ScriptedReply, message: AssistantMessage): boolean {
  if (isFailure(reply)) return false;
  const parts = partsOf(reply);
  const text = parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  const wanted = parts.flatMap((part) => (part.kind === "call" ? [[part.name, part.args]] : []));
  const made = callsOf(message).map((block) => [block.name, block.args]);
  return text === textOf(message) && JSON.stringify(wanted) === JSON.stringify(made);
}

function blocksOf(parts: readonly ScriptedPart[], messages: readonly Message[]): readonly ReplyBlock[] {
  let last = lastCallNumber(messages);
  return parts.map((part) => {
    if (part.kind === "call")
      return { type: "call", id: part.id ?? `call_${++last}`, name: part.name, args: part.args };
    return { type: part.kind === "text" ? "text" : "reasoning", text: part.text };
  });
}

type ReplyBlock = Extract<ModelReply["content"][number], { readonly type: "text" | "reasoning" | "call" }>;

function lastCallNumber(messages: readonly Message[]): number {
  const ids = messages.flatMap((message) => (message.role === "assistant" ? callsOf(message).map(({ id }) => id) : []));
  return Math.max(0, ...ids.map((id) => Number(/^call_(\d+)$/.exec(id)?.[1] ?? 0)));
}

/** Tells the parts of an answer at the model's pace. */
interface Teller {
  readonly tell: (delta: ModelDelta) => Promise<void>;
  /** Ends with the request. */
  readonly silence: () => Promise<never>;
}

function teller({ signal, delta }: ModelCallOptions, pace: ScriptedPace | undefined): Teller {
  let isFirst = true;
  const wait = async (): Promise<void> => {
    const ms = (isFirst ? pace?.firstMs : pace?.chunkMs) ?? 0;
    isFirst = false;
    if (pace === undefined || ms === 0) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const cancel = pace.world.schedule.after(ms, end);
      signal.addEventListener("abort", end);
    });
  };
  return {
    tell: async (part) => {
      await wait();
      signal.throwIfAborted();
      delta?.(part);
      await Promise.resolve();
      signal.throwIfAborted();
    },
    silence: () =>
      new Promise((_resolve, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
  };
}

/** Word by word, as a model writes; a cancelled request stops between two words. */
async function stream(parts: readonly ScriptedPart[], blocks: readonly ReplyBlock[], { tell }: Teller): Promise<void> {
  for (const [index, part] of parts.entries()) {
    if (part.kind === "call") {
      const id = idOf(blocks[index]);
      await tell({ type: "call", id, name: part.name, argsText: JSON.stringify(part.args) });
      continue;
    }
    const chunks = (part.kind === "text" ? part.chunks : undefined) ?? part.text.match(/\s*\S+\s*/g) ?? [];
    for (const text of chunks) await tell({ type: part.kind === "text" ? "text" : "reasoning", text });
  }
}

function idOf(block: ReplyBlock | undefined): string {
  return block?.type === "call" ? block.id : "";
}

/** About four characters a token: plausible, and the same every time. */
function usageOf(request: ModelRequest, content: readonly ReplyBlock[]): ModelReply["usage"] {
  const tokens = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4);
  return {
    inputTokens: tokens([request.instructions ?? "", request.messages, request.tools]),
    outputTokens: tokens(content),
  };
}

function ended(id: string, length: number): StatewrightError {
  return new StatewrightError("model_failed", {
    what: `the script of the model "${id}" has ended: all of its ${length} ${length === 1 ? "answer is" : "answers are"} given`,
    next: "Add an answer for this request, look in model.requests for the one that was not expected, or give a function that decides by the request where steps are taken again, as on a branch",
    details: { retryable: false, kind: "invalid_request" },
  });
}
