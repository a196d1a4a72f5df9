/**
 * An attempt at a call of a graph tool. The graph writes to its own child namespace, so that a call interrupted by a
 * crash, an interrupt or a retry continues at its last checkpoint.
 */

import { describeThrown, isError, isStatewrightError, type StatewrightError } from "../../base/errors.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { type GraphToolRecord, getToolGraph } from "../../define/graph-tool.ts";
import type { Tool } from "../../tool/definition/tool.ts";
import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { type ToolResult, toStoppedResult } from "../../tool/result.ts";
import { toCallSegment } from "../conversation/pending-calls.ts";
import { subscribeToAbort } from "../session/abort.ts";
import type { Journal } from "../session/parts/journal.ts";
import type { Progress } from "../session/parts/progress.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import type { Session } from "../session/session.ts";
import type { Stop } from "../session/stop.ts";
import { runInner } from "../task/inner-run.ts";
import { validateResult } from "./attempt-call.ts";
import { emitStart, getTimeoutMs, type ToolCallContext } from "./context.ts";
import { type Execution, emitUpdate } from "./tool-runtime.ts";

/**
 * Thrown through a tool call without an answer for now: its graph waits for interrupts, or is paused at a boundary.
 */
export class SuspendedCall extends Error {
  readonly stop: SuspendedStop;

  constructor(stop: SuspendedStop) {
    super("the call has no answer yet");
    this.name = "SuspendedCall";
    this.stop = stop;
  }
}

/** Returns true for a {@link SuspendedCall}. Never throws: `instanceof` may throw for a proxy thrown by a tool. */
export function isSuspendedCall(thrown: unknown): thrown is SuspendedCall {
  try {
    return thrown instanceof SuspendedCall;
  } catch {
    return false;
  }
}

type SuspendedStop =
  | { readonly kind: "waiting"; readonly interrupts: readonly InterruptRow[] }
  | { readonly kind: "paused"; readonly cause: StatewrightError };

/**
 * Runs the graph of a tool call to its end. Rejects with {@link SuspendedCall}, with an error that fails the run, or
 * with a tool error for the model.
 */
export async function attemptGraphCall(
  call: ToolCallContext,
  tool: Tool<never, never>,
  { injected }: Execution,
  attempt: number,
): Promise<ToolResult> {
  const record = getToolGraph(tool) as GraphToolRecord;
  checkDepth(call, record);
  const { signal, getStopError, end } = createStopSignal(call, tool);
  if (attempt === 1 && !signal.aborted) emitStart(call, "tool.body_started");
  try {
    return await runInner(
      call.scope,
      {
        graph: record.graph(),
        persistence: "per-call",
        name: tool.spec.name,
        id: toCallSegment(call.scope.task.id, call.index),
        isTool: true,
        middleware: (call.node.middleware as readonly Middleware[]).filter(({ inherited }) => inherited === true),
        signal,
        context: (context) => (record.context === undefined ? context : record.context(context as never)),
        input: () => record.toInput(call.toolCall.args as never, getCallContext(call, injected) as never),
        updateCall: (partial) => emitUpdate(call, partial),
      },
      (stop, session) => {
        if (stop.kind !== "done") throw toUnansweredError(stop, call, session, { record, stopped: getStopError() });
        call.longTerm = session.journal.longTerm?.buffered;
        const ended = { ...getCallContext(call, injected), ended: session.progress.state };
        const returned = record.toResult(stop.output as never, ended as never);
        const result = validateResult(call, tool.spec, returned, attempt);
        const stopped = getStopError();
        return stopped === undefined ? result : toStoppedResult(stopped, result);
      },
    );
  } catch (thrown) {
    if (isSuspendedCall(thrown) || isToolError(thrown) || isRunFailure(call.journal, thrown)) throw thrown;
    throw findToolError(thrown) ?? toGraphFailure(call, record, thrown);
  } finally {
    end();
  }
}

function getCallContext({ block, env, position, progress }: ToolCallContext, injected: unknown = {}): object {
  return { callId: block.id, branch: position.run.branch, context: env.context, state: progress.state, injected };
}

function checkDepth({ position, block }: ToolCallContext, { maxDepth }: GraphToolRecord): void {
  const { path, depth } = position.nesting ?? { path: [], depth: 0 };
  if (depth < maxDepth) return;
  const callPath = [...path, block.name].join(" → ");
  throw new ToolError(
    "limit",
    `Not run: nested calls are limited to a depth of ${maxDepth}, and this call would exceed it (${callPath}). Continue without this call.`,
    { disposition: "repair" },
  );
}

/**
 * Creates a signal that aborts with the task signal or on the call timeout. The attempt ends only after the graph has
 * stopped, because the next attempt writes the same rows.
 */
function createStopSignal(
  call: ToolCallContext,
  { spec }: Tool<never, never>,
): { readonly signal: AbortSignal; readonly getStopError: () => ToolError | undefined; readonly end: () => void } {
  const { scope, env } = call;
  const timeoutMs = getTimeoutMs(call, spec);
  const outer = scope.getSignal();
  if (timeoutMs === undefined || outer.aborted)
    return {
      signal: outer,
      getStopError: () => (outer.aborted ? ToolError.cancelled() : undefined),
      end: skipCleanup,
    };
  const controller = new AbortController();
  let stopped: ToolError | undefined;
  const stopListening = subscribeToAbort(outer, () => {
    stopped ??= ToolError.cancelled();
    controller.abort(outer.reason);
  });
  const cancelTimer = env.world.schedule.after(timeoutMs, () => {
    stopped ??= ToolError.timeout(timeoutMs);
    controller.abort(stopped);
  });
  return {
    signal: controller.signal,
    getStopError: () => stopped,
    end: () => {
      cancelTimer();
      stopListening();
    },
  };
}

function skipCleanup(): void {
  // The task signal is used directly: nothing to clean up.
}

/** Returns the error for a graph that stopped without an answer. */
function toUnansweredError(
  stop: Exclude<Stop, { readonly kind: "done" }>,
  call: ToolCallContext,
  session: Pick<Session, "progress" | "signals">,
  { record, stopped }: { readonly record: GraphToolRecord; readonly stopped: ToolError | undefined },
): unknown {
  switch (stop.kind) {
    case "waiting":
    case "paused":
      return stopped ?? new SuspendedCall(stop);
    case "failed":
      return stop.error;
    case "cancelled": {
      if (stopped?.kind === "timeout")
        return createUnfinishedError(call, record, session.progress, { kind: stopped.kind, reason: stopped.message });
      if (stopped !== undefined) return stopped;
      // A hook inside the graph ended the call; the run continues without its answer.
      const { reason } = session.signals.abort.signal;
      return createUnfinishedError(call, record, session.progress, {
        kind: "limit",
        reason: isError(reason) ? reason.message : describeThrown(reason),
      });
    }
  }
}

/** Creates the tool error of a graph stopped by a limit: no answer, the reason, and partial findings. */
function createUnfinishedError(
  call: ToolCallContext,
  { found }: GraphToolRecord,
  { state }: Pick<Progress, "state">,
  { kind, reason }: { readonly kind: "limit" | "timeout"; readonly reason: string },
): ToolError {
  let text = "";
  try {
    text = found?.(state as never) ?? "";
  } catch (thrown) {
    log(call, "the partial findings of a tool call could not be read", thrown);
  }
  const message = `${call.block.name} was stopped before it had an answer: ${ensureFullStop(reason)}`;
  return new ToolError(kind, text === "" ? message : `${message} Findings so far: ${text}`, {
    userMessage: message,
    ...(kind === "limit" ? { disposition: "repair" } : {}),
  });
}

function ensureFullStop(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

/**
 * Error codes that a model cannot handle and that must fail the run: effects in doubt, and work that cannot be saved.
 */
const runFailureCodes: ReadonlySet<string> = new Set([
  "effect_in_doubt",
  "graph_changed",
  "needs_migration",
  "machine_failed",
  "breakpoint",
  "drained",
  "parked",
]);

function isRunFailure({ saved }: Pick<Journal, "saved">, error: unknown): boolean {
  if (saved?.thread.failure !== undefined) return true;
  if (!isStatewrightError(error)) return false;
  const { code, kind, cause } = error;
  // Several tasks failed together.
  if (cause instanceof AggregateError) return cause.errors.some((each) => isRunFailure({ saved }, each));
  return runFailureCodes.has(code) || (kind !== "run" && kind !== "tool");
}

/** Returns the nested session of the call in this process. */
function getInnerSession({ position, scope, index }: ToolCallContext): Session | undefined {
  return scope.session.lineage.innerSessions.get(`${position.namespace}/${toCallSegment(scope.task.id, index)}`);
}

/** Returns true if the graph of the call has a journal of its own in the store. */
export function hasSavedGraph(call: ToolCallContext): boolean {
  return getInnerSession(call)?.journal.saved !== undefined;
}

/** Adds the usage of the graph to the result, for successful and failed calls. */
export function addUsage(call: ToolCallContext, result: ToolResult): ToolResult {
  const record = getToolGraph(call.tool);
  const state =
    record?.usage === undefined || result.usage !== undefined ? undefined : getInnerSession(call)?.progress.state;
  if (record?.usage === undefined || state === undefined) return result;
  try {
    const usage = record.usage(state as never);
    return usage === undefined ? result : { ...result, usage };
  } catch (thrown) {
    log(call, "the usage of a tool call could not be read", thrown);
    return result;
  }
}

/** Returns the tool error that a node threw for the model. */
function findToolError(error: unknown): ToolError | undefined {
  return isStatewrightError(error, "node_failed") && isToolError(error.cause) ? error.cause : undefined;
}

/** Creates the tool error of a failed graph. The model reads that the call failed; the log contains the reason. */
function toGraphFailure(call: ToolCallContext, record: GraphToolRecord, error: unknown): ToolError {
  log(call, `the graph of the tool "${call.block.name}" failed`, error);
  if (!isStatewrightError(error, "step_limit"))
    return new ToolError("failed", `${call.block.name} failed before it had an answer.`, { cause: error });
  const { maxSteps } = call.env.limits;
  const state = getInnerSession(call)?.progress.state ?? {};
  return createUnfinishedError(
    call,
    record,
    { state },
    { kind: "limit", reason: `it took ${maxSteps} steps without finishing` },
  );
}

function log(call: ToolCallContext, what: string, thrown: unknown): void {
  call.env.world.log("warn", what, {
    callId: call.block.id,
    error: toRedactedRecord(call.env.redactor, thrown),
  });
}
