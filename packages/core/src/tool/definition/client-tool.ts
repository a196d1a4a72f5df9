/** Tools without a body: the application that shows the run executes them, and its answer is the call's result. */
import { isPlainObject, type JsonObject } from "../../base/json.ts";
import type { Schema } from "../../base/schema.ts";
import type { ToolOutput } from "../result.ts";
import { jsonSchemaOf } from "./model-tool.ts";
import type { ToolSpec } from "./tool.ts";

/** What the application answers when it could not do it; the model reads the text. */
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
 * The schema of the answer to a call of a tool without a body: its result as `output` says, or a failure. A graph declares
 * it under the tool's name: `interrupts: { pick_color: clientAnswer(pickColor.spec) }`. Agents do so by themselves.
 */
export function clientAnswer(spec: ToolSpec): Schema<unknown> {
  const known = answers.get(spec) ?? answerTo(spec);
  answers.set(spec, known);
  return known;
}

/** One question a tool, so that agents which share a tool ask the same. */
const answers: WeakMap<ToolSpec, Schema<unknown>> = new WeakMap();

function answerTo(spec: ToolSpec): Schema<unknown> {
  const { output } = spec;
  const said = output === undefined ? {} : jsonSchemaOf(output);
  const jsonSchema = { input: () => (said === undefined ? {} : { anyOf: [said, failureSchema] }) };
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => {
        if (isFailure(value)) return { value };
        if (value === undefined) return { issues: [{ message: "expected an answer" }] };
        if (output === undefined) return { value };
        const result = output["~standard"].validate(value);
        // What the answer becomes is the result's matter: here it stays as it was given.
        const given = (parsed: Awaited<typeof result>) => (parsed.issues === undefined ? { value } : parsed);
        return result instanceof Promise ? result.then(given) : given(result);
      },
      ...{ jsonSchema },
    },
  };
}

/** An answer as what the tool would have returned. */
export function clientOutput({ output }: ToolSpec, answer: unknown): unknown {
  if (isFailure(answer) || output === undefined) return answer;
  const content: ToolOutput["content"] =
    typeof answer === "string" ? answer : [{ type: "json", value: answer as JsonObject }];
  return { content, value: answer };
}

function isFailure(value: unknown): value is ClientFailure {
  return isPlainObject(value) && value["isError"] === true && typeof value["content"] === "string";
}
