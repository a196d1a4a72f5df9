/** Graph shapes of B19 and the output of its child processes. */
import { writeSync } from "node:fs";

/** `chain`: each node routes to the next. `parallel`: the first node routes to all other nodes. */
export type ColdShape = "chain" | "parallel";

/** Returns node names with their targets. A final node has no targets. */
export function createColdGraph(shape: ColdShape, size: number): readonly (readonly [string, readonly string[]])[] {
  const names = Array.from({ length: size }, (_, index) => `node${index}`);
  const [first = "node0", ...others] = names;
  if (shape === "parallel") return [[first, others], ...others.map((name) => [name, []] as const)];
  return names.map((name, index) => [name, names.slice(index + 1, index + 2)] as const);
}

/** Prints the sample and exits the process. */
export function printAndExit(cpu: NodeJS.CpuUsage, wall: number): never {
  const { user, system } = process.cpuUsage(cpu);
  writeSync(1, JSON.stringify({ cpuUs: user + system, wallUs: (performance.now() - wall) * 1_000 }));
  process.exit(0);
}
