/** Per-request customization of model calls. */

import type { AnyModel, Message, ModelSettings, StatewrightError, ToolChoice } from "@statewright/core";
import {
  checkFlag,
  checkOptions,
  invalidOption,
  isAnyModel,
  listOptionNames,
  settingNames,
} from "@statewright/core/adapter";

/**
 * Tool choice of an agent. A forced choice (`required`, or a tool) holds for the first model request after a user
 * message, so that the agent can answer; with `every: true` it holds for each request.
 */
export type AgentToolChoice<Names extends string = string> =
  | ToolChoice<Names>
  | { readonly tool: Names; readonly every: boolean }
  | { readonly choice: "required"; readonly every: boolean };

/** Argument of `prepareStep`. */
export interface StepInput<State = unknown, Context = unknown> {
  readonly state: State;
  readonly context: Context;
  /** Number of the turn since the input of the run; the first turn is 1. */
  readonly turn: number;
  readonly messages: readonly Message[];
}

/**
 * Overrides of a model request. `Tools` is the union of the tool names, `Choices` the union of the names allowed in
 * `toolChoice`.
 */
export interface PreparedStep<Tools extends string = string, Choices extends string = Tools> {
  readonly model?: AnyModel | undefined;
  readonly instructions?: string | undefined;
  /** Messages of this request; the saved conversation stays unchanged. */
  readonly messages?: readonly Message[] | undefined;
  /** Names of the tools shown to the model. */
  readonly allowedTools?: readonly Tools[] | undefined;
  readonly toolChoice?: ToolChoice<Choices> | undefined;
  /** Settings merged over the settings of the agent, property by property. */
  readonly settings?: ModelSettings | undefined;
}

/**
 * Customizes the next model request. Called once per turn, and again when a crash repeats the turn: should be a
 * pure function of the state.
 */
export type PrepareStep<
  State = unknown,
  Context = unknown,
  Tools extends string = string,
  Choices extends string = Tools,
> = (
  input: StepInput<State, Context>,
) => PreparedStep<Tools, Choices> | undefined | Promise<PreparedStep<Tools, Choices> | undefined>;

const stepOptionNames = listOptionNames<PreparedStep>({
  model: true,
  instructions: true,
  messages: true,
  allowedTools: true,
  toolChoice: true,
  settings: true,
});

/** Suggestions for option names of other frameworks. */
export const stepOptionHints: Readonly<Record<string, string>> = {
  system: "instructions",
  systemPrompt: "instructions",
  activeTools: "allowedTools",
};

/** Throws `invalid_option` for an invalid result of `prepareStep`. */
export function checkPreparedStep(prepared: unknown): void {
  const owner = "the result of prepareStep";
  checkOptions(owner, prepared, stepOptionNames, { replacements: stepOptionHints });
  const { model, instructions, messages, allowedTools, toolChoice, settings } = prepared as PreparedStep;
  if (model !== undefined && !isAnyModel(model)) throw createStepError("model", "a model", model);
  if (instructions !== undefined && typeof instructions !== "string")
    throw createStepError("instructions", "a text", instructions);
  if (messages !== undefined && !Array.isArray(messages))
    throw createStepError("messages", "a list of messages", messages);
  if (allowedTools !== undefined && !Array.isArray(allowedTools))
    throw createStepError("allowedTools", "a list of tool names", allowedTools);
  checkToolChoice(owner, toolChoice);
  if (settings !== undefined) checkOptions(`\`settings\` in ${owner}`, settings, settingNames);
}

/** Throws `invalid_option` for an invalid tool choice of an agent. */
export function checkAgentToolChoice(owner: string, choice: unknown): void {
  if (typeof choice !== "object" || choice === null || !("every" in choice)) {
    checkToolChoice(owner, choice);
    return;
  }
  checkFlag(owner, { "toolChoice.every": choice.every });
  if (!("choice" in choice) || choice.choice !== "required") checkToolChoice(owner, choice);
}

/** Throws `invalid_option` for an invalid tool choice. */
function checkToolChoice(owner: string, choice: unknown): void {
  if (choice === undefined || choice === "auto" || choice === "none" || choice === "required") return;
  if (typeof choice === "object" && choice !== null && "tool" in choice && typeof choice.tool === "string") return;
  throw invalidOption({
    where: owner,
    option: "toolChoice",
    expected: '"auto", "none", "required" or { tool }',
    got: choice,
    fix: 'Use "auto", "none", "required" or { tool: name }',
  });
}

function createStepError(option: string, expected: string, got: unknown): StatewrightError {
  const fix = `Return ${expected}, or omit the property`;
  return invalidOption({ where: "the result of prepareStep", option, expected, got, fix });
}
