/** Token prices, and the cost of model calls. An unknown price or usage gives undefined, never 0. */

import type { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import type { Usage } from "./message.ts";

/** Price per million tokens, in any currency. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** Price of input read from a prompt cache. Default: `input`. */
  readonly cacheRead?: number;
  /** Price of input written to a prompt cache. Without this price the cost of a reply with cache writes is unknown. */
  readonly cacheWrite?: number;
}

/** Prices by model id, such as `anthropic/claude-sonnet-4-5`. */
export type PriceTable = { readonly [model: string]: ModelPrice };

/** Price table, or a function from model id to price; undefined for an unknown model. */
export type PricesInput = PriceTable | ((model: string) => ModelPrice | undefined);

/** Validated prices. */
export type Prices = (model: string) => ModelPrice | undefined;

const priceOptionNames = listOptionNames<ModelPrice>({ input: true, output: true, cacheRead: true, cacheWrite: true });

/** Parses the `prices` option. Throws `invalid_option` for an invalid price. */
export function parsePrices(input: PricesInput): Prices {
  if (typeof input === "function") return (model) => checkPrice(model, input(model));
  if (typeof input !== "object" || input === null || Array.isArray(input)) throw createPriceError("prices", input);
  const table = new Map(Object.entries(input).map(([model, price]) => [model, checkPrice(model, price)]));
  return (model) => table.get(model);
}

function checkPrice(model: string, price: ModelPrice | undefined): ModelPrice | undefined {
  if (price === undefined) return undefined;
  const owner = `the price of "${model}"`;
  checkOptions(owner, price, priceOptionNames);
  const { input, output, cacheRead = 0, cacheWrite = 0 } = price;
  for (const each of [input, output, cacheRead, cacheWrite])
    if (!(typeof each === "number" && Number.isFinite(each) && each >= 0)) throw createPriceError(owner, each);
  return price;
}

function createPriceError(where: string, value: unknown): StatewrightError {
  return invalidOption({
    where,
    expected: "numbers ≥ 0",
    got: value,
    fix: 'Use { "provider/model": { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } }, in currency units per million tokens',
  });
}

/** Returns the tokens of a model call; undefined for missing or invalid usage. */
export function sumTokens(usage: Usage | undefined): number | undefined {
  const { inputTokens, outputTokens } = usage ?? {};
  return isTokenCount(inputTokens) && isTokenCount(outputTokens) ? inputTokens + outputTokens : undefined;
}

function isTokenCount(tokens: number | undefined): tokens is number {
  return Number.isFinite(tokens) && Number(tokens) >= 0;
}

/**
 * Returns the cost of a model call in the currency of the price; undefined for incomplete usage or an incomplete price.
 *
 * @example
 * ```ts
 * const cost = estimateCost({ input: 3, output: 15 }, { inputTokens: 1_200, outputTokens: 80 });
 * ```
 */
export function estimateCost(price: ModelPrice, usage: Usage | undefined): number | undefined {
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0 } = usage ?? {};
  if (!isTokenCount(inputTokens) || !isTokenCount(outputTokens)) return undefined;
  if (!isTokenCount(cachedTokens) || !isTokenCount(cacheWriteTokens)) return undefined;
  if (cacheWriteTokens > 0 && price.cacheWrite === undefined) return undefined;
  const uncachedTokens = Math.max(0, inputTokens - cachedTokens - cacheWriteTokens);
  const sum =
    uncachedTokens * price.input +
    cachedTokens * (price.cacheRead ?? price.input) +
    cacheWriteTokens * (price.cacheWrite ?? 0) +
    outputTokens * price.output;
  return sum / 1_000_000;
}
