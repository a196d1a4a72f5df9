/** Fake language models of each specification: they stream the given parts and record their requests. */
import type {
  LanguageModelV2,
  LanguageModelV2CallOptions,
  LanguageModelV2StreamPart,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";

interface RecordingModel<Spec, Options> {
  readonly model: Spec;
  readonly asked: Options[];
}

const unused = (): never => {
  throw new Error("the adapter streams");
};

export function createModelV4(
  parts: readonly LanguageModelV4StreamPart[],
  more: Partial<LanguageModelV4> = {},
): RecordingModel<LanguageModelV4, LanguageModelV4CallOptions> {
  const asked: LanguageModelV4CallOptions[] = [];
  return {
    asked,
    model: {
      specificationVersion: "v4",
      provider: "made.chat",
      modelId: "one",
      supportedUrls: {},
      doGenerate: unused,
      doStream: async (options) => {
        asked.push(options);
        return { stream: toStream(parts) };
      },
      ...more,
    },
  };
}

export function createModelV3(
  parts: readonly LanguageModelV3StreamPart[],
  more: Partial<LanguageModelV3> = {},
): RecordingModel<LanguageModelV3, LanguageModelV3CallOptions> {
  const asked: LanguageModelV3CallOptions[] = [];
  return {
    asked,
    model: {
      specificationVersion: "v3",
      provider: "made.chat",
      modelId: "one",
      supportedUrls: {},
      doGenerate: unused,
      doStream: async (options) => {
        asked.push(options);
        return { stream: toStream(parts) };
      },
      ...more,
    },
  };
}

export function createModelV2(
  parts: readonly LanguageModelV2StreamPart[],
  more: Partial<LanguageModelV2> = {},
): RecordingModel<LanguageModelV2, LanguageModelV2CallOptions> {
  const asked: LanguageModelV2CallOptions[] = [];
  return {
    asked,
    model: {
      specificationVersion: "v2",
      provider: "made.chat",
      modelId: "one",
      supportedUrls: {},
      doGenerate: unused,
      doStream: async (options) => {
        asked.push(options);
        return { stream: toStream(parts) };
      },
      ...more,
    },
  };
}

export function toStream<Part>(parts: readonly Part[]): ReadableStream<Part> {
  return new ReadableStream({
    start: (controller) => {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

/** Creates the finish part of V4 and V3. */
export function finish(
  unified: "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other" = "stop",
  raw: string | undefined = unified,
): Extract<LanguageModelV3StreamPart, { type: "finish" }> {
  return {
    type: "finish",
    finishReason: { unified, raw },
    usage: {
      inputTokens: { total: 12, noCache: 4, cacheRead: 8, cacheWrite: 0 },
      outputTokens: { total: 7, text: 5, reasoning: 2 },
    },
  };
}

/** Creates the finish part of V2. */
export function finishV2(
  finishReason: Extract<LanguageModelV2StreamPart, { type: "finish" }>["finishReason"] = "stop",
): Extract<LanguageModelV2StreamPart, { type: "finish" }> {
  return {
    type: "finish",
    finishReason,
    usage: { inputTokens: 12, outputTokens: 7, totalTokens: 19, reasoningTokens: 2, cachedInputTokens: 8 },
  };
}
