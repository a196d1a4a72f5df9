/** Model node of an agent: one model call per execution. */
import {
  type AnyModel,
  type Message,
  type Middleware,
  type Model,
  type ModelCall,
  type NodeRuntime,
  type ToolNamesIn,
  type ToolRegistry,
  type TurnLimit,
  toolRegistry,
} from "@statewright/core";
import {
  chooseOutputStrategy,
  type finalCallName,
  isRegistry,
  type NodeKind,
  nodeKind,
  parseAnswerFormat,
} from "@statewright/core/adapter";
import { type AgentOutput, checkRepairLimit, createRepairMessages, listCallModels } from "../output/agent-output.ts";
import { agentTurnKind, type CountedTurns, countTurn, getNextTurn } from "../turns/agent-turn-kind.ts";
import { createTurnLimit } from "../turns/turn-limit.ts";
import type { Conversation } from "./agent-state.ts";
import { checkModelNode } from "./check-agent.ts";
import type { AnyModelNodeOptions, ModelNodeOptions } from "./model-node-options.ts";
import { type NormalizedModelOptions, normalizeModelOptions } from "./normalize-model-options.ts";
import { checkPreparedStep, type PreparedStep, type PrepareStep } from "./prepare-step.ts";
import { addOutputRequest, createAnswerEndCheck, createTurnCallBuilder } from "./turn-call.ts";

/** Names allowed in `toolChoice`: tools, the final call, and any name with provider tools. */
export type ToolChoiceNames<Tools, ProviderTools> =
  | ToolNamesIn<Tools>
  | typeof finalCallName
  | (unknown extends ProviderTools ? never : string);

type ModelNodeRuntime<Context> = Pick<NodeRuntime<Context>, "context" | "model" | "step" | "run">;
type TurnUpdate = { readonly messages: readonly Message[] };

/** Node that takes one turn of an agent: a model call, between the hooks of the agent's run. */
export interface ModelNode<State = unknown, Context = unknown> {
  readonly [nodeKind]: NodeKind;
  /** Takes one turn: returns the answer of the model as an update of `messages`. */
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
