/** Structured answers of models: the request for JSON by a schema, the parser of an answer, and the request to repair it. */
import { checkChoice, checkCount } from "../../base/options.ts";
import { type AssistantMessage, getMessageText } from "../../model/message.ts";
import type { Model, ModelOutput } from "../../model/model.ts";
import { type FinalCall, finalCall, finalCallName } from "./final-call.ts";
import { type OutputInput, type OutputSchema, outputSchema, type ReadOutput } from "./output-schema.ts";

/** Options of structured output in addition to the schema. */
export interface OutputOptions<Output> {
  /** Schema of the output. */
  readonly schema: OutputInput<Output>;
  /** Name of the output for the provider: letters, digits, `_` and `-`. */
  readonly name?: string;
  /** Description of the output for the model. */
  readonly description?: string;
  /**
   * `native`: the provider enforces the schema. `tool`: the model calls `final_answer`, which works with every model
   * that supports tools. Default: `native` for models with `structuredOutput`, else `tool`.
   */
  readonly strategy?: OutputStrategy;
  /** Maximum repairs of an invalid output by the model, before the run fails with `invalid_output`. Default 2. */
  readonly repairs?: number;
}

/** Way to get an answer by a schema. */
export type OutputStrategy = "native" | "tool";

/** Parsed output options. */
export interface AnswerFormat {
  readonly schema: OutputSchema;
  readonly native: ModelOutput;
  readonly final: FinalCall;
  readonly strategy: OutputStrategy | undefined;
  readonly repairs: number;
}

/** Parses the `output` option. Throws `invalid_option` for an invalid value. */
export function parseAnswerFormat(owner: string, input: OutputInput<unknown> | OutputOptions<unknown>): AnswerFormat {
  const options: OutputOptions<unknown> = isOutputOptions(input) ? input : { schema: input };
  const { name, description, strategy, repairs = 2 } = options;
  checkCount(owner, { repairs }, 0);
  if (strategy !== undefined) checkChoice(owner, { strategy }, ["native", "tool"]);
  const schema = outputSchema(options.schema);
  const native: ModelOutput = {
    schema: schema.jsonSchema,
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
  };
  return { schema, native, final: finalCall(schema, description), strategy, repairs };
}

function isOutputOptions(input: OutputInput<unknown> | OutputOptions<unknown>): input is OutputOptions<unknown> {
  return typeof input === "object" && input !== null && "schema" in input && !("~standard" in input);
}

/** Returns the output strategy of a call: `native` only when its models all support structured output. */
export function chooseOutputStrategy({ strategy }: AnswerFormat, models: readonly Model[]): OutputStrategy {
  if (strategy !== undefined) return strategy;
  return models.every(({ structuredOutput }) => structuredOutput === true) ? "native" : "tool";
}

/** Parses the text of an answer. Removes Markdown code fences, which models add without schema enforcement. */
export function parseAnswer(schema: OutputSchema, message: AssistantMessage): ReadOutput<unknown> {
  const text = getMessageText(message).trim();
  const fenced = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text)?.[1];
  let value: unknown;
  try {
    value = JSON.parse(fenced ?? text);
  } catch {
    return { ok: false, issues: "it is not valid JSON" };
  }
  return schema.read(value);
}

/** Returns the text that asks a model to repair an invalid answer. */
export function formatRepairRequest(
  strategy: OutputStrategy,
  { finish }: Pick<AssistantMessage, "finish">,
  issues: string,
): string {
  const lengthNote = finish === "length" ? "it was cut off at the length limit; " : "";
  const instruction =
    strategy === "native"
      ? "Give the whole answer again, as JSON and nothing else."
      : `Give your answer by calling ${finalCallName}.`;
  return `Your answer does not fit its schema: ${lengthNote}${issues}. ${instruction}`;
}
