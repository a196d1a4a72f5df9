/** A model that makes the same call again and again is told so, and stopped when it does not listen. */
import {
  abort,
  checkOptions,
  defineMiddleware,
  deny,
  type Middleware,
  optionNames,
  StatewrightError,
} from "@statewright/core";
import { callsSinceUser, messagesIn } from "./conversation-calls.ts";
import { textOfArgs, textOfSavedArgs } from "./stringify-args.ts";

/** What `stopLoops` takes. */
export interface StopLoopsOptions {
  /** How often one call may be made with the same arguments since a person spoke last. Default 3. */
  readonly same?: number;
  /** How many more are refused before the run ends. Default 3. */
  readonly warnings?: number;
}

/** Refuse the same call with the same arguments when it was made `same` times, then end the run as cancelled. Read from the transcript. */
export function stopLoops(options: StopLoopsOptions = {}): Middleware {
  checkOptions("stopLoops", options, optionNames<StopLoopsOptions>({ same: true, warnings: true }));
  const { same = 3, warnings = 3 } = options;
  for (const [name, value] of Object.entries({ same, warnings }))
    if (!Number.isInteger(value) || value < (name === "same" ? 1 : 0))
      throw new StatewrightError("invalid_option", {
        what: `the ${name} of stopLoops is ${String(value)}`,
        next: `Give a whole number from ${name === "same" ? 1 : 0}`,
      });
  return defineMiddleware({
    name: "stopLoops",
    required: true,
    asks: [],
    beforeTool: ({ call }, { state }) => {
      const messages = messagesIn(state);
      const asking = messages.findLast(({ role }) => role === "assistant");
      const made =
        asking?.role === "assistant"
          ? asking.content.find((block) => block.type === "call" && block.id === call.id)
          : undefined;
      const args = textOfArgs(made?.type === "call" ? made.args : call.args);
      const before = callsSinceUser(messages, call.id).filter(
        (each) => each.name === call.name && textOfSavedArgs(each.args) === args,
      ).length;
      if (before < same) return undefined;
      if (before >= same + warnings) return abort(`the model made the same call of "${call.name}" ${before + 1} times`);
      return deny(
        `You have made this call of "${call.name}" with the same arguments ${before} times. It was not run again: use what it gave, change the arguments, or answer without it.`,
      );
    },
  });
}
