/** Parses and validates the options of `redactPersonal`. */
import { checkFlag, checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";
import { type PersonalKind, personalKinds } from "./personal-kind.ts";

/**
 * Treatment of personal data: `redact` replaces a value by its kind, `mask` keeps the end, `hash` replaces equal
 * values by equal pseudonyms, `block` rejects the whole text.
 */
export type PersonalStrategy = "redact" | "mask" | "hash" | "block";

/** User-defined kind of personal data. */
export interface PersonalDetector {
  readonly kind: string;
  /** Finds the ranges of matches in a text, in order. */
  readonly find: (text: string) => readonly { readonly start: number; readonly end: number }[];
}

/** Kinds, strategies and places of redaction. */
export interface RedactPersonalOptions {
  /** Detected kinds. Default: all of `email`, `iban`, `card`, `ip`, `phone`. */
  readonly kinds?: readonly PersonalKind[];
  /** Additional detectors. With detectors, answers do not stream. */
  readonly detectors?: readonly PersonalDetector[];
  /** Strategy for all kinds, or per kind. Default `redact`. */
  readonly strategy?: PersonalStrategy | Readonly<Record<string, PersonalStrategy>>;
  /** Redacts user messages before a model reads the messages. Default true. */
  readonly input?: boolean;
  /** Redacts answers of the model before an answer is saved or shown. Default true. */
  readonly output?: boolean;
  /** Redacts tool results. Default true. */
  readonly toolResults?: boolean;
  /** Secret key of `hash`, which prevents brute-force recovery of values. */
  readonly hashKey?: string;
}

/** Options with defaults applied. */
export interface ParsedRedactOptions
  extends Required<
    Pick<RedactPersonalOptions, "kinds" | "detectors" | "strategy" | "input" | "output" | "toolResults">
  > {
  readonly hashKey: string | undefined;
}

const optionNames = listOptionNames<RedactPersonalOptions>({
  kinds: true,
  detectors: true,
  strategy: true,
  input: true,
  output: true,
  toolResults: true,
  hashKey: true,
});

const strategies: readonly string[] = ["redact", "mask", "hash", "block"];

/** Throws `invalid_option` for invalid kinds, detectors, strategies and flags, and for `hash` without a key. */
export function parseRedactOptions(options: RedactPersonalOptions): ParsedRedactOptions {
  checkOptions("redactPersonal", options, optionNames);
  const { kinds = personalKinds, detectors = [], strategy = "redact", hashKey } = options;
  const { input = true, output = true, toolResults = true } = options;
  const parsed = { kinds, detectors, strategy, hashKey, input, output, toolResults };
  checkKinds(kinds);
  checkDetectors(detectors);
  checkStrategy(parsed);
  checkFlag("redactPersonal", { input, output, toolResults });
  return parsed;
}

function checkKinds(kinds: readonly PersonalKind[]): void {
  if (Array.isArray(kinds) && kinds.every((kind) => personalKinds.includes(kind))) return;
  throw invalidOption({
    where: "redactPersonal",
    option: "kinds",
    expected: `a list of ${personalKinds.join(", ")}`,
    got: kinds,
  });
}

function checkDetectors(detectors: readonly PersonalDetector[]): void {
  if (Array.isArray(detectors) && detectors.every(isDetector)) return;
  throw invalidOption({
    where: "redactPersonal",
    option: "detectors",
    expected: "a list of { kind, find: (text) => [{ start, end }] }",
    got: detectors,
  });
}

function isDetector(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    "kind" in value &&
    typeof value.kind === "string" &&
    "find" in value &&
    typeof value.find === "function"
  );
}

function checkStrategy({ kinds, detectors, strategy, hashKey }: ParsedRedactOptions): void {
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
}
