/** A model that says what the test tells it, when the test tells it. */
import type { Model } from "../../src/index.ts";
import { createReply } from "./acting-model.ts";
import { createDeferred } from "./failure.ts";

export interface Speaker {
  readonly model: Model;
  /** Streams one word of the open request. */
  readonly say: (word: string) => void;
  /** Ends the open request with the words said so far. */
  readonly finish: () => void;
  /** Resolves when a request is open. */
  readonly waitForRequest: () => Promise<void>;
  /** True when the open request asked for deltas. */
  readonly isStreaming: () => boolean;
}

interface OpenRequest {
  readonly delta: ((text: string) => void) | undefined;
  readonly words: string[];
  readonly end: ReturnType<typeof createDeferred<void>>;
}

export function createSpeaker(): Speaker {
  let request: OpenRequest | undefined;
  let opened = createDeferred();
  const getRequest = (): OpenRequest => {
    if (request === undefined) throw new Error("the model has no open request");
    return request;
  };
  return {
    model: {
      id: "speaker",
      respond: async (_request, { delta, signal }) => {
        const end = createDeferred();
        signal.addEventListener("abort", () => end.reject(signal.reason), { once: true });
        const words: string[] = [];
        request = { delta: delta && ((text) => delta({ type: "text", text })), words, end };
        opened.resolve();
        await end.promise;
        return createReply(words.join(""));
      },
    },
    say: (word) => {
      const { words, delta } = getRequest();
      words.push(word);
      delta?.(word);
    },
    finish: () => {
      const { end } = getRequest();
      request = undefined;
      opened = createDeferred();
      end.resolve();
    },
    waitForRequest: () => opened.promise,
    isStreaming: () => getRequest().delta !== undefined,
  };
}
