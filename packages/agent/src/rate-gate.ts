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

/** Acquired slot; `tokens` may be corrected later. */
export interface RateSlot {
  startedAt: number;
  tokens: number;
}

type WaitRuntime = Pick<MiddlewareRuntime, "clock" | "wait" | "signal">;

/** Passage through a gate, with the acquired slot. */
export interface Pass {
  readonly gate: RateGate;
  readonly tokens: number;
  slot: RateSlot | undefined;
}

let gateCount = 0;

/** Rate limiter, shared by all users in this process. */
export class RateGate {
  /** Creation number; defines a global order of gates. */
  readonly order: number = gateCount++;
  readonly #limits: { readonly calls: number; readonly tokens: number; readonly perMs: number };
  /** Started slots within the window, oldest first. */
  readonly #slots: RateSlot[] = [];
  readonly #heldSlots: Set<RateSlot> = new Set();
  #waiting = 0;
  #queueTail: Promise<unknown> = Promise.resolve();
  #changeSignal: Deferred = createDeferred();

  constructor({ calls = Number.POSITIVE_INFINITY, tokens = Number.POSITIVE_INFINITY, perMs }: Rate) {
    this.#limits = { calls, tokens, perMs };
  }

  /** Waits for a slot; undefined when the run is aborted while waiting. */
  async acquire({ clock, wait: sleep, signal }: WaitRuntime, tokens = 0): Promise<RateSlot | undefined> {
    if (this.#waiting === 0) {
      const slot = this.tryAcquire(clock.now(), tokens);
      if (typeof slot !== "number") return slot;
    }
    const previous = this.#queueTail;
    const leftSignal = createDeferred();
    this.#queueTail = previous.then(() => leftSignal.promise);
    this.#waiting += 1;
    try {
      await waitUnlessAborted(previous, signal);
      while (!signal.aborted) {
        const slot = this.tryAcquire(clock.now(), tokens);
        if (typeof slot !== "number") return slot;
        await (slot === Number.POSITIVE_INFINITY ? waitUnlessAborted(this.#changeSignal.promise, signal) : sleep(slot));
      }
      return undefined;
    } finally {
      this.#waiting -= 1;
      leftSignal.fire();
    }
  }

  /** Acquires a slot immediately, or returns the milliseconds until a slot is free; infinite while held slots block. */
  tryAcquire(now: number, tokens = 0): RateSlot | number {
    const free = this.#getFreeTime(now, tokens);
    if (free > now) return free - now;
    const slot = { startedAt: now, tokens };
    this.#slots.push(slot);
    return slot;
  }

  /** True when a slot is free and no caller waits. */
  isOpen(now: number, tokens = 0): boolean {
    return this.#waiting === 0 && this.#getFreeTime(now, tokens) <= now;
  }

  /** Holds a slot without a start time: a held slot counts until its start or release. */
  hold(slot: RateSlot): void {
    this.#remove(slot);
    this.#heldSlots.add(slot);
  }

  /** Starts a held slot now. */
  start(slot: RateSlot, now: number): void {
    this.#remove(slot);
    slot.startedAt = now;
    this.#slots.push(slot);
    this.#notifyChange();
  }

  /** Releases a slot that was not used. */
  release(slot: RateSlot): void {
    this.#remove(slot);
    this.#notifyChange();
  }

  /** Returns the time from which a slot is free. */
  #getFreeTime(now: number, tokens: number): number {
    const { calls, tokens: maxTokens, perMs } = this.#limits;
    const slots = this.#slots;
    while (slots[0] !== undefined && slots[0].startedAt + perMs <= now) slots.shift();
    let count = slots.length + this.#heldSlots.size;
    let usedTokens = sumTokens(slots) + sumTokens(this.#heldSlots);
    let free = now;
    for (const slot of slots) {
      if (count < calls && usedTokens + tokens <= maxTokens) return free;
      count -= 1;
      usedTokens -= slot.tokens;
      free = slot.startedAt + perMs;
    }
    const hasRoom = this.#heldSlots.size === 0 || (count < calls && usedTokens + tokens <= maxTokens);
    return hasRoom ? free : Number.POSITIVE_INFINITY;
  }

  #remove(slot: RateSlot): void {
    this.#heldSlots.delete(slot);
    const index = this.#slots.indexOf(slot);
    if (index !== -1) this.#slots.splice(index, 1);
  }

  #notifyChange(): void {
    const { fire } = this.#changeSignal;
    this.#changeSignal = createDeferred();
    fire();
  }
}

/**
 * Acquires a slot at each gate, so that all slots start at the same time. While waiting at a gate, holds the slots
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

/** Promise with a function that resolves the promise. */
interface Deferred {
  readonly promise: Promise<void>;
  readonly fire: () => void;
}

function createDeferred(): Deferred {
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
