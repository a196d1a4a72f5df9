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
  type ModelReply,
  type ModelRequest,
  StatewrightError,
  textOf,
} from "@statewright/core";
import { checkTranscript } from "./transcript.ts";

/** Text that a scripted model says. */
export interface ScriptedText {
  readonly kind: "text";
  readonly text: string;
}

/** A call that a scripted model makes. */
export interface ScriptedCall<Name extends string = string, Args extends JsonObject = JsonObject> {
  readonly kind: "call";
  readonly name: Name;
  readonly args: Args;
  readonly id: string | undefined;
}

/** A request that fails. */
export interface ScriptedFailure {
  readonly kind: "failure";
  readonly error: unknown;
}

/** One answer: text, a call, both in one message, or a failure. */
export type ScriptedReply = ScriptedText | ScriptedCall | ScriptedFailure | readonly (ScriptedText | ScriptedCall)[];

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

/** Say a text. */
export function say(text: string): ScriptedText {
  return { kind: "text", text };
}

/** Call a tool. The call's id counts up in its conversation (`call_1`, `call_2`) unless one is given. */
export function call<const Name extends string, Args extends JsonObject>(
  name: Name,
  args: Args,
  options: { readonly id?: string } = {},
): ScriptedCall<Name, Args> {
  return { kind: "call", name, args, id: options.id };
}

/** Fail one request; asked the same again, the model goes on with the entry after it. */
export function failWith(error: unknown): ScriptedFailure {
  return { kind: "failure", error };
}

/**
 * A model that answers from `script`. The same request gets the same answer; a model made anew, as after a crash, goes on
 * where the transcript stands. Rejects with `invalid_transcript`, and with `model_failed` after the script's end.
 */
export function scriptedModel<Entry extends ScriptedEntry>(
  script: Script<Entry>,
  options: { readonly id?: string } = {},
): ScriptedModel<CallsOf<Entry>> {
  const { id = "scripted" } = options;
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
      if ("kind" in reply && reply.kind === "failure") throw reply.error;
      const content = blocksOf("kind" in reply ? [reply] : reply, request.messages);
      await stream(content, at);
      return {
        content,
        finish: content.some((block) => block.type === "call") ? "calls" : "stop",
        usage: usageOf(request, content),
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
    if (!("kind" in reply && reply.kind === "failure")) given.set(transcript, reply);
    return reply;
  };
}

/** How many of the script's first answers are the last ones of the transcript: another process gave them. */
function standsAt(script: readonly ScriptedEntry[], request: ModelRequest): number {
  const { messages } = request;
  const spoken = messages.flatMap((message, index) => (message.role === "assistant" ? [{ message, index }] : []));
  for (let back = spoken.length; back > 0; back--) {
    let entry = 0;
    const theirs = spoken.slice(-back).every(({ message, index }) => {
      const asked = { ...request, messages: messages.slice(0, index) };
      while (isFailure(script[entry])) entry += 1;
      const found = script[entry++];
      return found !== undefined && isAnswer(replyOf(found, asked), message);
    });
    if (theirs) return entry;
  }
  return 0;
}

function isFailure(entry: ScriptedEntry | undefined): boolean {
  return typeof entry === "object" && "kind" in entry && entry.kind === "failure";
}

function replyOf(entry: ScriptedEntry, request: ModelRequest): ScriptedReply {
  return typeof entry === "function" ? entry(request) : entry;
}

function isAnswer(reply: ScriptedReply, message: AssistantMessage): boolean {
  if ("kind" in reply && reply.kind === "failure") return false;
  const parts = "kind" in reply ? [reply] : reply;
  const text = parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  const wanted = parts.flatMap((part) => (part.kind === "call" ? [[part.name, part.args]] : []));
  const made = callsOf(message).map((block) => [block.name, block.args]);
  return text === textOf(message) && JSON.stringify(wanted) === JSON.stringify(made);
}

function blocksOf(
  parts: readonly (ScriptedText | ScriptedCall)[],
  messages: readonly Message[],
): readonly ReplyBlock[] {
  let last = lastCallNumber(messages);
  return parts.map((part) =>
    part.kind === "text"
      ? { type: "text", text: part.text }
      : { type: "call", id: part.id ?? `call_${++last}`, name: part.name, args: part.args },
  );
}

type ReplyBlock = Extract<ModelReply["content"][number], { readonly type: "text" | "call" }>;

function lastCallNumber(messages: readonly Message[]): number {
  const ids = messages.flatMap((message) => (message.role === "assistant" ? callsOf(message).map(({ id }) => id) : []));
  return Math.max(0, ...ids.map((id) => Number(/^call_(\d+)$/.exec(id)?.[1] ?? 0)));
}

/** Word by word, as a model writes; a cancelled request stops between two words. */
async function stream(content: readonly ReplyBlock[], { signal, delta }: ModelCallOptions): Promise<void> {
  for (const block of content) {
    const chunks = block.type === "text" ? (block.text.match(/\s*\S+\s*/g) ?? []) : [JSON.stringify(block.args)];
    for (const chunk of chunks) {
      delta?.(
        block.type === "text"
          ? { type: "text", text: chunk }
          : { type: "call", id: block.id, name: block.name, argsText: chunk },
      );
      await Promise.resolve();
      signal.throwIfAborted();
    }
  }
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
    next: "Add an answer for this request, or look in model.requests for the one that was not expected",
    details: { retryable: false },
  });
}
