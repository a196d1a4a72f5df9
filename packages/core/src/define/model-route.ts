/** Edge whose target a model chooses. */
import { invalidOption } from "../base/invalid-option.ts";
import { checkFunction, checkOptions, listOptionNames } from "../base/options.ts";
import { checkCallPolicy, type ModelCallPolicy, splitModels } from "../model/call-policy.ts";
import type { Message } from "../model/message.ts";
import { type ModelSettings, settingNames } from "../model/model.ts";
import { type AnyModel, isAnyModel } from "../model/model-source.ts";
import type { UserContent } from "../model/new-message.ts";

/** Question of a model route. At least one of `prompt` and `messages` is required. */
export interface ModelRouteOptions<State, Target extends string, Context = unknown> extends ModelCallPolicy {
  /** A model, or a list: the first model is called, the others are fallbacks in their order, as with `fallback`. */
  readonly model: AnyModel | readonly AnyModel[];
  /** Question by the state and the context: a text, a text with files, or blocks. Follows `messages`. */
  readonly prompt?: (state: State, context: Context) => UserContent;
  /** Conversation before the prompt, by the state and the context. */
  readonly messages?: (state: State, context: Context) => readonly Message[];
  /** Instructions for the choice, in addition to the list of the targets. */
  readonly system?: string;
  /** Meaning of a target, for the model: `{ billing: "invoices and refunds" }`. */
  readonly describe?: { readonly [Name in Target]?: string };
  /** Target when the model fails after all attempts, or chooses no target after all repairs. Default: the run fails. */
  readonly otherwise?: NoInfer<Target>;
  /** Settings of the request, such as `{ temperature: 0 }`. */
  readonly settings?: ModelSettings;
}

/** Edge whose target a model chooses. */
export interface ModelRoute<State, Target extends string, Context = unknown> {
  readonly kind: "modelRoute";
  readonly targets: readonly Target[];
  readonly options: ModelRouteOptions<State, Target, Context>;
}

const routeNames = listOptionNames<ModelRouteOptions<unknown, string>>({
  model: true,
  prompt: true,
  messages: true,
  system: true,
  describe: true,
  otherwise: true,
  settings: true,
  retry: true,
  timeouts: true,
  fallback: true,
});

/**
 * Routes to the target that a model chooses. The question is a node of its own, `<source>_route`: its answer is
 * recorded, so a resume routes the same way and asks no second time.
 *
 * ```ts
 * triage: modelRoute(["billing", "support"], {
 *   model: "openai/gpt-5-mini",
 *   prompt: ({ question }) => question,
 *   describe: { billing: "invoices and refunds", support: "everything else" },
 *   otherwise: "support",
 * }),
 * ```
 *
 * Throws `invalid_option` for invalid options. A choice outside of the targets is repaired by the model, twice; then
 * the run fails with `invalid_output`, or continues with `otherwise`.
 */
export function modelRoute<const Target extends string, State, Context = unknown>(
  targets: readonly Target[],
  options: ModelRouteOptions<State, Target, Context>,
): ModelRoute<State, Target, Context> {
  checkRouteOptions(targets, options);
  return { kind: "modelRoute", targets, options };
}

function checkRouteOptions(targets: readonly string[], options: unknown): void {
  const where = "modelRoute";
  if (!Array.isArray(targets) || targets.length < 2 || !targets.every((target) => typeof target === "string"))
    throw invalidOption({ where, expected: "a list of at least two targets", got: targets });
  checkOptions(where, options, routeNames, { replacements: { instructions: "system", descriptions: "describe" } });
  const {
    model,
    prompt,
    messages,
    system,
    describe = {},
    otherwise,
    settings,
    ...policy
  } = options as ModelRouteOptions<unknown, string>;
  const models: readonly unknown[] = Array.isArray(model) ? model : [model];
  if (!models.every(isAnyModel))
    throw invalidOption({ where, option: "model", expected: "a model, or a list of models", got: model });
  splitModels(where, { model, fallback: policy.fallback });
  checkCallPolicy(where, policy);
  checkFunction(where, { prompt, messages });
  if (prompt === undefined && messages === undefined)
    throw invalidOption({
      where,
      expected: "a prompt or messages",
      found: "neither",
      fix: "Pass prompt: (state) => text, or messages: (state) => state.messages",
    });
  if (system !== undefined && typeof system !== "string")
    throw invalidOption({ where, option: "system", expected: "a text", got: system });
  if (settings !== undefined) checkOptions("`settings` of modelRoute", settings, settingNames);
  checkOptions("`describe` of modelRoute", describe, targets);
  if (otherwise !== undefined && !targets.includes(otherwise))
    throw invalidOption({ where, option: "otherwise", expected: "one of the targets", got: otherwise });
}
