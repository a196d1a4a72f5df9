/** Lock acquisition of a tool call. */

import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import { type ToolResult, toErrorResult } from "../../tool/result.ts";
import { isSuspension } from "../session/preemption.ts";
import type { CallLocks } from "./call-locks.ts";
import { getResultFields, type ToolCallContext } from "./context.ts";

/** Waits for the locks of a call. Resolves to undefined when acquired, else to the error result of the call. */
export async function acquireCallLocks(call: ToolCallContext, locks: CallLocks): Promise<ToolResult | undefined> {
  const signal = call.scope.getSignal();
  try {
    if ((await locks.acquire(call.toolCall.args, signal)) && !signal.aborted) return undefined;
  } catch (thrown) {
    if (!isToolError(thrown)) throw thrown;
    return toErrorResult(thrown, getResultFields(call, 0));
  }
  locks.release();
  if (isSuspension(signal.reason)) throw signal.reason;
  call.transition("call.cancelled");
  return toErrorResult(ToolError.cancelled(), getResultFields(call, 0));
}
