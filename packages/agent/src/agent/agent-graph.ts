/** The graph of an agent: a model node and a tool node. */
import {
  approval,
  type Channel,
  type ContextDefinition,
  clientAnswer,
  defineGraph,
  defineState,
  END,
  type Graph,
  type InterruptShape,
  type Middleware,
  messages,
  route,
  START,
  StatewrightError,
  type ToolNode,
  type ToolRegistry,
  toolNode,
} from "@statewright/core";
import { type AgentOutput, readsOutput } from "../output/agent-output.ts";
import { agentTurns, beginsTurns } from "../turns/agent-turns.ts";
import { usualTurnLimit } from "../turns/turn-limit.ts";
import { endedBy } from "./agent-end.ts";
import type { AnyAgentOptions } from "./agent-options.ts";
import { afterModel, afterTools, afterWords, endsAfterTools } from "./agent-routes.ts";
import type { Conversation } from "./agent-state.ts";
import { questionsOf } from "./merge-interrupts.ts";
import { nodeOf, refusingCalls } from "./model-node.ts";
import { tellsFinish } from "./on-finish.ts";
import type { StopWhen } from "./stop-when.ts";

/** The graph of an agent: model → tools → model, until an answer calls none. An agent that was given no tools, of its own or of its provider, has a model only. */
export function agentGraph(
  given: AnyAgentOptions,
  tools: ToolRegistry<Conversation>,
  output: AgentOutput | undefined,
): Graph {
  const { name, version = 1, stopWhen, prepareStep, inbox } = given;
  const context = given.context as ContextDefinition | undefined;
  const middleware = withOptions(given, output);
  // What stands around sub-agents too is the graph's besides; in its own nodes it keeps its place in the list.
  const policies = inherited(middleware);
  const options = { ...given, middleware };
  const counts = stopWhen !== undefined || prepareStep !== undefined;
  const start = defineGraph({
    name,
    version,
    state: defineState({
      ...channelsOf(middleware),
      ...options.state?.channels,
      ...(counts && agentTurns),
      messages: messages(),
    }),
    ...(context && { context }),
    ...(inbox !== undefined && { inbox }),
    ...(policies.length > 0 && { middleware: policies }),
    ...(output && { output: readsOutput(output.schema) }),
    ...(counts && { input: beginsTurns, private: ["agentTurns" as never] }),
    interrupts: questionsOf(`the agent "${name}"`, [
      { who: "what asks for a yes to calls", interrupts: { approve: approval } },
      ...(Array.isArray(middleware) ? middleware : []).map((each) => ({
        who: `the middleware "${each?.name}"`,
        interrupts: each?.interrupts,
      })),
      { who: "a tool without a body", interrupts: clientQuestions(tools) },
    ]),
  });
  const own = Array.isArray(middleware) ? middleware : [];
  const model = nodeOf(options, tools, output, usualTurnLimit(own, stopWhen));
  const answerCalls = toolsOf(options, tools, output);
  // A provider may ask before it runs a tool of its own: that is a call too.
  if (options.tools === undefined && options.providerTools === undefined && answerCalls.final === undefined)
    return start.nodes({ model: refusingCalls(model) }).edges({
      [START]: "model",
      model: route(["model", END], afterWords),
    });
  return start.nodes({ model, tools: answerCalls }).edges({
    [START]: "model",
    model: route(["tools", "model", END], afterModel),
    tools: route(["model", END], afterTools<Conversation>(stopWhen as StopWhen<Conversation> | undefined)),
  });
}

/** Middleware that is inherited. What is no list is refused where the tool node is made. */
function inherited(middleware: readonly Middleware[]): readonly Middleware[] {
  return Array.isArray(middleware) ? middleware.filter((each) => each?.inherited === true) : [];
}

/** The agent's own middleware, behind what its options mean. */
function withOptions(
  { middleware = [], onFinish }: AnyAgentOptions,
  output: AgentOutput | undefined,
): readonly Middleware[] {
  const own = middleware as readonly Middleware[];
  if (!Array.isArray(own)) return own;
  return onFinish === undefined ? own : [tellsFinish(onFinish, output), ...own];
}

function toolsOf(
  options: AnyAgentOptions & { readonly middleware: readonly Middleware[] },
  tools: ToolRegistry<Conversation>,
  output: AgentOutput | undefined,
): ToolNode<Conversation> {
  const { strategy, maxToolConcurrency, maxToolCalls, steering, onInvalidCall, limits, artifacts, stopWhen } = options;
  return toolNode({
    tools,
    middleware: options.middleware,
    ends: (state: Conversation) => (endsAfterTools(stopWhen, state) ? endedBy(state.messages) : undefined),
    unconfirmed: "deny",
    ...(strategy && { strategy }),
    ...(onInvalidCall && { onInvalidCall }),
    ...(maxToolConcurrency !== undefined && { maxConcurrency: maxToolConcurrency }),
    ...(maxToolCalls !== undefined && { maxCalls: maxToolCalls }),
    ...(steering !== undefined && { steering }),
    ...(limits !== undefined && { limits }),
    ...(artifacts !== undefined && { artifacts }),
    ...(output && output.strategy !== "native" && { final: output.final }),
  });
}

/** A tool without a body asks the application, under its own name. */
function clientQuestions(tools: ToolRegistry<Conversation>): InterruptShape {
  return Object.fromEntries(
    tools.names().flatMap((name) => {
      const spec = tools.get(name)?.spec;
      return spec?.client === true ? [[name, clientAnswer(spec)]] : [];
    }),
  );
}

/** What middleware keeps its facts in. What is no list is refused where the tool node is made. */
function channelsOf(middleware: readonly Middleware[]): NonNullable<Middleware["channels"]> {
  const channels: Record<string, Channel> = {};
  if (!Array.isArray(middleware)) return channels;
  for (const { name, channels: own = {} } of middleware.filter(isObject)) {
    const twice = Object.keys(own).find(
      (channel) => Object.hasOwn(channels, channel) && channels[channel] !== own[channel],
    );
    if (twice !== undefined)
      throw new StatewrightError("invalid_option", {
        what: `the middleware "${name}" keeps its facts in the channel "${twice}", as another one does`,
        next: "Give one of them another name, or leave one of them out",
      });
    Object.assign(channels, own);
  }
  return channels;
}

function isObject(middleware: unknown): boolean {
  return typeof middleware === "object" && middleware !== null;
}
