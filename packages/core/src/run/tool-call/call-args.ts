/** The arguments of a call: read as the model made them, and put in place as hooks and people changed them. */
import { deepFreeze, isPlainObject, sameData } from "../../base/json.ts";
import { issuesText, toldIssues } from "../../base/schema.ts";
import type { ToolCallBlock } from "../../model/message.ts";
import { parseArgs, preparedArgs, takesNothing } from "../../tool/arguments/parse-args.ts";
import type { Tool, ToolCall, ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { isResult, resultOfError, type ToolResult } from "../../tool/result.ts";
import { argsDigest, sameArgs } from "../journal/args-digest.ts";
import { type CallAtWork, event, facts, shownArgs } from "./context.ts";

/** Parse the arguments that the model gave; what does not fit is an error that it can mend. */
export function readArgs(
  call: CallAtWork,
  tool: Tool<never, never>,
  block: ToolCallBlock,
): { readonly value: unknown } | ToolError {
  const { spec } = tool;
  if (block.refused !== undefined)
    return ToolError.invalidArgs(`The arguments of "${spec.name}" were not taken: they ${block.refused}.`);
  const nothingSent = block.raw?.trim() === "" && takesNothing(spec);
  if (block.raw !== undefined && !nothingSent)
    return ToolError.invalidArgs(`The arguments of "${spec.name}" are not valid JSON. Send one JSON object.`);
  const given = nothingSent ? {} : strippedOfHidden(call, spec, block.args);
  const prepared = preparedArgs(tool, given);
  const parsed = prepared.ok ? parseArgs(spec, prepared.value) : prepared;
  if (parsed.ok && prepared.ok && prepared.value !== given && !sameData(prepared.value, given)) {
    const [raw, args] = [shownArgs(call, given), shownArgs(call, parsed.value)];
    event(call, { type: "tool.args_rewritten", by: "prepareArguments", raw, args });
  }
  if (parsed.ok) return { value: parsed.value };
  return ToolError.invalidArgs(`The arguments of "${spec.name}" do not fit: ${issuesText(parsed.issues)}.`, {
    details: toldIssues(parsed.issues),
  });
}

/** A hidden name that was forged, by the model or in changed arguments, is dropped before parsing; the real value wins. */
export function withoutHidden(spec: ToolSpec, args: unknown): unknown {
  if (!isPlainObject(args) || forgedIn(spec, args).length === 0) return args;
  return Object.fromEntries(Object.entries(args).filter(([name]) => !Object.hasOwn(spec.inject, name)));
}

function forgedIn(spec: ToolSpec, args: unknown): readonly string[] {
  return isPlainObject(args) ? Object.keys(args).filter((name) => Object.hasOwn(spec.inject, name)) : [];
}

/** {@link withoutHidden}, told where something was dropped. */
function strippedOfHidden(call: CallAtWork, spec: ToolSpec, args: unknown): unknown {
  const forged = forgedIn(spec, args);
  if (forged.length > 0) event(call, { type: "tool.forged_arg_stripped", keys: forged });
  return withoutHidden(spec, args);
}

/**
 * A call with other arguments, parsed like the first ones, or its answer when they do not fit, or when they are not those
 * that people said yes to. Arguments that are the same stay the very object that hooks have seen.
 */
export function changed(call: CallAtWork, spec: ToolSpec, args: unknown, by: string): ToolCall | ToolResult {
  const parsed = parseArgs(spec, strippedOfHidden(call, spec, args));
  if (!parsed.ok) {
    const text = `The arguments that "${by}" put in place do not fit: ${issuesText(parsed.issues)}.`;
    return resultOfError(ToolError.invalidArgs(text), facts(call, 0));
  }
  const { approved, session, toolCall } = call;
  if (approved !== undefined && argsDigest(session.codec, parsed.value) !== approved)
    return notAsJudged(
      call,
      by,
      `"${by}" would have changed the arguments of this call after they were approved, so it was not run.`,
    );
  return sameArgs(session.codec, parsed.value, toolCall.args)
    ? toolCall
    : deepFreeze({ ...toolCall, args: parsed.value });
}

/** The answer to a call whose arguments would not have been those that were judged. */
export function notAsJudged(call: CallAtWork, by: string, reason: string): ToolResult {
  event(call, { type: "tool.denied", by, reason });
  return resultOfError(new ToolError("denied", reason), facts(call, 0));
}

/** Put other arguments in place, and tell. */
export function put(call: CallAtWork, toolCall: ToolCall, by: string): void {
  call.toolCall = toolCall;
  event(call, { type: "tool.args_rewritten", by, args: shownArgs(call) });
}

/** {@link changed}, put in place; gives the call's answer where they are not. */
export function rewrite(call: CallAtWork, spec: ToolSpec, args: unknown, by: string): ToolResult | undefined {
  const next = changed(call, spec, args, by);
  if (isResult(next)) return next;
  put(call, next, by);
  return undefined;
}
