/** A tool call on its way: what every stage of it knows, says and does alike. */
import { describeThrown, StatewrightError, toErrorRecord } from "../base/errors.ts";
import type { ToolCallEvent, ToolCallState } from "../compile/tool-call-machine.ts";
import type { ToolNode } from "../define/tool-node.ts";
import type { ToolCallBlock } from "../model/message.ts";
import type { Middleware } from "../tool/middleware.ts";
import { resultOfError, type ToolOutput, type ToolResult } from "../tool/result.ts";
import type { ToolCall } from "../tool/tool.ts";
import { isToolError } from "../tool/tool-error.ts";
import type { TaskScope } from "./scope.ts";
import { emit, placeOf, type Session } from "./session.ts";

/** A call that waits for its answer; its id is unique among its siblings. */
export interface OpenCall {
  readonly block: ToolCallBlock;
  /** The message that holds it was cut off at the length limit: its arguments may be a part of what was meant. */
  readonly cut: boolean;
}

/** A call on its way. */
export interface CallAtWork extends OpenCall {
  readonly session: Session;
  readonly scope: TaskScope;
  readonly node: ToolNode<never, never>;
  /** The open calls of the same message, in their order, this one among them. */
  readonly siblings: readonly OpenCall[];
  /** The state of the call's machine. */
  readonly state: () => ToolCallState;
  readonly move: (event: ToolCallEvent) => void;
  readonly startedAt: number;
  /** As it stands now: as the model made it, then parsed, then as hooks and people changed it. */
  toolCall: ToolCall;
  /** How often a person was asked about it. */
  questions: number;
}

/** The middleware of the call's node, first to last. */
export function hooks(call: CallAtWork): readonly Middleware[] {
  return call.node.middleware as readonly Middleware[];
}

/** What a result says of its call. */
export function facts(
  call: CallAtWork,
  attemptsMade: number,
): { readonly callId: string; readonly name: string; readonly attempts: number; readonly elapsedMs: number } {
  return {
    callId: call.block.id,
    name: call.block.name,
    attempts: attemptsMade,
    elapsedMs: call.session.world.clock.monotonic() - call.startedAt,
  };
}

type CallEventBody =
  | { readonly type: "tool.started"; readonly args: unknown }
  | { readonly type: "tool.args_rewritten"; readonly by: string; readonly args: unknown }
  | { readonly type: "tool.forged_arg_stripped"; readonly keys: readonly string[] }
  | { readonly type: "tool.rejected"; readonly reason: string }
  | { readonly type: "tool.update"; readonly partial: ToolOutput }
  | { readonly type: "tool.progress"; readonly text: string }
  | { readonly type: "tool.retried"; readonly attempt: number; readonly delayMs: number; readonly error: string }
  | { readonly type: "tool.completed" | "tool.failed"; readonly result: ToolResult };

/** Tell something of the call, if anybody listens. */
export function event(call: CallAtWork, body: CallEventBody): void {
  const { session, scope, block } = call;
  emit(session, { ...body, node: scope.task.node, task: scope.task.id, callId: block.id, tool: block.name });
}

/**
 * What a hook that threw means: a tool error is the call's answer, the failure of a required middleware fails the run,
 * any other is logged and the call goes on without the hook.
 */
export function hookFailed(
  call: CallAtWork,
  middleware: Middleware,
  hook: string,
  thrown: unknown,
): ToolResult | undefined {
  if (isToolError(thrown)) return resultOfError(thrown, facts(call, 0));
  const { session, scope, block } = call;
  if (middleware.required === true) {
    throw new StatewrightError("node_failed", {
      what: `the hook ${hook} of the required middleware "${middleware.name}" failed: ${describeThrown(thrown)}`,
      next: "Mend the middleware, then resume the thread: finished work is kept",
      place: placeOf(session, { node: scope.task.node, tool: block.name, callId: block.id }),
      cause: thrown,
    });
  }
  session.world.log("warn", `the hook ${hook} of the middleware "${middleware.name}" failed`, {
    callId: block.id,
    error: toErrorRecord(thrown),
  });
  return undefined;
}
