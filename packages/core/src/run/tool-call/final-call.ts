/**
 * Final calls of a message, answered after all its other calls. The first valid final call ends the agent, unless
 * another call of the message failed: the model gave its output without knowledge of that failure.
 */
import type { ToolNode } from "../../define/tool-node.ts";
import type { FinishReason, ToolCallBlock, ToolMessage } from "../../model/message.ts";
import { isRunnable, type PendingCall } from "../conversation/pending-calls.ts";

/** Answer to a final call. */
export type FinalAnswer = Pick<ToolMessage, "content" | "isError" | "terminate">;

/** Returns the answers to final calls in order. `hasFailedCall` is true when another call of the message failed. */
export function answerFinalCalls(
  { final }: ToolNode<never, never>,
  calls: readonly PendingCall[],
  { hasFailedCall }: { readonly hasFailedCall: boolean },
): readonly FinalAnswer[] {
  let isAccepted = false;
  return calls.map(({ block, message }) => {
    const issue = isAccepted
      ? "an answer was already given in this message"
      : findIssue(final, block, { finish: message.finish, hasFailedCall });
    if (issue !== undefined) return createRefusal(issue);
    isAccepted = true;
    return acceptedAnswer;
  });
}

const acceptedAnswer: FinalAnswer = { content: [{ type: "text", text: "Given." }], isError: false, terminate: true };

function createRefusal(reason: string): FinalAnswer {
  return { content: [{ type: "text", text: `Not accepted: ${reason}. Call it again.` }], isError: true };
}

function findIssue(
  final: ToolNode["final"],
  { args, raw, refused: bounds }: ToolCallBlock,
  { finish, hasFailedCall }: { readonly finish: FinishReason; readonly hasFailedCall: boolean },
): string | undefined {
  if (finish === "length") return "the message was cut off at the length limit, so the answer may be incomplete";
  if (!isRunnable(finish)) return "the provider stopped the message before its end";
  if (bounds !== undefined) return `its parts ${bounds}`;
  if (raw !== undefined) return "it is not a JSON object";
  if (hasFailedCall) return "another call of the same message failed; look at its result first";
  return final?.findIssues(args);
}
