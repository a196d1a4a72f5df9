/**
 * Rate limiter: grants a maximum number of slots in any time window, first come, first served. Only the first waiting
 * caller has a timer. An aborted caller leaves the queue without using a slot.
 */
import type { MiddlewareRuntime } from "@statewright/core";

/** Limits within any window of `perMs` milliseconds. */
export interface Rate {
  readonly calls?: number | undefined;
  readonly tokens?: number | undefined;
  readonly perMs: number;
}

/** Acquired slot; its tokens may be corrected later. */
export interface RateSlot {
  startedAt: number;
  tokens: number;
}

type WaitRuntime = Pick<MiddlewareRuntime, "clock" | "wait" | "signal">;

/** Rate limiter. */
export interface RateGate {
  /** Creation number; defines a global order of gates. */
  readonly order: number;
  /** Waits for a slot; undefined when the run is aborted while waiting. */
  readonly acquire: (runtime: WaitRuntime, tokens?: number) => Promise<RateSlot | undefined>;
  /**
   * Acquires a slot immediately, or returns the milliseconds until one is free; infinite while held slots block the
   * gate.
   */
  readonly tryAcquire: (now: number, tokens?: number) => RateSlot | number;
  /** True when a slot is free and no caller waits. */
  readonly isOpen: (now: number, tokens?: number) => boolean;
  /** Holds a slot without a start time: it counts until it starts or is released. */
  readonly hold: (slot: RateSlot) => void;
  /** Starts a held slot now. */
  readonly start: (slot: RateSlot, now: number) => void;
  /** Releases a slot that was not used. */
  readonly release: (slot: RateSlot) => void;
}

/** Passage through one gate, with the acquired slot. */
export interface Pass {
  readonly gate: RateGate;
  readonly tokens: number;
  slot: RateSlot | undefined;
}

let gateCount = 0;

/** Creates a gate, shared by all its users in this process. */
export function createRateGate({
  calls = Number.POSITIVE_INFINITY,
  tokens: maxTokens = Number.POSITIVE_INFINITY,
  perMs,
}: Rate): RateGate {
  /** Started slots within the window, oldest first. */
  const slots: RateSlot[] = [];
  const heldSlots: Set<RateSlot> = new Set();
  let waiting = 0;
  let queueTail: Promise<unknown> = Promise.resolve();
  let changeSignal = createDeferred();

  /** Returns the time from which a slot is free. */
  const getFreeTime = (now: number, tokens: number): number => {
    while (slots[0] !== undefined && slots[0].startedAt + perMs <= now) slots.shift();
    let count = slots.length + heldSlots.size;
    let usedTokens = sumTokens(slots) + sumTokens(heldSlots);
    let free = now;
    for (const slot of slots) {
      if (count < calls && usedTokens + tokens <= maxTokens) return free;
      count -= 1;
      usedTokens -= slot.tokens;
      free = slot.startedAt + perMs;
    }
    return heldSlots.size === 0 || (count < calls && usedTokens + tokens <= maxTokens)
      ? free
      : Number.POSITIVE_INFINITY;
  };

  const tryAcquire = (now: number, tokens = 0): RateSlot | number => {
    const free = getFreeTime(now, tokens);
    if (free > now) return free - now;
    const slot = { startedAt: now, tokens };
    slots.push(slot);
    return slot;
  };

  const removeSlot = (slot: RateSlot): void => {
    heldSlots.delete(slot);
    const index = slots.indexOf(slot);
    if (index !== -1) slots.splice(index, 1);
  };

  const notifyChange = (): void => {
    const { fire } = changeSignal;
    changeSignal = createDeferred();
    fire();
  };

  const acquire: RateGate["acquire"] = async ({ clock, wait: sleep, signal }, tokens = 0) => {
    if (waiting === 0) {
      const slot = tryAcquire(clock.now(), tokens);
      if (typeof slot !== "number") return slot;
    }
    const previous = queueTail;
    const leftSignal = createDeferred();
    queueTail = previous.then(() => leftSignal.promise);
    waiting += 1;
    try {
      await waitUnlessAborted(previous, signal);
      while (!signal.aborted) {
        const turn = tryAcquire(clock.now(), tokens);
        if (typeof turn !== "number") return turn;
        await (turn === Number.POSITIVE_INFINITY ? waitUnlessAborted(changeSignal.promise, signal) : sleep(turn));
      }
      return undefined;
    } finally {
      waiting -= 1;
      leftSignal.fire();
    }
  };

  return {
    order: gateCount++,
    acquire,
    tryAcquire,
    isOpen: (now, tokens = 0) => waiting === 0 && getFreeTime(now, tokens) <= now,
    hold: (turn) => {
      removeSlot(turn);
      heldSlots.add(turn);
    },
    start: (turn, now) => {
      removeSlot(turn);
      turn.startedAt = now;
      slots.push(turn);
      notifyChange();
    },
    release: (turn) => {
      removeSlot(turn);
      notifyChange();
    },
  };
}

/**
 * Acquires a slot at each gate, so that all slots start at the same time. While waiting at one gate, holds the slots
 * of earlier gates and releases the slots of later gates; this global order prevents deadlocks. Returns false when
 * the run is aborted while waiting.
 */
export async function acquireAll(passes: readonly Pass[], runtime: WaitRuntime): Promise<boolean> {
  const sorted = passes.toSorted((left, right) => left.gate.order - right.gate.order);
  for (const [index, pass] of sorted.entries()) {
    if (pass.slot !== undefined) continue;
    if (!pass.gate.isOpen(runtime.clock.now(), pass.tokens)) {
      for (const { gate, slot } of sorted.slice(0, index)) if (slot !== undefined) gate.hold(slot);
      releaseSlots(sorted.slice(index + 1));
    }
    pass.slot = await pass.gate.acquire(runtime, pass.tokens);
    if (pass.slot !== undefined) continue;
    releaseSlots(sorted);
    return false;
  }
  if (sorted.length === 1) return true;
  const now = runtime.clock.now();
  for (const { gate, slot } of sorted) if (slot !== undefined) gate.start(slot, now);
  return true;
}

function releaseSlots(passes: readonly Pass[]): void {
  for (const pass of passes) {
    if (pass.slot !== undefined) pass.gate.release(pass.slot);
    pass.slot = undefined;
  }
}

function sumTokens(slots: Iterable<RateSlot>): number {
  let sum = 0;
  for (const { tokens } of slots) sum += tokens;
  return sum;
}

/** Creates a promise with its resolve function. */
function createDeferred(): { readonly promise: Promise<void>; readonly fire: () => void } {
  let now = (): void => undefined;
  const happened = new Promise<void>((resolve) => {
    now = resolve;
  });
  return { promise: happened, fire: now };
}

async function waitUnlessAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const aborted = createDeferred();
  signal.addEventListener("abort", aborted.fire, { once: true });
  await Promise.race([promise, aborted.promise]);
  signal.removeEventListener("abort", aborted.fire);
}
