/** Redaction of saved tool data by the policies of the tools, which a run applies only to events and interrupts. */
import { isPlainObject, type Json, maxSavedDepth } from "../../base/json.ts";
import {
  type RedactionPolicy,
  redactArgs,
  redactPartialResult,
  redactResult,
} from "../../tool/artifacts/redaction-policy.ts";
import type { ToolOutput, ToolResult } from "../../tool/result.ts";

/** Redacts tool data in saved values. */
export interface ToolRedactor {
  /** Redacts the arguments of calls and the content of results in all messages of a value. */
  readonly redactMessages: <Value>(value: Value) => Value;
  /** Redacts the outcome of a call. */
  readonly redactOutcome: (tool: string, outcome: unknown) => unknown;
}

/** Creates a redactor from a look-up of policies by tool name. */
export function createToolRedactor(findPolicy: (tool: string) => RedactionPolicy | undefined): ToolRedactor {
  return {
    redactMessages: (value) => redactWithin(value, findPolicy, 0) as typeof value,
    redactOutcome: (tool, outcome) => {
      const redact = findPolicy(tool)?.result;
      return redact !== undefined && isToolResult(outcome) ? redactResult(redact, outcome) : outcome;
    },
  };
}

type FindPolicy = (tool: string) => RedactionPolicy | undefined;

function redactWithin(value: unknown, findPolicy: FindPolicy, level: number): unknown {
  if (level > maxSavedDepth) return value;
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => redactWithin(item, findPolicy, level + 1));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isPlainObject(value)) return value;
  const known = redactKnown(value, findPolicy);
  if (known !== undefined) return known;
  const entries = Object.entries(value).map(([key, item]) => [key, redactWithin(item, findPolicy, level + 1)] as const);
  return entries.every(([key, item]) => item === value[key]) ? value : Object.fromEntries(entries);
}

/** Returns a redacted tool call or tool message; undefined for other values, and for tools without a policy. */
function redactKnown(
  value: Readonly<Record<string, unknown>>,
  findPolicy: FindPolicy,
): Readonly<Record<string, unknown>> | undefined {
  const { type, role, name, args, content } = value;
  if (typeof name !== "string") return undefined;
  const isCall = type === "call" && args !== undefined;
  const isResult = role === "tool" && Array.isArray(content);
  const policy = isCall || isResult ? findPolicy(name) : undefined;
  if (policy === undefined) return undefined;
  if (isCall) return { ...value, args: redactArgs(policy, args as Json) };
  if (policy.result === undefined) return undefined;
  const output: ToolOutput = { content: content as ToolResult["content"] };
  return { ...value, content: redactPartialResult(policy.result, output).content };
}

function isToolResult(outcome: unknown): outcome is ToolResult {
  return isPlainObject(outcome) && Array.isArray(outcome["content"]);
}
