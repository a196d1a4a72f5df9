/** An agent as a tool of another: its model calls and tool calls are recorded on a line of its own, and its answer is the result. */
import {
  type AgentEnd,
  type ArgsOf,
  type AssistantMessage,
  checkOptions,
  type DefinedTool,
  type EndedGraphCall,
  type GraphCall,
  type GraphOrLater,
  type GraphToolOptions,
  type GraphTypes,
  graphTool,
  graphToolParts,
  type Json,
  type JsonSchemaInput,
  jsonSchemaInput,
  type Message,
  optionNames,
  StatewrightError,
  snakeCaseOf,
  ToolError,
  type ToolInput,
  type ToolOutput,
  type ToolReturn,
  textOf,
} from "@statewright/core";
import { answerText, endedBy } from "../agent/agent-end.ts";
import { type AgentInput, toMessages } from "../agent/agent-input.ts";
import { usageIn } from "./sum-usage.ts";

/** The types of an agent, or of any graph whose state is a conversation. */
export interface TalkingTypes extends GraphTypes {
  readonly state: { readonly messages: readonly Message[] };
  readonly input: { readonly messages?: readonly Message[] | undefined };
}

/** The arguments of a sub-agent that declares none: what it is to do. */
export interface AgentTask {
  readonly task: string;
}

/** How a sub-agent came to its end. */
export interface SubAgentEnd<Inner extends TalkingTypes> {
  readonly ended: AgentEnd;
  /** Its last words. */
  readonly text: string;
  /** Its output, where it has one of its own; else its state. */
  readonly output: Inner["output"];
  readonly messages: readonly Message[];
}

/** The parts of the options of `graphTool` that go for an agent too. */
type UsualParts<Inner extends GraphTypes, Name extends string, Input extends ToolInput, Context, Value> = Pick<
  GraphToolOptions<Inner, Name, Input, Context, Value>,
  keyof typeof graphToolParts
>;

/** What `agentTool` takes beside the agent. */
export interface AgentToolOptions<
  Inner extends TalkingTypes,
  Name extends string,
  Input extends ToolInput,
  Context,
  Value,
> extends UsualParts<Inner, Name, Input, Context, Value> {
  /** Default: the agent's name, in small letters with underscores. */
  readonly name?: Name;
  /** The arguments that the calling model gives. Default: `{ task }`, a text. */
  readonly input?: Input;
  /** What the agent is told. Default: the task; with arguments of your own these, as JSON. */
  readonly prompt?: (args: ArgsOf<Input>, call: GraphCall<NoInfer<Context>>) => AgentInput;
  /** What the channels of the agent's own begin with. */
  readonly state?: (args: ArgsOf<Input>, call: GraphCall<NoInfer<Context>>) => Omit<Inner["input"], "messages">;
  /** What the calling model reads of an agent that has an answer. Default: its output where it has one, else its last words. */
  readonly output?: (
    end: SubAgentEnd<Inner>,
    call: EndedGraphCall<NoInfer<Context>, Inner["state"]>,
  ) => ToolReturn<Value>;
  /** Which ends count as an answer; any other is an error that says so. Default: `answer` and `tool`. */
  readonly accept?: readonly AgentEnd["by"][];
}

/**
 * A tool whose call runs an agent. Only its answer goes to the calling model. An agent that was stopped by a limit gives an
 * error with what it had found so far; one that failed gives an error that says no more. It gets the context of the agent
 * that calls it, or what `context` makes of that; its questions are answered as `name.key`. Throws what `graphTool` throws.
 */
export function agentTool<
  Inner extends TalkingTypes,
  const Name extends string = string,
  Input extends ToolInput = JsonSchemaInput<AgentTask>,
  Value = unknown,
>(
  agent: GraphOrLater<Inner>,
  options: AgentToolOptions<Inner, Name, Input, Inner["given"], Value> & { readonly context?: undefined },
): DefinedTool<Name, ArgsOf<Input>, unknown, Inner["given"], Value>;
export function agentTool<
  Inner extends TalkingTypes,
  Context,
  const Name extends string = string,
  Input extends ToolInput = JsonSchemaInput<AgentTask>,
  Value = unknown,
>(
  agent: GraphOrLater<Inner>,
  options: AgentToolOptions<Inner, Name, Input, Context, Value> & {
    readonly context: (context: Context) => Inner["given"];
  },
): DefinedTool<Name, ArgsOf<Input>, unknown, Context, Value>;
export function agentTool(agent: GraphOrLater<TalkingTypes>, options: AnyOptions): DefinedTool {
  checkOptions("agentTool", options, names);
  const { name = nameOf(agent), input = taskInput, prompt, state, output, accept = usualEnds, ...rest } = options;
  checkEnds(name, accept);
  const hasOutput = (): boolean => (typeof agent === "function" ? agent() : agent).output !== undefined;
  const say = prompt ?? (options.input === undefined ? (args: AgentTask) => args.task : asJson);
  return graphTool<TalkingTypes, string, ToolInput>(agent, {
    ...(rest as Pick<GraphToolOptions<TalkingTypes, string, ToolInput, unknown, unknown>, "description">),
    name,
    input,
    given: (args, call) => ({
      ...state?.(args as never, call as never),
      messages: said(say(args as never, call as never), call),
    }),
    answer: (given, call) => {
      const { messages } = call.ended;
      const ended = endedBy(messages);
      const wrong = wrongWith(ended, messages, accept);
      if (wrong !== undefined) throw stopped(name, wrong, ended, messages);
      const end = { ended, text: wordsIn(messages, ended), output: given, messages };
      return output === undefined ? answerOf(end, hasOutput()) : output(end as never, call as never);
    },
    found: ({ messages }) => lastWords(messages) ?? "",
    usage: ({ messages }) => usageIn(messages),
  });
}

type AnyOptions = Omit<
  AgentToolOptions<TalkingTypes, string, ToolInput, unknown, unknown>,
  "prompt" | "state" | "output" | "prepareArguments" | "execution"
> & {
  readonly prompt?: (args: never, call: never) => AgentInput;
  readonly state?: (args: never, call: never) => object;
  readonly output?: (end: never, call: never) => unknown;
  readonly context?: ((context: never) => unknown) | undefined;
};

const names = optionNames<
  AgentToolOptions<TalkingTypes, string, ToolInput, unknown, unknown> & { readonly context?: unknown }
>({
  ...graphToolParts,
  name: true,
  input: true,
  prompt: true,
  state: true,
  context: true,
  output: true,
  accept: true,
});

const usualEnds: readonly string[] = Object.freeze(["answer", "tool"]);

const taskInput: JsonSchemaInput<AgentTask> = jsonSchemaInput<AgentTask>({
  type: "object",
  properties: {
    task: { type: "string", minLength: 1, description: "What to do, with everything that is needed for it." },
  },
  required: ["task"],
  additionalProperties: false,
});

function nameOf(agent: GraphOrLater<TalkingTypes>): string {
  if (typeof agent === "object" && agent !== null && typeof agent.name === "string") return snakeCaseOf(agent.name);
  throw new StatewrightError("invalid_option", {
    what: "agentTool got an agent that is known later, and no name",
    next: 'Name the tool: agentTool(() => agent, { name: "…", … })',
  });
}

function checkEnds(name: string, accept: unknown): void {
  if (Array.isArray(accept) && accept.every((by) => typeof by === "string")) return;
  throw new StatewrightError("invalid_option", {
    what: `accept of the sub-agent "${name}" is no list of ends`,
    next: 'Give those that count as an answer: accept: ["answer", "tool", "stopWhen"]',
  });
}

function asJson(args: unknown): string {
  return JSON.stringify(args);
}

/** The words have an id that is the same whenever the call begins: they stand in its first checkpoint. */
function said(input: AgentInput, { callId }: GraphCall): readonly Message[] {
  const messages = toMessages(input);
  return messages === input ? messages : messages.map((message) => ({ ...message, id: `${callId}:prompt` }));
}

/** Why an end is no answer, as sentences; nothing for one that is. */
function wrongWith(ended: AgentEnd, messages: readonly Message[], accept: readonly string[]): string | undefined {
  if (accept.includes(ended.by)) return undefined;
  const last = messages.at(-1);
  if (last?.role !== "assistant" || last.ended === undefined) return asSentence(unanswered(ended));
  const said = textOf(last).trim();
  if (ended.by !== "guardrail") return asSentence(ended.reason ?? (said === "" ? unanswered(ended) : said));
  const why = asSentence(`a guardrail refused${ended.reason === undefined ? "" : `: ${ended.reason}`}`);
  return said === "" ? why : `${why} It said: ${asSentence(said)}`;
}

function unanswered({ by }: AgentEnd): string {
  if (by === "length") return "its answer was cut off at the length limit";
  return by === "filter" ? "its answer was withheld by the provider" : `it was ended by ${by}`;
}

function asSentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function stopped(name: string, why: string, ended: AgentEnd, messages: readonly Message[]): ToolError {
  const sentence = `${name} was stopped before it had an answer: ${why}`;
  const found = lastWords(messages);
  return new ToolError("limit", found === undefined ? sentence : `${sentence} What it had found so far: ${found}`, {
    disposition: "repair",
    userMessage: sentence,
    details: { ended },
  });
}

/** The last words of a model, not those of a hook that ended it. */
function lastWords(messages: readonly Message[]): string | undefined {
  const spoken = messages.findLast((message) => isSpoken(message) && textOf(message).trim() !== "");
  return spoken === undefined ? undefined : textOf(spoken);
}

function isSpoken(message: Message): message is AssistantMessage {
  return message.role === "assistant" && message.ended === undefined;
}

/** What an agent said last: its answer, or the results of the call that ended it. */
function wordsIn(messages: readonly Message[], { by }: AgentEnd): string {
  const last = messages.at(-1);
  if (by === "answer") return answerText(messages);
  if (by !== "tool") return last === undefined ? "" : textOf(last);
  const ending = messages.findLast((message) => message.role === "tool" && message.terminate === true);
  return ending === undefined ? "" : textOf(ending);
}

/** The answer for the calling model: the agent's output where it has one of its own, else its last words. */
function answerOf({ output, text, ended }: SubAgentEnd<TalkingTypes>, hasOutput: boolean): ToolOutput {
  if (!hasOutput) return { content: text, details: { ended } };
  const content: ToolOutput["content"] =
    typeof output === "string" ? output : [{ type: "json", value: output as Json }];
  return { content, value: output, details: { ended } };
}
