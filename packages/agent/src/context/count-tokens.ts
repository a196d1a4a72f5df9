/** Counts the tokens of model requests: an estimate without a tokenizer, or an exact count with a tokenizer. */
import type { Message, ModelRequest, ModelTool, StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";

/** Counts the tokens of a text with the tokenizer of the model. */
export type CountTokens = (text: string) => number;

/** Overhead in tokens per message, and tokens per image or file. */
const tokensPerMessage = 4;
const tokensPerMedia = 1_000;

/**
 * Estimates the tokens of a text: four ASCII characters per token, two characters of other alphabets, one of Chinese,
 * Japanese, Korean or emoji. Tokenizers and texts differ: keep a margin below a hard limit.
 */
export function estimateTokens(text: string): number {
  if (typeof text !== "string") throw invalidOption({ where: "estimateTokens", expected: "a text", got: text });
  let quarters = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    quarters += code < 0x80 ? 1 : code < 0x2e80 ? 2 : 4;
  }
  return Math.ceil(quarters / 4);
}

/** Counts tokens of request parts. Caches the count per message and per tool across requests. */
export interface TokenMeter {
  readonly countText: (text: string) => number;
  readonly countMessage: (message: Message) => number;
  readonly countMessages: (messages: readonly Message[]) => number;
  /** Counts instructions and tools of a request. */
  readonly countFrame: (request: Pick<ModelRequest, "instructions" | "tools">) => number;
}

/** Creates a token meter from a tokenizer. Throws `invalid_option` for an invalid count. */
export function createTokenMeter(owner: string, count: CountTokens = estimateTokens): TokenMeter {
  if (typeof count !== "function") throw createCountError(owner, { got: count });
  const cache: WeakMap<Message | ModelTool, number> = new WeakMap();
  const countText = (input: string): number => {
    const tokens = count(input);
    if (!(typeof tokens === "number" && tokens >= 0 && tokens < Infinity))
      throw createCountError(owner, { found: `a function that returned ${describeCount(tokens)}` });
    return tokens;
  };
  const countOnce = <Counted extends Message | ModelTool>(
    counted: Counted,
    countTokens: (counted: Counted) => number,
  ): number => {
    const cached = cache.get(counted);
    if (cached !== undefined) return cached;
    const total = countTokens(counted);
    cache.set(counted, total);
    return total;
  };
  const countMessage = (input: Message): number =>
    countOnce(input, () => tokensPerMessage + countContentTokens(input, countText));
  return {
    countText,
    countMessage,
    countMessages: (given) => given.reduce((sum, each) => sum + countMessage(each), 0),
    countFrame: ({ instructions = "", tools }) =>
      countText(instructions) +
      tools.reduce((sum, tool) => sum + countOnce(tool, () => countText(JSON.stringify(tool))), 0),
  };
}

function countContentTokens({ content }: Message, count: CountTokens): number {
  if (typeof content === "string") return count(content);
  return content.reduce((sum, block) => {
    switch (block.type) {
      case "text":
      case "reasoning":
        return sum + count(block.text);
      case "call":
        return sum + count(block.name) + count(block.raw ?? JSON.stringify(block.args));
      case "json":
        return sum + count(JSON.stringify(block.value));
      case "artifact":
        return sum + count(block.preview);
      default:
        return sum + tokensPerMedia;
    }
  }, 0);
}

function describeCount(tokens: unknown): string {
  return typeof tokens === "number" ? String(tokens) : `a value of type ${typeof tokens}`;
}

function createCountError(
  owner: string,
  received: { readonly got: unknown } | { readonly found: string },
): StatewrightError {
  return invalidOption({
    where: owner,
    option: "countTokens",
    expected: "a function from a text to a number ≥ 0",
    ...received,
  });
}
