/** Model with planned faults: rejects, cuts the stream, hangs, answers late, or returns a malformed message. */
import { type Model, type ModelReply, StatewrightError, type World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { createFaultCounter, type FaultPlan, waitFor } from "./fault-plan.ts";

/** Faults of a model. */
export interface ModelFaults extends FaultPlan {
  /** Rejection value. Default: a retryable `model_failed`. */
  readonly error?: unknown;
  /** Number of streamed deltas before the failure. Default: the failure precedes the first delta. */
  readonly cutAfter?: number;
  /** Hangs instead of failing, until the request is aborted. */
  readonly hang?: boolean;
  /** Delays the answer by this many milliseconds instead of failing. */
  readonly slowMs?: number;
  /** Returns a call of an unknown tool with arguments that are no object, instead of failing. */
  readonly malformed?: boolean;
  /** World of the delay; the real world by default. */
  readonly world?: World;
}

/** Returns the model with planned faults. */
export function createFaultyModel<Faulty extends Model>(model: Faulty, plan: ModelFaults): Faulty {
  const { error = createModelFault(), cutAfter, hang = false, slowMs, malformed = false, world = systemWorld() } = plan;
  const shouldFail = createFaultCounter(plan);
  return {
    ...model,
    respond: async (request, options) => {
      if (!shouldFail()) return model.respond(request, options);
      if (hang) return waitForAbort(options.signal);
      if (slowMs !== undefined) {
        await waitFor(world, slowMs, options.signal);
        return model.respond(request, options);
      }
      if (malformed) return malformedReply;
      if (cutAfter === undefined) throw error;
      let remaining = cutAfter;
      await model.respond(request, {
        ...options,
        delta: (delta) => {
          if (remaining-- > 0) options.delta?.(delta);
        },
      });
      throw error;
    },
  };
}

const malformedReply: ModelReply = {
  content: [{ type: "call", id: "call_nonsense", name: "no such tool", args: "{ not json" }],
  finish: "calls",
  usage: {},
};

function waitForAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

function createModelFault(): StatewrightError {
  return new StatewrightError("model_failed", {
    what: "faults.model: expected a model reply, got a planned fault",
    next: "Retry the request",
    details: { retryable: true },
  });
}
