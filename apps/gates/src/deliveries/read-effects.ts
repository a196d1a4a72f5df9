/** Effects of the graphs of the deliverer suite, from their file. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Effect that a worker has begun. */
export interface DeliveredEffect {
  readonly name: string;
  readonly key: string;
}

export function readEffects(folder: string): readonly DeliveredEffect[] {
  const file = join(folder, "effects.ndjson");
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as DeliveredEffect);
}
