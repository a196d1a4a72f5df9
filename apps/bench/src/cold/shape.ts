/** The graphs that are compiled in a process of their own: what a child process is told, and what it says. */
import { writeSync } from "node:fs";

/** `chain`: each node leads to the next. `parallel`: the first node leads to all others at once. */
export type ColdShape = "chain" | "parallel";

/** Names of the nodes, and where each leads; the last ones lead nowhere. */
export function coldGraph(shape: ColdShape, size: number): readonly (readonly [string, readonly string[]])[] {
  const names = Array.from({ length: size }, (_, index) => `node${index}`);
  const [first = "node0", ...others] = names;
  if (shape === "parallel") return [[first, others], ...others.map((name) => [name, []] as const)];
  return names.map((name, index) => [name, names.slice(index + 1, index + 2)] as const);
}

/** The sample so far, printed, and the end of the process. */
export function sayAndEnd(cpu: NodeJS.CpuUsage, wall: number): never {
  const { user, system } = process.cpuUsage(cpu);
  writeSync(1, JSON.stringify({ cpuUs: user + system, wallUs: (performance.now() - wall) * 1_000 }));
  process.exit(0);
}
