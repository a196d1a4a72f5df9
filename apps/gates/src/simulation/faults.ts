/** Fault plan of one simulation: kinds of faults, and the event before which each fault is injected. */
import type { Chance } from "@statewright/testing";

/** Fault of a simulation. */
export type Fault =
  | { readonly kind: "kill" }
  | { readonly kind: "die"; readonly when: "before" | "after" }
  | { readonly kind: "store"; readonly error: "store_full" | "store_locked" | "store_failed"; readonly times: number }
  /** An external call fails before its effect. */
  | { readonly kind: "external" }
  /** Another process resumes the thread, with answers to the interrupts of the thread. */
  | { readonly kind: "intrude" }
  /** Another process claims the thread while the owner is alive. */
  | { readonly kind: "take" }
  | { readonly kind: "clock"; readonly ms: number }
  | { readonly kind: "drain" }
  | { readonly kind: "cancel" };

/** Fault with the number of the event before which the fault is injected. */
export interface PlannedFault {
  readonly at: number;
  readonly fault: Fault;
}

/** Kinds of faults in a simulation; all kinds by default. */
export type FaultKind = Fault["kind"];

/** Injected faults by kind. */
export type FaultCounts = Readonly<Partial<Record<FaultKind, number>>>;

/** All kinds of faults. */
export const faultKinds: readonly FaultKind[] = [
  "kill",
  "die",
  "store",
  "external",
  "intrude",
  "take",
  "clock",
  "drain",
  "cancel",
];

/** Plans faults over `events` events. */
export function planFaults(chance: Chance, events: number, allowed: readonly FaultKind[]): readonly PlannedFault[] {
  const planned: PlannedFault[] = [];
  const isAllowed = (kind: FaultKind): boolean => allowed.includes(kind);
  const span = events + 10;
  const addFaults = (maxCount: number, createFault: () => Fault | undefined): void => {
    for (let remaining = chance.getInteger(maxCount + 1); remaining > 0; remaining--) {
      const fault = createFault();
      if (fault !== undefined && isAllowed(fault.kind)) planned.push({ at: 1 + chance.getInteger(span), fault });
    }
  };
  addFaults(3, () =>
    chance.flip(0.5) ? { kind: "kill" } : { kind: "die", when: chance.flip(0.5) ? "before" : "after" },
  );
  if (chance.flip(0.4))
    addFaults(2, () => ({
      kind: "store",
      error: chance.pick(["store_full", "store_locked", "store_failed"] as const),
      times: 1 + chance.getInteger(3),
    }));
  if (chance.flip(0.4)) addFaults(2, () => ({ kind: "external" }));
  if (chance.flip(0.4)) addFaults(3, () => ({ kind: "intrude" }));
  if (chance.flip(0.2)) addFaults(1, () => ({ kind: "take" }));
  if (chance.flip(0.3)) addFaults(2, () => ({ kind: "clock", ms: (chance.getInteger(2_000_000) - 1_000_000) * 60 }));
  if (chance.flip(0.2)) addFaults(2, () => ({ kind: "drain" }));
  if (chance.flip(0.05)) addFaults(1, () => ({ kind: "cancel" }));
  return planned.sort((a, b) => a.at - b.at);
}
