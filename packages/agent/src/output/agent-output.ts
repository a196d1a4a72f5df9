/** Structured output of an agent: the request to the model, parsing of the answer, and repair of invalid answers. */
import {
  type AnyModel,
  type AssistantMessage,
  getMessageText,
  listToolCalls,
  type Message,
  type Model,
  type ModelCall,
  type ModelOutput,
  type NodeRuntime,
  type OutputInput,
  type OutputSchema,
  outputSchema,
  type ReadOutput,
  type Schema,
  StatewrightError,
  type UserMessage,
} from "@statewright/core";
import { checkChoice, checkCount, type FinalCall, finalCall, finalCallName } from "@statewright/core/adapter";
import { findFinalCall } from "../agent/agent-end.ts";
import { repairSuffix } from "../agent/is-from-person.ts";

/** Options of structured output in addition to the schema. */
export interface OutputOptions<Output> {
  readonly schema: OutputInput<Output>;
  /** Name of the output for the provider: letters, digits, `_` and `-`. */
  readonly name?: string;
  /** Description of the output for the model. */
  readonly description?: string;
  /**
   * `native`: the provider enforces the schema. `tool`: the model calls `final_answer`, which works with every model
   * that supports tools. Default: `native` for models with `structuredOutput`, else `tool`.
   */
  readonly strategy?: "native" | "tool";
  /** Maximum repairs of an invalid output by the model, before the run fails with `invalid_output`. Default 2. */
  readonly repairs?: number;
}

/** Parsed output options of an agent. */
export interface AgentOutput {
  readonly schema: OutputSchema;
  readonly native: ModelOutput;
  readonly final: FinalCall;
  readonly strategy: "native" | "tool" | undefined;
  readonly repairs: number;
}

/** Parses the `output` option. Throws `invalid_option` for an invalid value. */
export function parseAgentOutput(owner: string, input: OutputInput<unknown> | OutputOptions<unknown>): AgentOutput {
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

/**
 * Returns the output strategy of a model call: `native` only when the model and all its fallbacks support structured
 * output.
 */
export function chooseOutputStrategy(
  { strategy }: AgentOutput,
  { model, fallback, middleware = [] }: ModelCall,
  toModel: ToModel,
): "native" | "tool" {
  if (strategy !== undefined) return strategy;
  const policies = [fallback, ...middleware.map(({ modelCall }) => modelCall?.fallback)];
  const models = [
    model,
    ...policies.flatMap((fallbackModels = []) => ("models" in fallbackModels ? fallbackModels.models : fallbackModels)),
  ];
  return models.every((each) => toModel(each).structuredOutput === true) ? "native" : "tool";
}

/** Finds the `Model` of a model option. */
export type ToModel = (given: AnyModel) => Model;

/** Parses the output at the end of a conversation; undefined when the conversation ended without an answer. */
export function parseFinalOutput(schema: OutputSchema, messages: readonly Message[]): ReadOutput<unknown> | undefined {
  const last = messages.at(-1);
  if (last?.role === "assistant")
    return last.ended === undefined && listToolCalls(last).length === 0 ? parseAnswer(schema, last) : undefined;
  const call = findFinalCall(messages);
  return call === undefined ? undefined : schema.read(call.args);
}

/** Output schema of an agent's graph: parses the output from the final state. */
export function createGraphOutputSchema(schema: OutputSchema): Schema<unknown, never> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (state) => {
        const read = parseFinalOutput(schema, (state as { readonly messages: readonly Message[] }).messages);
        if (read?.ok === false) return { issues: [{ message: read.issues }] };
        return { value: read?.value as never };
      },
    },
  };
}

/** True when the conversation ends with a valid output, or in a way that requires no output. */
export function isOutputSatisfied({ schema }: AgentOutput, messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  return last?.role !== "assistant" || last.ended !== undefined || parseAnswer(schema, last).ok;
}

/**
 * Returns the user message that asks the model to repair an invalid output; empty for a valid output or tool calls.
 */
export function createRepairMessages(
  { schema }: AgentOutput,
  strategy: "native" | "tool",
  reply: AssistantMessage,
): readonly UserMessage[] {
  if (reply.ended !== undefined || listToolCalls(reply).length > 0) return [];
  const read = parseAnswer(schema, reply);
  if (read.ok) return [];
  const lengthNote = reply.finish === "length" ? "it was cut off at the length limit; " : "";
  const instruction =
    strategy === "native"
      ? "Give the whole answer again, as JSON and nothing else."
      : `Give your answer by calling ${finalCallName}.`;
  const text = `Your answer does not fit its schema: ${lengthNote}${read.issues}. ${instruction}`;
  return [{ role: "user", id: `${reply.id}${repairSuffix}`, content: [{ type: "text", text }] }];
}

/**
 * Parses the text of an answer as output. Removes Markdown code fences, which models add without schema enforcement.
 */
function parseAnswer(schema: OutputSchema, message: AssistantMessage): ReadOutput<unknown> {
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

/** True when the last turn gave an invalid output. */
function isLastOutputInvalid(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  if (last?.role === "user") return last.id.endsWith(repairSuffix);
  for (let index = messages.length - 1; messages[index]?.role === "tool"; index--)
    if (isRefusedFinalCall(messages[index])) return true;
  return false;
}

function isRefusedFinalCall(message: Message | undefined): boolean {
  return message?.role === "tool" && message.name === finalCallName && message.isError;
}

/** Lists the problems of invalid outputs since the last user message, newest first. */
function listInvalidOutputs(messages: readonly Message[]): readonly string[] {
  const problems: string[] = [];
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message === undefined) break;
    const isRepair = message.role === "user" && message.id.endsWith(repairSuffix);
    if (isRepair) problems.push(getMessageText(message));
    else if (message.role === "user" || message.role === "system") break;
    else if (isRefusedFinalCall(message)) problems.push(getMessageText(message));
  }
  return problems;
}

/**
 * Throws `invalid_output` when the model has used up its repairs. All attempts are saved before, so a resume
 * continues after the last attempt and allows another attempt.
 */
export async function checkRepairLimit(
  { repairs }: AgentOutput,
  messages: readonly Message[],
  runtime: Pick<NodeRuntime, "step" | "run">,
): Promise<void> {
  if (!isLastOutputInvalid(messages)) return;
  const problems = listInvalidOutputs(messages);
  if (problems.length <= repairs) return;
  let isResumed = true;
  await runtime.step("out of tries", () => {
    isResumed = false;
  });
  if (isResumed) return;
  const last = messages.findLast(({ role }) => role === "assistant");
  const answer = last?.role === "assistant" ? last : undefined;
  const text = answer === undefined ? "" : getLastOutputText(answer);
  throw new StatewrightError("invalid_output", {
    what: `agent "${runtime.run.graph}": expected output that matches the schema, got ${problems.length} invalid outputs; last problem: ${problems[0]}`,
    next: "Resume the thread to allow one more attempt, or describe the output in the instructions; all attempts are saved in the thread",
    details: { text, wrong: problems.toReversed() },
  });
}

/** Returns the last output of the model: its text, or the arguments of the refused final call. */
function getLastOutputText(message: AssistantMessage): string {
  const final = listToolCalls(message).findLast(({ name }) => name === finalCallName);
  return final === undefined ? getMessageText(message) : (final.raw ?? JSON.stringify(final.args));
}
