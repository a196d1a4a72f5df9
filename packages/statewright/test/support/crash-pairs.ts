/**
 * Pairs of crashes: copies the files at each point of a run, continues from each copy and copies again at each point,
 * and runs each second copy to the end.
 */
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "statewright";
import { type Kind, runMatrix } from "./crash-matrix-run.ts";
import { removeKeySalt } from "./remove-key-salt.ts";

/** Selects every n-th pair, and of those the share of one process. */
export interface PairShare {
  readonly every: number;
  readonly part: number;
  readonly parts: number;
}

export interface PairReport {
  readonly pairs: number;
  /** Failures, one line each, with both points. */
  readonly wrong: readonly string[];
}

interface Death {
  readonly point: string;
  readonly folder: string;
}

interface End {
  readonly observed: string;
  /** Number of occurrences per effect key. */
  readonly acts: ReadonlyMap<string, number>;
}

/** Runs the pairs of one kind of tool; `home` is an empty folder. */
export async function runPairs(kind: Kind, home: string, { every, part, parts }: PairShare): Promise<PairReport> {
  const step = Math.ceil(Math.sqrt(every));
  const undisturbed = await getEnd(kind, createFolderPath(home, "undisturbed"));
  const { deaths } = await liveAndCopy(
    kind,
    createFolderPath(home, "first"),
    (nth) => nth % step === 0 && (nth / step) % parts === part,
  );
  const wrong: string[] = [];
  let pairs = 0;
  for (const [nth, first] of deaths.entries()) {
    const second = await liveAndCopy(kind, first.folder, (at) => (at + nth) % step === 0);
    wrong.push(...listDifferences(kind, undisturbed, second.end).map((what) => `${kind}: ${first.point}: ${what}`));
    for (const { point, folder } of second.deaths) {
      pairs += 1;
      const third = await getEnd(kind, folder);
      wrong.push(
        ...listDifferences(kind, undisturbed, third).map((what) => `${kind}: ${first.point}, then ${point}: ${what}`),
      );
      rmSync(folder, { recursive: true });
    }
    rmSync(first.folder, { recursive: true });
  }
  return { pairs, wrong };
}

/** Continues in a folder to the end, and copies the folder at the selected points. */
async function liveAndCopy(
  kind: Kind,
  folder: string,
  isChosen: (nth: number) => boolean,
): Promise<{ readonly end: End; readonly deaths: readonly Death[] }> {
  const deaths: Death[] = [];
  let came = 0;
  const end = await getEnd(kind, folder, (point) => {
    const nth = came++;
    if (!isChosen(nth)) return;
    const copy = `${folder}-${nth}`;
    // The next process to open the file recreates the shared index of the log.
    cpSync(folder, copy, { recursive: true, filter: (file) => !file.endsWith("-shm") });
    deaths.push({ point, folder: copy });
  });
  return { end, deaths };
}

async function getEnd(kind: Kind, folder: string, point: (name: string) => void = () => undefined): Promise<End> {
  const file = join(folder, "effects.ndjson");
  const observed = await runMatrix(kind, {
    folder,
    point,
    log: (effect) => appendFileSync(file, `${JSON.stringify(effect)}\n`),
  });
  const acts = new Map<string, number>();
  for (const { what, key: saltedKey } of listLines(file)) {
    const key = removeKeySalt(String(saltedKey));
    if (what === "act") acts.set(key, (acts.get(key) ?? 0) + 1);
  }
  return { observed: removeKeySalt(observed), acts };
}

/** Checks for the same end and the same effects as without a crash; only repeatable effects may occur twice. */
function listDifferences(kind: Kind, expected: End, { observed, acts }: End): readonly string[] {
  const lost = [...expected.acts.keys()].filter((key) => !acts.has(key)).map((key) => `lost ${key}`);
  const more = [...acts.keys()].filter((key) => !expected.acts.has(key)).map((key) => `unknown ${key}`);
  const twice = [...acts].filter(([, count]) => count > 1).map(([key, count]) => `${key} ${count} times`);
  return [
    ...(observed === expected.observed ? [] : [`ended with ${observed}`]),
    ...lost,
    ...more,
    ...(kind === "idempotent" ? [] : twice),
  ];
}

function listLines(file: string): readonly Record<string, Json>[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Record<string, Json>);
}

function createFolderPath(home: string, name: string): string {
  const folder = join(home, name);
  mkdirSync(folder);
  return folder;
}
