/**
 * One attempt at a tool's body. It ends when the body settles; a body whose signal has fired may settle for as long as its
 * grace, and its answer counts with the kind of what stopped it. What comes later is dropped and logged.
 */

import { resultBounds, unfitData } from "../../base/bounds.ts";
import { describeThrown } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { deepFreeze } from "../../base/json.ts";
import { issuesText, parseWith } from "../../base/schema.ts";
import type { Tool, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, ToolError, toldWhenStopped } from "../../tool/definition/tool-error.ts";
import { resultOf, resultOfError, resultOfStopped, type ToolResult } from "../../tool/result.ts";
import { whenAborted } from "../session/abort.ts";
import { isForResume } from "../session/preemption.ts";
import { type CallAtWork, facts } from "./context.ts";
import { type Execution, toolRuntime } from "./tool-runtime.ts";

/** How long a tool that says nothing else may take to settle after its signal has fired, in milliseconds. */
const defaultGraceMs = 5_000;

/**
 * Call the tool once. Rejects with what it threw, or with the tool error that stopped it. When this has settled the tool
 * has, or its grace is over: what the call held may go to another.
 */
export function attemptCall(
  call: CallAtWork,
  tool: Tool<never, never>,
  execution: Execution,
  attempt: number,
): Promise<ToolResult> {
  const { session, scope, toolCall } = call;
  const { spec } = tool;
  const { schedule } = session.world;
  return new Promise((resolve, reject) => {
    const controller = new AbortController();
    const outer = scope.signal();
    let stopped: ToolError | undefined;
    let ended = false;
    let cancelTimer: (() => void) | undefined;
    let stopListening: (() => void) | undefined;

    const end = (answer: () => ToolResult): void => {
      if (ended) {
        session.world.log("warn", `a late result of the tool "${spec.name}" was dropped`, {
          callId: call.block.id,
          attempt,
        });
        return;
      }
      ended = true;
      call.isOpen = false;
      cancelTimer?.();
      stopListening?.();
      try {
        resolve(answer());
      } catch (thrown) {
        reject(thrown);
      }
    };
    const stop = (error: ToolError): void => {
      stopped = error;
      call.isOpen = false;
      cancelTimer?.();
      stopListening?.();
      controller.abort(error);
      const giveUp = (): void =>
        end(() => {
          throw error;
        });
      // Nobody waits for a task that was given up, and what stops for a resume stops at once: the call is made again there.
      const graceMs = scope.ended() || isForResume(outer.reason) ? 0 : (spec.graceMs ?? defaultGraceMs);
      if (graceMs === 0) giveUp();
      else cancelTimer = schedule.after(graceMs, giveUp);
    };
    const returned = (value: unknown): ToolResult => {
      const read = (): ToolResult => checkedResult(call, spec, value, attempt);
      return stopped === undefined ? read() : resultOfStopped(stopped, answered(stopped, read));
    };

    if (outer.aborted) {
      reject(ToolError.cancelled());
      return;
    }
    stopListening = whenAborted(outer, () => stop(ToolError.cancelled()));
    const { timeoutMs } = spec;
    if (timeoutMs !== undefined) cancelTimer = schedule.after(timeoutMs, () => stop(ToolError.timeout(timeoutMs)));
    call.isOpen = true;
    const isOpen = (): boolean => !ended && stopped === undefined;
    const runtime = toolRuntime(call, spec, execution, attempt, controller.signal, isOpen);
    Promise.resolve()
      .then(() => tool.call(session.state as never, runtime as never, toolCall))
      .then(
        (value) => end(() => returned(value)),
        (thrown: unknown) =>
          end(() => {
            throw stopped === undefined ? thrown : toldWhenStopped(stopped, thrown);
          }),
      );
  });
}

/** What an attempt that was stopped returned, or what is wrong with it. */
function answered(stop: ToolError, read: () => ToolResult): ToolResult {
  try {
    return read();
  } catch (thrown) {
    throw toldWhenStopped(stop, thrown);
  }
}

/** A value that throws when it is looked at, or that nobody can make a copy of, is an answer that says so. */
function readResult(call: CallAtWork, spec: ToolSpec, returned: unknown, attempt: number): ToolResult {
  try {
    const unfit = unfitData(returned, resultBounds);
    if (unfit?.why === "bounds")
      throw new ToolError("invalid_output", `The tool "${spec.name}" returned values that ${unfit.text}.`);
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
  if (parsed.isAsync === true) return resultOfError(unreadable(spec), facts(call, attempt));
  return resultOfError(
    new ToolError(
      "invalid_output",
      `The tool "${spec.name}" returned a value that its output schema refuses: ${issuesText(parsed.issues)}.`,
    ),
    facts(call, attempt),
  );
}

/** The call has happened, so it is answered; that its result cannot be read is for whoever defined the tool. */
function unreadable({ name }: ToolSpec): ToolError {
  const text = `The tool "${name}" ran, but its result cannot be read: the schema of its output answers with a promise.`;
  return new ToolError("invalid_output", text, { disposition: "fail" });
}
