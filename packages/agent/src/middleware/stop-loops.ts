/** Middleware that warns a model about repeated equal tool calls, and ends the run when the model continues. */
import { decide, defineMiddleware, type Middleware } from "@statewright/core";
import { checkCount, checkOptions, listOptionNames } from "@statewright/core/adapter";
import { getMessages, listCallsSinceUser } from "./conversation-calls.ts";
import { stringifyArgs, stringifySavedArgs } from "./stringify-args.ts";

/** Number of equal calls before a denial, and of denials before the end. */
export interface StopLoopsOptions {
  /** Maximum calls of a tool with equal arguments since the last user message. Default 3. */
  readonly same?: number;
  /** Maximum further calls that are denied before the run ends. Default 3. */
  readonly warnings?: number;
}

/** Denies a tool call after `same` equal calls, then ends the run as cancelled. Computed from the conversation. */
export function stopLoops(options: StopLoopsOptions = {}): Middleware {
  checkOptions("stopLoops", options, listOptionNames<StopLoopsOptions>({ same: true, warnings: true }));
  const { same = 3, warnings = 3 } = options;
  checkCount("stopLoops", { same });
  checkCount("stopLoops", { warnings }, 0);
  return defineMiddleware({
    name: "stopLoops",
    required: true,
    beforeTool: ({ call }, { state }) => {
      const messages = getMessages(state);
      const assistantMessage = messages.findLast(({ role }) => role === "assistant");
      const originalCall =
        assistantMessage?.role === "assistant"
          ? assistantMessage.content.find((block) => block.type === "call" && block.id === call.id)
          : undefined;
      const args = stringifyArgs(originalCall?.type === "call" ? originalCall.args : call.args);
      const previousCount = listCallsSinceUser(messages, call.id).filter(
        (each) => each.name === call.name && stringifySavedArgs(each.args) === args,
      ).length;
      if (previousCount < same) return undefined;
      if (previousCount >= same + warnings)
        return decide.abort(`the model repeated the same call of "${call.name}" ${previousCount + 1} times`);
      return decide.deny(
        `You have made this call of "${call.name}" with the same arguments ${previousCount} times. It was not run again: use its result, change the arguments, or answer without it.`,
      );
    },
  });
}
