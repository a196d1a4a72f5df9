/**
 * Runs a program in real processes: the first process is killed by SIGKILL at a point, the next process continues
 * from the store.
 */
import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { CrashRun } from "./crash-findings.ts";
import { type CrashOutcome, killInSequence } from "./kill-at.ts";
import { readLoggedEffects } from "./points.ts";
import { getProcessFile } from "./process-file.ts";
import type { CrashRunResult } from "./run-process.ts";

/** Prefix of the output line with the result of a process. */
export const resultPrefix = "statewright-result: ";

/**
 * Runs the program of a module in separate processes. The first process is killed at the point with the number
 * `killPoint`.
 */
export async function runKilledProcesses(
  file: string,
  folder: string,
  killPoint: number | undefined,
): Promise<CrashRun> {
  mkdirSync(folder, { recursive: true });
  const outcome = await killInSequence({
    script: getProcessFile("crash-child"),
    folder,
    args: [pathToFileURL(file).href],
    points: killPoint === undefined ? [] : [String(killPoint)],
  });
  const { graph, result } = parseResult(file, outcome);
  const [first] = outcome.processes;
  return {
    graph,
    result,
    points: first?.points ?? [],
    died: first?.signal === "SIGKILL",
    effects: readLoggedEffects(folder),
  };
}

function parseResult(
  file: string,
  { stdout, processes }: CrashOutcome,
): { readonly graph: string; readonly result: CrashRunResult } {
  const line = stdout.split("\n").findLast((each) => each.startsWith(resultPrefix));
  if (line === undefined)
    throw new Error(
      `crashMatrix: expected a result of the process of ${file}, got none.\n${processes.at(-1)?.stderr ?? ""}`,
    );
  return JSON.parse(line.slice(resultPrefix.length)) as { readonly graph: string; readonly result: CrashRunResult };
}
