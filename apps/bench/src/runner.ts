/** A contender at work: asked for one round after the other, in this process or in one of its own. */
import { cpuUsage } from "node:process";
import type { Contender } from "./case.ts";
import { collectGarbage } from "./collector.ts";
import type { Sample } from "./measure.ts";

export interface Runner {
  /** One round, measured. */
  readonly take: (size: number, steady: boolean) => Promise<Sample>;
  /** What the last round left. */
  readonly look: () => Promise<Left>;
  /** End, and say how many bytes one unit left on disk, where {@link Runner.look} does not. */
  readonly close: () => Promise<number | undefined>;
}

export interface Left {
  /** On disk, all units together. */
  readonly bytes?: number | undefined;
  readonly notes?: string | undefined;
  readonly remark?: string | undefined;
}

export async function runHere({ open }: Contender): Promise<Runner> {
  const work = await open();
  return {
    take: async (size, steady) => {
      if (!steady) collectGarbage();
      const cpu = cpuUsage();
      const wall = performance.now();
      const own = await work.run(size);
      const wallUs = (performance.now() - wall) * 1_000;
      const { user, system } = cpuUsage(cpu);
      return own ?? { cpuUs: user + system, wallUs };
    },
    look: async () => ({ bytes: work.bytes?.(), notes: work.notes?.(), remark: work.remark?.() }),
    close: async () => await work.close?.(),
  };
}
