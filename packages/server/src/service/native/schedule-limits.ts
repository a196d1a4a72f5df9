/** Limits of the schedules of a tenant. */
import { listScheduleSlots } from "@statewright/core/adapter";
import type { Caller } from "../../access/caller.ts";
import { createIntervalProblem } from "./native-problems.ts";

/** Limits of the schedules of a tenant, and the callers who made them. */
export interface ScheduleSettings {
  /** Minimum milliseconds between two runs of a schedule. Default 60,000. */
  readonly minIntervalMs?: number | undefined;
  /** Maximum number of schedules of a tenant. Default 100. */
  readonly maxPerTenant?: number | undefined;
  /**
   * Loads the caller who made a schedule when one of its runs is due: `authorize` is asked for this caller, and
   * undefined skips the run. Default: a caller with the saved id and tenant, without scopes and claims.
   */
  readonly findMaker?:
    | ((maker: Pick<Caller, "id" | "tenant">) => Caller | undefined | Promise<Caller | undefined>)
    | undefined;
}

/** Returns the limits of a server with their defaults. */
export function getScheduleLimits({ minIntervalMs = 60_000, maxPerTenant = 100 }: ScheduleSettings = {}): {
  readonly minIntervalMs: number;
  readonly maxPerTenant: number;
} {
  return { minIntervalMs, maxPerTenant };
}

/** Slots of a calendar whose distances are checked. */
const checkedSlots = 200;

/** Throws the problem `interval_too_short` for a calendar with two slots that are closer than the minimum. */
export function checkInterval(
  calendar: Parameters<typeof listScheduleSlots>[0],
  { minIntervalMs }: { readonly minIntervalMs: number },
): void {
  const slots = listScheduleSlots({ ...calendar, count: checkedSlots });
  const distances = slots.map((slot, nth) => slot - (slots[nth - 1] ?? Number.NEGATIVE_INFINITY));
  const shortest = Math.min(...distances, calendar.everyMs ?? Number.POSITIVE_INFINITY);
  if (shortest < minIntervalMs) throw createIntervalProblem({ minMs: minIntervalMs, ms: shortest });
}
