/**
 * Pairs of crashes in the crash matrix run, simulated by copies of the file and its log. `npm test` runs a few pairs;
 * STATEWRIGHT_PAIRS=n runs every n-th pair in parallel processes.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { kinds } from "../../support/crash-matrix-run.ts";
import { type PairReport, runPairs } from "../../support/crash-pairs.ts";
import { runInParallel } from "../../support/in-parallel.ts";

const script = fileURLToPath(new URL("../../support/processes/pair-process.ts", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "statewright-pairs-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Small shares, so that the processes end at about the same time. */
const parts = 16;

function createFolderPath(name: string): string {
  const folder = join(home, name);
  mkdirSync(folder);
  return folder;
}

async function everyPair(every: number): Promise<PairReport> {
  const reports: PairReport[] = [];
  const works = kinds.flatMap((kind) =>
    Array.from({ length: parts }, (_, part) => async () => {
      const args = [script, kind, createFolderPath(`${kind}-${part}`), String(every), String(part), String(parts)];
      const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 * 1024 * 1024 });
      reports.push(JSON.parse(stdout));
    }),
  );
  await runInParallel(works);
  const report = {
    pairs: reports.reduce((sum, { pairs }) => sum + pairs, 0),
    wrong: reports.flatMap(({ wrong }) => wrong),
  };
  console.log(`pairs: ${report.pairs}, violations: ${report.wrong.length}`);
  return report;
}

const asked = process.env["STATEWRIGHT_PAIRS"];

test("a process killed at one point and then at another ends like a process that was not killed", {
  timeout: 24 * 3_600_000,
}, async () => {
  const { pairs, wrong } =
    asked === undefined
      ? await runPairs("once", createFolderPath("share"), { every: 900, part: 0, parts: 1 })
      : await everyPair(Number(asked));
  expect(wrong).toEqual([]);
  expect(pairs).toBeGreaterThan(4);
});
