/**
 * Client-side tools: tools without a body. The application executes the call, and its answer is the result of the
 * call.
 */

import { isPlainObject, type JsonObject } from "../../base/json.ts";
import type { Schema } from "../../base/schema.ts";
import type { ToolOutput } from "../result.ts";
import { checkToolSpec } from "./check-tool-spec.ts";
import { toJsonSchema } from "./model-tool.ts";
import type { ToolSpec } from "./tool.ts";

/** Answer of the application for a failed call; the model reads the text. */
export interface ClientFailure {
  readonly isError: true;
  readonly content: string;
}

const failureSchema: JsonObject = {
  type: "object",
  properties: { isError: { const: true }, content: { type: "string" } },
  required: ["isError", "content"],
  additionalProperties: false,
};

/**
 * Creates the answer schema of a client-side tool: a result that matches `output`, or a failure. A graph declares the
 * schema under the tool's name: `interrupts: { pick_color: clientAnswer(pickColor.spec) }`. Agents declare it
 * automatically.
 */
export function clientAnswer(spec: ToolSpec): Schema<unknown> {
  checkToolSpec("clientAnswer", spec);
  const schema = answerSchemas.get(spec) ?? createAnswerSchema(spec);
  answerSchemas.set(spec, schema);
  return schema;
}

/** Cached per tool, so that agents with the same tool declare the same interrupt. */
const answerSchemas: WeakMap<ToolSpec, Schema<unknown>> = new WeakMap();

function createAnswerSchema(spec: ToolSpec): Schema<unknown> {
  const { output } = spec;
  const outputSchema = output === undefined ? {} : toJsonSchema(output);
  const jsonSchema = { input: () => (outputSchema === undefined ? {} : { anyOf: [outputSchema, failureSchema] }) };
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => {
        if (isClientFailure(value)) return { value };
        if (value === undefined) return { issues: [{ message: "expected an answer" }] };
        if (output === undefined) return { value };
        const result = output["~standard"].validate(value);
        // Keep the answer unparsed: `output` parses the value again when the result is built.
        const keepAnswer = (parsed: Awaited<typeof result>) => (parsed.issues === undefined ? { value } : parsed);
        return result instanceof Promise ? result.then(keepAnswer) : keepAnswer(result);
      },
      ...{ jsonSchema },
    },
  };
}

/** Converts an answer to the return value of a tool. */
export function toToolOutput({ output }: ToolSpec, answer: unknown): unknown {
  if (isClientFailure(answer) || output === undefined) return answer;
  const content: ToolOutput["content"] =
    typeof answer === "string" ? answer : [{ type: "json", value: answer as JsonObject }];
  return { content, value: answer };
}

function isClientFailure(value: unknown): value is ClientFailure {
  return isPlainObject(value) && value["isError"] === true && typeof value["content"] === "string";
}
