/** A call on its way to its locks. */

import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import { resultOfError, type ToolResult } from "../../tool/result.ts";
import { isForResume } from "../session/preemption.ts";
import type { CallLocks } from "./call-locks.ts";
import { type CallAtWork, facts } from "./context.ts";

/** Wait for the locks; gives the answer of a call that does not come to them. */
export async function barredFrom(call: CallAtWork, locks: CallLocks): Promise<ToolResult | undefined> {
  const signal = call.scope.signal();
  try {
    if ((await locks.fit(call.toolCall.args, signal)) && !signal.aborted) return undefined;
  } catch (thrown) {
    if (!isToolError(thrown)) throw thrown;
    return resultOfError(thrown, facts(call, 0));
  }
  locks.release();
  if (isForResume(signal.reason)) throw signal.reason;
  call.move("call.cancelled");
  return resultOfError(ToolError.cancelled(), facts(call, 0));
}
