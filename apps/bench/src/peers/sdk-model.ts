/**
 * Scripted language model of the AI SDK, used by Statewright and by the AI SDK: a number of tool calls, then a final
 * text. Every reply is instant.
 */

/**
 * Creates a model of specification V4 that calls the tool `weather` `turns` times. The function uses nothing outside of
 * itself: B22 gives its text to fresh processes.
 */
export function createSdkModel(turns: number) {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  } as const;
  const warnings: never[] = [];
  let turn = 0;
  const createContent = () => {
    const content =
      turn < turns
        ? { type: "tool-call" as const, toolCallId: `call-${turn}`, toolName: "weather", input: '{"city":"Oslo"}' }
        : { type: "text" as const, text: "Done." };
    turn += 1;
    return content;
  };
  const toFinishReason = (type: "tool-call" | "text") => ({
    unified: type === "text" ? ("stop" as const) : ("tool-calls" as const),
    raw: "stop",
  });
  return {
    specificationVersion: "v4" as const,
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: async () => {
      const content = createContent();
      return { content: [content], finishReason: toFinishReason(content.type), usage, warnings };
    },
    doStream: async () => {
      const content = createContent();
      const finish = { type: "finish" as const, finishReason: toFinishReason(content.type), usage };
      const blocks =
        content.type === "tool-call"
          ? [content]
          : [
              { type: "text-start" as const, id: "0" },
              { type: "text-delta" as const, id: "0", delta: content.text },
              { type: "text-end" as const, id: "0" },
            ];
      const parts = [{ type: "stream-start" as const, warnings }, ...blocks, finish];
      return {
        stream: new ReadableStream<(typeof parts)[number]>({
          start: (controller) => {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
  };
}
