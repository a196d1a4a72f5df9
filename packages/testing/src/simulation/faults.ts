/** The plan of what goes wrong in one simulation: which fault, before which event. */
import type { Chance } from "./chance.ts";

/** One thing that goes wrong. */
export type Fault =
  | { readonly kind: "kill" }
  | { readonly kind: "die"; readonly when: "before" | "after" }
  | { readonly kind: "store"; readonly error: "store_full" | "store_locked" | "store_failed"; readonly times: number }
  /** A call outside fails before it happens. */
  | { readonly kind: "outside" }
  /** Another process resumes the thread, with answers where there are questions. */
  | { readonly kind: "intrude" }
  /** The thread is taken from its living owner, and another process goes on with it. */
  | { readonly kind: "take" }
  | { readonly kind: "clock"; readonly ms: number }
  | { readonly kind: "drain" }
  | { readonly kind: "cancel" };

/** A fault and the event before which it comes. */
export interface PlannedFault {
  readonly at: number;
  readonly fault: Fault;
}

/** What a simulation may do; all by default. */
export type FaultKind = Fault["kind"];

/** Faults over `events` events. */
export function planFaults(chance: Chance, events: number, allowed: readonly FaultKind[]): readonly PlannedFault[] {
  const planned: PlannedFault[] = [];
  const may = (kind: FaultKind): boolean => allowed.includes(kind);
  const span = events + 10;
  const plan = (most: number, make: () => Fault | undefined): void => {
    for (let left = chance.below(most + 1); left > 0; left--) {
      const fault = make();
      if (fault !== undefined && may(fault.kind)) planned.push({ at: 1 + chance.below(span), fault });
    }
  };
  plan(3, () => (chance.share(0.5) ? { kind: "kill" } : { kind: "die", when: chance.share(0.5) ? "before" : "after" }));
  if (chance.share(0.4))
    plan(2, () => ({
      kind: "store",
      error: chance.of(["store_full", "store_locked", "store_failed"] as const),
      times: 1 + chance.below(3),
    }));
  if (chance.share(0.4)) plan(2, () => ({ kind: "outside" }));
  if (chance.share(0.4)) plan(3, () => ({ kind: "intrude" }));
  if (chance.share(0.2)) plan(1, () => ({ kind: "take" }));
  if (chance.share(0.3)) plan(2, () => ({ kind: "clock", ms: (chance.below(2_000_000) - 1_000_000) * 60 }));
  if (chance.share(0.2)) plan(2, () => ({ kind: "drain" }));
  if (chance.share(0.05)) plan(1, () => ({ kind: "cancel" }));
  return planned.sort((one, other) => one.at - other.at);
}
