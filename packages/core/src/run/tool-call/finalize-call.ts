/** Finalize stage of a tool call: after hooks, redaction, artifacts, command, and the result as saved. */

import { describeThrown, getErrorFact, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { toWellFormedData } from "../../base/well-formed.ts";
import { goto } from "../../define/command.ts";
import { plainCodec } from "../../state/codec.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { isResult, type ToolResult, toErrorResult } from "../../tool/result.ts";
import { exposeCallChanges, recordChanges } from "../journal/long-term-writes.ts";
import { createHookRuntime } from "../journal/middleware-runtime.ts";
import type { Position } from "../session/parts/position.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { readReturn } from "../session/returns.ts";
import { checkReducers, validateEncodable, validateOutcome } from "../session/validate-writes.ts";
import { findCommandIssue } from "../superstep/transcript-issue.ts";
import {
  getResultFields,
  handleHookError,
  listCallMiddleware,
  type ToolCallContext,
  toSavableResult,
} from "./context.ts";
import { canStoreArtifacts, presentResult } from "./present-result.ts";

/**
 * Calls the after hooks in reverse order, then redacts and validates the result: from the state after to persisted.
 */
export function finalizeCall(call: ToolCallContext, result: ToolResult): ToolResult | Promise<ToolResult> {
  const middleware = listCallMiddleware(call);
  return middleware.some(({ afterTool }) => afterTool !== undefined)
    ? callAfterHooks(call, middleware, result).then((shown) => presentCallResult(call, shown))
    : presentCallResult(call, result);
}

/**
 * Returns the answer of a `once` call that has run, and whose hooks or result then failed with `thrown`. The answer is
 * recorded, since a call without an outcome is in doubt after a resume. The error of a required hook fails the run
 * after that.
 */
export function withholdResult(call: ToolCallContext, thrown: unknown): ToolResult {
  if (isStatewrightError(thrown)) call.failure = thrown;
  call.artifacts = undefined;
  const { env, block } = call;
  env.world.log("error", `a result of the tool "${block.name}" was withheld: it could not be prepared`, {
    callId: block.id,
    error: toRedactedRecord(env.redactor, thrown),
  });
  if (call.getState() === "executing") call.transition("call.finished");
  if (call.getState() === "after") call.transition("call.reviewed");
  const text = `The tool "${block.name}" ran, but its result is withheld: it could not be prepared.`;
  const error = new ToolError("invalid_output", text, { cause: thrown });
  return journalLongTermChanges(call, toErrorResult(error, getResultFields(call, 1)));
}

async function callAfterHooks(
  call: ToolCallContext,
  middleware: readonly Middleware[],
  result: ToolResult,
): Promise<ToolResult> {
  let current = result;
  for (const hook of middleware.toReversed()) {
    try {
      const replaced = await hook.afterTool?.(
        { call: call.toolCall, tool: call.tool?.spec, result: current },
        createHookRuntime(call, call.scope, call.key, { middleware: hook }),
      );
      if (replaced !== undefined && !isResult(replaced))
        throw new TypeError("expected a tool result or undefined from the hook");
      current = replaced ?? current;
    } catch (thrown) {
      current = handleHookError(call, hook, "afterTool", thrown) ?? current;
    }
  }
  return current;
}

/** Moves from the state persisting to persisted; synchronous without artifacts. */
function presentCallResult(call: ToolCallContext, result: ToolResult): ToolResult | Promise<ToolResult> {
  call.transition("call.reviewed");
  const presented = presentResult(call, call.env.redactor.redact(toSavableResult(call, result)));
  return presented instanceof Promise
    ? presented.then((shown) => finishResult(call, shown))
    : finishResult(call, presented);
}

function finishResult(call: ToolCallContext, shown: ToolResult): ToolResult {
  if (canStoreArtifacts(call)) call.transition("call.persisted");
  const result = { ...toWellFormedData(shown), callId: call.block.id, name: call.toolCall.name };
  return journalLongTermChanges(call, ensureApplicable(call, ensureSavable(call, result)));
}

/**
 * Replaces a result whose command the graph refuses with an error result. A new result is checked before it is
 * recorded; a replayed result is checked again, since the graph may have changed. A command that cannot be applied
 * would fail each resume.
 */
export function ensureApplicable(call: ToolCallContext, result: ToolResult): ToolResult {
  const returned = listCommandReturns(result);
  if (returned.length === 0) return result;
  const { position, progress, env, scope, batch } = call;
  const { node } = scope.task;
  const accepted = batch.commands.flat();
  try {
    const outcome = readReturn(position.plan, node, progress.state, returned);
    validateOutcome(position, env.codec, node, outcome);
    const issue = findCommandIssue(position.plan, progress.state, scope.task, outcome.writes);
    if (issue !== undefined) throw createCommandError(position, node, issue);
    // With the commands of the siblings: reducers read each other's values, and gotos may lead to different nodes.
    const { writes } = readReturn(position.plan, node, progress.state, [...accepted, ...returned]);
    checkReducers(position.plan, env.codec, { task: scope.task, writes, getState: () => progress.state });
  } catch (cause) {
    call.artifacts = undefined;
    const reason = isStatewrightError(cause) ? getErrorFact(cause) : describeThrown(cause);
    const text = `The tool "${result.name}" ran, but the graph refused its update, and nothing was changed: ${reason}.`;
    return toErrorResult(new ToolError("invalid_output", text, { cause }), getResultFields(call, result.attempts));
  }
  batch.commands.push(returned);
  return result;
}

function createCommandError({ plan }: Position, node: string, issue: string): StatewrightError {
  return new StatewrightError("invalid_update", {
    what: `the update of a tool would separate tool calls from their answers: ${issue}`,
    next: "Return the answer of the call as content, and add only messages without open tool calls",
    place: { graph: plan.graph.name, node },
  });
}

/**
 * Journals the long-term store changes of an attempt before its result. A call with an error result changes nothing.
 */
function journalLongTermChanges(call: ToolCallContext, result: ToolResult): ToolResult {
  const { position, journal, scope, key, longTerm } = call;
  if (longTerm === undefined) return result;
  call.longTerm = undefined;
  recordChanges(position, journal, scope.task, { key, changes: result.isError ? [] : longTerm });
  if (!result.isError && longTerm.length > 0) exposeCallChanges(call);
  return result;
}

/**
 * Returns the frozen result, or an error result for a result that cannot be saved or frozen: the tool did run, and the
 * run continues.
 */
function ensureSavable(call: ToolCallContext, result: ToolResult): ToolResult {
  const { codec } = call.env;
  const { saved } = call.journal;
  const what = `the result of the tool "${result.name}"`;
  try {
    // In a list, as in the channel of messages.
    if (saved === undefined || codec === plainCodec) validateEncodable(codec, [result], what);
    else codec.encode([result], what);
    return deepFreeze(result);
  } catch (cause) {
    const path = isStatewrightError(cause) ? cause.place.path?.replace(/^0\./, "") : undefined;
    const where = path === undefined ? "" : ` (at "${path}")`;
    call.artifacts = undefined;
    const text = `The tool "${result.name}" ran, but its result is not data that can be saved${where}.`;
    return toErrorResult(new ToolError("invalid_output", text, { cause }), getResultFields(call, result.attempts));
  }
}

/** Returns the update and the goto of a result as items of the return value of its node. */
export function listCommandReturns({ command }: Pick<ToolResult, "command">): readonly unknown[] {
  return [
    ...(command?.update === undefined ? [] : [command.update]),
    ...(command?.goto === undefined ? [] : [goto(command.goto)]),
  ];
}
