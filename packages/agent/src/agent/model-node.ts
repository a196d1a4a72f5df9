/** Model node of an agent: one model call per execution. */
import {
  type AgentEnd,
  type AssistantMessage,
  listToolCalls,
  type Message,
  type Middleware,
  type Model,
  type ModelCall,
  type ModelRequest,
  type NodeRuntime,
  StatewrightError,
  type ToolCallBlock,
  type ToolChoice,
  type ToolMessage,
  type ToolNamesIn,
  type ToolRegistry,
  type TurnLimit,
  toolRegistry,
} from "@statewright/core";
import { finalCallName, isRegistry } from "@statewright/core/adapter";
import {
  type AgentOutput,
  checkRepairLimit,
  chooseOutputStrategy,
  createRepairMessages,
  isOutputSatisfied,
  parseAgentOutput,
} from "../output/agent-output.ts";
import { type CountedTurns, countTurn, getNextTurn } from "../turns/agent-turns.ts";
import { createTurnLimit } from "../turns/turn-limit.ts";
import { getAgentEnd } from "./agent-end.ts";
import { isAnswered } from "./agent-routes.ts";
import type { Conversation } from "./agent-state.ts";
import { checkModelNode } from "./check-agent.ts";
import type { AnyModelNodeOptions, ModelNodeOptions } from "./model-node-options.ts";
import { checkPreparedStep, type PreparedStep, type PrepareStep } from "./prepare-step.ts";

/** Names allowed in `toolChoice`: tools, the final call, and any name with provider tools. */
export type ToolChoiceNames<Tools, ProviderTools> =
  | ToolNamesIn<Tools>
  | typeof finalCallName
  | (unknown extends ProviderTools ? never : string);

type ModelNodeRuntime<Context> = Pick<NodeRuntime<Context>, "context" | "model" | "step" | "run">;
type TurnUpdate = { readonly messages: readonly Message[] };

/** Node that calls the model. */
export interface ModelNode<State = unknown, Context = unknown> {
  readonly run: (state: State, runtime: ModelNodeRuntime<Context>) => Promise<TurnUpdate>;
}

/** Converts the `tools` option to the registry shared by model node and tool node. */
export function toToolRegistry(tools: AnyModelNodeOptions["tools"] = []): ToolRegistry<Conversation> {
  return (isRegistry(tools) ? tools : toolRegistry(tools)) as ToolRegistry<Conversation>;
}

/**
 * Creates the model node of an agent for a user-defined graph. With `output`, give its tool node the final call of
 * the same schema: `toolNode({ tools, final: finalCall(outputSchema(schema)) })`. Throws `invalid_option` for invalid
 * options.
 */
export function modelNode<
  State extends { readonly messages: readonly Message[] },
  Context = unknown,
  Tools = unknown,
  ProviderTools = unknown,
>(
  options: ModelNodeOptions<
    State,
    Context,
    Model,
    NoInfer<ToolNamesIn<Tools>>,
    NoInfer<ToolChoiceNames<Tools, ProviderTools>>
  > & {
    readonly tools?: Tools;
    readonly providerTools?: ProviderTools;
  },
): ModelNode<State, Context> {
  checkModelNode(options);
  const untyped = options as AnyModelNodeOptions;
  const output = untyped.output === undefined ? undefined : parseAgentOutput("modelNode", untyped.output);
  return createModelNode(untyped, toToolRegistry(untyped.tools), output) as ModelNode<State, Context>;
}

/** Creates a model node from parsed options. */
export function createModelNode(
  options: AnyModelNodeOptions,
  tools: ToolRegistry<Conversation>,
  output: AgentOutput | undefined,
  defaultLimit?: TurnLimit,
): ModelNode<Conversation> {
  const { model, toolChoice, retry = { attempts: 3 }, timeouts, fallback, prepareStep, allowedTools } = options;
  const { providerTools, maxTurns } = options;
  const limit = maxTurns === undefined ? defaultLimit : createTurnLimit(maxTurns);
  const policy = { retry, timeouts, fallback };
  const middleware = (options.middleware ?? []) as readonly Middleware[];
  const settings = toolChoice === undefined ? options.settings : { ...options.settings, toolChoice };
  const defaultHooks = allowedTools === undefined ? middleware : [createToolFilter(tools, allowedTools), ...middleware];
  const fixedAllowedTools = typeof allowedTools === "function" ? undefined : allowedTools;
  /**
   * Throws when the tool of `toolChoice` does not exist or is hidden from the model: the provider would reject the
   * request.
   */
  const checkChoice = (choice: ToolChoice | undefined, allowed: readonly string[] | undefined): void => {
    if (typeof choice !== "object" || (output !== undefined && choice.tool === finalCallName)) return;
    if (providerTools?.some(({ name }) => name === choice.tool)) return;
    tools.forModel([choice.tool]);
    if (allowed !== undefined && !allowed.includes(choice.tool)) throw createToolChoiceError(choice.tool);
  };
  checkChoice(toolChoice, fixedAllowedTools);
  const getEnd = ({ messages }: Conversation): AgentEnd | undefined =>
    isAnswered(messages) && (output === undefined || isOutputSatisfied(output, messages))
      ? getAgentEnd(messages)
      : undefined;

  /** Creates the model call of a turn: the options of the node, overridden by `prepareStep`. */
  const createCall = (
    state: Conversation,
    { context }: ModelNodeRuntime<unknown>,
    prepared: PreparedStep | undefined,
  ): ModelCall => {
    const request: ModelRequest = {
      ...settings,
      ...(prepared && toRequestSettings(prepared)),
      instructions: prepared?.instructions ?? resolveInstructions(options, state, context),
      messages: prepared?.messages ?? state.messages,
      tools: tools.forModel(),
      ...(providerTools && { providerTools }),
    };
    const allowed = prepared?.allowedTools;
    checkChoice(request.toolChoice, allowed ?? fixedAllowedTools);
    const hooks = allowed === undefined ? defaultHooks : [createToolFilter(tools, allowed), ...middleware];
    const call = { model: prepared?.model ?? model, request, middleware: hooks, ...policy };
    return output === undefined ? call : addOutputRequest(output, call);
  };
  const runTurn = async (
    state: Conversation,
    runtime: ModelNodeRuntime<unknown>,
  ): Promise<TurnUpdate & Partial<CountedTurns>> => {
    if (output !== undefined) await checkRepairLimit(output, state.messages, runtime);
    let strategy: "native" | "tool" = "native";
    const createTurnCall = (current: Conversation, prepared: PreparedStep | undefined): ModelCall => {
      const call = createCall(current, runtime, prepared);
      if (output !== undefined) strategy = chooseOutputStrategy(output, call);
      return call;
    };
    const reply = await runtime.model({
      middleware,
      prepare: (current: Conversation) =>
        prepareStep === undefined
          ? createTurnCall(current, undefined)
          : runPrepareStep(prepareStep, current, runtime).then((prepared) => createTurnCall(current, prepared)),
      ends: getEnd,
      limit,
    });
    const repair = output === undefined ? [] : createRepairMessages(output, strategy, reply);
    return { messages: [reply, ...repair], ...countTurn(state) };
  };
  return { run: runTurn };
}

function createToolChoiceError(tool: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `\`toolChoice\` names the tool "${tool}", which is missing in \`allowedTools\``,
    next: `Add "${tool}" to allowedTools, or use another toolChoice`,
  });
}

async function runPrepareStep(
  prepareStep: PrepareStep<never, never>,
  state: Conversation,
  { context }: ModelNodeRuntime<unknown>,
): Promise<PreparedStep | undefined> {
  const { messages } = state;
  const prepared = await prepareStep({
    state: state as never,
    context: context as never,
    turn: getNextTurn(state),
    messages,
  });
  if (prepared !== undefined) checkPreparedStep(prepared);
  return prepared;
}

function toRequestSettings({ settings, toolChoice }: PreparedStep): Partial<ModelRequest> {
  return { ...settings, ...(toolChoice === undefined ? {} : { toolChoice }) };
}

function resolveInstructions(
  { instructions }: AnyModelNodeOptions,
  state: Conversation,
  context: unknown,
): string | undefined {
  return typeof instructions === "function" ? instructions(state as never, context as never) : instructions;
}

/** Creates middleware that shows only allowed tools. An unknown tool name fails the turn. */
function createToolFilter(
  tools: ToolRegistry<Conversation>,
  allowed: NonNullable<AnyModelNodeOptions["allowedTools"]>,
): Middleware {
  const name = "allowedTools";
  if (typeof allowed !== "function") {
    tools.forModel(allowed);
    // A tool removed from the registry later is ignored.
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

/**
 * Adds the output request to a model call: natively by the provider, or as a final call in addition to the selected
 * tools.
 */
function addOutputRequest(output: AgentOutput, call: ModelCall): ModelCall {
  if (chooseOutputStrategy(output, call) === "native")
    return { ...call, request: { ...call.request, output: output.native } };
  const outputMiddleware: Middleware = {
    name: "output",
    beforeModel: (request) => ({
      ...request,
      tools: [...request.tools, output.final.tool],
      toolChoice: request.toolChoice ?? "required",
    }),
  };
  return { ...call, middleware: [...(call.middleware ?? []), outputMiddleware] };
}

/**
 * Wraps the model node of an agent without tools: answers invented tool calls with an error result, so that the
 * conversation stays valid.
 */
export function refuseToolCalls({ run }: ModelNode<Conversation>): ModelNode<Conversation> {
  return {
    run: async (state, runtime) => {
      const turn = await run(state, runtime);
      const refusals = turn.messages.flatMap((message) =>
        message.role === "assistant" ? listToolCalls(message).map((call) => createRefusal(message, call)) : [],
      );
      return refusals.length === 0 ? turn : { ...turn, messages: [...turn.messages, ...refusals] };
    },
  };
}

function createRefusal(message: AssistantMessage, { id, name }: ToolCallBlock): ToolMessage {
  const text = `There is no tool "${name}". No tools are available.`;
  return {
    role: "tool",
    id: `${message.id}:${id}`,
    callId: id,
    name,
    content: [{ type: "text", text }],
    isError: true,
  };
}
