/**
 * Turns within a rate: at most so many begin in any stretch of time, first come, first served. Only the first who waits has
 * a timer, and who gives up leaves its place to those behind: it has taken no turn.
 */
import type { MiddlewareRuntime } from "@statewright/core";

/** What a gate lets through in any `perMs`. */
export interface Rate {
  readonly calls?: number | undefined;
  readonly tokens?: number | undefined;
  readonly perMs: number;
}

/** A turn that was taken; what it turns out to weigh may be told later. */
export interface Turn {
  readonly at: number;
  tokens: number;
}

/** Lets turns through. */
export interface RateGate {
  /** Wait for a turn; undefined when the run ends while it waits. */
  readonly wait: (
    at: Pick<MiddlewareRuntime, "clock" | "wait" | "signal">,
    tokens?: number,
  ) => Promise<Turn | undefined>;
  /** Take a turn now, or the milliseconds until there is one. */
  readonly take: (now: number, tokens?: number) => Turn | number;
}

/** A gate that is shared by all who use it in this process. */
export function rateGate({
  calls = Number.POSITIVE_INFINITY,
  tokens: room = Number.POSITIVE_INFINITY,
  perMs,
}: Rate): RateGate {
  /** Turns that still count, oldest first. */
  const turns: Turn[] = [];
  let waiting = 0;
  let lastLeft: Promise<unknown> = Promise.resolve();

  const take = (now: number, tokens = 0): Turn | number => {
    while (turns[0] !== undefined && turns[0].at + perMs <= now) turns.shift();
    let count = turns.length;
    let held = turns.reduce((sum, turn) => sum + turn.tokens, 0);
    let free = now;
    for (const turn of turns) {
      if (count < calls && held + tokens <= room) break;
      count -= 1;
      held -= turn.tokens;
      free = turn.at + perMs;
    }
    if (free > now) return free - now;
    const taken = { at: now, tokens };
    turns.push(taken);
    return taken;
  };

  const wait: RateGate["wait"] = async ({ clock, wait: sleep, signal }, tokens = 0) => {
    if (waiting === 0) {
      const turn = take(clock.now(), tokens);
      if (typeof turn !== "number") return turn;
    }
    const before = lastLeft;
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    lastLeft = before.then(() => left);
    waiting += 1;
    try {
      await unlessAborted(before, signal);
      while (!signal.aborted) {
        const turn = take(clock.now(), tokens);
        if (typeof turn !== "number") return turn;
        await sleep(turn);
      }
      return undefined;
    } finally {
      waiting -= 1;
      leave();
    }
  };
  return { wait, take };
}

async function unlessAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  let abort = (): void => undefined;
  const aborted = new Promise<void>((resolve) => {
    abort = resolve;
  });
  signal.addEventListener("abort", abort, { once: true });
  await Promise.race([promise, aborted]);
  signal.removeEventListener("abort", abort);
}
