/** Execute stage of a tool call: its attempts with retries, wrapped in the `aroundTool` hooks. */
import { isStatewrightError } from "../../base/errors.ts";
import { computeRetryDelayMs, defaultMaxRetryMs, type RetryPolicy, shouldRetry } from "../../base/retry.ts";
import type { Tool, ToolCall, ToolRetryOn, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, ToolError, toToolError } from "../../tool/definition/tool-error.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { applyErrorPolicy, isResult, type ToolResult, toErrorResult } from "../../tool/result.ts";
import { cancelStart } from "../journal/commit-start.ts";
import { recordStage } from "../journal/journal.ts";
import { createHookRuntime } from "../journal/middleware-runtime.ts";
import { isSuspension } from "../session/preemption.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { sleep } from "../session/scope.ts";
import { attemptCall } from "./attempt-call.ts";
import { parseChangedArgs, replaceArgs } from "./call-args.ts";
import {
  emitCallEvent,
  getResultFields,
  handleHookError,
  listCallMiddleware,
  type ToolCallContext,
} from "./context.ts";
import { reviewArgs } from "./decide-call.ts";
import { addModelUsage } from "./generate-in-call.ts";
import { addUsage, attemptGraphCall, hasSavedGraph, isSuspendedCall } from "./graph-call.ts";
import { recordChangedArgs } from "./start-args.ts";
import { type Execution, emitWithheldProgress } from "./tool-runtime.ts";

/** Executes a call from state `executing` to its result, including retries and `aroundTool` hooks. */
export async function executeCall(
  call: ToolCallContext,
  tool: Tool<never, never>,
  execution: Execution,
): Promise<ToolResult> {
  if (call.getState() === "before") call.transition("call.allowed");
  const middleware = listCallMiddleware(call);
  const result = await (middleware.some(({ aroundTool }) => aroundTool !== undefined)
    ? runWithHooks(call, tool, middleware, execution)
    : startCall(call, tool, execution));
  emitWithheldProgress(call);
  finishExecution(call, result);
  if (tool.graph === undefined) {
    call.ownUsage = result.usage;
    return addModelUsage(call, result);
  }
  const withUsage = addUsage(call, result);
  if (!hasSavedGraph(call)) call.ownUsage = withUsage.usage;
  return addModelUsage(call, withUsage);
}

function runWithHooks(
  call: ToolCallContext,
  tool: Tool<never, never>,
  middleware: readonly Middleware[],
  execution: Execution,
): Promise<ToolResult> {
  let next = (): Promise<ToolResult> => startCall(call, tool, execution);
  for (const hook of middleware.toReversed()) next = wrapWithHook(call, tool, hook, next);
  return next();
}

function startCall(call: ToolCallContext, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  const { startedCall, toolCall } = call;
  const { saved } = call.journal;
  if (startedCall === undefined || startedCall === toolCall || saved === undefined)
    return startAttempts(call, tool, execution);
  return recordChangedArgs(call, saved).then(() => startAttempts(call, tool, execution));
}

function startAttempts(call: ToolCallContext, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  const release = call.locks?.startAttempts();
  const result = runAttempts(call, tool, execution);
  return release === undefined ? result : result.finally(release);
}

/** Moves the call from `executing`, or from an abandoned retry wait, to the after hooks. */
function finishExecution(call: ToolCallContext, { error }: ToolResult): void {
  if (error?.kind === "cancelled" && call.scope.getSignal().aborted) call.transition("call.cancelled");
  else if (call.getState() === "retryWait") call.transition("call.retried");
  call.transition("call.finished");
}

/**
 * Wraps the next layer in an `aroundTool` hook. A hook that fails before or after the call does not discard the tool
 * result.
 */
function wrapWithHook(
  call: ToolCallContext,
  tool: Tool<never, never>,
  middleware: Middleware,
  inner: () => Promise<ToolResult>,
): () => Promise<ToolResult> {
  const hook = middleware.aroundTool;
  if (hook === undefined) return inner;
  return async () => {
    let pending: Promise<ToolResult> | undefined;
    let control: { readonly thrown: unknown } | undefined;
    const next = (current: ToolCall): Promise<ToolResult> => {
      pending =
        current.args === call.toolCall.args
          ? inner()
          : runWithArgs(call, tool, current.args, { by: middleware.name, inner });
      control = undefined;
      pending.catch((thrown: unknown) => {
        control = { thrown };
      });
      return pending;
    };
    try {
      const result = await hook(
        { call: call.toolCall, tool: tool.spec },
        next,
        createHookRuntime(call, call.scope, call.key, { middleware }),
      );
      // A control signal that stops the run must not be replaced by the result of a hook.
      if (control !== undefined) throw control.thrown;
      if (isResult(result)) return result;
      throw new TypeError("aroundTool: expected a tool result. Return the result of next, or a result of your own");
    } catch (thrown) {
      const [innerOutcome] = await Promise.allSettled(pending === undefined ? [] : [pending]);
      if (innerOutcome?.status === "rejected") throw innerOutcome.reason;
      return handleHookError(call, middleware, "aroundTool", thrown) ?? innerOutcome?.value ?? inner();
    }
  };
}

/** Runs the next layer with other arguments, after the same validation and approval as the original arguments. */
async function runWithArgs(
  call: ToolCallContext,
  tool: Tool<never, never>,
  args: unknown,
  { by, inner }: { readonly by: string; readonly inner: () => Promise<ToolResult> },
): Promise<ToolResult> {
  const toolCall = parseChangedArgs(call, tool.spec, args, by);
  if (isResult(toolCall)) return toolCall;
  const refused = toolCall === call.toolCall ? undefined : await reviewArgs(call, tool, toolCall, by);
  if (refused !== undefined) return refused;
  replaceArgs(call, toolCall, by);
  return inner();
}

async function runAttempts(call: ToolCallContext, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  const { signals, env } = call;
  const { retry, onError = "return" } = tool.spec;
  for (let attempt = 1; ; attempt++) {
    try {
      if (call.locks !== undefined) await call.locks.acquire(call.toolCall.args, call.scope.getSignal());
      if (attempt === 1 && tool.spec.effect === "once") cancelSuspendedStart(call);
      const pending =
        tool.graph === undefined
          ? attemptCall(call, tool, execution, attempt)
          : attemptGraphCall(call, tool, execution, attempt);
      const result = await pending;
      call.hasSettled = true;
      return applyErrorPolicy(result, onError);
    } catch (thrown) {
      if (tool.graph !== undefined && (isSuspendedCall(thrown) || isStatewrightError(thrown))) throw thrown;
      if (isStatewrightError(thrown, "missing_secret") || isStatewrightError(thrown, "missing_store")) throw thrown;
      const error = toToolError(thrown);
      const canRetry =
        retry !== undefined &&
        attempt < retry.attempts &&
        error.disposition !== "fail" &&
        error.kind !== "cancelled" &&
        isRetryable(tool.spec, error, attempt);
      const { aborted, reason } = signals.abort.signal;
      // An interrupted call gets no answer: a resume repeats the call, or raises an in-doubt interrupt.
      if (isSuspension(reason) && (error.kind === "cancelled" || canRetry)) throw reason;
      const willRetry = canRetry && !aborted;
      if (!willRetry) {
        // The model reads a single line; the log contains the full error.
        if (!isToolError(thrown)) logFailure(call, tool.spec.name, attempt, thrown);
        call.hasSettled = true;
        return applyErrorPolicy(toErrorResult(error, getResultFields(call, attempt)), onError);
      }
      const delayMs = getRetryAfterMs(retry, error) ?? computeRetryDelayMs(retry, attempt, env.world.random.next());
      if (call.getState() === "executing") call.transition("call.failed_attempt");
      recordStage(call, call.scope.task, call.key, {
        stage: call.getState(),
        attempts: attempt,
        error: error.kind,
      });
      emitCallEvent(call, {
        type: "tool.retried",
        attempt,
        delayMs,
        error: env.redactor.redact(error.userMessage),
      });
      await sleep(signals, env.world, delayMs);
      if (signals.abort.signal.aborted && !isSuspension(signals.abort.signal.reason))
        return toErrorResult(ToolError.cancelled(), getResultFields(call, attempt));
      if (call.getState() === "retryWait") call.transition("call.retried");
      recordStage(call, call.scope.task, call.key, {
        stage: call.getState(),
        attempts: attempt,
        error: undefined,
      });
    }
  }
}

/** A run that stops before the body of a `once` tool has begun leaves no doubt: the call did not happen. */
function cancelSuspendedStart({ scope, position, journal, key }: ToolCallContext): void {
  const { reason } = scope.getSignal();
  if (isSuspension(reason)) cancelStart(position, journal, scope.task, key);
}

function logFailure({ env, block }: ToolCallContext, tool: string, attempt: number, thrown: unknown): void {
  env.world.log("warn", `the tool "${tool}" failed`, {
    callId: block.id,
    attempt,
    error: toRedactedRecord(env.redactor, thrown),
  });
}

/** Returns the delay requested by the remote side, capped at the policy's maximum delay in milliseconds. */
function getRetryAfterMs(
  retry: RetryPolicy<ToolRetryOn>,
  { retryAfterMs: requestedMs }: ToolError,
): number | undefined {
  const { maxMs = defaultMaxRetryMs } = retry;
  return requestedMs === undefined || !(requestedMs >= 0) ? undefined : Math.min(requestedMs, maxMs);
}

function isRetryable(spec: ToolSpec, error: ToolError, attempt: number): boolean {
  const on = spec.retry?.on;
  if (on === undefined) return spec.effect === "once" ? error.kind === "unavailable" : error.disposition === "retry";
  if (typeof on !== "function") return on.includes(error.kind);
  return shouldRetry(on, error, attempt);
}
