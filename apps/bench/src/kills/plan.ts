/** When the processes of a run die: decided by its seed before it begins, and the same for every contender. */
import { chanceOf } from "@statewright/testing";

/** At a share of the points that a process comes to undisturbed, or of the time that it takes. */
export interface Death {
  readonly at: "point" | "moment";
  readonly share: number;
}

/** What happens to each process of the run, one after the other; nothing happens to those that follow. */
export type Plan = readonly (Death | undefined)[];

const mostDeaths = 3;

export function planOf(seed: number): Plan {
  const chance = chanceOf(seed);
  const undisturbed = chance.below(2);
  const deaths = Array.from({ length: 1 + chance.below(mostDeaths) }, () => ({
    at: chance.share(0.5) ? ("point" as const) : ("moment" as const),
    share: chance.below(1_000) / 1_000,
  }));
  return [...Array.from({ length: undisturbed }, () => undefined), ...deaths];
}
