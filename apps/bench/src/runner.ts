/** Opened contender that runs rounds on request, in this process or in its own process. */
import { cpuUsage } from "node:process";
import type { Contender } from "./case.ts";
import { collectGarbage } from "./collector.ts";
import type { Sample } from "./sample.ts";

export interface Runner {
  /** Runs and measures one round. */
  readonly runRound: (size: number, steady: boolean) => Promise<Sample>;
  /** Returns the bytes and texts of the last round. */
  readonly getRoundDetails: () => Promise<RoundDetails>;
  /** Closes the contender. Returns the bytes per unit on disk, if {@link Runner.getRoundDetails} has none. */
  readonly close: () => Promise<number | undefined>;
}

export interface RoundDetails {
  /** Bytes on disk, for all units together. */
  readonly bytes?: number | undefined;
  readonly notes?: string | undefined;
  readonly remark?: string | undefined;
}

export async function openRunner({ open }: Contender): Promise<Runner> {
  const work = await open();
  return {
    runRound: async (size, steady) => {
      if (!steady) collectGarbage();
      const cpu = cpuUsage();
      const wall = performance.now();
      const sample = await work.run(size);
      const wallUs = (performance.now() - wall) * 1_000;
      const { user, system } = cpuUsage(cpu);
      return sample ?? { cpuUs: user + system, wallUs };
    },
    getRoundDetails: async () => ({ bytes: work.getBytes?.(), notes: work.getNotes?.(), remark: work.getRemark?.() }),
    close: async () => await work.close?.(),
  };
}
