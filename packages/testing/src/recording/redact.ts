/** Redaction of secrets in recordings. */
import type { ModelDelta } from "@statewright/core";

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
