/** A model that fails on purpose: it rejects, breaks off, falls silent, takes its time, or answers what is no message. */
import { type Model, type ModelReply, StatewrightError, systemWorld, type World } from "@statewright/core";
import { type FaultPlan, pause, planned } from "./fault-plan.ts";

/** How a model fails. */
export interface ModelFaults extends FaultPlan {
  /** What it rejects with. Default: `model_failed` that may be tried again. */
  readonly error?: unknown;
  /** Fail after so many deltas of the answer were streamed, instead of before the first. */
  readonly cutAfter?: number;
  /** Instead of failing: never answer, until the request is aborted. */
  readonly hang?: boolean;
  /** Instead of failing: answer so many milliseconds later. */
  readonly slowMs?: number;
  /** Instead of failing: call a tool that nobody has, with arguments that are no object. */
  readonly malformed?: boolean;
  /** The world in which it is slow; the real one by default. */
  readonly world?: World;
}

/** The model, failing by plan. */
export function faultyModel<Faulty extends Model>(model: Faulty, plan: ModelFaults): Faulty {
  const { error = modelFault(), cutAfter, hang = false, slowMs, malformed = false, world = systemWorld() } = plan;
  const fails = planned(plan);
  return {
    ...model,
    respond: async (request, options) => {
      if (!fails()) return model.respond(request, options);
      if (hang) return silence(options.signal);
      if (slowMs !== undefined) {
        await pause(world, slowMs, options.signal);
        return model.respond(request, options);
      }
      if (malformed) return nonsense;
      if (cutAfter === undefined) throw error;
      let left = cutAfter;
      await model.respond(request, {
        ...options,
        delta: (delta) => {
          if (left-- > 0) options.delta?.(delta);
        },
      });
      throw error;
    },
  };
}

const nonsense: ModelReply = {
  content: [{ type: "call", id: "call_nonsense", name: "no such tool", args: "{ not json" }],
  finish: "calls",
  usage: {},
};

function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

function modelFault(): StatewrightError {
  return new StatewrightError("model_failed", {
    what: "a model failed because a test planned it",
    next: "Ask it again",
    details: { retryable: true },
  });
}
