/** Requests and signals of several tests. */
import type { ModelCallOptions, ModelDelta, ModelRequest, ModelTool, UserMessage } from "@statewright/core";

export const weather: ModelTool = {
  name: "get_weather",
  description: "Current weather for a city.",
  inputSchema: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
};

export function user(text: string): UserMessage {
  return { role: "user", id: "u1", content: [{ type: "text", text }] };
}

export function ask(text: string, more: Partial<ModelRequest> = {}): ModelRequest {
  return { messages: [user(text)], tools: [], ...more };
}

/** Creates call options that collect deltas. */
export function createCallOptions(): ModelCallOptions & { readonly deltas: ModelDelta[] } {
  const deltas: ModelDelta[] = [];
  return { signal: new AbortController().signal, delta: (delta) => deltas.push(delta), deltas };
}

/** Returns the rejection of a promise; fails when the promise resolves. */
export async function getRejection(promise: Promise<unknown>): Promise<unknown> {
  const settled = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("error" in settled) return settled.error;
  throw new Error(`expected a rejection, got ${JSON.stringify(settled.value)}`);
}

/** Creates a promise with its resolve function. */
export function createGate(): { readonly open: () => void; readonly passed: Promise<void> } {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, passed };
}
