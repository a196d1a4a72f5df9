/** Faults on purpose: stores, tools and models that fail when a plan says so, and otherwise do their work. */
import {
  type Model,
  type Random,
  StatewrightError,
  type Store,
  systemWorld,
  type Tool,
  ToolError,
  type World,
} from "@statewright/core";
import { storeAround } from "./store-wrapper.ts";
import { seededRandom } from "./virtual-clock.ts";

/** Which times something fails; the first is 1. Without any of these it always does. */
export interface FaultPlan {
  /** The first so many times. */
  readonly failFirst?: number;
  /** Exactly these times. */
  readonly failNth?: number | readonly number[];
  /** With this probability, 0 to 1, by `seed`. */
  readonly chance?: number;
  /** What chance starts from. Default 1. */
  readonly seed?: number;
}

/** How a store fails. */
export interface StoreFaults extends FaultPlan {
  /** How a commit fails: whole, and nothing of it is kept. Default `store_failed`. */
  readonly error?: "store_full" | "store_failed" | "store_locked";
  /** Tell of every commit so much later, in milliseconds of the world. */
  readonly tellAfterMs?: number;
  /** The world whose schedule delays what is told; the real one by default. */
  readonly world?: World;
}

/** How a tool fails. */
export interface ToolFaults extends FaultPlan {
  /** What it throws. Default: unavailable, so that a retry may help. */
  readonly error?: unknown;
  /** Instead of throwing: never end, until the call is cancelled or its time is over. */
  readonly hang?: boolean;
}

/** How a model fails. */
export interface ModelFaults extends FaultPlan {
  /** What it rejects with. Default: `model_failed` that may be tried again. */
  readonly error?: unknown;
  /** Fail after so many deltas of the answer were streamed, instead of before the first. */
  readonly cutAfter?: number;
}

/** Wrap a store, a tool or a model so that it fails by plan. What does not fail is done by the original. */
export const faults: {
  readonly store: (store: Store, plan: StoreFaults) => Store;
  readonly tool: <Faulty extends Tool<never, never>>(tool: Faulty, plan: ToolFaults) => Faulty;
  readonly model: <Faulty extends Model>(model: Faulty, plan: ModelFaults) => Faulty;
} = { store: faultyStore, tool: faultyTool, model: faultyModel };

/** A commit that was made and is not told of yet. */
interface Untold {
  readonly tell: (failure?: StatewrightError, queued?: number) => void;
  outcome: { readonly failure: StatewrightError | undefined; readonly queued: number | undefined } | undefined;
}

function faultyStore(inner: Store, plan: StoreFaults): Store {
  const { error = "store_failed", tellAfterMs, world = systemWorld() } = plan;
  const fails = planned(plan);
  const untold: Untold[] = [];

  /** Commits are told of in their order, also where one of them never reached the store. */
  function settle(commit: Untold, failure: StatewrightError | undefined, queued: number | undefined): void {
    commit.outcome = { failure, queued };
    while (untold[0]?.outcome !== undefined) {
      const first = untold.shift();
      first?.tell(first.outcome?.failure, first.outcome?.queued);
    }
  }

  return storeAround(inner, {
    commit: (commit, told) => {
      const mine: Untold = { tell: told, outcome: undefined };
      untold.push(mine);
      const end = (failure?: StatewrightError, queued?: number): void => {
        if (tellAfterMs === undefined) settle(mine, failure, queued);
        else world.schedule.after(tellAfterMs, () => settle(mine, failure, queued));
      };
      if (fails()) queueMicrotask(() => end(storeFault(error)));
      else inner.commit(commit, end);
    },
  });
}

function storeFault(code: NonNullable<StoreFaults["error"]>): StatewrightError {
  return new StatewrightError(code, {
    what: "a commit failed because a test planned it",
    next: "Nothing of it was kept; trying again is safe",
  });
}

function faultyTool<Faulty extends Tool<never, never>>(tool: Faulty, plan: ToolFaults): Faulty {
  const { error = ToolError.unavailable("The test made this tool unavailable"), hang = false } = plan;
  const fails = planned(plan);
  const { spec, reconcile } = tool;
  const wrapped: Tool<never, never> = {
    ...tool,
    spec,
    ...(reconcile && { reconcile: (state, runtime, call) => reconcile.call(tool, state, runtime, call) }),
    call: (state, runtime, call) => {
      if (!fails()) return tool.call(state, runtime, call);
      if (hang) return new Promise(() => undefined);
      return Promise.reject(error);
    },
  };
  return wrapped as Faulty;
}

function faultyModel<Faulty extends Model>(model: Faulty, plan: ModelFaults): Faulty {
  const { error = modelFault(), cutAfter } = plan;
  const fails = planned(plan);
  return {
    ...model,
    respond: async (request, options) => {
      if (!fails()) return model.respond(request, options);
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

function modelFault(): StatewrightError {
  return new StatewrightError("model_failed", {
    what: "a model failed because a test planned it",
    next: "Ask it again",
    details: { retryable: true },
  });
}

/** Says, time after time, whether this is one that fails. */
function planned(plan: FaultPlan): () => boolean {
  const { failFirst, failNth, chance, seed = 1 } = plan;
  const random: Random = seededRandom(seed);
  const chosen = new Set(typeof failNth === "number" ? [failNth] : failNth);
  const always = failFirst === undefined && failNth === undefined && chance === undefined;
  let nth = 0;
  return () => {
    nth += 1;
    const unlucky = chance !== undefined && random.next() < chance;
    return always || nth <= (failFirst ?? 0) || chosen.has(nth) || unlucky;
  };
}
