/** The first half of a tool call: from received to the decision of the before hooks. */
import { deepFreeze } from "../../base/json.ts";
import type { InvalidCall } from "../../define/tool-node.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { resultOfError, underPolicy } from "../../tool/result.ts";
import { isOffered, offeredText } from "../conversation/advertised-tools.ts";
import { isForResume } from "../session/preemption.ts";
import { readArgs } from "./call-args.ts";
import { type CallAtWork, event, facts, isForProvider, shownArgs } from "./context.ts";
import { type Decided, decide } from "./decide-call.ts";
import { askForProvider, checkAsked } from "./provider-call.ts";

/** Resolve the tool, read the arguments, ask the before hooks. */
export function prepare(call: CallAtWork): Decided | Promise<Decided> {
  const { block, tool, node, scope } = call;
  const { aborted, reason } = scope.signal();
  if (aborted && isForResume(reason)) throw reason;
  if (aborted) {
    call.move("call.cancelled");
    return { kind: "answer", result: resultOfError(ToolError.cancelled(), facts(call, 0)) };
  }
  if (call.cut)
    return reject(
      call,
      "cut_off",
      ToolError.invalidArgs(
        "The message was cut off at the length limit, so this call was not run. Send it again, in a shorter message.",
      ),
    );
  if (isForProvider(call)) {
    checkAsked(call);
    call.move("call.resolved");
    return start(call, block.name, block.args) ?? askForProvider(call);
  }
  if (tool === undefined)
    return reject(call, "unknown", ToolError.notFound(`There is no tool "${block.name}". ${offeredText(node, call)}`));
  if (!isOffered(node, call)) {
    const text = `The tool "${block.name}" is not offered now, so this call was not run. ${offeredText(node, call)}`;
    return reject(call, "not_advertised", new ToolError("denied", text));
  }
  call.move("call.resolved");
  const args = readArgs(call, tool, block);
  if (args instanceof ToolError) return reject(call, "invalid_args", args);
  return start(call, tool.spec.name, args.value) ?? decide(call, tool);
}

/** The call has its arguments: it begins, or the limit of its message refuses it. */
function start(call: CallAtWork, name: string, args: unknown): Decided | undefined {
  call.move("call.validated");
  const { limit } = call.set;
  call.hasSlot = limit?.take(call.hasBegun) ?? false;
  if (limit !== undefined && !call.hasSlot) return reject(call, "limit", tooMany(limit.most));
  call.move("call.admitted");
  call.toolCall = deepFreeze({ id: call.block.id, name, args });
  call.asRead = call.toolCall;
  call.move("call.started");
  event(call, { type: "tool.started", args: shownArgs(call) });
  call.move("call.checking");
  return undefined;
}

function tooMany(most: number): ToolError {
  const text = `Not run: at most ${most} calls of one message are run. Ask again for what is still needed.`;
  return new ToolError("limit", text, { disposition: "repair" });
}

function reject(call: CallAtWork, reason: InvalidCall, error: ToolError): Decided {
  call.move("call.rejected");
  event(call, { type: "tool.rejected", reason });
  const { onInvalidCall: policy } = call.node;
  const isFatal = (typeof policy === "string" ? policy : policy[reason]) === "fail";
  const result = resultOfError(error, facts(call, 0));
  return { kind: "answer", result: underPolicy(result, isFatal ? "fail" : "return") };
}
