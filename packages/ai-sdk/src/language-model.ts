/** What a language model of the AI SDK is: three specifications with one shape, told apart by `specificationVersion`. */

/**
 * A language model of the AI SDK, of specification V2, V3 or V4, as far as the adapter must know it: the models of every
 * provider package fit, and a program without one needs none of the AI SDK's types. It has no script: scripted models are
 * ours.
 */
export interface LanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doStream(options: never): PromiseLike<unknown>;
  readonly script?: undefined;
}

/**
 * Tell a language model of the AI SDK from anything else, such as a model of ours. True also for a specification that
 * the adapter does not speak, so that `aiModel` can name the problem.
 */
export function isLanguageModel(value: unknown): value is LanguageModel {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const { specificationVersion, provider, modelId, doStream } = value as Partial<Record<keyof LanguageModel, unknown>>;
  return (
    typeof specificationVersion === "string" &&
    typeof provider === "string" &&
    typeof modelId === "string" &&
    typeof doStream === "function"
  );
}
