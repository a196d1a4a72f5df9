/** A watch over work that must show signs of life. */
import type { World } from "../../base/world.ts";

/** A watch at work. */
export interface IdleWatch {
  /** The work is alive. */
  readonly beat: () => void;
  /** The work is over: no timer is left. */
  readonly stop: () => void;
}

/** Call `onIdle` when `limitMs` go by without a beat. One timer at a time: a beat only notes the time. */
export function watchIdle({ clock, schedule }: World, limitMs: number, onIdle: () => void): IdleWatch {
  let last = clock.monotonic();
  const look = (): void => {
    const leftMs = last + limitMs - clock.monotonic();
    if (leftMs > 0) cancel = schedule.after(leftMs, look);
    else onIdle();
  };
  let cancel = schedule.after(limitMs, look);
  return {
    beat: () => {
      last = clock.monotonic();
    },
    stop: () => cancel(),
  };
}

/** For work that nobody watches. */
export function unwatched(): void {
  // Nobody waits for a sign.
}
