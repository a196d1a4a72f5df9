/** What the calls of one message have in common while their tool node is at work. */
import type { ToolNode } from "../../define/tool-node.ts";
import { whenAborted } from "../session/abort.ts";
import { type CallLimit, callLimit } from "./call-limit.ts";
import type { OpenCall } from "./context.ts";

/** The open calls of a message. */
export interface CallSet {
  readonly calls: readonly OpenCall[];
  /** How many of them may run; absent where all may. */
  readonly limit: CallLimit | undefined;
  /** The answer of a call is durable, and its end was told. */
  readonly told: () => void;
  /** Wait until the ends of so many calls were told, or the signal fires. */
  readonly untilTold: (count: number, signal: AbortSignal) => Promise<void>;
}

/** The set of these calls of a node. */
export function callSet({ maxCalls }: ToolNode<never, never>, calls: readonly OpenCall[]): CallSet {
  let ended = 0;
  let waiting: { readonly count: number; readonly go: () => void } | undefined;
  return {
    calls,
    limit: calls.length > maxCalls ? callLimit(maxCalls) : undefined,
    told: () => {
      ended += 1;
      if (waiting !== undefined && ended >= waiting.count) waiting.go();
    },
    untilTold: async (count, signal) => {
      if (ended >= count || signal.aborted) return;
      await new Promise<void>((resolve) => {
        const stopListening = whenAborted(signal, resolve);
        waiting = {
          count,
          go: () => {
            stopListening();
            resolve();
          },
        };
      });
      waiting = undefined;
    },
  };
}
