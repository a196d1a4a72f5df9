/** Lives of real processes: the first dies by SIGKILL at a point, the next goes on from the store. */
import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { CrashRun } from "./crash-findings.ts";
import { type CrashOutcome, killInTurn } from "./kill-at.ts";
import { loggedEffects } from "./points.ts";
import { processFile } from "./process-file.ts";
import type { CrashTale } from "./run-process.ts";

/** Before the line in which a process says what is left. */
export const talePrefix = "statewright-tale: ";

/** Run the program of a module in processes of its own; the first dies at the point with this number. */
export async function killedLives(file: string, folder: string, dieAt: number | undefined): Promise<CrashRun> {
  mkdirSync(folder, { recursive: true });
  const outcome = await killInTurn({
    script: processFile("crash-child"),
    folder,
    args: [pathToFileURL(file).href],
    points: dieAt === undefined ? [] : [String(dieAt)],
  });
  const { graph, tale } = leftBehind(file, outcome);
  const [first] = outcome.lives;
  return {
    graph,
    tale,
    points: first?.points ?? [],
    died: first?.signal === "SIGKILL",
    effects: loggedEffects(folder),
  };
}

function leftBehind(
  file: string,
  { stdout, lives }: CrashOutcome,
): { readonly graph: string; readonly tale: CrashTale } {
  const line = stdout.split("\n").findLast((each) => each.startsWith(talePrefix));
  if (line === undefined)
    throw new Error(`the program of ${file} ended its process by itself.\n${lives.at(-1)?.stderr ?? ""}`);
  return JSON.parse(line.slice(talePrefix.length)) as { readonly graph: string; readonly tale: CrashTale };
}
