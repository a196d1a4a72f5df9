/** Graph of an agent: a model node and a tool node. */
import {
  approval,
  type Channel,
  type ContextDefinition,
  channel,
  clientAnswer,
  defineGraph,
  defineState,
  END,
  type Graph,
  type InterruptShape,
  type Middleware,
  route,
  START,
  type ToolNode,
  type ToolRegistry,
  toolNode,
} from "@statewright/core";
import { copyModelsOption, invalidOption } from "@statewright/core/adapter";
import { type AgentOutput, createGraphOutputSchema } from "../output/agent-output.ts";
import { agentTurns, agentTurnsInput } from "../turns/agent-turn-kind.ts";
import { getDefaultTurnLimit } from "../turns/turn-limit.ts";
import { getAgentEnd } from "./agent-end.ts";
import type { AnyAgentOptions } from "./agent-options.ts";
import { afterModel, afterTools, shouldEndAfterTools } from "./agent-routes.ts";
import type { Conversation } from "./agent-state.ts";
import { mergeInterrupts } from "./merge-interrupts.ts";
import { createModelNode } from "./model-node.ts";
import type { NormalizedModelOptions } from "./normalize-model-options.ts";
import { createFinishMiddleware } from "./on-finish.ts";
import type { StopWhen } from "./stop-when.ts";

/**
 * Creates the graph of an agent: model → tools → model, until an answer without tool calls. An agent without tools
 * has the tool node too: it answers invented calls, and `setTools` adds tools later.
 */
export function createAgentGraph(
  agentOptions: NormalizedModelOptions<AnyAgentOptions>,
  tools: ToolRegistry<Conversation>,
  output: AgentOutput | undefined,
): Graph {
  const { name, version = 1, stopWhen, prepareStep, inbox } = agentOptions;
  const context = agentOptions.context as ContextDefinition | undefined;
  const middleware = addOptionMiddleware(agentOptions, output);
  // Inherited middleware also becomes middleware of the graph, for sub-agents; the agent's own nodes run it at its
  // place in the list.
  const inheritedMiddleware = listInherited(middleware);
  const options = { ...agentOptions, middleware };
  const countsTurns = stopWhen !== undefined || prepareStep !== undefined;
  const definition = defineGraph({
    name,
    version,
    state: defineState({
      ...collectChannels(middleware),
      ...options.state?.channels,
      ...(countsTurns && agentTurns),
      messages: channel.messages(),
    }),
    ...(context && { context }),
    ...(inbox !== undefined && { inbox }),
    ...copyModelsOption(agentOptions),
    ...(inheritedMiddleware.length > 0 && { middleware: inheritedMiddleware }),
    ...(output && { output: createGraphOutputSchema(output.schema) }),
    ...(countsTurns && { input: agentTurnsInput, private: ["agentTurns" as never] }),
    interrupts: mergeInterrupts(`agent "${name}"`, [
      { label: "tool approval", interrupts: { approve: approval } },
      ...Array.from(Array.isArray(middleware) ? middleware : [], (each) => ({
        label: `middleware "${each?.name}"`,
        interrupts: each?.interrupts,
      })),
      { label: "a client tool", interrupts: createClientInterrupts(tools) },
    ]),
  });
  const middlewareList = Array.isArray(middleware) ? middleware : [];
  const model = createModelNode(options, tools, output, getDefaultTurnLimit(middlewareList, stopWhen));
  const toolNodeOfAgent = createToolNode(options, tools, output);
  return definition.nodes({ model, tools: toolNodeOfAgent }).edges({
    [START]: "model",
    model: route(["tools", "model", END], afterModel),
    tools: route(["model", END], afterTools<Conversation>(stopWhen as StopWhen<Conversation> | undefined)),
  });
}

/** Lists the inherited middleware. `toolNode` rejects a middleware option that is not an array. */
function listInherited(middleware: readonly Middleware[]): readonly Middleware[] {
  return Array.isArray(middleware) ? middleware.filter((each) => each?.inherited === true) : [];
}

/** Prepends the middleware derived from agent options to the agent's own middleware. */
function addOptionMiddleware(
  { middleware = [], onFinish }: Pick<AnyAgentOptions, "middleware" | "onFinish">,
  output: AgentOutput | undefined,
): readonly Middleware[] {
  const middlewareList = middleware as readonly Middleware[];
  if (!Array.isArray(middlewareList)) return middlewareList;
  return onFinish === undefined ? middlewareList : [createFinishMiddleware(onFinish, output), ...middlewareList];
}

function createToolNode(
  options: NormalizedModelOptions<AnyAgentOptions> & { readonly middleware: readonly Middleware[] },
  tools: ToolRegistry<Conversation>,
  output: AgentOutput | undefined,
): ToolNode<Conversation> {
  const {
    strategy,
    maxToolConcurrency,
    toolTimeoutMs,
    maxToolCalls,
    steering,
    onInvalidCall,
    limits,
    artifacts,
    stopWhen,
  } = options;
  return toolNode({
    tools,
    middleware: options.middleware,
    ends: (state: Conversation) => (shouldEndAfterTools(stopWhen, state) ? getAgentEnd(state.messages) : undefined),
    unconfirmed: "deny",
    ...(strategy && { strategy }),
    ...(onInvalidCall && { onInvalidCall }),
    ...(maxToolConcurrency !== undefined && { maxConcurrency: maxToolConcurrency }),
    ...(toolTimeoutMs !== undefined && { timeoutMs: toolTimeoutMs }),
    ...(maxToolCalls !== undefined && { maxCalls: maxToolCalls }),
    ...(steering !== undefined && { steering }),
    ...(limits !== undefined && { limits }),
    ...(artifacts !== undefined && { artifacts }),
    ...(output && output.strategy !== "native" && { final: output.final }),
  });
}

/** Creates the interrupts of client tools: a tool without a body interrupts the run under the name of the tool. */
function createClientInterrupts(tools: ToolRegistry<Conversation>): InterruptShape {
  return Object.fromEntries(
    tools.names().flatMap((name) => {
      const spec = tools.get(name)?.spec;
      return spec?.client === true ? [[name, clientAnswer(spec)]] : [];
    }),
  );
}

/** Collects the channels of middleware. `toolNode` rejects a middleware option that is not an array. */
function collectChannels(middleware: readonly Middleware[]): NonNullable<Middleware["channels"]> {
  const channels: Record<string, Channel> = {};
  if (!Array.isArray(middleware)) return channels;
  for (const { name, channels: middlewareChannels = {} } of middleware.filter(isObject)) {
    const duplicate = Object.keys(middlewareChannels).find(
      (oneChannel) => Object.hasOwn(channels, oneChannel) && channels[oneChannel] !== middlewareChannels[oneChannel],
    );
    if (duplicate !== undefined)
      throw invalidOption({
        where: `middleware "${name}"`,
        option: "channels",
        expected: "channels that no other middleware declares",
        found: `the channel "${duplicate}" of another middleware`,
        fix: "Rename one of the middleware, or remove one",
      });
    Object.assign(channels, middlewareChannels);
  }
  return channels;
}

function isObject(middleware: unknown): boolean {
  return typeof middleware === "object" && middleware !== null;
}
