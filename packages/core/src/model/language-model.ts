/** Structural type of AI SDK language models: three specifications, distinguished by `specificationVersion`. */

/**
 * A language model of the AI SDK, specification V2, V3 or V4. Structural: models of every provider package are
 * assignable, and a program without provider packages needs no AI SDK types. `script` excludes scripted models.
 */
export interface LanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  /** Requests an answer, as defined by the AI SDK. */
  doStream(options: never): PromiseLike<unknown>;
  readonly script?: undefined;
}

/**
 * Returns true for a language model of the AI SDK. True also for an unsupported specification version, so that
 * `aiModel` can report the version.
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
