/** Lives through runs whose processes are killed, and counts what happened in the world outside. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Errand, errands, readLog, resultOf } from "./external-world.ts";
import { type Plan, planOf } from "./plan.ts";
import { type ChildOptions, type Life, liveOnce } from "./process.ts";
import type { ContenderId, Stop } from "./program.ts";

/** What was counted over all runs of a contender. */
export interface KillCounts {
  readonly runs: number;
  readonly deaths: number;
  /** Runs in which an errand was done more than once. */
  readonly repeated: number;
  /** Those of them in which the other side could not know it: another idempotency key, or none. */
  readonly twice: number;
  /** Runs that ended without an errand having been done. */
  readonly lost: number;
  /** Runs that ended with other results than undisturbed, or did not end. */
  readonly otherEnd: number;
  /** Runs in which a person was asked what came of a call. */
  readonly asked: number;
  /** Seeds of runs that went wrong, each with what was wrong. */
  readonly wrong: readonly { readonly seed: number; readonly what: string }[];
}

/** More processes than this, and the run does not end. */
const mostLives = 12;

export async function measureKills(
  contender: ContenderId,
  {
    runs,
    seed,
    home,
    entry,
  }: { readonly runs: number; readonly seed: number; readonly home: string; readonly entry: string },
): Promise<KillCounts> {
  const optionsOf = (name: string): ChildOptions => {
    const folder = join(home, contender, name);
    mkdirSync(folder, { recursive: true });
    return { contender, folder, entry, compiled: join(home, "compiled") };
  };
  const whole = await undisturbed(optionsOf("undisturbed"));
  const stories: { readonly seed: number; readonly story: Story }[] = [];
  const waiting = Array.from({ length: runs }, (_, index) => seed + index);
  const worker = async (): Promise<void> => {
    for (let each = waiting.shift(); each !== undefined; each = waiting.shift())
      stories.push({ seed: each, story: await oneRun(optionsOf(String(each)), planOf(each), whole) });
  };
  await Promise.all([worker(), worker()]);
  const count = (is: (story: Story) => boolean): number => stories.filter(({ story }) => is(story)).length;
  return {
    runs,
    deaths: stories.reduce((sum, { story }) => sum + story.deaths, 0),
    repeated: count(({ repeated }) => repeated.length > 0),
    twice: count(({ twice }) => twice.length > 0),
    lost: count(({ lost }) => lost.length > 0),
    otherEnd: count(({ end }) => end !== undefined),
    asked: count(({ asked }) => asked),
    wrong: stories
      .flatMap(({ seed: each, story }) => wrongOf(story).map((what) => ({ seed: each, what })))
      .sort((one, other) => one.seed - other.seed),
  };
}

interface Undisturbed {
  readonly points: number;
  readonly tookMs: number;
}

interface Story {
  readonly deaths: number;
  readonly repeated: readonly Errand[];
  readonly twice: readonly Errand[];
  readonly lost: readonly Errand[];
  /** What was wrong with the end. */
  readonly end: string | undefined;
  readonly asked: boolean;
}

function wrongOf({ twice, lost, end }: Story): readonly string[] {
  return [
    ...twice.map((errand) => `${errand} was done twice`),
    ...lost.map((errand) => `${errand} was never done`),
    ...(end === undefined ? [] : [end]),
  ];
}

/** The first process of a run without deaths: how many points it comes to, and how long it takes once code is compiled. */
async function undisturbed(options: ChildOptions): Promise<Undisturbed> {
  const first = expectStop(options, await liveOnce(options, {}));
  const end = expectStop(options, await liveOnce(options, {}));
  const wrong = endOf(end.stop);
  if (wrong !== undefined) throw new Error(`${options.contender} undisturbed: ${wrong}`);
  return first;
}

function expectStop({ contender }: ChildOptions, life: Life): Extract<Life, { readonly kind: "stopped" }> {
  if (life.kind === "stopped") return life;
  throw new Error(`${contender} undisturbed: ${life.kind === "failed" ? life.why : life.kind}`);
}

async function oneRun(options: ChildOptions, plan: Plan, whole: Undisturbed): Promise<Story> {
  let deaths = 0;
  let end: string | undefined = `it did not end within ${mostLives} processes`;
  for (let nth = 0; nth < mostLives; nth++) {
    const life = await liveOnce(options, deathOf(plan[nth], whole));
    if (life.kind === "killed") deaths += 1;
    if (life.kind === "failed") {
      end = life.why;
      break;
    }
    if (life.kind === "stopped" && life.stop.kind === "done") {
      end = endOf(life.stop);
      break;
    }
  }
  const log = readLog(options.folder);
  const all = [...errands.before, ...errands.after];
  const keysOf = (errand: Errand): readonly (string | undefined)[] =>
    log.flatMap((line) => (line.kind === "did" && line.errand === errand ? [line.key] : []));
  return {
    deaths,
    repeated: all.filter((errand) => keysOf(errand).length > 1),
    twice: all.filter((errand) => newToTheOtherSide(keysOf(errand)) > 1),
    lost: all.filter((errand) => keysOf(errand).length === 0),
    end,
    asked: log.some(({ kind }) => kind === "asked"),
  };
}

function deathOf(
  death: Plan[number],
  { points, tookMs }: Undisturbed,
): { readonly point?: number; readonly afterMs?: number } {
  if (death === undefined) return {};
  return death.at === "point" ? { point: 1 + Math.floor(death.share * points) } : { afterMs: death.share * tookMs };
}

/** The other side knows a key that it has seen, and nothing else. */
function newToTheOtherSide(keys: readonly (string | undefined)[]): number {
  return new Set(keys.filter((key) => key !== undefined)).size + keys.filter((key) => key === undefined).length;
}

function endOf(stop: Stop): string | undefined {
  if (stop.kind !== "done") return "it stopped at a question that had been answered";
  const expected = [...errands.before, ...errands.after].map(resultOf).join(", ");
  const found = stop.results.join(", ");
  return found === expected && stop.verdict === "yes" ? undefined : `it ended with "${found}" and "${stop.verdict}"`;
}
