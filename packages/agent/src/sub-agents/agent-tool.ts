/**
 * Agent as a tool of another agent: model and tool calls are recorded in a namespace of the sub-agent, and the answer
 * is the tool result.
 */
import {
  type AgentEnd,
  type ArgsOf,
  type AssistantMessage,
  type DefinedTool,
  type FinishedGraphCall,
  type GraphCall,
  type GraphOrFactory,
  type GraphToolOptions,
  type GraphTypes,
  getMessageText,
  graphTool,
  type Json,
  type Message,
  ToolError,
  type ToolInput,
  type ToolOutput,
  type ToolReturn,
} from "@statewright/core";
import {
  type CallerContext,
  type ContextMapping,
  checkOptions,
  graphToolOptionNames,
  invalidOption,
  type JsonSchemaInput,
  jsonSchemaInput,
  listOptionNames,
  toBranchPrefix,
  toSnakeCase,
} from "@statewright/core/adapter";
import { getAgentEnd, getAnswerText } from "../agent/agent-end.ts";
import { type AgentInput, toMessages } from "../agent/agent-input.ts";
import { sumUsage } from "./sum-usage.ts";

/** Types of an agent, or of any graph whose state is a conversation. */
export interface ConversationGraphTypes extends GraphTypes {
  readonly state: { readonly messages: readonly Message[] };
  readonly input: { readonly messages?: readonly Message[] | undefined };
}

/** Default arguments of a sub-agent: the task. */
export interface AgentTask {
  readonly task: string;
}

/** End of a sub-agent. */
export interface SubAgentEnd<Inner extends ConversationGraphTypes> {
  readonly ended: AgentEnd;
  /** Text of the last message. */
  readonly text: string;
  /** Structured output of an agent with `output`; else its final state. */
  readonly output: Inner["output"];
  readonly messages: readonly Message[];
}

/** Options shared with `graphTool`. */
type SharedOptions<Inner extends GraphTypes, Name extends string, Input extends ToolInput, Context, Value> = Pick<
  GraphToolOptions<Inner, Name, Input, Context, Value>,
  keyof typeof graphToolOptionNames
>;

/** Definition of an agent tool: arguments, input of the agent, accepted ends and result. */
export interface AgentToolOptions<
  Inner extends ConversationGraphTypes,
  Name extends string,
  Input extends ToolInput,
  Context,
  Value,
> extends SharedOptions<Inner, Name, Input, Context, Value> {
  /** Name of the tool. Default: the agent's name in snake case. */
  readonly name?: Name;
  /** Input schema of the tool. Default: `{ task }`, a string. */
  readonly input?: Input;
  /**
   * Converts the arguments to the input of the agent. Default: the task; for a custom `input`, the arguments as JSON.
   */
  readonly prompt?: (args: ArgsOf<Input>, call: GraphCall<NoInfer<Context>>) => AgentInput;
  /** Initial values of the agent's own channels. */
  readonly state?: (args: ArgsOf<Input>, call: GraphCall<NoInfer<Context>>) => Omit<Inner["input"], "messages">;
  /** Converts an accepted end to the tool result. Default: the structured output of the agent, else its last text. */
  readonly output?: (
    end: SubAgentEnd<Inner>,
    call: FinishedGraphCall<NoInfer<Context>, Inner["state"]>,
  ) => ToolReturn<Value>;
  /** Ends accepted as an answer; any other end becomes an error result. Default: `answer` and `tool`. */
  readonly accept?: readonly AgentEnd["by"][];
}

/**
 * Creates a tool whose call runs an agent. Only the answer is returned to the calling model. An agent stopped by a
 * limit returns an error with its findings so far; a failed agent returns an error without details. The agent
 * receives the context of the calling agent, or the result of `context`. Its interrupts are answered under
 * `name.key`. Throws the errors of `graphTool`.
 */
export function agentTool<
  Inner extends ConversationGraphTypes,
  const Name extends string = string,
  Input extends ToolInput = JsonSchemaInput<AgentTask>,
  Mapping extends ContextMapping<Inner> = undefined,
  Value = unknown,
>(
  agent: GraphOrFactory<Inner>,
  options: AgentToolOptions<Inner, Name, Input, CallerContext<Inner, NoInfer<Mapping>>, Value> & {
    /** Creates the context of the agent from the context of the calling graph. Default: the same context. */
    readonly context?: Mapping;
  },
): DefinedTool<Name, ArgsOf<Input>, unknown, CallerContext<Inner, Mapping>, Value>;
export function agentTool(agent: GraphOrFactory<ConversationGraphTypes>, options: AnyOptions): DefinedTool {
  checkOptions("agentTool", options, optionList);
  const {
    name = toToolName(agent),
    input = getTaskInput(),
    prompt,
    state,
    output,
    accept = defaultAccept,
    ...rest
  } = options;
  checkEnds(name, accept);
  const hasOutput = (): boolean => (typeof agent === "function" ? agent() : agent).output !== undefined;
  const toPrompt = prompt ?? (options.input === undefined ? (args: AgentTask) => args.task : toJson);
  return graphTool<ConversationGraphTypes, string, ToolInput>(agent, {
    ...(rest as Pick<GraphToolOptions<ConversationGraphTypes, string, ToolInput, unknown, unknown>, "description">),
    name,
    input,
    toInput: (args, call) => ({
      ...state?.(args as never, call as never),
      messages: toPromptMessages(toPrompt(args as never, call as never), call),
    }),
    toResult: (graphOutput, call) => {
      const { messages } = call.ended;
      const ended = getAgentEnd(messages);
      const rejection = describeRejection(ended, messages, accept);
      if (rejection !== undefined) throw createStoppedError(name, rejection, ended, messages);
      const end = { ended, text: getEndText(messages, ended), output: graphOutput, messages };
      const createAnswer = hasOutput() ? createOutputAnswer : createTextAnswer;
      return output === undefined ? createAnswer(end) : output(end as never, call as never);
    },
    found: ({ messages }) => findLastText(messages) ?? "",
    usage: ({ messages }) => sumUsage(messages),
  });
}

type AnyOptions = Omit<
  AgentToolOptions<ConversationGraphTypes, string, ToolInput, unknown, unknown>,
  "prompt" | "state" | "output" | "prepareArguments" | "execution"
> & {
  readonly prompt?: (args: never, call: never) => AgentInput;
  readonly state?: (args: never, call: never) => object;
  readonly output?: (end: never, call: never) => unknown;
  readonly context?: ((context: never) => unknown) | undefined;
};

const optionList = listOptionNames<
  AgentToolOptions<ConversationGraphTypes, string, ToolInput, unknown, unknown> & { readonly context?: unknown }
>({
  ...graphToolOptionNames,
  name: true,
  input: true,
  prompt: true,
  state: true,
  context: true,
  output: true,
  accept: true,
});

const defaultAccept: readonly string[] = Object.freeze(["answer", "tool"]);

let taskInput: JsonSchemaInput<AgentTask> | undefined;

/** Returns the default arguments of an agent tool. Created at first use, so that an import compiles no schema. */
function getTaskInput(): JsonSchemaInput<AgentTask> {
  taskInput ??= jsonSchemaInput<AgentTask>({
    type: "object",
    properties: {
      task: { type: "string", minLength: 1, description: "The task, with all the information needed for it." },
    },
    required: ["task"],
    additionalProperties: false,
  });
  return taskInput;
}

function toToolName(agent: GraphOrFactory<ConversationGraphTypes>): string {
  if (typeof agent === "object" && agent !== null && typeof agent.name === "string") return toSnakeCase(agent.name);
  throw invalidOption({
    where: "agentTool",
    option: "name",
    expected: "a tool name for a lazily resolved agent",
    got: undefined,
    fix: 'Add a name: agentTool(() => agent, { name: "…", … })',
  });
}

function checkEnds(name: string, accept: unknown): void {
  if (Array.isArray(accept) && accept.every((by) => typeof by === "string")) return;
  throw invalidOption({
    where: `agentTool "${name}"`,
    option: "accept",
    expected: "a list of ends",
    got: accept,
    fix: 'Use the ends accepted as an answer: accept: ["answer", "tool", "stopWhen"]',
  });
}

function toJson(args: unknown): string {
  return JSON.stringify(args);
}

/**
 * Gives the prompt message an id derived from branch and call id, because a restarted call must write the same first
 * checkpoint.
 */
function toPromptMessages(input: AgentInput, { branch, callId }: GraphCall): readonly Message[] {
  const messages = toMessages(input);
  const id = `${toBranchPrefix(branch)}${callId}:prompt`;
  return messages === input ? messages : messages.map((message) => ({ ...message, id }));
}

/** Describes in sentences why an end is not accepted; undefined for an accepted end. */
function describeRejection(
  ended: AgentEnd,
  messages: readonly Message[],
  accept: readonly string[],
): string | undefined {
  if (accept.includes(ended.by)) return undefined;
  const last = messages.at(-1);
  if (last?.role !== "assistant" || last.ended === undefined) return toSentence(describeEnd(ended));
  const lastText = getMessageText(last).trim();
  if (ended.by !== "guardrail") return toSentence(ended.reason ?? (lastText === "" ? describeEnd(ended) : lastText));
  const reason = toSentence(`a guardrail refused${ended.reason === undefined ? "" : `: ${ended.reason}`}`);
  return lastText === "" ? reason : `${reason} Last text: ${toSentence(lastText)}`;
}

function describeEnd({ by, reason }: AgentEnd): string {
  if (by === "length") return "its answer was truncated at the length limit";
  const cause = reason === undefined ? "" : `: ${reason}`;
  if (by === "filter") return `its answer was withheld by the provider${cause}`;
  return by === "other" ? `the provider stopped its answer${cause}` : `it was ended by ${by}`;
}

function toSentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function createStoppedError(name: string, reason: string, ended: AgentEnd, messages: readonly Message[]): ToolError {
  const sentence = `${name} was stopped before it had an answer: ${reason}`;
  const lastText = findLastText(messages);
  return new ToolError("limit", lastText === undefined ? sentence : `${sentence} Findings so far: ${lastText}`, {
    disposition: "repair",
    userMessage: sentence,
    details: { ended },
  });
}

/** Returns the last text written by a model, ignoring messages of hooks. */
function findLastText(messages: readonly Message[]): string | undefined {
  const lastMessage = messages.findLast((message) => isFromModel(message) && getMessageText(message).trim() !== "");
  return lastMessage === undefined ? undefined : getMessageText(lastMessage);
}

function isFromModel(message: Message): message is AssistantMessage {
  return message.role === "assistant" && message.ended === undefined;
}

/** Returns the final text of an agent: the answer, or the result of the tool call that ended the agent. */
function getEndText(messages: readonly Message[], { by }: AgentEnd): string {
  const last = messages.at(-1);
  if (by === "answer") return getAnswerText(messages);
  if (by !== "tool") return last === undefined ? "" : getMessageText(last);
  const endingResult = messages.findLast((message) => message.role === "tool" && message.terminate === true);
  return endingResult === undefined ? "" : getMessageText(endingResult);
}

/** Creates the tool result of an agent without structured output: its last text. */
function createTextAnswer({ text, ended }: SubAgentEnd<ConversationGraphTypes>): ToolOutput {
  return { content: text, details: { ended } };
}

/** Creates the tool result of an agent with structured output. */
function createOutputAnswer({ output, ended }: SubAgentEnd<ConversationGraphTypes>): ToolOutput {
  const content: ToolOutput["content"] =
    typeof output === "string" ? output : [{ type: "json", value: output as Json }];
  return { content, value: output, details: { ended } };
}
