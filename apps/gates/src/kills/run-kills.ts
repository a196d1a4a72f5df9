/** `kills`: a real process is killed by SIGKILL at random moments, and another goes on with its files. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Chance, chanceOf } from "@statewright/testing";
import type { KillLine } from "./kill-process.ts";

const file = fileURLToPath(new URL("./kill-process.ts", import.meta.url));

/** So long after it is ready a process lives at most. */
const longestLifeMs = 250;

/** How it went with one process. */
interface Death {
  readonly done: readonly number[];
  readonly wrong: readonly string[];
  readonly stderr: string;
  readonly killed: boolean;
}

/** Kill so many processes, or for so many minutes; tells whether every program came to its end all the same. */
export async function runKills({
  kills,
  minutes,
  seed,
}: {
  kills: number;
  minutes: number | undefined;
  seed: number;
}): Promise<boolean> {
  const began = performance.now();
  let left = minutes === undefined ? kills : Number.MAX_SAFE_INTEGER;
  const sums = { kills: 0, programs: 0 };
  const wrong: string[] = [];
  const worker = async (nth: number): Promise<void> => {
    const folder = mkdtempSync(join(tmpdir(), "statewright-kills-"));
    const chance = chanceOf(seed + nth);
    let program = seed * 1_000 + nth * 500_000;
    while (left-- > 0 && wrong.length === 0) {
      if (minutes !== undefined && performance.now() - began > minutes * 60_000) break;
      const death = await oneDeath(folder, program, chance);
      sums.programs += death.done.length;
      if (death.killed) sums.kills += 1;
      else wrong.push(`a process ended by itself at program ${program}: ${death.stderr}`);
      wrong.push(...death.wrong);
      program = (death.done.at(-1) ?? program - 1) + 1;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, (_, nth) => worker(nth)));
  for (const line of wrong) console.log(line);
  const seconds = (performance.now() - began) / 1000;
  console.log(
    `kills: ${sums.kills} processes killed, ${sums.programs} programs came to their end, in ${seconds.toFixed(1)} s`,
  );
  console.log(`  violations: ${wrong.length}`);
  return wrong.length === 0;
}

function oneDeath(folder: string, program: number, chance: Chance): Promise<Death> {
  const child = spawn(process.execPath, ["--no-warnings", file, folder, String(program)], {
    stdio: ["ignore", "pipe", "pipe"],
    // Each life loads the same modules: the cache halves what a start costs.
    env: { NODE_COMPILE_CACHE: join(folder, "compiled"), ...process.env },
  });
  const done: number[] = [];
  const wrong: string[] = [];
  let stderr = "";
  let killed = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  createInterface({ input: child.stdout }).on("line", (text) => {
    const line = JSON.parse(text) as KillLine;
    if (line.kind === "done") {
      done.push(line.program);
      wrong.push(...line.wrong.map((each) => `program ${line.program}: ${each}`));
    } else
      setTimeout(() => {
        killed = child.kill("SIGKILL");
      }, chance.below(longestLifeMs));
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve({ done, wrong, stderr, killed }));
  });
}
