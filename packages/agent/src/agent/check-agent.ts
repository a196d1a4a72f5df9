/** Validates the options of agents and model nodes. */

import type { Middleware, StateTypes, Tool } from "@statewright/core";
import {
  canRequestApproval,
  checkCallPolicy,
  checkCount,
  checkDuplicatePolicy,
  checkFunction,
  checkNumber,
  checkOptions,
  invalidOption,
  isAiSdkProviderTool,
  isAnyModel,
  listOptionNames,
  settingNames,
} from "@statewright/core/adapter";
import { checkMaxTurns } from "../turns/turn-limit.ts";
import type { AgentOptions } from "./agent-options.ts";
import type { ModelNodeOptions } from "./model-node-options.ts";
import { checkAgentToolChoice, stepOptionHints } from "./prepare-step.ts";
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
  toolTimeoutMs: true,
  limits: true,
  artifacts: true,
  maxToolCalls: true,
  maxTurns: true,
  steering: true,
  inbox: true,
  models: true,
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
  const { name, state, store, stopWhen, onFinish, maxToolCalls, maxToolConcurrency, toolTimeoutMs, ...modelOptions } =
    options as Readonly<Record<string, unknown>>;
  const owner = typeof name === "string" ? `agent "${name}"` : "an agent";
  checkModelOptions(owner, modelOptions);
  if (state !== undefined && !(typeof state === "object" && state !== null && "channels" in state))
    throw invalidOption({ where: owner, option: "state", expected: "defineState({ name: schema, … })", got: state });
  if (store !== undefined && !(typeof store === "object" && store !== null && "claim" in store))
    throw invalidOption({ where: owner, option: "store", expected: "memoryStore() or sqliteStore(path)", got: store });
  checkStopWhen(owner, stopWhen);
  checkFunction(owner, { onFinish });
  checkCount(owner, { maxToolCalls, maxToolConcurrency });
  checkNumber(owner, { toolTimeoutMs }, 1);
  if (typeof state === "object" && state !== null && hasChannel(state, "agentTurns"))
    throw invalidOption({
      where: owner,
      option: "state",
      expected: 'a state without the channel "agentTurns", which is reserved for the turn count of agents',
      found: "a state that declares the channel",
      fix: "Rename the channel",
    });
}

/**
 * Throws `invalid_option` for a tool with `confirm: "always"` when no middleware of the agent can ask a person. Only
 * middleware with the interrupt `approve` counts. Calls of tools added later are denied.
 */
export function checkConfirmTools(
  agent: string,
  tools: ReadonlyMap<string, Pick<Tool, "spec">>,
  middleware: readonly Middleware[],
): void {
  // `toolNode` rejects a middleware option that is not an array.
  if (!Array.isArray(middleware) || middleware.some(canRequestApproval)) return;
  for (const [name, { spec }] of tools) {
    if (spec.safety.confirm !== "always") continue;
    throw invalidOption({
      where: `agent "${agent}"`,
      option: "middleware",
      expected: `middleware that asks for approval, because the tool "${name}" has confirm: "always"`,
      found: "no middleware that asks",
      fix: `Add confirmTools(), add middleware with interrupts: { approve: approval } and a beforeTool hook that returns decide.interrupt(…), or remove confirm from the tool`,
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
  const models = Array.isArray(model) ? model : [model];
  if (!models.every(isAnyModel))
    throw invalidOption({
      where: owner,
      option: "model",
      expected: "a model, such as scriptedModel([…]) or a provider model",
      got: models.find((each) => !isAnyModel(each)),
    });
  if (instructions !== undefined && typeof instructions !== "string" && typeof instructions !== "function")
    throw invalidOption({
      where: owner,
      option: "instructions",
      expected: "a string, or a function of state and context",
      got: instructions,
    });
  if (allowedTools !== undefined && !Array.isArray(allowedTools) && typeof allowedTools !== "function")
    throw invalidOption({
      where: owner,
      option: "allowedTools",
      expected: "a list of tool names, or a function of state and context",
      got: allowedTools,
    });
  if (settings !== undefined) checkOptions(`\`settings\` of ${owner}`, settings, settingNames);
  checkCallPolicy(owner, policy);
  const middlewareList = Array.isArray(middleware) ? (middleware as readonly (Middleware | undefined)[]) : [];
  const middlewarePolicies = middlewareList.flatMap((each) =>
    each?.modelCall === undefined ? [] : [[`middleware "${each.name}"`, each.modelCall] as const],
  );
  if (middlewarePolicies.length > 0) checkDuplicatePolicy(owner, [["its own options", policy], ...middlewarePolicies]);
  checkAgentToolChoice(owner, toolChoice);
  if (providerTools !== undefined && !(Array.isArray(providerTools) && providerTools.every(isProviderTool)))
    throw invalidOption({
      where: owner,
      option: "providerTools",
      expected: "a list of tools created with providerTool(…)",
      got: providerTools,
    });
  checkFunction(owner, { prepareStep });
  checkMaxTurns(owner, maxTurns);
}

function hasChannel(state: object, name: string): boolean {
  const channels: unknown = Reflect.get(state, "channels");
  return typeof channels === "object" && channels !== null && Object.hasOwn(channels, name);
}

function isProviderTool(tool: unknown): boolean {
  if (typeof tool !== "object" || tool === null) return false;
  if (isAiSdkProviderTool(tool)) return true;
  const { name, id, args } = tool as Readonly<Record<string, unknown>>;
  return typeof name === "string" && typeof id === "string" && typeof args === "object" && args !== null;
}
