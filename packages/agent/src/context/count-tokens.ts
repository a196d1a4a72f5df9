/** How many tokens a request is about: an estimate without a tokenizer, or the count of a real one. */
import { type Message, type ModelRequest, type ModelTool, StatewrightError } from "@statewright/core";

/** Tokens of a text, by the tokenizer of the model. */
export type CountTokens = (text: string) => number;

/** What each message costs beside its text, and an image or a file whatever it shows. */
const perMessage = 4;
const perMedia = 1_000;

/**
 * Estimate the tokens of a text: four characters of ASCII a token, two of other alphabets, one of Chinese, Japanese, Korean
 * and of pictures. Models differ, and so do prose, code and numbers: leave room below a hard limit.
 */
export function estimateTokens(text: string): number {
  let quarters = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    quarters += code < 0x80 ? 1 : code < 0x2e80 ? 2 : 4;
  }
  return Math.ceil(quarters / 4);
}

/** Counts the parts of requests. A message and a tool are counted once, however many requests hold them. */
export interface TokenMeter {
  readonly text: (text: string) => number;
  readonly message: (message: Message) => number;
  readonly messages: (messages: readonly Message[]) => number;
  /** What a request holds beside its messages. */
  readonly frame: (request: Pick<ModelRequest, "instructions" | "tools">) => number;
}

/** A meter by a tokenizer. Throws `invalid_option` for a count that is none. */
export function tokenMeter(owner: string, count: CountTokens = estimateTokens): TokenMeter {
  if (typeof count !== "function") throw noCount(owner, count);
  const known: WeakMap<Message | ModelTool, number> = new WeakMap();
  const text = (given: string): number => {
    const tokens = count(given);
    if (!(typeof tokens === "number" && tokens >= 0 && tokens < Infinity)) throw noCount(owner, tokens);
    return tokens;
  };
  const once = <Counted extends Message | ModelTool>(
    counted: Counted,
    tokens: (counted: Counted) => number,
  ): number => {
    const before = known.get(counted);
    if (before !== undefined) return before;
    const made = tokens(counted);
    known.set(counted, made);
    return made;
  };
  const message = (given: Message): number => once(given, () => perMessage + contentTokens(given, text));
  return {
    text,
    message,
    messages: (given) => given.reduce((sum, each) => sum + message(each), 0),
    frame: ({ instructions = "", tools }) =>
      text(instructions) + tools.reduce((sum, tool) => sum + once(tool, () => text(JSON.stringify(tool))), 0),
  };
}

function contentTokens({ content }: Message, count: CountTokens): number {
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
        return sum + perMedia;
    }
  }, 0);
}

function noCount(owner: string, given: unknown): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `countTokens of ${owner} is, or gives, ${typeof given === "number" ? given : `a value of the type ${typeof given}`}`,
    next: "Give a function of a text that returns a number from 0",
  });
}
