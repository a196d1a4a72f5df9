/**
 * Pairs of deaths: at each point of a life its files are copied as a death there would leave them, a second life goes on
 * from each copy and is copied in the same way, and a third one goes on from there to the end.
 */
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "statewright";
import { type Kind, liveMatrix } from "./crash-matrix-run.ts";

/** Which of the pairs: every so many-th, and of those the share of one process out of several. */
export interface PairShare {
  readonly every: number;
  readonly part: number;
  readonly parts: number;
}

export interface PairReport {
  readonly pairs: number;
  /** What went wrong, a line each, with both points. */
  readonly wrong: readonly string[];
}

interface Death {
  readonly point: string;
  readonly folder: string;
}

interface End {
  readonly told: string;
  /** How often each effect of a tool happened, by its key. */
  readonly acts: ReadonlyMap<string, number>;
}

/** Live through the pairs of one kind of tool; `home` is an empty folder. */
export async function livePairs(kind: Kind, home: string, { every, part, parts }: PairShare): Promise<PairReport> {
  const step = Math.ceil(Math.sqrt(every));
  const undisturbed = await endOf(kind, folderIn(home, "undisturbed"));
  const { deaths } = await liveAndCopy(
    kind,
    folderIn(home, "first"),
    (nth) => nth % step === 0 && (nth / step) % parts === part,
  );
  const wrong: string[] = [];
  let pairs = 0;
  for (const [nth, first] of deaths.entries()) {
    const second = await liveAndCopy(kind, first.folder, (at) => (at + nth) % step === 0);
    wrong.push(...differences(kind, undisturbed, second.end).map((what) => `${kind}: ${first.point}: ${what}`));
    for (const { point, folder } of second.deaths) {
      pairs += 1;
      const third = await endOf(kind, folder);
      wrong.push(
        ...differences(kind, undisturbed, third).map((what) => `${kind}: ${first.point}, then ${point}: ${what}`),
      );
      rmSync(folder, { recursive: true });
    }
    rmSync(first.folder, { recursive: true });
  }
  return { pairs, wrong };
}

/** Live on in a folder to the end, and leave copies of it as it was at the points that are chosen. */
async function liveAndCopy(
  kind: Kind,
  folder: string,
  isChosen: (nth: number) => boolean,
): Promise<{ readonly end: End; readonly deaths: readonly Death[] }> {
  const deaths: Death[] = [];
  let came = 0;
  const end = await endOf(kind, folder, (point) => {
    const nth = came++;
    if (!isChosen(nth)) return;
    const copy = `${folder}-${nth}`;
    // The shared index of the log is made anew by whoever opens the file.
    cpSync(folder, copy, { recursive: true, filter: (file) => !file.endsWith("-shm") });
    deaths.push({ point, folder: copy });
  });
  return { end, deaths };
}

async function endOf(kind: Kind, folder: string, point: (name: string) => void = () => undefined): Promise<End> {
  const file = join(folder, "effects.ndjson");
  const told = await liveMatrix(kind, {
    folder,
    point,
    log: (effect) => appendFileSync(file, `${JSON.stringify(effect)}\n`),
  });
  const acts = new Map<string, number>();
  for (const { what, key } of linesOf(file))
    if (what === "act") acts.set(String(key), (acts.get(String(key)) ?? 0) + 1);
  return { told, acts };
}

/** The same end as without a death, the same effects, and only what may be repeated happened twice. */
function differences(kind: Kind, expected: End, { told, acts }: End): readonly string[] {
  const lost = [...expected.acts.keys()].filter((key) => !acts.has(key)).map((key) => `lost ${key}`);
  const more = [...acts.keys()].filter((key) => !expected.acts.has(key)).map((key) => `unknown ${key}`);
  const twice = [...acts].filter(([, count]) => count > 1).map(([key, count]) => `${key} ${count} times`);
  return [
    ...(told === expected.told ? [] : [`ended with ${told}`]),
    ...lost,
    ...more,
    ...(kind === "idempotent" ? [] : twice),
  ];
}

function linesOf(file: string): readonly Record<string, Json>[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Record<string, Json>);
}

function folderIn(home: string, name: string): string {
  const folder = join(home, name);
  mkdirSync(folder);
  return folder;
}
