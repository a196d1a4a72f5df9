/** Middleware that redacts personal data in model requests, answers and tool results. */
import {
  type AssistantMessage,
  type ContentBlock,
  defineMiddleware,
  type Json,
  type Message,
  type Middleware,
  type ModelDelta,
  type ModelReply,
  type ToolCallBlock,
  type ToolResult,
  type UserMessage,
} from "@statewright/core";
import { checkFlag, checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";
import { cleanBlock, cleanData, cleanOutput, cleanResult, type TextTransform } from "../output/clean-result.ts";
import { isFinalCall } from "../output/is-final-answer.ts";
import { cleanAnswer, isLikelyJson } from "../personal/clean-answer.ts";
import { findPersonal, type PersonalKind, type PersonalMatch, personalKinds } from "../personal/find-personal.ts";
import { createStreamRedactor } from "../personal/redact-stream.ts";
import { getMessages } from "./conversation-calls.ts";

/**
 * Treatment of personal data: `redact` replaces it by its kind, `mask` keeps its end, `hash` replaces equal values by
 * equal pseudonyms, `block` rejects the whole text.
 */
export type PersonalStrategy = "redact" | "mask" | "hash" | "block";

/** User-defined kind of personal data. */
export interface PersonalDetector {
  readonly kind: string;
  /** Finds the ranges of matches in a text, in order. */
  readonly find: (text: string) => readonly { readonly start: number; readonly end: number }[];
}

/** Options of `redactPersonal`. */
export interface RedactPersonalOptions {
  /** Detected kinds. Default: all of `email`, `iban`, `card`, `ip`, `phone`. */
  readonly kinds?: readonly PersonalKind[];
  /** Additional detectors. With detectors, answers do not stream. */
  readonly detectors?: readonly PersonalDetector[];
  /** Strategy for all kinds, or per kind. Default `redact`. */
  readonly strategy?: PersonalStrategy | Readonly<Record<string, PersonalStrategy>>;
  /** Redacts user messages before a model reads them. Default true. */
  readonly input?: boolean;
  /** Redacts answers of the model before they are saved or shown. Default true. */
  readonly output?: boolean;
  /** Redacts tool results. Default true. */
  readonly toolResults?: boolean;
  /** Secret key of `hash`, which prevents brute-force recovery of values. */
  readonly hashKey?: string;
}

type Match = PersonalMatch<string>;

/** Findings of a redaction, in addition to the redacted text. */
interface Findings {
  /** Values replaced by a pseudonym. */
  readonly hashed: Set<string>;
  /** Kinds with the strategy `block` that were found. */
  readonly blocked: Set<string>;
}

/**
 * Redacts model requests, answers and tool results. State keeps user messages unchanged; answers and results are
 * saved and streamed redacted. Arguments of tool calls stay unchanged, because a tool that sends mail needs the
 * address; arguments of the final call are the answer and are redacted. JSON answers do not stream. Applies to
 * sub-agents too.
 */
export function redactPersonal(options: RedactPersonalOptions = {}): Middleware {
  checkRedactOptions(options);
  const { kinds = personalKinds, detectors = [], strategy = "redact", hashKey } = options;
  const { input = true, output = true, toolResults = true } = options;
  const kindSet = new Set(kinds);
  const getStrategy = (kind: string): PersonalStrategy =>
    typeof strategy === "string"
      ? strategy
      : ((Object.hasOwn(strategy, kind) ? strategy[kind] : undefined) ?? "redact");

  const findMatches = (text: string): readonly Match[] =>
    detectors.length === 0
      ? findPersonal(text, kindSet)
      : removeOverlaps([
          ...findPersonal(text, kindSet),
          ...detectors.flatMap(({ kind, find }) => find(text).map((range) => ({ ...range, kind }))),
        ]);

  /** Creates a text redactor that records its findings; `names` contains the pseudonyms of hashed values. */
  const createRedactor = (findings: Findings, pseudonyms: ReadonlyMap<string, string> = new Map()): TextTransform => {
    const getReplacement = (kind: string, value: string): string => {
      switch (getStrategy(kind)) {
        case "mask":
          return maskValue(kind, value);
        case "hash":
          findings.hashed.add(value);
          return `[${kind}${pseudonyms.has(value) ? `:${pseudonyms.get(value)}` : ""}]`;
        case "block":
          findings.blocked.add(kind);
          return `[${kind}]`;
        default:
          return `[${kind}]`;
      }
    };
    return (text) => {
      let cleaned = "";
      let from = 0;
      for (const { kind, start, end } of findMatches(text)) {
        cleaned += text.slice(from, start) + getReplacement(kind, text.slice(start, end));
        from = end;
      }
      return from === 0 ? text : cleaned + text.slice(from);
    };
  };

  /** Redacts a value in two passes: the first pass collects values to hash, the second inserts their pseudonyms. */
  const redactWithHashes = async <Value>(
    transform: (clean: TextTransform) => Value,
  ): Promise<{ readonly value: Value; readonly finds: Findings }> => {
    const finds: Findings = { hashed: new Set(), blocked: new Set() };
    const value = transform(createRedactor(finds));
    if (finds.hashed.size === 0 || hashKey === undefined) return { value, finds };
    const pseudonyms = new Map<string, string>();
    for (const each of finds.hashed) pseudonyms.set(each, await hashValue(each, hashKey));
    return { value: transform(createRedactor(finds, pseudonyms)), finds };
  };

  /** Cache of redacted messages; an unchanged message keeps its object identity. */
  const redactedMessages: WeakMap<Message, { readonly message: Message; readonly blocked: readonly string[] }> =
    new WeakMap();
  const redactMessageOnce = async <Kind extends UserMessage | (Message & { readonly role: "tool" })>(
    message: Kind,
  ): Promise<{ readonly message: Message; readonly blocked: readonly string[] }> => {
    const cached = redactedMessages.get(message);
    if (cached !== undefined) return cached;
    const { value, finds } = await redactWithHashes((clean) => cleanMessage(clean, message));
    const result = { message: value, blocked: [...finds.blocked] };
    redactedMessages.set(message, result);
    return result;
  };

  const shouldRedact = (message: Message): message is UserMessage | (Message & { readonly role: "tool" }) =>
    (message.role === "user" && input) || (message.role === "tool" && toolResults);

  return defineMiddleware({
    name: "redactPersonal",
    required: true,
    inherited: true,
    showMessages: async (messages) => {
      const redacted: Message[] = [];
      for (const message of messages)
        redacted.push(shouldRedact(message) ? (await redactMessageOnce(message)).message : message);
      return redacted;
    },
    beforeModel: async (request, runtime) => {
      if (!input && !toolResults) return undefined;
      const conversation = getMessages(runtime.state);
      const newMessages = conversation.slice(conversation.findLastIndex(({ role }) => role === "assistant") + 1);
      const newIds = new Set(newMessages.map(({ id }) => id));
      const messages: Message[] = [];
      for (const message of request.messages) {
        if (!shouldRedact(message)) {
          messages.push(message);
          continue;
        }
        const cleaned = await redactMessageOnce(message);
        if (message.role === "user" && cleaned.blocked.length > 0 && newIds.has(message.id))
          return runtime.end(formatRefusal(cleaned.blocked), {
            by: "guardrail",
            reason: formatReason(cleaned.blocked),
          });
        messages.push(cleaned.message);
      }
      const isSame = messages.every((message, index) => message === request.messages[index]);
      return isSame ? undefined : { ...request, messages };
    },
    ...(output
      ? {
          onModelDelta: () => (detectors.length > 0 ? dropAnswerDelta : createDeltaFilter(createRedactor)),
          afterModel: async (reply, { end }) => {
            const { value, finds } = await redactWithHashes((clean) => cleanReply(clean, reply));
            const blocked = [...finds.blocked];
            if (blocked.length > 0)
              return end(formatWithheld(blocked), { by: "guardrail", reason: formatReason(blocked) });
            return value;
          },
        }
      : {}),
    ...(toolResults
      ? {
          onToolUpdate: ({ partial }) => {
            const finds: Findings = { hashed: new Set(), blocked: new Set() };
            const cleaned = cleanOutput(createRedactor(finds), partial);
            return finds.blocked.size > 0 ? null : cleaned;
          },
          afterTool: async ({ result }) => {
            const { value, finds } = await redactWithHashes((clean) => cleanResult(clean, result));
            return finds.blocked.size > 0 ? createWithheldResult(result, [...finds.blocked]) : value;
          },
        }
      : {}),
  } satisfies Middleware);
}

function dropAnswerDelta(delta: ModelDelta): ModelDelta | null {
  return delta.type === "call" && !isFinalCall(delta) ? delta : null;
}

/**
 * Creates the redactor of a streaming answer. Stops streaming after a finding that is hashed or blocked, until the
 * answer is complete.
 */
function createDeltaFilter(
  createRedactor: (findings: Findings) => TextTransform,
): (delta: ModelDelta) => ModelDelta | null {
  const finds: Findings = { hashed: new Set(), blocked: new Set() };
  const clean = createRedactor(finds);
  const streams = { text: createStreamRedactor(clean), reasoning: createStreamRedactor(clean) };
  let start = "";
  let isJson: boolean | undefined;
  return (delta) => {
    if (delta.type === "call") return dropAnswerDelta(delta);
    let piece = delta.text;
    if (delta.type === "text" && isJson !== false) {
      start += piece;
      isJson ??= isLikelyJson(start);
      if (isJson !== false) return null;
      piece = start;
    }
    const text = streams[delta.type](piece);
    return text === "" || finds.hashed.size + finds.blocked.size > 0 ? null : { ...delta, text };
  };
}

function cleanMessage(clean: TextTransform, message: Message): Message {
  if (message.role !== "user" && message.role !== "tool") return message;
  const content = message.content.map((block): ContentBlock => {
    const cleaned = cleanBlock(clean, block);
    return JSON.stringify(cleaned) === JSON.stringify(block) ? block : cleaned;
  });
  return content.every((block, index) => block === message.content[index])
    ? message
    : ({ ...message, content } as Message);
}

/** Redacts a model reply. Drops signed reasoning with personal data, because its text cannot be changed. */
function cleanReply(clean: TextTransform, reply: ModelReply): ModelReply {
  const content = reply.content.flatMap((block): AssistantMessage["content"] => {
    if (isFinalCall(block)) return [cleanFinal(clean, block)];
    if (block.type !== "text" && block.type !== "reasoning") return [block];
    const text = block.type === "text" ? cleanAnswer(clean, block.text) : clean(block.text);
    if (text === block.text) return [block];
    return block.type === "reasoning" && block.provider !== undefined ? [] : [{ ...block, text }];
  });
  const isSame =
    content.length === reply.content.length && content.every((block, index) => block === reply.content[index]);
  return isSame ? reply : { ...reply, content };
}

/** Redacts structured output in the arguments of the final call. */
function cleanFinal(clean: TextTransform, block: ToolCallBlock): ToolCallBlock {
  const args = cleanData(clean, block.args) as Json;
  const raw = block.raw === undefined ? undefined : clean(block.raw);
  if (raw === block.raw && JSON.stringify(args) === JSON.stringify(block.args)) return block;
  return { ...block, args, ...(raw === undefined ? {} : { raw }) };
}

function createWithheldResult(
  { callId, name, attempts, elapsedMs, command, usage }: ToolResult,
  blocked: readonly string[],
): ToolResult {
  const message = `The result was withheld: it contains personal data (${blocked.join(", ")}).`;
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

function formatRefusal(blocked: readonly string[]): string {
  return `Your message contains personal data (${blocked.join(", ")}). Please rephrase it without them.`;
}

function formatWithheld(blocked: readonly string[]): string {
  return `The answer was withheld: it contains personal data (${blocked.join(", ")}).`;
}

function formatReason(blocked: readonly string[]): string {
  return `personal data: ${blocked.join(", ")}`;
}

/** Masks a value; the rest lets people distinguish values. */
function maskValue(kind: string, value: string): string {
  if (kind === "email") return `${value.charAt(0)}***${value.slice(value.lastIndexOf("@"))}`;
  if (kind === "ip") return "***";
  return `***${value.replaceAll(/[^A-Za-z0-9]/g, "").slice(-4)}`;
}

/** Returns the pseudonym of a value, independent of case and separators: 12 hexadecimal digits of HMAC-SHA-256. */
async function hashValue(value: string, key: string): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret = await crypto.subtle.importKey("raw", encoder.encode(key), algorithm, false, ["sign"]);
  const normalized = value.toLowerCase().replaceAll(/[\s()/-]/g, "");
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", secret, encoder.encode(normalized)));
  return Array.from(digest.subarray(0, 6), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Sorts matches and removes overlaps: the first match wins, and the longest of matches with the same start. */
function removeOverlaps(matches: readonly Match[]): readonly Match[] {
  const sorted = matches
    .filter(({ start, end }) => end > start)
    .toSorted((left, right) => left.start - right.start || right.end - left.end);
  let lastEnd = 0;
  return sorted.filter(({ start, end }) => {
    if (start < lastEnd) return false;
    lastEnd = end;
    return true;
  });
}

const strategies: readonly string[] = ["redact", "mask", "hash", "block"];

function checkRedactOptions(options: RedactPersonalOptions): void {
  checkOptions(
    "redactPersonal",
    options,
    listOptionNames<RedactPersonalOptions>({
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
    throw invalidOption({
      where: "redactPersonal",
      option: "kinds",
      expected: `a list of ${personalKinds.join(", ")}`,
      got: kinds,
    });
  const isDetector = (each: unknown): boolean =>
    typeof each === "object" &&
    each !== null &&
    "kind" in each &&
    typeof each.kind === "string" &&
    "find" in each &&
    typeof each.find === "function";
  if (!Array.isArray(detectors) || !detectors.every(isDetector))
    throw invalidOption({
      where: "redactPersonal",
      option: "detectors",
      expected: "a list of { kind, find: (text) => [{ start, end }] }",
      got: detectors,
    });
  const usedStrategies: readonly unknown[] =
    typeof strategy === "object" && strategy !== null ? Object.values(strategy) : [strategy];
  const invalidStrategy = usedStrategies.find((each) => typeof each !== "string" || !strategies.includes(each));
  if (invalidStrategy !== undefined)
    throw invalidOption({
      where: "redactPersonal",
      option: "strategy",
      expected: `one of ${strategies.join(", ")}, or an object with one per kind`,
      got: invalidStrategy,
    });
  const names = new Set<string>([...kinds, ...detectors.map(({ kind }) => kind)]);
  const unknownKind = typeof strategy === "object" ? Object.keys(strategy).find((kind) => !names.has(kind)) : undefined;
  if (unknownKind !== undefined)
    throw invalidOption({
      where: "redactPersonal",
      option: "strategy",
      expected: `an object with the detected kinds as keys: ${[...names].join(", ")}`,
      got: unknownKind,
    });
  if (usedStrategies.includes("hash") && !(typeof hashKey === "string" && hashKey.length >= 16))
    throw invalidOption({
      where: "redactPersonal",
      option: "hashKey",
      expected: "a secret string of at least 16 characters for the strategy hash",
      found: `a value of type ${typeof hashKey}`,
    });
  checkFlag("redactPersonal", { input, output, toolResults });
}
