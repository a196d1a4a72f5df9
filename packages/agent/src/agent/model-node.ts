/** Model node of an agent: a model call per execution, and the builder of that call from the options of the node. */
import {
  type AgentEnd,
  type AnyModel,
  type Message,
  type Middleware,
  type Model,
  type ModelCall,
  type ModelRequest,
  type NodeRuntime,
  type ToolChoice,
  type ToolNamesIn,
  type ToolRegistry,
  type TurnLimit,
  toolRegistry,
} from "@statewright/core";
import {
  chooseOutputStrategy,
  finalCallName,
  invalidOption,
  isRegistry,
  type NodeKind,
  nodeKind,
  parseAnswerFormat,
} from "@statewright/core/adapter";
import {
  type AgentOutput,
  checkRepairLimit,
  createRepairMessages,
  isOutputSatisfied,
  listCallModels,
} from "../output/agent-output.ts";
import { agentTurnKind, type CountedTurns, countTurn, getNextTurn } from "../turns/agent-turn-kind.ts";
import { createTurnLimit } from "../turns/turn-limit.ts";
import { getAgentEnd } from "./agent-end.ts";
import { isAnswered } from "./agent-routes.ts";
import type { Conversation } from "./agent-state.ts";
import { checkModelNode } from "./check-agent.ts";
import { isFromPerson } from "./is-from-person.ts";
import type { AnyModelNodeOptions, ModelNodeOptions } from "./model-node-options.ts";
import { type NormalizedModelOptions, normalizeModelOptions } from "./normalize-model-options.ts";
import { checkPreparedStep, type PreparedStep, type PrepareStep } from "./prepare-step.ts";

/** Names allowed in `toolChoice`: tools, the final call, and any name with provider tools. */
export type ToolChoiceNames<Tools, ProviderTools> =
  | ToolNamesIn<Tools>
  | typeof finalCallName
  | (unknown extends ProviderTools ? never : string);

type ModelNodeRuntime<Context> = Pick<NodeRuntime<Context>, "context" | "model" | "step" | "run">;
type TurnUpdate = { readonly messages: readonly Message[] };

/** Node that takes a single turn of an agent: a model call, between the hooks of the agent's run. */
export interface ModelNode<State = unknown, Context = unknown> {
  readonly [nodeKind]: NodeKind;
  /** Takes a single turn: returns the answer of the model as an update of `messages`. */
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
    NoInfer<ToolNamesIn<Tools>>,
    NoInfer<ToolChoiceNames<Tools, ProviderTools>>
  > & {
    readonly tools?: Tools;
    readonly providerTools?: ProviderTools;
  },
): ModelNode<State, Context> {
  checkModelNode(options);
  const untyped = normalizeModelOptions("modelNode", options as AnyModelNodeOptions);
  const output = untyped.output === undefined ? undefined : parseAnswerFormat("modelNode", untyped.output);
  return createModelNode(untyped, toToolRegistry(untyped.tools), output) as ModelNode<State, Context>;
}

/** Creates a model node from parsed options. */
export function createModelNode(
  options: NormalizedModelOptions,
  tools: ToolRegistry<Conversation>,
  output: AgentOutput | undefined,
  defaultLimit?: TurnLimit,
): ModelNode<Conversation> {
  const { prepareStep, maxTurns } = options;
  const limit = maxTurns === undefined ? defaultLimit : createTurnLimit(maxTurns);
  const middleware = (options.middleware ?? []) as readonly Middleware[];
  const buildCall = createTurnCallBuilder(options, tools, output);
  const ends = createAnswerEndCheck(output);
  const takeTurn = async (
    state: Conversation,
    runtime: ModelNodeRuntime<unknown>,
  ): Promise<TurnUpdate & Partial<CountedTurns>> => {
    if (output !== undefined) await checkRepairLimit(output, state.messages, runtime);
    let strategy: "native" | "tool" = "native";
    const createCall = (
      current: Conversation,
      prepared: PreparedStep | undefined,
      toModel: (given: AnyModel) => Model,
    ): ModelCall => {
      const call = buildCall(current, runtime.context, prepared);
      if (output === undefined) return call;
      strategy = chooseOutputStrategy(output, listCallModels(call, toModel));
      return addOutputRequest(output, strategy, call);
    };
    const reply = await runtime.model({
      middleware,
      prepare: (current: Conversation, toModel) =>
        prepareStep === undefined
          ? createCall(current, undefined, toModel)
          : runPrepareStep(prepareStep, current, runtime).then((prepared) => createCall(current, prepared, toModel)),
      ends,
      limit,
    });
    const repair = output === undefined ? [] : createRepairMessages(output, strategy, reply);
    return { messages: [reply, ...repair], ...countTurn(state) };
  };
  return { [nodeKind]: agentTurnKind, run: takeTurn };
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

/** Creates the model call of a turn. Throws when the tool of `toolChoice` does not exist or is hidden. */
export type TurnCallBuilder = (state: Conversation, context: unknown, prepared: PreparedStep | undefined) => ModelCall;

/** Creates the builder of a model node's calls. Throws `invalid_option` for unknown tools in the options. */
function createTurnCallBuilder(
  options: NormalizedModelOptions,
  tools: ToolRegistry<Conversation>,
  output: AgentOutput | undefined,
): TurnCallBuilder {
  const { model, toolChoice, retry = { attempts: 3 }, timeouts, fallback, allowedTools, providerTools } = options;
  const policy = { retry, timeouts, fallback };
  const middleware = (options.middleware ?? []) as readonly Middleware[];
  const { settings } = options;
  const forced = readToolChoice(toolChoice);
  const defaultHooks = allowedTools === undefined ? middleware : [createToolFilter(tools, allowedTools), ...middleware];
  const fixedAllowedTools = typeof allowedTools === "function" ? undefined : allowedTools;
  const checkChoice = (choice: ToolChoice | undefined, allowed: readonly string[] | undefined): void => {
    if (output !== undefined && typeof choice === "object" && choice.tool === finalCallName) return;
    checkToolChoice(options, tools, { choice, allowed });
  };
  checkChoice(forced?.choice, fixedAllowedTools);
  return (state, context, prepared) => {
    const request: ModelRequest = {
      ...settings,
      ...(forced !== undefined && holds(forced, state.messages) ? { toolChoice: forced.choice } : {}),
      ...(prepared && toRequestSettings(prepared)),
      instructions: prepared?.instructions ?? resolveInstructions(options, state, context),
      messages: prepared?.messages ?? state.messages,
      tools: tools.forModel(),
      ...(providerTools && { providerTools }),
    };
    const allowed = prepared?.allowedTools;
    checkChoice(request.toolChoice, allowed ?? fixedAllowedTools);
    const hooks = allowed === undefined ? defaultHooks : [createToolFilter(tools, allowed), ...middleware];
    return { model: prepared?.model ?? model, request, middleware: hooks, ...policy };
  };
}

/** Tool choice of an agent, and whether it holds for each request. */
interface ForcedChoice {
  readonly choice: ToolChoice;
  readonly every: boolean;
}

function readToolChoice(given: AnyModelNodeOptions["toolChoice"]): ForcedChoice | undefined {
  if (given === undefined) return undefined;
  if (typeof given === "string") return { choice: given, every: given !== "required" };
  const { every = false } = given as { readonly every?: boolean };
  return { choice: "choice" in given ? given.choice : { tool: given.tool }, every };
}

/** Returns true for the first request after a user message, and for each request with `every`. */
function holds({ every }: ForcedChoice, messages: readonly Message[]): boolean {
  const start = messages.findLastIndex(isFromPerson);
  return every || !messages.slice(start + 1).some(({ role }) => role === "assistant");
}

/** Creates the check for the end of an agent after an answer of its model. */
function createAnswerEndCheck(output: AgentOutput | undefined): (state: Conversation) => AgentEnd | undefined {
  return ({ messages }) =>
    isAnswered(messages) && (output === undefined || isOutputSatisfied(output, messages))
      ? getAgentEnd(messages)
      : undefined;
}

/**
 * Throws when the tool of `toolChoice` does not exist or is hidden from the model: the provider would reject the
 * request.
 */
function checkToolChoice(
  { providerTools }: Pick<NormalizedModelOptions, "providerTools">,
  tools: ToolRegistry<Conversation>,
  { choice, allowed }: { readonly choice: ToolChoice | undefined; readonly allowed: readonly string[] | undefined },
): void {
  if (typeof choice !== "object" || providerTools?.some(({ name }) => name === choice.tool)) return;
  tools.forModel([choice.tool]);
  if (allowed === undefined || allowed.includes(choice.tool)) return;
  throw invalidOption({
    where: "model node",
    option: "toolChoice",
    expected: "the name of a tool in `allowedTools`",
    got: choice.tool,
    fix: `Add "${choice.tool}" to allowedTools, or use another toolChoice`,
  });
}

function toRequestSettings({ settings, toolChoice }: PreparedStep): Partial<ModelRequest> {
  return { ...settings, ...(toolChoice === undefined ? {} : { toolChoice }) };
}

function resolveInstructions(
  { instructions }: Pick<AnyModelNodeOptions, "instructions">,
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
function addOutputRequest(output: AgentOutput, strategy: "native" | "tool", call: ModelCall): ModelCall {
  if (strategy === "native") return { ...call, request: { ...call.request, output: output.native } };
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
