/** Structured output of an agent: what is asked of the model, how its answer is read, and how it mends one that does not fit. */
import {
  type AssistantMessage,
  callsOf,
  type FinalCall,
  finalCall,
  finalCallName,
  type Message,
  type ModelCall,
  type ModelOutput,
  type NodeRuntime,
  type OutputInput,
  type OutputSchema,
  outputSchema,
  type ReadOutput,
  type Schema,
  StatewrightError,
  textOf,
  type UserMessage,
} from "@statewright/core";
import { finalCallIn } from "../agent/agent-end.ts";
import { checkCount, checkWord } from "../agent/check-option.ts";
import { repairMark } from "../agent/is-from-person.ts";

/** How an agent gives its output, where its schema alone does not say it. */
export interface OutputOptions<Output> {
  readonly schema: OutputInput<Output>;
  /** A name of the output for the provider, in letters, digits, `_` and `-`. */
  readonly name?: string;
  /** What the output is, in words for the model. */
  readonly description?: string;
  /**
   * `native`: the provider keeps the schema. `tool`: the model calls `final_answer`, which every model with tools can. Without
   * it: native for models that say that they can (`structuredOutput`), else by tool.
   */
  readonly strategy?: "native" | "tool";
  /** How often the model may mend an output that does not fit, before the run fails with `invalid_output`. Default 2. */
  readonly repairs?: number;
}

/** The output of an agent, ready to be asked for. */
export interface AgentOutput {
  readonly schema: OutputSchema;
  readonly native: ModelOutput;
  readonly final: FinalCall;
  readonly strategy: "native" | "tool" | undefined;
  readonly repairs: number;
}

/** Read what was given as `output`. Throws `invalid_option` for what cannot be one. */
export function agentOutput(owner: string, given: OutputInput<unknown> | OutputOptions<unknown>): AgentOutput {
  const options: OutputOptions<unknown> = isOptions(given) ? given : { schema: given };
  const { name, description, strategy, repairs = 2 } = options;
  checkCount(owner, { repairs }, 0);
  if (strategy !== undefined) checkWord(owner, { strategy }, ["native", "tool"]);
  const schema = outputSchema(options.schema);
  const native: ModelOutput = {
    schema: schema.jsonSchema,
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
  };
  return { schema, native, final: finalCall(schema, description), strategy, repairs };
}

function isOptions(given: OutputInput<unknown> | OutputOptions<unknown>): given is OutputOptions<unknown> {
  return typeof given === "object" && given !== null && "schema" in given && !("~standard" in given);
}

/** How a call asks for the output: natively where every model that may answer it keeps schemas. */
export function strategyFor(
  { strategy }: AgentOutput,
  { model, fallback, middleware = [] }: ModelCall,
): "native" | "tool" {
  if (strategy !== undefined) return strategy;
  const policies = [fallback, ...middleware.map(({ modelCall }) => modelCall?.fallback)];
  const models = [model, ...policies.flatMap((standIns = []) => ("models" in standIns ? standIns.models : standIns))];
  return models.every(({ structuredOutput }) => structuredOutput === true) ? "native" : "tool";
}

/** The output that a conversation ends with; undefined when it ended in another way. */
export function outputIn(schema: OutputSchema, messages: readonly Message[]): ReadOutput<unknown> | undefined {
  const last = messages.at(-1);
  if (last?.role === "assistant")
    return last.ended === undefined && callsOf(last).length === 0 ? readText(schema, last) : undefined;
  const call = finalCallIn(messages);
  return call === undefined ? undefined : schema.read(call.args);
}

/** The output schema of an agent's graph: reads the output from the final state. */
export function readsOutput(schema: OutputSchema): Schema<unknown, never> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (state) => {
        const read = outputIn(schema, (state as { readonly messages: readonly Message[] }).messages);
        if (read?.ok === false) return { issues: [{ message: read.issues }] };
        return { value: read?.value as never };
      },
    },
  };
}

/** Whether the answer that a conversation ends with is an output, or needs to be none. */
export function isOutput({ schema }: AgentOutput, messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  return last?.role !== "assistant" || last.ended !== undefined || readText(schema, last).ok;
}

/** What the user's side says to an answer that is no output; nothing to one that is, and to one that calls tools. */
export function repairOf(
  { schema }: AgentOutput,
  strategy: "native" | "tool",
  reply: AssistantMessage,
): readonly UserMessage[] {
  if (reply.ended !== undefined || callsOf(reply).length > 0) return [];
  const read = readText(schema, reply);
  if (read.ok) return [];
  const cut = reply.finish === "length" ? "it was cut off at the length limit; " : "";
  const again =
    strategy === "native"
      ? "Give the whole answer again, as JSON and nothing else."
      : `Give your answer by calling ${finalCallName}.`;
  const text = `Your answer does not fit its schema: ${cut}${read.issues}. ${again}`;
  return [{ role: "user", id: `${reply.id}${repairMark}`, content: [{ type: "text", text }] }];
}

/** The text of an answer as an output. Models put JSON between fences where nobody keeps them from it. */
function readText(schema: OutputSchema, message: AssistantMessage): ReadOutput<unknown> {
  const text = textOf(message).trim();
  const fenced = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text)?.[1];
  let given: unknown;
  try {
    given = JSON.parse(fenced ?? text);
  } catch {
    return { ok: false, issues: "it is no JSON" };
  }
  return schema.read(given);
}

/** Whether the last turn gave what is no output. */
function isMisfit(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  if (last?.role === "user") return last.id.endsWith(repairMark);
  for (let index = messages.length - 1; messages[index]?.role === "tool"; index--)
    if (isRefusedFinal(messages[index])) return true;
  return false;
}

function isRefusedFinal(message: Message | undefined): boolean {
  return message?.role === "tool" && message.name === finalCallName && message.isError;
}

/** The answers since the last words of a person that were no output, newest first. */
function misfits(messages: readonly Message[]): readonly string[] {
  const found: string[] = [];
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message === undefined) break;
    const isRepair = message.role === "user" && message.id.endsWith(repairMark);
    if (isRepair) found.push(textOf(message));
    else if (message.role === "user" || message.role === "system") break;
    else if (isRefusedFinal(message)) found.push(textOf(message));
  }
  return found;
}

/**
 * Throws `invalid_output` when the model has used up its tries. All of them are saved by then, so a resume goes on behind
 * them, and gives the model one more.
 */
export async function refuseEndless(
  { repairs }: AgentOutput,
  messages: readonly Message[],
  runtime: Pick<NodeRuntime, "step" | "run">,
): Promise<void> {
  if (!isMisfit(messages)) return;
  const wrong = misfits(messages);
  if (wrong.length <= repairs) return;
  let isResumed = true;
  await runtime.step("out of tries", () => {
    isResumed = false;
  });
  if (isResumed) return;
  const last = messages.findLast(({ role }) => role === "assistant");
  const answer = last?.role === "assistant" ? last : undefined;
  const text = answer === undefined ? "" : lastWords(answer);
  throw new StatewrightError("invalid_output", {
    what: `the agent "${runtime.run.graph}" gave no output that fits its schema in ${wrong.length} tries: ${wrong[0]}`,
    next: "Resume the thread to let it try once more, or say what is wanted in its instructions; all that it said is kept",
    details: { text, wrong: wrong.toReversed() },
  });
}

/** What the model said last: its text, or the arguments of the final call that were refused. */
function lastWords(message: AssistantMessage): string {
  const final = callsOf(message).findLast(({ name }) => name === finalCallName);
  return final === undefined ? textOf(message) : (final.raw ?? JSON.stringify(final.args));
}
