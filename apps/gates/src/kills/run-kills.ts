/** `kills`: kills a real process by SIGKILL at random moments; the next process resumes from its files. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Chance, createChance } from "@statewright/testing";
import type { KillMessage } from "./kill-process.ts";

const file = fileURLToPath(new URL("./kill-process.ts", import.meta.url));

/** Maximum lifetime of a process after its `ready` line. */
const maxLifetimeMs = 250;

/** Result of one process. */
interface ProcessResult {
  readonly done: readonly number[];
  readonly violations: readonly string[];
  readonly stderr: string;
  readonly killed: boolean;
}

/**
 * Kills the given number of processes, or kills for the given minutes. Returns true if every program finished without
 * violations.
 */
export async function runKills({
  kills,
  minutes,
  seed,
}: {
  kills: number;
  minutes: number | undefined;
  seed: number;
}): Promise<boolean> {
  const startedAt = performance.now();
  let remaining = minutes === undefined ? kills : Number.MAX_SAFE_INTEGER;
  const sums = { kills: 0, programs: 0 };
  const violations: string[] = [];
  const runWorker = async (nth: number): Promise<void> => {
    const folder = mkdtempSync(join(tmpdir(), "statewright-kills-"));
    const chance = createChance(seed + nth);
    let program = seed * 1_000 + nth * 500_000;
    while (remaining-- > 0 && violations.length === 0) {
      if (minutes !== undefined && performance.now() - startedAt > minutes * 60_000) break;
      const result = await runProcess(folder, program, chance);
      sums.programs += result.done.length;
      if (result.killed) sums.kills += 1;
      else violations.push(`expected a killed process, but the process exited at program ${program}: ${result.stderr}`);
      violations.push(...result.violations);
      program = (result.done.at(-1) ?? program - 1) + 1;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, (_, nth) => runWorker(nth)));
  for (const line of violations) console.log(line);
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(`kills: ${sums.kills} processes killed, ${sums.programs} programs finished, in ${seconds.toFixed(1)} s`);
  console.log(`  violations: ${violations.length}`);
  return violations.length === 0;
}

function runProcess(folder: string, program: number, chance: Chance): Promise<ProcessResult> {
  const child = spawn(process.execPath, ["--no-warnings", file, folder, String(program)], {
    stdio: ["ignore", "pipe", "pipe"],
    // Every process loads the same modules; the compile cache halves the cost of a start.
    env: { NODE_COMPILE_CACHE: join(folder, "compiled"), ...process.env },
  });
  const done: number[] = [];
  const found: string[] = [];
  let stderr = "";
  let killed = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  createInterface({ input: child.stdout }).on("line", (text) => {
    const line = JSON.parse(text) as KillMessage;
    if (line.kind === "done") {
      done.push(line.program);
      found.push(...line.violations.map((each) => `program ${line.program}: ${each}`));
    } else
      setTimeout(() => {
        killed = child.kill("SIGKILL");
      }, chance.getInteger(maxLifetimeMs));
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve({ done, violations: found, stderr, killed }));
  });
}
