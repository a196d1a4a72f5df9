/** The final call: by it a model gives the output of its agent. It looks like a tool to the model and is none: nothing runs. */

import { StatewrightError } from "../../base/errors.ts";
import { isPlainObject, type Json } from "../../base/json.ts";
import type { ModelTool } from "../../model/model.ts";
import type { OutputSchema } from "./output-schema.ts";

/** The name of the final call; no tool of an agent that has one may have it, nor be shown to a provider under it. */
export const finalCallName = "final_answer";

/** A call that ends the agent when its arguments fit. No middleware sees it, and no limit counts it. */
export interface FinalCall {
  /** What the model is shown. */
  readonly tool: ModelTool;
  /** What is wrong with the arguments; undefined when they are an output. */
  readonly wrong: (args: Json) => string | undefined;
}

/** The final call of an agent with this output. */
export function finalCall({ jsonSchema, read }: OutputSchema, description?: string): FinalCall {
  const told = "Give your final answer. Call it once, when everything else is done: it ends your work.";
  return Object.freeze({
    tool: Object.freeze({
      name: finalCallName,
      description: description === undefined ? told : `${told} The answer: ${description}`,
      inputSchema: jsonSchema,
    }),
    wrong: (args: Json) => {
      const given = read(args);
      return given.ok ? undefined : given.issues;
    },
  });
}

/** Throws `invalid_option` for what is no final call. */
export function checkFinalCall(final: unknown): void {
  if (final === undefined) return;
  if (!isPlainObject(final) || typeof final["wrong"] !== "function")
    throw new StatewrightError("invalid_option", {
      what: "final of toolNode is no final call",
      next: "Give what finalCall(outputSchema(schema)) made",
    });
}
