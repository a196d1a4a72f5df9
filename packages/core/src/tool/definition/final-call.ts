/** The final call: a pseudo tool by which a model returns the output of its agent. The call runs nothing. */

import { invalidOption } from "../../base/invalid-option.ts";
import { isPlainObject, type Json } from "../../base/json.ts";
import type { ModelTool } from "../../model/model.ts";
import type { OutputSchema } from "./output-schema.ts";

/** Name of the final call; reserved in an agent with an output, both as tool name and as alias. */
export const finalCallName = "final_answer";

/**
 * A call that ends the agent when its arguments match the output schema. Invisible to middleware and not counted by
 * limits.
 */
export interface FinalCall {
  /** Tool advertised to the model. */
  readonly tool: ModelTool;
  /** Returns the issues of the arguments; undefined for a valid output. */
  readonly findIssues: (args: Json) => string | undefined;
}

/** Creates the final call for an output schema. */
export function finalCall({ jsonSchema, read }: OutputSchema, description?: string): FinalCall {
  const instruction = "Give your final answer. Call it once, when everything else is done: it ends your work.";
  return Object.freeze({
    tool: Object.freeze({
      name: finalCallName,
      description: description === undefined ? instruction : `${instruction} The answer: ${description}`,
      inputSchema: jsonSchema,
    }),
    findIssues: (args: Json) => {
      const parsed = read(args);
      return parsed.ok ? undefined : parsed.issues;
    },
  });
}

/** Throws `invalid_option` for an invalid final call. */
export function checkFinalCall(final: unknown): void {
  if (final === undefined) return;
  if (!isPlainObject(final) || typeof final["findIssues"] !== "function")
    throw invalidOption({
      where: "toolNode",
      option: "final",
      expected: "the result of finalCall(outputSchema(schema))",
      got: final,
    });
}
