/** The middle of a tool call: its attempts, with the retries between them and the around hooks outside. */
import { isStatewrightError } from "../../base/errors.ts";
import { longestRetryMs, type RetryPolicy, retryDelayMs, saysYes } from "../../base/retry.ts";
import type { Tool, ToolCall, ToolRetryOn, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, ToolError, toToolError } from "../../tool/definition/tool-error.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { isResult, resultOfError, type ToolResult, underPolicy } from "../../tool/result.ts";
import { recordStage } from "../journal/journal.ts";
import { isForResume } from "../session/preemption.ts";
import { recordOf } from "../session/redact-error.ts";
import { hookRuntime, pause } from "../session/scope.ts";
import { attemptCall } from "./attempt-call.ts";
import { changed, put } from "./call-args.ts";
import { type CallAtWork, event, facts, hookFailed, hooks } from "./context.ts";
import { judge } from "./decide-call.ts";
import { attemptGraph, isNotYet, withUsage } from "./graph-call.ts";
import { recordOtherArgs } from "./start-args.ts";
import { type Execution, tellRest } from "./tool-runtime.ts";

/** From executing to a result; retries and around hooks stand inside. */
export async function execute(call: CallAtWork, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  if (call.state() === "before") call.move("call.allowed");
  const middleware = hooks(call);
  const result = await (middleware.some(({ aroundTool }) => aroundTool !== undefined)
    ? wrapped(call, tool, middleware, execution)
    : begun(call, tool, execution));
  tellRest(call);
  settle(call, result);
  return tool.graph === undefined ? result : withUsage(call, result);
}

function wrapped(
  call: CallAtWork,
  tool: Tool<never, never>,
  middleware: readonly Middleware[],
  execution: Execution,
): Promise<ToolResult> {
  let next = (): Promise<ToolResult> => begun(call, tool, execution);
  for (const hook of middleware.toReversed()) next = around(call, tool, hook, next);
  return next();
}

function begun(call: CallAtWork, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  const { begunWith, toolCall } = call;
  const { saved } = call.session;
  if (begunWith === undefined || begunWith === toolCall || saved === undefined) return begin(call, tool, execution);
  return recordOtherArgs(call, saved).then(() => begin(call, tool, execution));
}

function begin(call: CallAtWork, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  const over = call.locks?.begun();
  const made = attempts(call, tool, execution);
  return over === undefined ? made : made.finally(over);
}

/** From executing, or from the wait of an attempt that nobody needs any more, to the after hooks. */
function settle(call: CallAtWork, { error }: ToolResult): void {
  if (error?.kind === "cancelled" && call.scope.signal().aborted) call.move("call.cancelled");
  else if (call.state() === "retryWait") call.move("call.retried");
  call.move("call.settled");
}

/** A hook around the rest. One that fails before or after it has let the call through does not take its result away. */
function around(
  call: CallAtWork,
  tool: Tool<never, never>,
  middleware: Middleware,
  inner: () => Promise<ToolResult>,
): () => Promise<ToolResult> {
  const hook = middleware.aroundTool;
  if (hook === undefined) return inner;
  return async () => {
    let made: Promise<ToolResult> | undefined;
    let control: { readonly thrown: unknown } | undefined;
    const next = (current: ToolCall): Promise<ToolResult> => {
      made =
        current.args === call.toolCall.args ? inner() : withOther(call, tool, current.args, middleware.name, inner);
      control = undefined;
      made.catch((thrown: unknown) => {
        control = { thrown };
      });
      return made;
    };
    try {
      const result = await hook(
        { call: call.toolCall, tool: tool.spec },
        next,
        hookRuntime(call.session, call.scope, call.key, middleware),
      );
      // What stops a run is for no hook to take for a result.
      if (control !== undefined) throw control.thrown;
      if (isResult(result)) return result;
      throw new TypeError("it returned no result; it must return what next gives, or a result of its own");
    } catch (thrown) {
      const [inside] = await Promise.allSettled(made === undefined ? [] : [made]);
      if (inside?.status === "rejected") throw inside.reason;
      return hookFailed(call, middleware, "aroundTool", thrown) ?? inside?.value ?? inner();
    }
  };
}

/** The rest with other arguments: they are put in place when they have been judged like the first ones. */
async function withOther(
  call: CallAtWork,
  tool: Tool<never, never>,
  args: unknown,
  by: string,
  inner: () => Promise<ToolResult>,
): Promise<ToolResult> {
  const toolCall = changed(call, tool.spec, args, by);
  if (isResult(toolCall)) return toolCall;
  const refused = toolCall === call.toolCall ? undefined : await judge(call, tool, toolCall, by);
  if (refused !== undefined) return refused;
  put(call, toolCall, by);
  return inner();
}

async function attempts(call: CallAtWork, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  const { session } = call;
  const { retry, onError = "return" } = tool.spec;
  for (let attempt = 1; ; attempt++) {
    try {
      if (call.locks !== undefined) await call.locks.fit(call.toolCall.args, call.scope.signal());
      const made =
        tool.graph === undefined ? attemptCall(call, tool, execution, attempt) : attemptGraph(call, tool, attempt);
      return underPolicy(await made, onError);
    } catch (thrown) {
      if (tool.graph !== undefined && (isNotYet(thrown) || isStatewrightError(thrown))) throw thrown;
      if (isStatewrightError(thrown, "missing_secret") || isStatewrightError(thrown, "missing_store")) throw thrown;
      const error = toToolError(thrown);
      const mayTryAgain =
        retry !== undefined &&
        attempt < retry.attempts &&
        error.disposition !== "fail" &&
        error.kind !== "cancelled" &&
        wanted(tool.spec, error, attempt);
      const { aborted, reason } = session.abort.signal;
      // A call that was cut short is not answered: a resume makes it again, or asks whether it happened.
      if (isForResume(reason) && (error.kind === "cancelled" || mayTryAgain)) throw reason;
      const again = mayTryAgain && !aborted;
      if (!again) {
        // The model reads one line; what was thrown is whole in the log.
        if (!isToolError(thrown)) logFailure(call, tool.spec.name, attempt, thrown);
        return underPolicy(resultOfError(error, facts(call, attempt)), onError);
      }
      const delayMs = retryAfterMs(retry, error) ?? retryDelayMs(retry, attempt, session.world.random.next());
      if (call.state() === "executing") call.move("call.failed_attempt");
      recordStage(session, call.scope.task, call.key, call.state(), attempt);
      event(call, { type: "tool.retried", attempt, delayMs, error: session.mask.hide(error.userMessage) });
      await pause(session, delayMs);
      if (session.abort.signal.aborted && !isForResume(session.abort.signal.reason))
        return resultOfError(ToolError.cancelled(), facts(call, attempt));
      if (call.state() === "retryWait") call.move("call.retried");
      recordStage(session, call.scope.task, call.key, call.state(), attempt);
    }
  }
}

function logFailure({ session, block }: CallAtWork, tool: string, attempt: number, thrown: unknown): void {
  session.world.log("warn", `the tool "${tool}" failed`, {
    callId: block.id,
    attempt,
    error: recordOf(session, thrown),
  });
}

/** The wait that the other side asked for, at most as long as the policy ever waits. */
function retryAfterMs(retry: RetryPolicy<ToolRetryOn>, { retryAfterMs: asked }: ToolError): number | undefined {
  const { maxMs = longestRetryMs } = retry;
  return asked === undefined || !(asked >= 0) ? undefined : Math.min(asked, maxMs);
}

function wanted(spec: ToolSpec, error: ToolError, attempt: number): boolean {
  const on = spec.retry?.on;
  if (on === undefined) return spec.effect === "once" ? error.kind === "unavailable" : error.disposition === "retry";
  if (typeof on !== "function") return on.includes(error.kind);
  return saysYes(on, error, attempt);
}
