/** Finds personal data in text and replaces the data by the strategy of the kind. */
import type { TextTransform } from "../output/clean-result.ts";
import { findPersonal } from "./find-personal.ts";
import type { PersonalMatch } from "./personal-kind.ts";
import type { ParsedRedactOptions, PersonalStrategy } from "./redact-options.ts";

type Match = PersonalMatch<string>;

/** Findings of a redaction, in addition to the redacted text. */
export interface Findings {
  /** Values replaced by a pseudonym. */
  readonly hashed: Set<string>;
  /** Kinds with the strategy `block` that were found. */
  readonly blocked: Set<string>;
}

/** Returns empty findings. */
export function createFindings(): Findings {
  return { hashed: new Set(), blocked: new Set() };
}

/** Redactor of personal data, with the kinds, detectors and strategies of its options. */
export class PersonalRedactor {
  readonly #options: ParsedRedactOptions;
  readonly #kinds: ReadonlySet<ParsedRedactOptions["kinds"][number]>;

  constructor(options: ParsedRedactOptions) {
    this.#options = options;
    this.#kinds = new Set(options.kinds);
  }

  /** Creates a text redactor that records its findings; `pseudonyms` replaces hashed values. */
  createTransform(findings: Findings, pseudonyms: ReadonlyMap<string, string> = new Map()): TextTransform {
    return (text) => {
      let cleaned = "";
      let from = 0;
      for (const { kind, start, end } of this.#findMatches(text)) {
        const value = text.slice(start, end);
        recordFinding(findings, this.#getStrategy(kind), { kind, value });
        cleaned += text.slice(from, start) + this.#getReplacement(kind, value, pseudonyms);
        from = end;
      }
      return from === 0 ? text : cleaned + text.slice(from);
    };
  }

  /** Redacts a value in two passes: the first pass collects values to hash, the second inserts their pseudonyms. */
  async redact<Value>(
    transform: (clean: TextTransform) => Value,
  ): Promise<{ readonly value: Value; readonly findings: Findings }> {
    const { hashKey } = this.#options;
    const findings = createFindings();
    const value = transform(this.createTransform(findings));
    if (findings.hashed.size === 0 || hashKey === undefined) return { value, findings };
    const pseudonyms = new Map<string, string>();
    for (const each of findings.hashed) pseudonyms.set(each, await hashValue(each, hashKey));
    return { value: transform(this.createTransform(findings, pseudonyms)), findings };
  }

  #findMatches(text: string): readonly Match[] {
    const { detectors } = this.#options;
    const matches = findPersonal(text, this.#kinds);
    if (detectors.length === 0) return matches;
    const detected = detectors.flatMap(({ kind, find }) => find(text).map((range) => ({ ...range, kind })));
    return removeOverlaps([...matches, ...detected]);
  }

  #getStrategy(kind: string): PersonalStrategy {
    const { strategy } = this.#options;
    if (typeof strategy === "string") return strategy;
    return (Object.hasOwn(strategy, kind) ? strategy[kind] : undefined) ?? "redact";
  }

  #getReplacement(kind: string, value: string, pseudonyms: ReadonlyMap<string, string>): string {
    const strategy = this.#getStrategy(kind);
    if (strategy === "mask") return maskValue(kind, value);
    const pseudonym = strategy === "hash" ? pseudonyms.get(value) : undefined;
    return pseudonym === undefined ? `[${kind}]` : `[${kind}:${pseudonym}]`;
  }
}

function recordFinding(
  findings: Findings,
  strategy: PersonalStrategy,
  { kind, value }: { kind: string; value: string },
): void {
  if (strategy === "hash") findings.hashed.add(value);
  if (strategy === "block") findings.blocked.add(kind);
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
