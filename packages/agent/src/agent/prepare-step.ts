/** What an agent decides anew before each request to its model. */
import {
  checkOptions,
  isModel,
  type Message,
  type Model,
  type ModelRequest,
  optionNames,
  StatewrightError,
  type ToolChoice,
} from "@statewright/core";

/** Settings of a request, beside what is said in it. */
export type ModelSettings = Omit<
  ModelRequest,
  "instructions" | "messages" | "tools" | "toolChoice" | "output" | "providerTools"
>;

/** What `prepareStep` sees. */
export interface StepMoment<State = unknown, Context = unknown> {
  readonly state: State;
  readonly context: Context;
  /** The number of the turn since the run's input; the first is 1. */
  readonly turn: number;
  readonly messages: readonly Message[];
}

/** What holds for one request in place of what holds for all. `Tools` are the names of its tools, `Choices` those that it may have to call. */
export interface PreparedStep<AnyModel = Model, Tools extends string = string, Choices extends string = Tools> {
  readonly model?: AnyModel | undefined;
  readonly instructions?: string | undefined;
  /** The conversation as this request shows it; what is saved stays as it is. */
  readonly messages?: readonly Message[] | undefined;
  /** Names of the tools that the model is shown. */
  readonly allowedTools?: readonly Tools[] | undefined;
  readonly toolChoice?: ToolChoice<Choices> | undefined;
  /** Laid over the agent's settings, one by one. */
  readonly settings?: ModelSettings | undefined;
}

/**
 * Decide how the next request differs from all others. It is called once for each turn, and again for a turn that a crash
 * repeats: it should give the same for the same state, and do nothing else.
 */
export type PrepareStep<
  State = unknown,
  Context = unknown,
  AnyModel = Model,
  Tools extends string = string,
  Choices extends string = Tools,
> = (
  moment: StepMoment<State, Context>,
) => PreparedStep<AnyModel, Tools, Choices> | undefined | Promise<PreparedStep<AnyModel, Tools, Choices> | undefined>;

const stepNames = optionNames<PreparedStep>({
  model: true,
  instructions: true,
  messages: true,
  allowedTools: true,
  toolChoice: true,
  settings: true,
});

/** The names of all settings. */
export const settingNames: readonly string[] = optionNames<ModelSettings>({
  reasoning: true,
  temperature: true,
  topP: true,
  topK: true,
  presencePenalty: true,
  frequencyPenalty: true,
  stopSequences: true,
  maxOutputTokens: true,
  seed: true,
  headers: true,
  providerOptions: true,
});

/** What the parts of a request are called elsewhere. */
export const meantForSteps: Readonly<Record<string, string>> = {
  system: "instructions",
  systemPrompt: "instructions",
  activeTools: "allowedTools",
};

/** Throws `invalid_option` for an answer of `prepareStep` that no request can be made of. */
export function checkPrepared(prepared: unknown): void {
  const owner = "what prepareStep gave";
  checkOptions(owner, prepared, stepNames, "invalid_option", meantForSteps);
  const { model, instructions, messages, allowedTools, toolChoice, settings } = prepared as PreparedStep<unknown>;
  if (model !== undefined && !isModel(model)) throw unfit("model", "a model");
  if (instructions !== undefined && typeof instructions !== "string") throw unfit("instructions", "a text");
  if (messages !== undefined && !Array.isArray(messages)) throw unfit("messages", "a list of messages");
  if (allowedTools !== undefined && !Array.isArray(allowedTools)) throw unfit("allowedTools", "a list of names");
  checkToolChoice(owner, toolChoice);
  if (settings !== undefined) checkOptions(`the settings in ${owner}`, settings, settingNames);
}

/** Throws `invalid_option` for what is no choice of tools. */
export function checkToolChoice(owner: string, given: unknown): void {
  if (given === undefined || given === "auto" || given === "none" || given === "required") return;
  if (typeof given === "object" && given !== null && "tool" in given && typeof given.tool === "string") return;
  throw new StatewrightError("invalid_option", {
    what: `toolChoice of ${owner} is ${typeof given === "string" ? JSON.stringify(given) : `a value of the type ${typeof given}`}`,
    next: 'Give "auto", "none", "required" or { tool: name }',
  });
}

function unfit(part: string, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `${part} in what prepareStep gave is not ${wanted}`,
    next: `Give ${wanted}, or leave it out`,
  });
}
