/**
 * An attempt of a tool body. The attempt ends when the body resolves or rejects. After an abort the body has a grace
 * period; its result then counts with the kind of the stop. Later results are dropped and logged.
 */

import { findInvalidData, resultBounds } from "../../base/bounds.ts";
import { describeThrown } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { createFrozenCopy } from "../../base/json.ts";
import { describeIssues, parseWith } from "../../base/schema.ts";
import { toWellFormedData } from "../../base/well-formed.ts";
import type { Tool, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, mergeStopError, ToolError } from "../../tool/definition/tool-error.ts";
import { type CopyData, type ToolResult, toErrorResult, toResult, toStoppedResult } from "../../tool/result.ts";
import { subscribeToAbort } from "../session/abort.ts";
import { isSuspension } from "../session/preemption.ts";
import { createResultDataCopier, emitStart, getResultFields, getTimeoutMs, type ToolCallContext } from "./context.ts";
import { createToolRuntime, type Execution } from "./tool-runtime.ts";

/** Default grace period of a tool after its signal has aborted, in milliseconds. */
const defaultGraceMs = 5_000;

/**
 * Calls the tool once. Rejects with the error of the tool body, or with the tool error that stopped the call. The
 * promise settles only when the body has settled or its grace period is over: locks of the call can then be released.
 */
export function attemptCall(
  call: ToolCallContext,
  tool: Tool<never, never>,
  execution: Execution,
  attempt: number,
): Promise<ToolResult> {
  const { env, progress, scope, toolCall } = call;
  const { spec } = tool;
  const { schedule } = env.world;
  return new Promise((resolve, reject) => {
    const controller = new AbortController();
    const taskSignal = scope.getSignal();
    let stopError: ToolError | undefined;
    let isFinished = false;
    let cancelTimer: (() => void) | undefined;
    let unsubscribe: (() => void) | undefined;

    const end = (answer: () => ToolResult): void => {
      if (isFinished) {
        env.world.log("warn", `a late result of the tool "${spec.name}" was dropped`, {
          callId: call.block.id,
          attempt,
        });
        return;
      }
      isFinished = true;
      call.isAttemptActive = false;
      cancelTimer?.();
      unsubscribe?.();
      try {
        resolve(answer());
      } catch (thrown) {
        reject(thrown);
      }
    };
    const stop = (error: ToolError): void => {
      stopError = error;
      call.isAttemptActive = false;
      cancelTimer?.();
      unsubscribe?.();
      controller.abort(error);
      const giveUp = (): void =>
        end(() => {
          throw error;
        });
      // No grace for an abandoned task, nor for a stop that a resume continues: the resumed run makes the call again.
      const graceMs = scope.isEnded() || isSuspension(taskSignal.reason) ? 0 : (spec.graceMs ?? defaultGraceMs);
      if (graceMs === 0) giveUp();
      else cancelTimer = schedule.after(graceMs, giveUp);
    };
    const toAttemptResult = (value: unknown): ToolResult => {
      const read = (): ToolResult => validateResult(call, spec, value, attempt);
      return stopError === undefined ? read() : toStoppedResult(stopError, readStoppedResult(stopError, read));
    };

    if (taskSignal.aborted) {
      reject(ToolError.cancelled());
      return;
    }
    unsubscribe = subscribeToAbort(taskSignal, () => stop(ToolError.cancelled()));
    const timeoutMs = getTimeoutMs(call, spec);
    if (timeoutMs !== undefined) cancelTimer = schedule.after(timeoutMs, () => stop(ToolError.timeout(timeoutMs)));
    call.isAttemptActive = true;
    const isOpen = (): boolean => !isFinished && stopError === undefined;
    const runtime = createToolRuntime(call, spec, execution, { attempt, signal: controller.signal, isOpen });
    Promise.resolve()
      .then(() => {
        if (attempt === 1) emitStart(call, "tool.body_started");
        return tool.call(progress.state as never, runtime as never, toolCall);
      })
      .then(
        (value) => end(() => toAttemptResult(value)),
        (thrown: unknown) =>
          end(() => {
            throw stopError === undefined ? thrown : mergeStopError(stopError, thrown);
          }),
      );
  });
}

/** Returns the result of a stopped attempt, or throws its failure. */
function readStoppedResult(stop: ToolError, read: () => ToolResult): ToolResult {
  try {
    return read();
  } catch (thrown) {
    throw mergeStopError(stop, thrown);
  }
}

/**
 * Returns the result of a body. A value that throws on access, or cannot be copied, becomes an `invalid_output`
 * error.
 */
function readResult(call: ToolCallContext, spec: ToolSpec, returned: unknown, attempt: number): ToolResult {
  try {
    const invalid = findInvalidData(returned, resultBounds);
    if (invalid?.reason === "bounds")
      throw new ToolError("invalid_output", `The tool "${spec.name}" returned values that ${invalid.text}.`);
    if (typeof returned === "string") return toResult(toWellFormedData(returned), getResultFields(call, attempt));
    const { copy, logDropped } = createResultDataCopier(call, "the result");
    // A value with an output schema is what the schema returns.
    const copyData: CopyData = (value, name) =>
      name === "value" && spec.output !== undefined ? value : copy(value, name);
    const result = toResult(toWellFormedData(returned), getResultFields(call, attempt), copyData);
    logDropped();
    return result;
  } catch (cause) {
    ignoreRejections(returned);
    if (isToolError(cause)) throw cause;
    const text = `The tool "${spec.name}" returned a value that cannot be read: ${describeThrown(cause)}.`;
    throw new ToolError("invalid_output", text, { cause });
  }
}

/** Returns the validated result of a tool. A value that violates the output schema becomes an error for the model. */
export function validateResult(call: ToolCallContext, spec: ToolSpec, returned: unknown, attempt: number): ToolResult {
  const result = readResult(call, spec, returned, attempt);
  if (spec.output === undefined || result.isError) return result;
  const parsed = parseWith(spec.output, result.value);
  if (parsed.ok) return createFrozenCopy({ ...result, value: parsed.value });
  if (parsed.isAsync === true) return toErrorResult(createUnreadableError(spec), getResultFields(call, attempt));
  return toErrorResult(
    new ToolError(
      "invalid_output",
      `The tool "${spec.name}" returned a value that its output schema refuses: ${describeIssues(parsed.issues)}.`,
    ),
    getResultFields(call, attempt),
  );
}

/**
 * Creates the error of an asynchronous output schema. The call has happened and gets an answer; the author of the
 * tool must fix the schema.
 */
function createUnreadableError({ name }: ToolSpec): ToolError {
  const text = `The tool "${name}" ran, but its result cannot be read: the validation of its output schema is asynchronous.`;
  return new ToolError("invalid_output", text, { disposition: "fail" });
}
