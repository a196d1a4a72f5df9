/** The model node of an agent: each time that it runs, it asks the model once. */
import {
  type AgentEnd,
  type AssistantMessage,
  callsOf,
  finalCallName,
  isRegistry,
  type Message,
  type Middleware,
  type Model,
  type ModelCall,
  type ModelFallback,
  type ModelRequest,
  type ModelRetryPolicy,
  type ModelTimeouts,
  type NodeRuntime,
  type OutputInput,
  type ProviderTool,
  StatewrightError,
  type Tool,
  type ToolCallBlock,
  type ToolChoice,
  type ToolMessage,
  type ToolNamesIn,
  type ToolRegistry,
  type TurnLimit,
  toolRegistry,
} from "@statewright/core";
import {
  type AgentOutput,
  agentOutput,
  isOutput,
  type OutputOptions,
  refuseEndless,
  repairOf,
  strategyFor,
} from "../output/agent-output.ts";
import { type CountedTurns, countTurn, turnOf } from "../turns/agent-turns.ts";
import { turnLimit } from "../turns/turn-limit.ts";
import { endedBy } from "./agent-end.ts";
import { isAnswered } from "./agent-routes.ts";
import type { Conversation } from "./agent-state.ts";
import { checkModelNode } from "./check-agent.ts";
import { checkPrepared, type ModelSettings, type PreparedStep, type PrepareStep } from "./prepare-step.ts";

/** What `modelNode` takes: what `createAgent` takes under the same names. */
export interface ModelNodeOptions<
  State = unknown,
  Context = unknown,
  AnyModel = Model,
  Tools extends string = string,
  Choices extends string = Tools,
> {
  readonly model: AnyModel;
  /** What the model is told before the conversation: a text, or a function of state and context. */
  readonly instructions?: string | ((state: State, context: Context) => string);
  /** Tools, or a registry of tools: what is changed in it counts from the next request to the model on. */
  readonly tools?: readonly Tool<State, Context>[] | ToolRegistry<State, Context>;
  /** The names of the tools that the model is shown: always these, or in each turn those that the function gives. Default: all. */
  readonly allowedTools?: readonly Tools[] | ((state: State, context: Context) => readonly Tools[]);
  /** Tools that the model's provider defines, such as its web search: most of them it runs itself. */
  readonly providerTools?: readonly ProviderTool[];
  /** Whether the model may, must or must not call tools, or which one it must. Default: it may. */
  readonly toolChoice?: ToolChoice<Choices>;
  readonly middleware?: readonly Middleware<Context, State>[];
  /** Settings of every request. */
  readonly settings?: ModelSettings;
  /** Makes a request again that failed, inside the model call: no hook and no question is repeated. Default: 3 attempts, where that may help. */
  readonly retry?: ModelRetryPolicy;
  /** How long a request may take to its first token, between two parts of an answer, and the whole call. Default: no limit. */
  readonly timeouts?: ModelTimeouts;
  /** Models that are asked, in their order, when the one before has failed for good. */
  readonly fallback?: readonly AnyModel[] | ModelFallback<AnyModel>;
  /** Decides before each request how it differs from all others. */
  readonly prepareStep?: PrepareStep<State, Context, AnyModel, Tools, Choices>;
  /** What the agent gives: a schema, or a schema and how the model is asked for it. */
  readonly output?: OutputInput<unknown> | OutputOptions<unknown>;
  /** How often the model is asked between two words of people, before the agent ends `by` this. Default: no limit. */
  readonly maxTurns?: number;
}

/** What a model may have to call: a tool, the output of its agent, and any name where its provider has tools of its own. */
export type ChoicesOf<Tools, Provided> =
  | ToolNamesIn<Tools>
  | typeof finalCallName
  | (unknown extends Provided ? never : string);

/** The same without the types of state and context. */
export type AnyModelNodeOptions = Pick<
  ModelNodeOptions,
  "model" | "providerTools" | "toolChoice" | "settings" | "retry" | "timeouts" | "fallback" | "output" | "maxTurns"
> & {
  readonly instructions?: string | ((state: never, context: never) => string);
  readonly tools?: readonly Tool<never, never>[] | ToolRegistry<never, never>;
  readonly allowedTools?: readonly string[] | ((state: never, context: never) => readonly string[]);
  readonly middleware?: readonly Middleware<never, never>[];
  readonly prepareStep?: PrepareStep<never, never>;
};

type Asking<Context> = Pick<NodeRuntime<Context>, "context" | "model" | "step" | "run">;
type Turn = { readonly messages: readonly Message[] };

/** A node that asks the model. */
export interface ModelNode<State = unknown, Context = unknown> {
  readonly run: (state: State, runtime: Asking<Context>) => Promise<Turn>;
}

/** The tools of an agent, as the registry that both its nodes read. */
export function registryOf(tools: AnyModelNodeOptions["tools"] = []): ToolRegistry<Conversation> {
  return (isRegistry(tools) ? tools : toolRegistry(tools)) as ToolRegistry<Conversation>;
}

/**
 * The model node of an agent's graph, for a graph of your own. With an `output` its tool node has the final call of the same
 * schema, `toolNode({ tools, final: finalCall(outputSchema(schema)) })`. Throws `invalid_option` for what no request can be
 * made of.
 */
export function modelNode<
  State extends { readonly messages: readonly Message[] },
  Context = unknown,
  Tools = unknown,
  Provided = unknown,
>(
  options: ModelNodeOptions<State, Context, Model, NoInfer<ToolNamesIn<Tools>>, NoInfer<ChoicesOf<Tools, Provided>>> & {
    readonly tools?: Tools;
    readonly providerTools?: Provided;
  },
): ModelNode<State, Context> {
  checkModelNode(options);
  const untyped = options as AnyModelNodeOptions;
  const output = untyped.output === undefined ? undefined : agentOutput("modelNode", untyped.output);
  return nodeOf(untyped, registryOf(untyped.tools), output) as ModelNode<State, Context>;
}

/** A model node of parts that are read already. */
export function nodeOf(
  options: AnyModelNodeOptions,
  tools: ToolRegistry<Conversation>,
  output: AgentOutput | undefined,
  usualLimit?: TurnLimit,
): ModelNode<Conversation> {
  const { model, toolChoice, retry = { attempts: 3 }, timeouts, fallback, prepareStep, allowedTools } = options;
  const { providerTools, maxTurns } = options;
  const limit = maxTurns === undefined ? usualLimit : turnLimit(maxTurns);
  const policy = { retry, timeouts, fallback };
  const middleware = (options.middleware ?? []) as readonly Middleware[];
  const settings = toolChoice === undefined ? options.settings : { ...options.settings, toolChoice };
  const usual = allowedTools === undefined ? middleware : [exposing(tools, allowedTools), ...middleware];
  const always = typeof allowedTools === "function" ? undefined : allowedTools;
  /** A tool that the model must call is one that there is and that it is shown, or the provider refuses the request. */
  const checkChoice = (choice: ToolChoice | undefined, allowed: readonly string[] | undefined): void => {
    if (typeof choice !== "object" || (output !== undefined && choice.tool === finalCallName)) return;
    if (providerTools?.some(({ name }) => name === choice.tool)) return;
    tools.forModel([choice.tool]);
    if (allowed !== undefined && !allowed.includes(choice.tool)) throw notShown(choice.tool);
  };
  checkChoice(toolChoice, always);
  const ends = ({ messages }: Conversation): AgentEnd | undefined =>
    isAnswered(messages) && (output === undefined || isOutput(output, messages)) ? endedBy(messages) : undefined;

  /** The call as it is for all turns, with what this one changes of it. */
  const callOf = (state: Conversation, { context }: Asking<unknown>, prepared: PreparedStep | undefined): ModelCall => {
    const request: ModelRequest = {
      ...settings,
      ...(prepared && laidOver(prepared)),
      instructions: prepared?.instructions ?? told(options, state, context),
      messages: prepared?.messages ?? state.messages,
      tools: tools.forModel(),
      ...(providerTools && { providerTools }),
    };
    const allowed = prepared?.allowedTools;
    checkChoice(request.toolChoice, allowed ?? always);
    const hooks = allowed === undefined ? usual : [exposing(tools, allowed), ...middleware];
    const call = { model: prepared?.model ?? model, request, middleware: hooks, ...policy };
    return output === undefined ? call : asksFor(output, call);
  };
  const ask = async (state: Conversation, runtime: Asking<unknown>): Promise<Turn & Partial<CountedTurns>> => {
    if (output !== undefined) await refuseEndless(output, state.messages, runtime);
    let strategy: "native" | "tool" = "native";
    const asking = (now: Conversation, prepared: PreparedStep | undefined): ModelCall => {
      const call = callOf(now, runtime, prepared);
      if (output !== undefined) strategy = strategyFor(output, call);
      return call;
    };
    const reply = await runtime.model({
      middleware,
      prepare: (now: Conversation) =>
        prepareStep === undefined
          ? asking(now, undefined)
          : preparedFor(prepareStep, now, runtime).then((prepared) => asking(now, prepared)),
      ends,
      limit,
    });
    const repair = output === undefined ? [] : repairOf(output, strategy, reply);
    return { messages: [reply, ...repair], ...countTurn(state) };
  };
  return { run: ask };
}

function notShown(tool: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the model must call "${tool}", and allowedTools does not have it`,
    next: `Add "${tool}" to allowedTools, or give another toolChoice`,
  });
}

async function preparedFor(
  prepareStep: PrepareStep<never, never>,
  state: Conversation,
  { context }: Asking<unknown>,
): Promise<PreparedStep | undefined> {
  const { messages } = state;
  const prepared = await prepareStep({
    state: state as never,
    context: context as never,
    turn: turnOf(state),
    messages,
  });
  if (prepared !== undefined) checkPrepared(prepared);
  return prepared;
}

function laidOver({ settings, toolChoice }: PreparedStep): Partial<ModelRequest> {
  return { ...settings, ...(toolChoice === undefined ? {} : { toolChoice }) };
}

function told({ instructions }: AnyModelNodeOptions, state: Conversation, context: unknown): string | undefined {
  return typeof instructions === "function" ? instructions(state as never, context as never) : instructions;
}

/** Shows the model what is allowed in its turn. A name that no tool has fails the turn. */
function exposing(
  tools: ToolRegistry<Conversation>,
  allowed: NonNullable<AnyModelNodeOptions["allowedTools"]>,
): Middleware {
  const name = "allowedTools";
  if (typeof allowed !== "function") {
    tools.forModel(allowed);
    // One that is taken out of the registry later is not missed.
    return { name, selectTools: (names) => names.filter((each) => allowed.includes(each)) };
  }
  return {
    name,
    selectTools: (names, { state, context }) => {
      const chosen = tools.forModel(allowed(state as never, context as never));
      return names.filter((each) => chosen.some((tool) => tool.name === each));
    },
  };
}

/** A call that asks for the output: by the provider itself, or by a final call that stands behind whatever tools were chosen. */
function asksFor(output: AgentOutput, call: ModelCall): ModelCall {
  if (strategyFor(output, call) === "native") return { ...call, request: { ...call.request, output: output.native } };
  const showing: Middleware = {
    name: "output",
    beforeModel: (request) => ({
      ...request,
      tools: [...request.tools, output.final.tool],
      toolChoice: request.toolChoice ?? "required",
    }),
  };
  return { ...call, middleware: [...(call.middleware ?? []), showing] };
}

/** Without tools no node answers calls: one that the model makes up is refused beside it, so that the conversation stays whole. */
export function refusingCalls({ run }: ModelNode<Conversation>): ModelNode<Conversation> {
  return {
    run: async (state, runtime) => {
      const turn = await run(state, runtime);
      const refusals = turn.messages.flatMap((message) =>
        message.role === "assistant" ? callsOf(message).map((call) => refusalOf(message, call)) : [],
      );
      return refusals.length === 0 ? turn : { ...turn, messages: [...turn.messages, ...refusals] };
    },
  };
}

function refusalOf(message: AssistantMessage, { id, name }: ToolCallBlock): ToolMessage {
  const text = `There is no tool "${name}". There are no tools.`;
  return {
    role: "tool",
    id: `${message.id}:${id}`,
    callId: id,
    name,
    content: [{ type: "text", text }],
    isError: true,
  };
}
