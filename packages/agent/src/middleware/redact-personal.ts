/** Personal data is kept from models, and out of what they answer and tools give. */
import {
  type AssistantMessage,
  type ContentBlock,
  checkOptions,
  defineMiddleware,
  type Json,
  type Message,
  type Middleware,
  type ModelDelta,
  type ModelReply,
  optionNames,
  type ToolCallBlock,
  type ToolResult,
  type UserMessage,
} from "@statewright/core";
import { checkFlag, unfitOption } from "../agent/check-option.ts";
import { type Clean, cleanBlock, cleanData, cleanOutput, cleanResult } from "../output/clean-result.ts";
import { isFinal } from "../output/is-final-answer.ts";
import { beginsAsJson, cleanAnswer } from "../personal/clean-answer.ts";
import { type Found, findPersonal, type PersonalKind, personalKinds } from "../personal/find-personal.ts";
import { cleanStream } from "../personal/redact-stream.ts";
import { messagesIn } from "./conversation-calls.ts";

/**
 * What becomes of a find: `redact` puts its kind in its place, `mask` leaves its end, `hash` puts a name in its place that is
 * the same for the same value, `block` lets the whole text through nowhere.
 */
export type PersonalStrategy = "redact" | "mask" | "hash" | "block";

/** A kind of your own. */
export interface PersonalDetector {
  readonly kind: string;
  /** The places in a text, in order. */
  readonly find: (text: string) => readonly { readonly start: number; readonly end: number }[];
}

/** What `redactPersonal` takes. */
export interface RedactPersonalOptions {
  /** What is looked for. Default: all of `email`, `iban`, `card`, `ip`, `phone`. */
  readonly kinds?: readonly PersonalKind[];
  /** Kinds of your own besides. With them nothing of an answer streams before it is whole. */
  readonly detectors?: readonly PersonalDetector[];
  /** What becomes of finds: of all, or by kind. Default `redact`. */
  readonly strategy?: PersonalStrategy | Readonly<Record<string, PersonalStrategy>>;
  /** Look at what people say, before a model reads it. Default true. */
  readonly input?: boolean;
  /** Look at what the model answers, before it is saved or shown. Default true. */
  readonly output?: boolean;
  /** Look at what tools give. Default true. */
  readonly toolResults?: boolean;
  /** The secret of `hash`: without it nobody can find a value by trying. */
  readonly hashKey?: string;
}

type Place = Found<string>;

/** What cleaning came upon, beside the text that is left. */
interface Finds {
  /** Values that stand under a name made of them. */
  readonly hashed: Set<string>;
  /** Kinds that block. */
  readonly blocked: Set<string>;
}

/**
 * Clean requests, answers and results. The state keeps what people said as they said it; answers and results are saved and
 * shown cleaned, also while they stream. Arguments of calls stay as they are: a tool that sends a mail needs the address.
 * Those of the final call are the answer, and are cleaned. Nothing of an answer that is JSON streams.
 * It stands around sub-agents too.
 */
export function redactPersonal(options: RedactPersonalOptions = {}): Middleware {
  checkRedact(options);
  const { kinds = personalKinds, detectors = [], strategy = "redact", hashKey } = options;
  const { input = true, output = true, toolResults = true } = options;
  const wanted = new Set(kinds);
  const strategyOf = (kind: string): PersonalStrategy =>
    typeof strategy === "string"
      ? strategy
      : ((Object.hasOwn(strategy, kind) ? strategy[kind] : undefined) ?? "redact");

  const places = (text: string): readonly Place[] =>
    detectors.length === 0
      ? findPersonal(text, wanted)
      : apart([
          ...findPersonal(text, wanted),
          ...detectors.flatMap(({ kind, find }) => find(text).map((at) => ({ ...at, kind }))),
        ]);

  /** Cleans texts and notes what it came upon; `names` are those of hashed values. */
  const cleaner = (finds: Finds, names: ReadonlyMap<string, string> = new Map()): Clean => {
    const instead = (kind: string, value: string): string => {
      switch (strategyOf(kind)) {
        case "mask":
          return masked(kind, value);
        case "hash":
          finds.hashed.add(value);
          return `[${kind}${names.has(value) ? `:${names.get(value)}` : ""}]`;
        case "block":
          finds.blocked.add(kind);
          return `[${kind}]`;
        default:
          return `[${kind}]`;
      }
    };
    return (text) => {
      let cleaned = "";
      let from = 0;
      for (const { kind, start, end } of places(text)) {
        cleaned += text.slice(from, start) + instead(kind, text.slice(start, end));
        from = end;
      }
      return from === 0 ? text : cleaned + text.slice(from);
    };
  };

  /** Clean something, with the names of what is hashed in it. */
  const cleanedBy = async <Value>(
    make: (clean: Clean) => Value,
  ): Promise<{ readonly value: Value; readonly finds: Finds }> => {
    const finds: Finds = { hashed: new Set(), blocked: new Set() };
    const value = make(cleaner(finds));
    if (finds.hashed.size === 0 || hashKey === undefined) return { value, finds };
    const names = new Map<string, string>();
    for (const each of finds.hashed) names.set(each, await nameOf(each, hashKey));
    return { value: make(cleaner(finds, names)), finds };
  };

  /** Each message is cleaned once, and stays the same object when there was nothing to clean. */
  const known: WeakMap<Message, { readonly message: Message; readonly blocked: readonly string[] }> = new WeakMap();
  const cleanedMessage = async <Kind extends UserMessage | (Message & { readonly role: "tool" })>(
    message: Kind,
  ): Promise<{ readonly message: Message; readonly blocked: readonly string[] }> => {
    const before = known.get(message);
    if (before !== undefined) return before;
    const { value, finds } = await cleanedBy((clean) => cleanMessage(clean, message));
    const made = { message: value, blocked: [...finds.blocked] };
    known.set(message, made);
    return made;
  };

  const isLookedAt = (message: Message): message is UserMessage | (Message & { readonly role: "tool" }) =>
    (message.role === "user" && input) || (message.role === "tool" && toolResults);

  return defineMiddleware({
    name: "redactPersonal",
    required: true,
    inherited: true,
    showMessages: async (messages) => {
      const shown: Message[] = [];
      for (const message of messages)
        shown.push(isLookedAt(message) ? (await cleanedMessage(message)).message : message);
      return shown;
    },
    beforeModel: async (request, runtime) => {
      if (!input && !toolResults) return undefined;
      const conversation = messagesIn(runtime.state);
      const fresh = conversation.slice(conversation.findLastIndex(({ role }) => role === "assistant") + 1);
      const freshIds = new Set(fresh.map(({ id }) => id));
      const messages: Message[] = [];
      for (const message of request.messages) {
        if (!isLookedAt(message)) {
          messages.push(message);
          continue;
        }
        const cleaned = await cleanedMessage(message);
        if (message.role === "user" && cleaned.blocked.length > 0 && freshIds.has(message.id))
          return runtime.end(refusal(cleaned.blocked), { by: "guardrail", reason: reasonOf(cleaned.blocked) });
        messages.push(cleaned.message);
      }
      const isSame = messages.every((message, index) => message === request.messages[index]);
      return isSame ? undefined : { ...request, messages };
    },
    ...(output
      ? {
          onModelDelta: () => (detectors.length > 0 ? heldBack : filterOf(cleaner)),
          afterModel: async (reply, { end }) => {
            const { value, finds } = await cleanedBy((clean) => cleanReply(clean, reply));
            const blocked = [...finds.blocked];
            if (blocked.length > 0) return end(withheld(blocked), { by: "guardrail", reason: reasonOf(blocked) });
            return value;
          },
        }
      : {}),
    ...(toolResults
      ? {
          onToolUpdate: ({ partial }) => {
            const finds: Finds = { hashed: new Set(), blocked: new Set() };
            const cleaned = cleanOutput(cleaner(finds), partial);
            return finds.blocked.size > 0 ? null : cleaned;
          },
          afterTool: async ({ result }) => {
            const { value, finds } = await cleanedBy((clean) => cleanResult(clean, result));
            return finds.blocked.size > 0 ? withheldResult(result, [...finds.blocked]) : value;
          },
        }
      : {}),
  } satisfies Middleware);
}

function heldBack(delta: ModelDelta): ModelDelta | null {
  return delta.type === "call" && !isFinal(delta) ? delta : null;
}

/** Cleans an answer while it streams. After a find that is hashed or blocks, nothing more is told before the answer is whole. */
function filterOf(cleaner: (finds: Finds) => Clean): (delta: ModelDelta) => ModelDelta | null {
  const finds: Finds = { hashed: new Set(), blocked: new Set() };
  const clean = cleaner(finds);
  const streams = { text: cleanStream(clean), reasoning: cleanStream(clean) };
  let start = "";
  let isJson: boolean | undefined;
  return (delta) => {
    if (delta.type === "call") return heldBack(delta);
    let piece = delta.text;
    if (delta.type === "text" && isJson !== false) {
      start += piece;
      isJson ??= beginsAsJson(start);
      if (isJson !== false) return null;
      piece = start;
    }
    const text = streams[delta.type](piece);
    return text === "" || finds.hashed.size + finds.blocked.size > 0 ? null : { ...delta, text };
  };
}

function cleanMessage(clean: Clean, message: Message): Message {
  if (message.role !== "user" && message.role !== "tool") return message;
  const content = message.content.map((block): ContentBlock => {
    const cleaned = cleanBlock(clean, block);
    return JSON.stringify(cleaned) === JSON.stringify(block) ? block : cleaned;
  });
  return content.every((block, index) => block === message.content[index])
    ? message
    : ({ ...message, content } as Message);
}

/** What the model wrote, cleaned. A thought that is signed cannot be changed: it goes. */
function cleanReply(clean: Clean, reply: ModelReply): ModelReply {
  const content = reply.content.flatMap((block): AssistantMessage["content"] => {
    if (isFinal(block)) return [cleanFinal(clean, block)];
    if (block.type !== "text" && block.type !== "reasoning") return [block];
    const text = block.type === "text" ? cleanAnswer(clean, block.text) : clean(block.text);
    if (text === block.text) return [block];
    return block.type === "reasoning" && block.provider !== undefined ? [] : [{ ...block, text }];
  });
  const isSame =
    content.length === reply.content.length && content.every((block, index) => block === reply.content[index]);
  return isSame ? reply : { ...reply, content };
}

/** The output of an agent, in the arguments of the final call. */
function cleanFinal(clean: Clean, block: ToolCallBlock): ToolCallBlock {
  const args = cleanData(clean, block.args) as Json;
  const raw = block.raw === undefined ? undefined : clean(block.raw);
  if (raw === block.raw && JSON.stringify(args) === JSON.stringify(block.args)) return block;
  return { ...block, args, ...(raw === undefined ? {} : { raw }) };
}

function withheldResult(
  { callId, name, attempts, elapsedMs, command, usage }: ToolResult,
  blocked: readonly string[],
): ToolResult {
  const message = `The result was withheld: it holds personal data (${blocked.join(", ")}).`;
  return {
    callId,
    name,
    content: [{ type: "text", text: message }],
    isError: true,
    error: { kind: "failed", disposition: "repair", message },
    attempts,
    elapsedMs,
    ...(command === undefined ? {} : { command }),
    ...(usage === undefined ? {} : { usage }),
  };
}

function refusal(blocked: readonly string[]): string {
  return `Your message holds personal data (${blocked.join(", ")}). Please say it without.`;
}

function withheld(blocked: readonly string[]): string {
  return `The answer was withheld: it holds personal data (${blocked.join(", ")}).`;
}

function reasonOf(blocked: readonly string[]): string {
  return `personal data: ${blocked.join(", ")}`;
}

/** What is left to tell one value from another by, for people. */
function masked(kind: string, value: string): string {
  if (kind === "email") return `${value.charAt(0)}***${value.slice(value.lastIndexOf("@"))}`;
  if (kind === "ip") return "***";
  return `***${value.replaceAll(/[^A-Za-z0-9]/g, "").slice(-4)}`;
}

/** The same name for the same value, however it is written; by HMAC-SHA-256, 12 hexadecimal digits. */
async function nameOf(value: string, key: string): Promise<string> {
  const bytes = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret = await crypto.subtle.importKey("raw", bytes.encode(key), algorithm, false, ["sign"]);
  const plain = value.toLowerCase().replaceAll(/[\s()/-]/g, "");
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", secret, bytes.encode(plain)));
  return Array.from(digest.subarray(0, 6), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Places in their order; of those that overlap the first, and of those that begin together the longest. */
function apart(places: readonly Place[]): readonly Place[] {
  const sorted = places
    .filter(({ start, end }) => end > start)
    .toSorted((one, other) => one.start - other.start || other.end - one.end);
  let reached = 0;
  return sorted.filter(({ start, end }) => {
    if (start < reached) return false;
    reached = end;
    return true;
  });
}

const strategies: readonly string[] = ["redact", "mask", "hash", "block"];

function checkRedact(options: RedactPersonalOptions): void {
  checkOptions(
    "redactPersonal",
    options,
    optionNames<RedactPersonalOptions>({
      kinds: true,
      detectors: true,
      strategy: true,
      input: true,
      output: true,
      toolResults: true,
      hashKey: true,
    }),
  );
  const {
    kinds = personalKinds,
    detectors = [],
    strategy = "redact",
    hashKey,
    input = true,
    output = true,
    toolResults = true,
  } = options;
  if (!Array.isArray(kinds) || !kinds.every((kind) => personalKinds.includes(kind)))
    throw unfitOption("redactPersonal", "kinds", kinds, `a list out of ${personalKinds.join(", ")}`);
  const isDetector = (each: unknown): boolean =>
    typeof each === "object" &&
    each !== null &&
    "kind" in each &&
    typeof each.kind === "string" &&
    "find" in each &&
    typeof each.find === "function";
  if (!Array.isArray(detectors) || !detectors.every(isDetector))
    throw unfitOption("redactPersonal", "detectors", detectors, "a list of { kind, find: (text) => [{ start, end }] }");
  const given: readonly unknown[] =
    typeof strategy === "object" && strategy !== null ? Object.values(strategy) : [strategy];
  const wrong = given.find((each) => typeof each !== "string" || !strategies.includes(each));
  if (wrong !== undefined)
    throw unfitOption("redactPersonal", "strategy", wrong, `one of ${strategies.join(", ")}, or one by kind`);
  const names = new Set<string>([...kinds, ...detectors.map(({ kind }) => kind)]);
  const stray = typeof strategy === "object" ? Object.keys(strategy).find((kind) => !names.has(kind)) : undefined;
  if (stray !== undefined)
    throw unfitOption("redactPersonal", "strategy", stray, `kinds that are looked for: ${[...names].join(", ")}`);
  if (given.includes("hash") && !(typeof hashKey === "string" && hashKey.length >= 16))
    throw unfitOption(
      "redactPersonal",
      "hashKey",
      typeof hashKey,
      "a secret text of 16 characters or more with the strategy hash",
    );
  checkFlag("redactPersonal", { input, output, toolResults });
}
