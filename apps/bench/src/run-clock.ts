/** Clock that is started by a node of the run. Earlier work, such as the start of the run, does not count. */
import { cpuUsage } from "node:process";
import type { Sample } from "./sample.ts";

export interface RunClock {
  start(): void;
  /** Returns the time since the start, divided by `units`. */
  stop(units?: number): Sample;
}

export function createRunClock(): RunClock {
  let cpu = cpuUsage();
  let wall = performance.now();
  return {
    start: () => {
      cpu = cpuUsage();
      wall = performance.now();
    },
    stop: (units = 1) => {
      const wallUs = (performance.now() - wall) * 1_000;
      const { user, system } = cpuUsage(cpu);
      return { cpuUs: (user + system) / units, wallUs: wallUs / units };
    },
  };
}
