/** Validates the options of agents and model nodes. */

import { type Middleware, type StateTypes, StatewrightError, type Tool } from "@statewright/core";
import {
  asksAboutCalls,
  checkCallPolicy,
  checkCount,
  checkDuplicatePolicy,
  checkFunction,
  checkOptions,
  isModel,
  listOptionNames,
} from "@statewright/core/adapter";
import { checkMaxTurns } from "../turns/turn-limit.ts";
import type { AgentOptions } from "./agent-options.ts";
import type { ModelNodeOptions } from "./model-node-options.ts";
import { checkToolChoice, settingNames, stepOptionHints } from "./prepare-step.ts";
import { checkStopWhen } from "./stop-when.ts";

const nodeOptions = listOptionNames<ModelNodeOptions>({
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
const agentOptions = listOptionNames<AgentOptions<StateTypes, unknown, unknown>>({
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

/** Suggestions for option names of other frameworks. */
const agentOptionHints: Readonly<Record<string, string>> = {
  ...Object.fromEntries(settingNames.map((name) => [name, `settings: { ${name} }`])),
  ...stepOptionHints,
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

/**
 * Throws `invalid_option` for invalid agent options. Graph, tool and middleware factories validate their own options.
 */
export function checkAgent(options: unknown): void {
  checkOptions("createAgent", options, agentOptions, { replacements: agentOptionHints });
  const { name, state, store, stopWhen, onFinish, maxToolCalls, maxToolConcurrency, ...modelOptions } =
    options as Readonly<Record<string, unknown>>;
  const owner = typeof name === "string" ? `agent "${name}"` : "an agent";
  checkModelOptions(owner, modelOptions);
  if (state !== undefined && !(typeof state === "object" && state !== null && "channels" in state))
    throw createOptionError(owner, "state", state, "defineState({ name: schema, … })");
  if (store !== undefined && !(typeof store === "object" && store !== null && "claim" in store))
    throw createOptionError(owner, "store", store, "memoryStore() or sqliteStore(path)");
  checkStopWhen(owner, stopWhen);
  checkFunction(owner, { onFinish });
  checkCount(owner, { maxToolCalls, maxToolConcurrency });
  if (typeof state === "object" && state !== null && hasChannel(state, "agentTurns"))
    throw new StatewrightError("invalid_option", {
      what: `\`state\` of ${owner} declares the channel "agentTurns", which is reserved for the turn count of agents`,
      next: "Rename the channel",
    });
}

/**
 * Throws `invalid_option` for a tool with `confirm: "always"` when no middleware of the agent can ask a person. Only
 * middleware with `asks: ["approve"]` counts. Calls of tools added later are denied.
 */
export function checkConfirmTools(
  agent: string,
  tools: ReadonlyMap<string, Pick<Tool, "spec">>,
  middleware: readonly Middleware[],
): void {
  // `toolNode` rejects a middleware option that is not an array.
  if (!Array.isArray(middleware) || middleware.some(asksAboutCalls)) return;
  for (const [name, { spec }] of tools) {
    if (spec.safety.confirm !== "always") continue;
    throw new StatewrightError("invalid_option", {
      what: `agent "${agent}": the tool "${name}" has confirm: "always", and no middleware of the agent asks for approval`,
      next: `Add confirmTools() to its middleware, add middleware with asks: ["approve"] and a beforeTool hook that asks, or remove confirm from the tool`,
    });
  }
}

/** Throws `invalid_option` for invalid model node options. */
export function checkModelNode(options: unknown): void {
  checkOptions("modelNode", options, nodeOptions, { replacements: agentOptionHints });
  checkModelOptions("modelNode", options as Readonly<Record<string, unknown>>);
}

function checkModelOptions(
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
    throw createOptionError(owner, "model", model, "a model, such as scriptedModel([…]) or a provider model");
  if (instructions !== undefined && typeof instructions !== "string" && typeof instructions !== "function")
    throw createOptionError(owner, "instructions", instructions, "a string, or a function of state and context");
  if (allowedTools !== undefined && !Array.isArray(allowedTools) && typeof allowedTools !== "function")
    throw createOptionError(
      owner,
      "allowedTools",
      allowedTools,
      "a list of tool names, or a function of state and context",
    );
  if (settings !== undefined) checkOptions(`\`settings\` of ${owner}`, settings, settingNames);
  checkCallPolicy(owner, policy);
  const middlewareList = Array.isArray(middleware) ? (middleware as readonly (Middleware | undefined)[]) : [];
  const middlewarePolicies = middlewareList.flatMap((each) =>
    each?.modelCall === undefined ? [] : [[`middleware "${each.name}"`, each.modelCall] as const],
  );
  if (middlewarePolicies.length > 0) checkDuplicatePolicy(owner, [["its own options", policy], ...middlewarePolicies]);
  checkToolChoice(owner, toolChoice);
  if (providerTools !== undefined && !(Array.isArray(providerTools) && providerTools.every(isProviderTool)))
    throw createOptionError(owner, "providerTools", providerTools, "a list of tools created with providerTool(…)");
  checkFunction(owner, { prepareStep });
  checkMaxTurns(owner, maxTurns);
}

function hasChannel(state: object, name: string): boolean {
  const channels: unknown = Reflect.get(state, "channels");
  return typeof channels === "object" && channels !== null && Object.hasOwn(channels, name);
}

function createOptionError(owner: string, option: string, value: unknown, expected: string): StatewrightError {
  const kind =
    typeof value === "string" ? JSON.stringify(value) : value === null ? "null" : `a value of type ${typeof value}`;
  return new StatewrightError("invalid_option", {
    what: `${owner}: \`${option}\` must be ${expected}, got ${kind}`,
    next: `Pass ${expected}`,
  });
}

function isProviderTool(tool: unknown): boolean {
  if (typeof tool !== "object" || tool === null) return false;
  const { name, id, args } = tool as Readonly<Record<string, unknown>>;
  return typeof name === "string" && typeof id === "string" && typeof args === "object" && args !== null;
}
