/** Arguments of a tool call: parsed from the model's call, and replaced by hooks and people. */
import { deepFreeze, isSameData } from "../../base/json.ts";
import { describeIssues, limitIssues } from "../../base/schema.ts";
import type { ToolCallBlock } from "../../model/message.ts";
import {
  hasNoArguments,
  listForgedKeys,
  omitHiddenArgs,
  parseArgs,
  prepareArgs,
} from "../../tool/arguments/parse-args.ts";
import type { Tool, ToolCall, ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { isResult, type ToolResult, toErrorResult } from "../../tool/result.ts";
import { digestArgs, isSameArgs } from "../journal/args-digest.ts";
import { emitCallEvent, getResultFields, redactCallArgs, type ToolCallContext } from "./context.ts";

/** Parses the arguments of the model. Invalid arguments become an error that the model can fix. */
export function parseCallArgs(
  call: ToolCallContext,
  tool: Tool<never, never>,
  block: ToolCallBlock,
): { readonly value: unknown } | ToolError {
  const { spec } = tool;
  if (call.plannedStart !== undefined) return { value: call.plannedStart.args };
  if (block.refused !== undefined)
    return ToolError.invalidArgs(`The arguments of "${spec.name}" were not accepted: they ${block.refused}.`);
  const isEmpty = block.raw?.trim() === "" && hasNoArguments(spec);
  if (block.raw !== undefined && !isEmpty)
    return ToolError.invalidArgs(`The arguments of "${spec.name}" are not valid JSON. Send one JSON object.`);
  const modelArgs = isEmpty ? {} : stripForgedArgs(call, spec, block.args);
  const prepared = prepareArgs(tool, modelArgs);
  const parsed = prepared.ok ? parseArgs(spec, prepared.value) : prepared;
  if (parsed.ok && prepared.ok && prepared.value !== modelArgs && !isSameData(prepared.value, modelArgs)) {
    const [raw, args] = [redactCallArgs(call, modelArgs), redactCallArgs(call, parsed.value)];
    emitCallEvent(call, { type: "tool.args_rewritten", by: "prepareArguments", raw, args });
  }
  if (parsed.ok) return { value: parsed.value };
  return ToolError.invalidArgs(`The arguments of "${spec.name}" are invalid: ${describeIssues(parsed.issues)}.`, {
    details: limitIssues(parsed.issues),
  });
}

/** {@link omitHiddenArgs}, with an event when a name was dropped. */
function stripForgedArgs(call: ToolCallContext, spec: ToolSpec, args: unknown): unknown {
  const forged = listForgedKeys(spec, args);
  if (forged.length > 0) emitCallEvent(call, { type: "tool.forged_arg_stripped", keys: forged });
  return omitHiddenArgs(spec, args);
}

/**
 * Parses changed arguments. Returns the changed call, or its error result when the arguments are invalid or differ
 * from the approved arguments. Equal arguments return the same call object that hooks have seen.
 */
export function parseChangedArgs(
  call: ToolCallContext,
  spec: ToolSpec,
  args: unknown,
  by: string,
): ToolCall | ToolResult {
  const parsed = parseArgs(spec, stripForgedArgs(call, spec, args));
  if (!parsed.ok) {
    const text = `The arguments from "${by}" are invalid: ${describeIssues(parsed.issues)}.`;
    return toErrorResult(ToolError.invalidArgs(text), getResultFields(call, 0));
  }
  const { approvedDigest, env, toolCall } = call;
  if (approvedDigest !== undefined && digestArgs(env.codec, parsed.value) !== approvedDigest)
    return denyChangedCall(
      call,
      by,
      `"${by}" changed the arguments of this call after their approval, so it was not run.`,
    );
  return isSameArgs(env.codec, parsed.value, toolCall.args)
    ? toolCall
    : deepFreeze({ ...toolCall, args: parsed.value });
}

/** Denies a call whose arguments would differ from the approved arguments. */
export function denyChangedCall(call: ToolCallContext, by: string, reason: string): ToolResult {
  emitCallEvent(call, { type: "tool.denied", by, reason });
  return toErrorResult(new ToolError("denied", reason), getResultFields(call, 0));
}

/** Replaces the arguments of the call and emits `tool.args_rewritten`. */
export function replaceArgs(call: ToolCallContext, toolCall: ToolCall, by: string): void {
  call.toolCall = toolCall;
  emitCallEvent(call, { type: "tool.args_rewritten", by, args: redactCallArgs(call) });
}

/**
 * Parses and replaces the arguments of the call. Returns the error result of the call when the arguments are refused.
 */
export function rewriteArgs(call: ToolCallContext, spec: ToolSpec, args: unknown, by: string): ToolResult | undefined {
  const next = parseChangedArgs(call, spec, args, by);
  if (isResult(next)) return next;
  replaceArgs(call, next, by);
  return undefined;
}
