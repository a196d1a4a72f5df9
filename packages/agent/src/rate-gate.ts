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
  at: number;
  tokens: number;
}

type Waiting = Pick<MiddlewareRuntime, "clock" | "wait" | "signal">;

/** Lets turns through. */
export interface RateGate {
  /** Tells gates apart: one that was made later has a greater number. */
  readonly nth: number;
  /** Wait for a turn; undefined when the run ends while it waits. */
  readonly wait: (at: Waiting, tokens?: number) => Promise<Turn | undefined>;
  /** Take a turn now, or the milliseconds until there is one: infinite while turns are kept for who waits elsewhere. */
  readonly take: (now: number, tokens?: number) => Turn | number;
  /** Whether a turn could be taken at once, before nobody. */
  readonly isOpen: (now: number, tokens?: number) => boolean;
  /** Keep a turn that has not begun: it counts for as long as it is kept. */
  readonly keep: (turn: Turn) => void;
  /** The turn begins now. */
  readonly begin: (turn: Turn, now: number) => void;
  /** Give a turn back for which nothing went out. */
  readonly giveBack: (turn: Turn) => void;
}

/** A gate that somebody passes, with the turn that was taken there. */
export interface Pass {
  readonly gate: RateGate;
  readonly tokens: number;
  turn: Turn | undefined;
}

let gates = 0;

/** A gate that is shared by all who use it in this process. */
export function rateGate({
  calls = Number.POSITIVE_INFINITY,
  tokens: room = Number.POSITIVE_INFINITY,
  perMs,
}: Rate): RateGate {
  /** Turns that still count, oldest first. */
  const turns: Turn[] = [];
  const kept: Set<Turn> = new Set();
  let waiting = 0;
  let lastLeft: Promise<unknown> = Promise.resolve();
  let changed = signalOnce();

  /** The moment from which on there is a turn. */
  const freeFrom = (now: number, tokens: number): number => {
    while (turns[0] !== undefined && turns[0].at + perMs <= now) turns.shift();
    let count = turns.length + kept.size;
    let held = weightOf(turns) + weightOf(kept);
    let free = now;
    for (const turn of turns) {
      if (count < calls && held + tokens <= room) return free;
      count -= 1;
      held -= turn.tokens;
      free = turn.at + perMs;
    }
    return kept.size === 0 || (count < calls && held + tokens <= room) ? free : Number.POSITIVE_INFINITY;
  };

  const take = (now: number, tokens = 0): Turn | number => {
    const free = freeFrom(now, tokens);
    if (free > now) return free - now;
    const taken = { at: now, tokens };
    turns.push(taken);
    return taken;
  };

  const drop = (turn: Turn): void => {
    kept.delete(turn);
    const place = turns.indexOf(turn);
    if (place !== -1) turns.splice(place, 1);
  };

  const change = (): void => {
    const { now } = changed;
    changed = signalOnce();
    now();
  };

  const wait: RateGate["wait"] = async ({ clock, wait: sleep, signal }, tokens = 0) => {
    if (waiting === 0) {
      const turn = take(clock.now(), tokens);
      if (typeof turn !== "number") return turn;
    }
    const before = lastLeft;
    const left = signalOnce();
    lastLeft = before.then(() => left.happened);
    waiting += 1;
    try {
      await unlessAborted(before, signal);
      while (!signal.aborted) {
        const turn = take(clock.now(), tokens);
        if (typeof turn !== "number") return turn;
        await (turn === Number.POSITIVE_INFINITY ? unlessAborted(changed.happened, signal) : sleep(turn));
      }
      return undefined;
    } finally {
      waiting -= 1;
      left.now();
    }
  };

  return {
    nth: gates++,
    wait,
    take,
    isOpen: (now, tokens = 0) => waiting === 0 && freeFrom(now, tokens) <= now,
    keep: (turn) => {
      drop(turn);
      kept.add(turn);
    },
    begin: (turn, now) => {
      drop(turn);
      turn.at = now;
      turns.push(turn);
      change();
    },
    giveBack: (turn) => {
      drop(turn);
      change();
    },
  };
}

/**
 * Wait for a turn at each of these gates; all begin at one moment. Who waits at one keeps the turns of gates that were made
 * before it and gives back those of later ones, so that nobody waits for each other. False when the run ends meanwhile.
 */
export async function passTogether(passes: readonly Pass[], at: Waiting): Promise<boolean> {
  const inOrder = passes.toSorted((one, other) => one.gate.nth - other.gate.nth);
  for (const [nth, pass] of inOrder.entries()) {
    if (pass.turn !== undefined) continue;
    if (!pass.gate.isOpen(at.clock.now(), pass.tokens)) {
      for (const { gate, turn } of inOrder.slice(0, nth)) if (turn !== undefined) gate.keep(turn);
      giveBack(inOrder.slice(nth + 1));
    }
    pass.turn = await pass.gate.wait(at, pass.tokens);
    if (pass.turn !== undefined) continue;
    giveBack(inOrder);
    return false;
  }
  if (inOrder.length === 1) return true;
  const now = at.clock.now();
  for (const { gate, turn } of inOrder) if (turn !== undefined) gate.begin(turn, now);
  return true;
}

function giveBack(passes: readonly Pass[]): void {
  for (const pass of passes) {
    if (pass.turn !== undefined) pass.gate.giveBack(pass.turn);
    pass.turn = undefined;
  }
}

function weightOf(turns: Iterable<Turn>): number {
  let sum = 0;
  for (const { tokens } of turns) sum += tokens;
  return sum;
}

/** A promise, and what resolves it. */
function signalOnce(): { readonly happened: Promise<void>; readonly now: () => void } {
  let now = (): void => undefined;
  const happened = new Promise<void>((resolve) => {
    now = resolve;
  });
  return { happened, now };
}

async function unlessAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const aborted = signalOnce();
  signal.addEventListener("abort", aborted.now, { once: true });
  await Promise.race([promise, aborted.happened]);
  signal.removeEventListener("abort", aborted.now);
}
