/** Prepare stage of a tool call: from received to the decision of the before hooks. */
import { deepFreeze } from "../../base/json.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import type { InvalidCall } from "../../define/tool-node.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { applyErrorPolicy, toErrorResult } from "../../tool/result.ts";
import { isRunnable, type PendingCall } from "../conversation/pending-calls.ts";
import { formatAdvertisedTools, isAdvertised } from "../model-call/advertised-tools.ts";
import type { Journal } from "../session/parts/journal.ts";
import { getInterruptIdPrefix, type Position } from "../session/parts/position.ts";
import { isSuspension } from "../session/preemption.ts";
import type { TaskScope } from "../session/scope.ts";
import { parseCallArgs } from "./call-args.ts";
import { getClientInterruptId } from "./client-call.ts";
import { emitCallEvent, emitStart, getResultFields, isProviderCall, type ToolCallContext } from "./context.ts";
import { type CallDecision, decideCall } from "./decide-call.ts";
import { getPriorCallInterruptId } from "./prior-call.ts";
import { askProviderApproval, checkApprovalDeclared } from "./provider-call.ts";

/**
 * Prepares the call: resolves the tool, parses the arguments, calls the before hooks. Calls are prepared in call order
 * when call slots are limited.
 */
export function prepareCall(call: ToolCallContext): CallDecision | Promise<CallDecision> {
  const { limit } = call.batch;
  if (limit === undefined) return resolveAndDecide(call);
  return limit.runInOrder(async () => {
    let isSlotUsed = false;
    try {
      const decision = await resolveAndDecide(call);
      isSlotUsed = decision.kind !== "answer";
      return decision;
    } finally {
      if (call.hasSlot && !isSlotUsed) limit.release();
    }
  });
}

function resolveAndDecide(call: ToolCallContext): CallDecision | Promise<CallDecision> {
  const { block, tool, node, scope } = call;
  const { aborted, reason } = scope.getSignal();
  if (aborted && isSuspension(reason)) throw reason;
  if (aborted) {
    call.transition("call.cancelled");
    return { kind: "answer", result: toErrorResult(ToolError.cancelled(), getResultFields(call, 0)) };
  }
  const incomplete = rejectIncompleteMessage(call);
  if (incomplete !== undefined) return incomplete;
  if (isProviderCall(call)) {
    checkApprovalDeclared(call);
    call.transition("call.resolved");
    return startCall(call, block.name, block.args) ?? askProviderApproval(call);
  }
  if (tool === undefined)
    return rejectCall(
      call,
      "unknown",
      ToolError.notFound(`There is no tool "${block.name}". ${formatAdvertisedTools(node, call)}`),
    );
  if (!isAdvertised(node, call)) {
    const text = `The tool "${block.name}" is not offered now, so this call was not run. ${formatAdvertisedTools(node, call)}`;
    return rejectCall(call, "not_advertised", new ToolError("denied", text));
  }
  call.transition("call.resolved");
  const args = parseCallArgs(call, tool, block);
  if (args instanceof ToolError) return rejectCall(call, "invalid_args", args);
  return startCall(call, tool.spec.name, args.value) ?? decideCall(call, tool);
}

/** Rejects a call of a message that the model did not finish: its arguments or its intent may be incomplete. */
function rejectIncompleteMessage(call: ToolCallContext): CallDecision | undefined {
  const { finish } = call.message;
  if (isRunnable(finish)) return undefined;
  if (finish === "length")
    return rejectCall(
      call,
      "cut_off",
      ToolError.invalidArgs(
        "The message was cut off at the length limit, so this call was not run. Send it again, in a shorter message.",
      ),
    );
  const text = "The provider stopped the message before its end, so this call was not run.";
  return rejectCall(call, "stopped", new ToolError("denied", text));
}

/** Starts a call with parsed arguments, or rejects it at the call limit of its message. */
function startCall(call: ToolCallContext, name: string, args: unknown): CallDecision | undefined {
  call.transition("call.validated");
  const { limit } = call.batch;
  call.hasSlot = limit?.acquire(call.hasStarted) ?? false;
  if (limit !== undefined && !call.hasSlot) return rejectCall(call, "limit", createLimitError(limit.max));
  call.transition("call.admitted");
  call.toolCall = deepFreeze({ id: call.block.id, name, args });
  call.parsedCall = call.toolCall;
  call.transition("call.started");
  emitStart(call, "tool.started");
  call.transition("call.checking");
  return undefined;
}

function createLimitError(maxCalls: number): ToolError {
  const text = `Not run: at most ${maxCalls} calls of one message are run. Ask again for what is still needed.`;
  return new ToolError("limit", text, { disposition: "repair" });
}

function rejectCall(call: ToolCallContext, reason: InvalidCall, error: ToolError): CallDecision {
  call.transition("call.rejected");
  emitCallEvent(call, { type: "tool.rejected", reason });
  const { onInvalidCall: policy } = call.node;
  const isFatal = (typeof policy === "string" ? policy : policy[reason]) === "fail";
  const result = toErrorResult(error, getResultFields(call, 0));
  return { kind: "answer", result: applyErrorPolicy(result, isFatal ? "fail" : "return") };
}

/** True when the call continues earlier work: its start is recorded, or an interrupt about the call has an answer. */
export function hasStarted(
  position: Position,
  journal: Journal,
  scope: TaskScope,
  { call, known }: { readonly call: PendingCall; readonly known: EffectRow | undefined },
): boolean {
  return (
    known !== undefined || findCallInterrupts(position, journal, scope, call).some(({ answer }) => answer !== undefined)
  );
}

/** True when an interrupt about the call was raised, answered or not. */
export function hasCallInterrupt(position: Position, journal: Journal, scope: TaskScope, call: PendingCall): boolean {
  return findCallInterrupts(position, journal, scope, call).length > 0;
}

function findCallInterrupts(
  position: Position,
  { saved }: Journal,
  { task }: TaskScope,
  { key }: PendingCall,
): readonly InterruptRow[] {
  if (saved === undefined || saved.interrupts.size === 0) return [];
  const ids = [`${task.id}:${key}`, getClientInterruptId(task, key), getPriorCallInterruptId(task, key)];
  return ids.flatMap((id) => saved.interrupts.get(`${getInterruptIdPrefix(position)}${id}`) ?? []);
}
