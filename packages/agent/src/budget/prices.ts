/** What tokens cost, and what a model call has cost by that. What is not known is unknown, never nothing. */
import { checkOptions, optionNames, StatewrightError, type Usage } from "@statewright/core";

/** Money per million tokens, in any one currency. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** Of input read from a prompt cache. Default: as `input`. */
  readonly cacheRead?: number;
  /** Of input written to a prompt cache. Without it the cost of an answer that wrote to one is unknown. */
  readonly cacheWrite?: number;
}

/** Prices by the id of the model, such as `anthropic/claude-sonnet-4-5`. */
export type PriceTable = { readonly [model: string]: ModelPrice };

/** A table, or a function that gives the price of a model, nothing for one that it does not know. */
export type PricesInput = PriceTable | ((model: string) => ModelPrice | undefined);

/** Prices that were looked at. */
export type Prices = (model: string) => ModelPrice | undefined;

const names = optionNames<ModelPrice>({ input: true, output: true, cacheRead: true, cacheWrite: true });

/** Read what was given as prices. Throws `invalid_option` for what is none. */
export function readPrices(given: PricesInput): Prices {
  if (typeof given === "function") return (model) => checked(model, given(model));
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw unfit("prices", given);
  const table = new Map(Object.entries(given).map(([model, price]) => [model, checked(model, price)]));
  return (model) => table.get(model);
}

/** The price of a model; undefined where nobody knows it. */
export function priceOf(prices: Prices, model: string): ModelPrice | undefined {
  return prices(model);
}

function checked(model: string, price: ModelPrice | undefined): ModelPrice | undefined {
  if (price === undefined) return undefined;
  const owner = `the price of "${model}"`;
  checkOptions(owner, price, names);
  const { input, output, cacheRead = 0, cacheWrite = 0 } = price;
  for (const each of [input, output, cacheRead, cacheWrite])
    if (!(typeof each === "number" && Number.isFinite(each) && each >= 0)) throw unfit(owner, each);
  return price;
}

function unfit(what: string, given: unknown): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `${what} has ${given === null ? "null" : typeof given === "number" ? String(given) : `a value of the type ${typeof given}`} in it`,
    next: 'Give { "provider/model": { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } }, in money per million tokens',
  });
}

/** The tokens of a model call; undefined where the provider did not say, or said what is no count. */
export function tokensOf(usage: Usage | undefined): number | undefined {
  const { inputTokens, outputTokens } = usage ?? {};
  return isCount(inputTokens) && isCount(outputTokens) ? inputTokens + outputTokens : undefined;
}

function isCount(tokens: number | undefined): tokens is number {
  return Number.isFinite(tokens) && Number(tokens) >= 0;
}

/** What a model call has cost; undefined where that cannot be known. */
export function costOf(price: ModelPrice, usage: Usage | undefined): number | undefined {
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0 } = usage ?? {};
  if (!isCount(inputTokens) || !isCount(outputTokens)) return undefined;
  if (!isCount(cachedTokens) || !isCount(cacheWriteTokens)) return undefined;
  if (cacheWriteTokens > 0 && price.cacheWrite === undefined) return undefined;
  const plain = Math.max(0, inputTokens - cachedTokens - cacheWriteTokens);
  const sum =
    plain * price.input +
    cachedTokens * (price.cacheRead ?? price.input) +
    cacheWriteTokens * (price.cacheWrite ?? 0) +
    outputTokens * price.output;
  return sum / 1_000_000;
}
