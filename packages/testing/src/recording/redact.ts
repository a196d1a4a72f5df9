/** Redaction of secrets in recordings. */
import type { ModelDelta } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";

/** Replacement of a secret. */
const replacement = "[redacted]";

/** Pattern of keys issued by providers and services. */
const secretPattern =
  /\b(?:sk|pk|rk|xai|gsk|ghp|gho|ghs|npm|glpat|xox[bp])[-_][A-Za-z0-9_-]{12,}|\bgithub_pat_[A-Za-z0-9_]{12,}|\bAKIA[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{20,}|\bBearer\s+[A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g;
/** Property names of secrets, in arguments, results and options. */
const secretName = /^(?:.*[-_])?(?:api[-_]?key|authorization|cookie|password|passwd|secret|token|access[-_]?key)$/i;

/**
 * Creates a function that copies plain data with `[redacted]` in place of texts that look like a secret, values under
 * the name of a secret, and the given secrets.
 */
export function createRedactor(secrets: readonly (string | RegExp)[]): <Value>(value: Value) => Value {
  const patterns = secrets.map((secret) => {
    if (secret instanceof RegExp) return new RegExp(secret.source, addGlobalFlag(secret.flags));
    if (typeof secret === "string" && secret.length >= 4) return secret;
    throw invalidOption({
      where: "recordedModel",
      option: "redact",
      expected: "texts of at least 4 characters, or regular expressions",
      found: typeof secret === "string" ? "a shorter text" : `a value of the type ${typeof secret}`,
    });
  });
  const redactText = (text: string): string => {
    let redacted = text.replace(secretPattern, replacement);
    for (const pattern of patterns) redacted = redacted.replaceAll(pattern, replacement);
    return redacted;
  };
  const clean = (value: unknown): unknown => {
    if (typeof value === "string") return redactText(value);
    if (Array.isArray(value)) return value.map(clean);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [
        key,
        typeof each === "string" && secretName.test(key) ? replacement : clean(each),
      ]),
    );
  };
  return (value) => clean(value) as typeof value;
}

/**
 * Redacts the deltas of an answer. A secret may span several deltas: deltas with a secret are merged into one
 * redacted delta.
 */
export function redactDeltas(
  deltas: readonly ModelDelta[],
  redactValue: <Value>(value: Value) => Value,
): readonly ModelDelta[] {
  const runs: ModelDelta[][] = [];
  for (const delta of deltas) {
    const run = runs.at(-1);
    const [first] = run ?? [];
    if (run !== undefined && first?.type === delta.type && getCallId(first) === getCallId(delta)) run.push(delta);
    else runs.push([delta]);
  }
  return runs.flatMap((run) => {
    const text = run.map(getDeltaText).join("");
    const [first] = run;
    const redacted = first?.type === "call" ? redactArgs(text, redactValue) : redactValue(text);
    if (first === undefined || redacted === text) return run;
    return first.type === "call" ? { ...first, argsText: redacted } : { ...first, text: redacted };
  });
}

function getCallId(delta: ModelDelta): string {
  return delta.type === "call" ? delta.id : "";
}

function getDeltaText(delta: ModelDelta): string {
  return delta.type === "call" ? delta.argsText : delta.text;
}

/** Redacts JSON arguments by property name; text that is not JSON is redacted as plain text. */
function redactArgs(text: string, redactValue: <Value>(value: Value) => Value): string {
  try {
    const args: unknown = JSON.parse(text);
    const cleaned = JSON.stringify(redactValue(args));
    return cleaned === JSON.stringify(args) ? text : cleaned;
  } catch {
    return redactValue(text);
  }
}

function addGlobalFlag(flags: string): string {
  return flags.includes("g") ? flags : `${flags}g`;
}
