/** What no agent can be made of is refused, with what to give instead. */
import {
  asksAboutCalls,
  checkCallPolicy,
  checkOptions,
  isModel,
  type Middleware,
  optionNames,
  refuseSaidTwice,
  type StateTypes,
  StatewrightError,
  type Tool,
} from "@statewright/core";
import { checkMaxTurns } from "../turns/turn-limit.ts";
import type { AgentOptions } from "./agent-options.ts";
import { checkCount, checkFunction } from "./check-option.ts";
import type { ModelNodeOptions } from "./model-node.ts";
import { checkToolChoice, meantForSteps, settingNames } from "./prepare-step.ts";
import { checkStopWhen } from "./stop-when.ts";

const nodeOptions = optionNames<ModelNodeOptions>({
  model: true,
  instructions: true,
  tools: true,
  allowedTools: true,
  providerTools: true,
  toolChoice: true,
  middleware: true,
  settings: true,
  retry: true,
  timeouts: true,
  fallback: true,
  prepareStep: true,
  output: true,
  maxTurns: true,
});
const agentOptions = optionNames<AgentOptions<StateTypes, unknown, unknown>>({
  name: true,
  version: true,
  model: true,
  instructions: true,
  tools: true,
  allowedTools: true,
  providerTools: true,
  toolChoice: true,
  prepareStep: true,
  stopWhen: true,
  onFinish: true,
  output: true,
  onInvalidCall: true,
  state: true,
  context: true,
  middleware: true,
  store: true,
  settings: true,
  retry: true,
  timeouts: true,
  fallback: true,
  strategy: true,
  maxToolConcurrency: true,
  limits: true,
  artifacts: true,
  maxToolCalls: true,
  maxTurns: true,
  steering: true,
  inbox: true,
});

/** What the options of agents are called elsewhere. */
const meantForAgents: Readonly<Record<string, string>> = {
  ...Object.fromEntries(settingNames.map((name) => [name, `settings: { ${name} }`])),
  ...meantForSteps,
  maxTokens: "settings: { maxOutputTokens }",
  maxSteps: "maxTurns",
  maxIterations: "maxTurns",
  maxRetries: "retry: { attempts }",
  responseFormat: "output",
  experimental_output: "output",
  budget: "middleware: [budget({ … })]",
  checkpointer: "store",
  abortSignal: "run({ signal })",
  onStepFinish: "middleware with the hook onMessage",
};

/** Throws `invalid_option` for what no agent can be made of; graph, tools and middleware are checked where they are made. */
export function checkAgent(options: unknown): void {
  checkOptions("createAgent", options, agentOptions, "invalid_option", meantForAgents);
  const { name, state, store, stopWhen, onFinish, maxToolCalls, maxToolConcurrency, ...more } = options as Readonly<
    Record<string, unknown>
  >;
  const owner = typeof name === "string" ? `the agent "${name}"` : "an agent";
  checkAsking(owner, more);
  if (state !== undefined && !(typeof state === "object" && state !== null && "channels" in state))
    throw unfit(`the state of ${owner}`, state, "defineState({ name: schema, … })");
  if (store !== undefined && !(typeof store === "object" && store !== null && "claim" in store))
    throw unfit(`the store of ${owner}`, store, "memoryStore() or sqliteStore(path)");
  checkStopWhen(owner, stopWhen);
  checkFunction(owner, { onFinish });
  checkCount(owner, { maxToolCalls, maxToolConcurrency });
  if (typeof state === "object" && state !== null && hasChannel(state, "agentTurns"))
    throw new StatewrightError("invalid_option", {
      what: `the state of ${owner} has a channel "agentTurns", in which agents count their turns`,
      next: "Give the channel another name",
    });
}

/**
 * Throws `invalid_option` for a tool that wants a person to be asked before each call, where no middleware of the agent could
 * ask. Only middleware that says so, `asks: ["approve"]`, is taken to ask. Calls of tools that come later are denied.
 */
export function checkConfirmed(
  agent: string,
  tools: ReadonlyMap<string, Pick<Tool, "spec">>,
  middleware: readonly Middleware[],
): void {
  // What is no list is refused where the tool node is made.
  if (!Array.isArray(middleware) || middleware.some(asksAboutCalls)) return;
  for (const [name, { spec }] of tools) {
    if (spec.safety.confirm !== "always") continue;
    throw new StatewrightError("invalid_option", {
      what: `the tool "${name}" of the agent "${agent}" says confirm: "always", and no middleware of the agent asks anybody`,
      next: `Add confirmTools() to its middleware, or middleware of your own whose beforeTool asks and that says so, asks: ["approve"], or take confirm away from the tool`,
    });
  }
}

/** Throws `invalid_option` for what no model node can be made of. */
export function checkModelNode(options: unknown): void {
  checkOptions("modelNode", options, nodeOptions, "invalid_option", meantForAgents);
  checkAsking("modelNode", options as Readonly<Record<string, unknown>>);
}

function checkAsking(
  owner: string,
  {
    model,
    instructions,
    allowedTools,
    settings,
    providerTools,
    toolChoice,
    prepareStep,
    middleware,
    maxTurns,
    ...policy
  }: Readonly<Record<string, unknown>>,
): void {
  if (!isModel(model))
    throw unfit(`the model of ${owner}`, model, "a model, such as scriptedModel([…]) or one of a provider");
  if (instructions !== undefined && typeof instructions !== "string" && typeof instructions !== "function")
    throw unfit(`the instructions of ${owner}`, instructions, "a text, or a function of state and context");
  if (allowedTools !== undefined && !Array.isArray(allowedTools) && typeof allowedTools !== "function")
    throw unfit(`allowedTools of ${owner}`, allowedTools, "a list of names, or a function of state and context");
  if (settings !== undefined) checkOptions(`the settings of ${owner}`, settings, settingNames);
  checkCallPolicy(owner, policy);
  const around = Array.isArray(middleware) ? (middleware as readonly (Middleware | undefined)[]) : [];
  const said = around.flatMap((each) =>
    each?.modelCall === undefined ? [] : [[`the middleware "${each.name}"`, each.modelCall] as const],
  );
  if (said.length > 0) refuseSaidTwice(owner, [["its own options", policy], ...said]);
  checkToolChoice(owner, toolChoice);
  if (providerTools !== undefined && !(Array.isArray(providerTools) && providerTools.every(isProviderTool)))
    throw unfit(`providerTools of ${owner}`, providerTools, "a list of tools that providerTool(…) makes");
  checkFunction(owner, { prepareStep });
  checkMaxTurns(owner, maxTurns);
}

function hasChannel(state: object, name: string): boolean {
  const channels: unknown = Reflect.get(state, "channels");
  return typeof channels === "object" && channels !== null && Object.hasOwn(channels, name);
}

function unfit(what: string, given: unknown, wanted: string): StatewrightError {
  const kind =
    typeof given === "string" ? JSON.stringify(given) : given === null ? "null" : `a value of the type ${typeof given}`;
  return new StatewrightError("invalid_option", { what: `${what} is ${kind}`, next: `Give ${wanted}` });
}

function isProviderTool(tool: unknown): boolean {
  if (typeof tool !== "object" || tool === null) return false;
  const { name, id, args } = tool as Readonly<Record<string, unknown>>;
  return typeof name === "string" && typeof id === "string" && typeof args === "object" && args !== null;
}
