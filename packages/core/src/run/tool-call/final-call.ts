/**
 * Final calls of a set, answered when all other calls of it are: the first that fits ends the agent, unless another call of
 * the same message has failed, which the model did not know when it gave its output.
 */
import type { ToolNode } from "../../define/tool-node.ts";
import type { ToolCallBlock, ToolMessage } from "../../model/message.ts";
import type { OpenCall } from "./context.ts";

/** What a final call is answered. */
export type FinalAnswer = Pick<ToolMessage, "content" | "isError" | "terminate">;

/** Whether a call is the final one of a node that has one. */
export function isFinal({ final }: ToolNode<never, never>, { block }: OpenCall): boolean {
  return final !== undefined && block.name === final.tool.name;
}

/** The answers to final calls, in their order; `failed` says that another call of their message has. */
export function answerFinals(
  { final }: ToolNode<never, never>,
  calls: readonly OpenCall[],
  failed: boolean,
): readonly FinalAnswer[] {
  let isGiven = false;
  return calls.map(({ block, cut }) => {
    const wrong = isGiven ? "it was given in this message already" : wrongWith(final, block, cut, failed);
    if (wrong !== undefined) return refused(wrong);
    isGiven = true;
    return taken;
  });
}

const taken: FinalAnswer = { content: [{ type: "text", text: "Given." }], isError: false, terminate: true };

function refused(why: string): FinalAnswer {
  return { content: [{ type: "text", text: `Not taken: ${why}. Give it again.` }], isError: true };
}

function wrongWith(
  final: ToolNode["final"],
  { args, raw, refused: bounds }: ToolCallBlock,
  cut: boolean,
  failed: boolean,
): string | undefined {
  if (cut) return "the message was cut off at the length limit, and the answer may be a part of what was meant";
  if (bounds !== undefined) return `its parts ${bounds}`;
  if (raw !== undefined) return "it is no JSON object";
  if (failed) return "another call of the same message failed; look at its result first";
  return final?.wrong(args);
}
