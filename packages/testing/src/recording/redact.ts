/** Secrets are blotted out of what a recording writes down. */
import { type ModelDelta, StatewrightError } from "@statewright/core";

/** What stands in the place of a secret. */
const blot = "[redacted]";

/** Keys as providers and services give them out. */
const looksSecret =
  /\b(?:sk|pk|rk|xai|gsk|ghp|gho|ghs|npm|glpat|xox[bp])[-_][A-Za-z0-9_-]{12,}|\bgithub_pat_[A-Za-z0-9_]{12,}|\bAKIA[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{20,}|\bBearer\s+[A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g;
/** Names under which secrets stand, in arguments, results and options. */
const secretName = /^(?:.*[-_])?(?:api[-_]?key|authorization|cookie|password|passwd|secret|token|access[-_]?key)$/i;

/** A function that gives the same plain data with `[redacted]` for what looks like a secret, stands under the name of one, or is one of these. */
export function redactor(secrets: readonly (string | RegExp)[]): <Value>(value: Value) => Value {
  const patterns = secrets.map((secret) => {
    if (secret instanceof RegExp) return new RegExp(secret.source, withAll(secret.flags));
    if (typeof secret === "string" && secret.length >= 4) return secret;
    throw new StatewrightError("invalid_option", {
      what: `redact of the recorded model got ${typeof secret === "string" ? "a text of fewer than 4 characters" : `a value of the type ${typeof secret}`}`,
      next: "Give texts of 4 characters or more, or regular expressions",
    });
  });
  const cleanText = (text: string): string => {
    let clean = text.replace(looksSecret, blot);
    for (const pattern of patterns) clean = clean.replaceAll(pattern, blot);
    return clean;
  };
  const clean = (value: unknown): unknown => {
    if (typeof value === "string") return cleanText(value);
    if (Array.isArray(value)) return value.map(clean);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [
        key,
        typeof each === "string" && secretName.test(key) ? blot : clean(each),
      ]),
    );
  };
  return (value) => clean(value) as typeof value;
}

/** The parts of an answer. A secret may be cut by the border of two: parts that hold one together become one part without it. */
export function cleanDeltas(
  deltas: readonly ModelDelta[],
  clean: <Value>(value: Value) => Value,
): readonly ModelDelta[] {
  const runs: ModelDelta[][] = [];
  for (const delta of deltas) {
    const run = runs.at(-1);
    const [first] = run ?? [];
    if (run !== undefined && first?.type === delta.type && idOf(first) === idOf(delta)) run.push(delta);
    else runs.push([delta]);
  }
  return runs.flatMap((run) => {
    const text = run.map(textOf).join("");
    const [first] = run;
    const said = first?.type === "call" ? cleanArgs(text, clean) : clean(text);
    if (first === undefined || said === text) return run;
    return first.type === "call" ? { ...first, argsText: said } : { ...first, text: said };
  });
}

function idOf(delta: ModelDelta): string {
  return delta.type === "call" ? delta.id : "";
}

function textOf(delta: ModelDelta): string {
  return delta.type === "call" ? delta.argsText : delta.text;
}

/** Arguments have names, which say what is secret; text that is no JSON has none. */
function cleanArgs(text: string, clean: <Value>(value: Value) => Value): string {
  try {
    const args: unknown = JSON.parse(text);
    const cleaned = JSON.stringify(clean(args));
    return cleaned === JSON.stringify(args) ? text : cleaned;
  } catch {
    return clean(text);
  }
}

function withAll(flags: string): string {
  return flags.includes("g") ? flags : `${flags}g`;
}
