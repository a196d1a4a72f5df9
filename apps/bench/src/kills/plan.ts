/** Kill plan of a run's processes, derived from the seed before the run, and equal for all contenders. */
import { createChance } from "@statewright/testing";

/** Kill at a share of the kill points of the undisturbed process, or at a share of its duration. */
export interface PlannedKill {
  readonly at: "point" | "moment";
  readonly share: number;
}

/** Kill of each process of the run, in order. Later processes are not killed. */
export type KillPlan = readonly (PlannedKill | undefined)[];

const maxKills = 3;

export function createKillPlan(seed: number): KillPlan {
  const chance = createChance(seed);
  const undisturbed = chance.getInteger(2);
  const kills = Array.from({ length: 1 + chance.getInteger(maxKills) }, () => ({
    at: chance.flip(0.5) ? ("point" as const) : ("moment" as const),
    share: chance.getInteger(1_000) / 1_000,
  }));
  return [...Array.from({ length: undisturbed }, () => undefined), ...kills];
}
