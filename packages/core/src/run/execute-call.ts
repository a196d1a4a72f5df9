/** The middle of a tool call: its attempts, with the retries between them and the around hooks outside. */
import { disregardPromises } from "../base/disregard.ts";
import { describeThrown, isStatewrightError, toErrorRecord } from "../base/errors.ts";
import { deepFreeze, describeValue } from "../base/json.ts";
import { longestRetryMs, type RetryPolicy, retryDelayMs, saysYes } from "../base/retry.ts";
import { issuesText, parseWith } from "../base/schema.ts";
import type { Middleware } from "../tool/middleware.ts";
import { isResult, resultOf, resultOfError, type ToolOutput, type ToolResult, toOutput } from "../tool/result.ts";
import type { Tool, ToolCall, ToolRetryOn, ToolRuntime, ToolSpec } from "../tool/tool.ts";
import { isToolError, ToolError, toToolError } from "../tool/tool-error.ts";
import { whenAborted } from "./abort.ts";
import { admit } from "./admission.ts";
import { type CallAtWork, event, facts, hookFailed, hooks } from "./call-at-work.ts";
import { recordStage } from "./journal.ts";
import { rewrite } from "./prepare-call.ts";
import { hookRuntime, identityOf, pause } from "./scope.ts";
import { emit, placeOf } from "./session.ts";
import { isForResume } from "./stopped.ts";

/** What an execution has beside its call: the same in every attempt. */
export interface Execution {
  readonly idempotencyKey: string;
  readonly injected: unknown;
}

/** From executing to a result; retries and around hooks stand inside. */
export async function execute(call: CallAtWork, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  if (call.state() === "before") call.move("call.allowed");
  let next = (): Promise<ToolResult> => attempts(call, tool, execution);
  for (const middleware of hooks(call).toReversed()) next = around(call, tool, middleware, next);
  const result = await next();
  call.move("call.settled");
  return result;
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
    const next = (current: ToolCall): Promise<ToolResult> => {
      const refused =
        current.args === call.toolCall.args ? undefined : rewrite(call, tool.spec, current.args, middleware.name);
      made = refused === undefined ? inner() : Promise.resolve(refused);
      made.catch(toldByNext);
      return made;
    };
    try {
      const result = await hook({ call: call.toolCall, tool: tool.spec }, next, hookRuntime(call.session, call.scope));
      if (isResult(result)) return result;
      throw new TypeError("it returned no result; it must return what next gives, or a result of its own");
    } catch (thrown) {
      const [inside] = await Promise.allSettled(made === undefined ? [] : [made]);
      if (inside?.status === "rejected") throw inside.reason;
      return hookFailed(call, middleware, "aroundTool", thrown) ?? inside?.value ?? inner();
    }
  };
}

function toldByNext(): void {
  // The hook that called next has the rejection; one that does not look at it answers for itself.
}

async function attempts(call: CallAtWork, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  const { session } = call;
  const { retry } = tool.spec;
  for (let attempt = 1; ; attempt++) {
    try {
      const returned = await attemptOnce(call, tool, execution, attempt);
      return checkedResult(call, tool.spec, returned, attempt);
    } catch (thrown) {
      if (isStatewrightError(thrown, "missing_secret")) throw thrown;
      const error = toToolError(thrown);
      const mayTryAgain =
        retry !== undefined &&
        attempt < retry.attempts &&
        error.kind !== "cancelled" &&
        wanted(tool.spec, error, attempt);
      const { aborted, reason } = session.abort.signal;
      // A call that was cut short is not answered: a resume makes it again, or asks whether it happened.
      if (isForResume(reason) && (error.kind === "cancelled" || mayTryAgain)) throw reason;
      const again = mayTryAgain && !aborted;
      if (!again) {
        // The model reads one line; what was thrown is whole in the log.
        if (!isToolError(thrown)) logFailure(call, tool.spec.name, attempt, thrown);
        return resultOfError(error, facts(call, attempt));
      }
      const delayMs = retryAfterMs(retry, error) ?? retryDelayMs(retry, attempt, session.world.random.next());
      if (call.state() === "executing") call.move("call.failed_attempt");
      recordStage(session, call.scope.task, call.block.id, call.state(), attempt);
      event(call, { type: "tool.retried", attempt, delayMs, error: error.userMessage });
      await pause(session, delayMs);
      if (call.state() === "retryWait") call.move("call.retried");
      recordStage(session, call.scope.task, call.block.id, call.state(), attempt);
    }
  }
}

function logFailure({ session, block }: CallAtWork, tool: string, attempt: number, thrown: unknown): void {
  session.world.log("warn", `the tool "${tool}" failed`, {
    callId: block.id,
    attempt,
    error: toErrorRecord(thrown),
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

/** One attempt: ends by the tool, by its time limit, or by the run's cancellation, whichever is first; what comes later is dropped and logged. */
function attemptOnce(
  call: CallAtWork,
  tool: Tool<never, never>,
  execution: Execution,
  attempt: number,
): Promise<unknown> {
  const { session, scope, toolCall } = call;
  return new Promise((resolve, reject) => {
    const controller = new AbortController();
    const outer = scope.signal();
    let settled = false;
    let cancelTimer: (() => void) | undefined;
    let stopListening: (() => void) | undefined;
    const settle = (act: () => void): void => {
      if (settled) {
        session.world.log("warn", `a late result of the tool "${tool.spec.name}" was dropped`, {
          callId: call.block.id,
          attempt,
        });
        return;
      }
      settled = true;
      cancelTimer?.();
      stopListening?.();
      act();
    };
    const stop = (error: ToolError): void => {
      settle(() => reject(error));
      controller.abort(error);
    };
    const onAbort = (): void => stop(ToolError.cancelled());
    if (outer.aborted) {
      onAbort();
      return;
    }
    stopListening = whenAborted(outer, onAbort);
    const { timeoutMs } = tool.spec;
    if (timeoutMs !== undefined)
      cancelTimer = session.world.schedule.after(timeoutMs, () => stop(ToolError.timeout(timeoutMs)));
    const runtime = toolRuntime(call, tool.spec, execution, attempt, controller.signal, () => !settled);
    Promise.resolve()
      .then(() => tool.call(session.state as never, runtime as never, toolCall))
      .then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(error)),
      );
  });
}

/** What the tool gets beside its arguments. */
export function toolRuntime(
  call: CallAtWork,
  spec: ToolSpec,
  { idempotencyKey, injected }: Execution,
  attempt: number,
  signal: AbortSignal,
  open: () => boolean,
): ToolRuntime {
  const { session, scope } = call;
  return {
    callId: call.block.id,
    toolName: spec.name,
    attempt,
    run: identityOf(session, scope.task),
    context: session.context,
    injected,
    signal,
    steered: neverSteered,
    idempotencyKey,
    clock: session.world.clock,
    secrets: session.secrets,
    progress: (text) => {
      if (typeof text !== "string") throw new TypeError(`progress takes a line of text, not ${describeValue(text)}`);
      if (open()) event(call, { type: "tool.progress", text });
    },
    update: session.events.listening() ? (partial) => sendUpdate(call, partial, open) : undefined,
    emit: (name, payload) => {
      const { node, id: task } = scope.task;
      admit(session.codec, payload, `the event "${name}"`, placeOf(session, { node, task, tool: spec.name }));
      if (open()) emit(session, { type: "custom", node, task, name, payload });
    },
  };
}

const neverSteered: AbortSignal = new AbortController().signal;

/** A partial result on its way to the readers. One that cannot be copied, or whose filter fails, is withheld. */
function sendUpdate(call: CallAtWork, partial: ToolOutput, open: () => boolean): void {
  if (!open()) return;
  let shown: ToolOutput | null;
  try {
    shown = structuredClone(toOutput(partial));
    for (const { onToolUpdate } of hooks(call))
      if (shown !== null && onToolUpdate !== undefined) shown = onToolUpdate({ call: call.toolCall, partial: shown });
  } catch (thrown) {
    disregardPromises(partial);
    call.session.world.log("warn", `an update of the tool "${call.toolCall.name}" was withheld`, {
      callId: call.block.id,
      error: toErrorRecord(thrown),
    });
    return;
  }
  if (shown !== null) event(call, { type: "tool.update", partial: shown });
}

/** A value that throws when it is looked at is an answer that says so. */
function readResult(call: CallAtWork, spec: ToolSpec, returned: unknown, attempt: number): ToolResult {
  try {
    return resultOf(returned, facts(call, attempt));
  } catch (cause) {
    disregardPromises(returned);
    if (isToolError(cause)) throw cause;
    const text = `The tool "${spec.name}" returned a value that cannot be read: ${describeThrown(cause)}.`;
    throw new ToolError("invalid_output", text, { cause });
  }
}

/** What a tool returned as its result; one that its output schema refuses is an error that the model reads. */
export function checkedResult(call: CallAtWork, spec: ToolSpec, returned: unknown, attempt: number): ToolResult {
  const result = readResult(call, spec, returned, attempt);
  if (spec.output === undefined || result.isError) return result;
  const parsed = parseWith(spec.output, result.value);
  if (parsed.ok) return deepFreeze({ ...result, value: parsed.value });
  return resultOfError(
    new ToolError(
      "invalid_output",
      `The tool "${spec.name}" returned a value that its output schema refuses: ${issuesText(parsed.issues)}.`,
    ),
    facts(call, attempt),
  );
}
