/** Structured output of an agent: the request to the model, parsing of the answer, and repair of invalid answers. */
import {
  type AnyModel,
  type AssistantMessage,
  getMessageText,
  listToolCalls,
  type Message,
  type Model,
  type ModelCall,
  type NodeRuntime,
  type OutputSchema,
  type ReadOutput,
  type Schema,
  StatewrightError,
  type UserMessage,
} from "@statewright/core";
import {
  type AnswerFormat,
  finalCallName,
  formatRepairRequest,
  parseAnswer,
  resolveFallback,
} from "@statewright/core/adapter";
import { findFinalCall } from "../agent/agent-end.ts";
import { repairSuffix } from "../agent/is-from-person.ts";

/** Parsed output options of an agent. */
export type AgentOutput = AnswerFormat;

/** Lists the models that may answer a call: its model, its fallbacks, and those of its middleware. */
export function listCallModels(
  { model, fallback, middleware = [] }: ModelCall,
  toModel: (given: AnyModel) => Model,
): readonly Model[] {
  const policies = [{ fallback }, ...middleware.map(({ modelCall = {} }) => modelCall)];
  return [model, ...policies.flatMap((policy) => resolveFallback(policy).models)].map(toModel);
}

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
  const text = formatRepairRequest(strategy, reply, read.issues);
  return [{ role: "user", id: `${reply.id}${repairSuffix}`, content: [{ type: "text", text }] }];
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
