/**
 * The crash matrix: a real process dies by SIGKILL at each point of a superstep with three calls, another one goes on over
 * the same SQLite file, and a log outside of it says what has happened in the world. Each cell is a test. With
 * STATEWRIGHT_PAIRS=n every n-th pair of points is tried too: the process that goes on dies as well.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type CrashOutcome, killAt, killInTurn, untilDone } from "@statewright/testing";
import type { Json } from "statewright";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const script = new URL("../support/matrix.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-matrix-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
// Each life loads the same modules: the cache halves what a start costs.
const env = { NODE_COMPILE_CACHE: join(home, "compiled") };
const timeoutMs = 120_000;

/** What may be done about the effect of the tool: it may be repeated, asked for, or neither. */
const kinds = ["idempotent", "reconciled", "once"] as const;
type Kind = (typeof kinds)[number];

/** Where in the run a cell is. */
interface Point {
  readonly id: string;
  readonly what: string;
  readonly at: RegExp;
  readonly life: number;
  /** The answer of the model is asked for again. */
  readonly asksModelAgain?: boolean;
  /** A call may have started, and nobody knows what came of it. */
  readonly doubt?: boolean;
}

const points: readonly Point[] = [
  { id: "C1", what: "before the model request", at: /^model asked 1$/, life: 1, asksModelAgain: true },
  {
    id: "C3",
    what: "when the answer was received, before the intents",
    at: /^model answered 1$/,
    life: 1,
    asksModelAgain: true,
  },
  { id: "C4", what: "inside the transaction of intents", at: /^inside checkpoint ask$/, life: 1, asksModelAgain: true },
  { id: "C5", what: "when intents were committed and not told", at: /^after checkpoint ask$/, life: 1 },
  { id: "C6", what: "between an intent and its start", at: /^told checkpoint ask$/, life: 1 },
  { id: "C7", what: "inside the start", at: /^inside start call_1/, life: 1 },
  {
    id: "C8",
    what: "when a call had started and its code was not reached",
    at: /^after start call_1/,
    life: 1,
    doubt: true,
  },
  { id: "C9", what: "in the tool, before its effect", at: /^act 1 before its effect$/, life: 1, doubt: true },
  { id: "C10", what: "after the effect", at: /^act 1 after its effect$/, life: 1, doubt: true },
  { id: "C11", what: "when the tool had returned", at: /^before result call_1/, life: 1, doubt: true },
  { id: "C12", what: "inside the result's transaction", at: /^inside result call_1/, life: 1, doubt: true },
  { id: "C13", what: "when a result was committed and not told", at: /^after result call_1/, life: 1, doubt: true },
  { id: "C14", what: "when 1 of 3 calls was done", at: /^told result call_1/, life: 1, doubt: true },
  {
    id: "C15",
    what: "when all calls were done, before the checkpoint",
    at: /^before checkpoint tools/,
    life: 1,
    doubt: true,
  },
  { id: "C16", what: "inside the checkpoint", at: /^inside checkpoint tools/, life: 1, doubt: true },
  { id: "C17", what: "when the checkpoint was committed and not told", at: /^after checkpoint tools/, life: 1 },
  { id: "C18", what: "when an interrupt was recorded and not shown", at: /^after question check.sure$/, life: 1 },
  { id: "C19", what: "when an answer was committed, before the resume", at: /^after answer check.sure$/, life: 1 },
];

/** Points of the process that goes on: recovery is the same code, and may itself die. */
const recovering = [
  /^inside run running$/,
  /^after run running$/,
  /^after start call_1$/,
  /^act [12] before its effect$/,
  /^after question in_doubt$/,
];

interface Story {
  readonly stdout: string;
  readonly acts: ReadonlyMap<string, number>;
  readonly models: number;
  readonly doubts: number;
}

const whole = new Map<Kind, CrashOutcome>();
const cells = new Map<string, Story | Error>();
const recoveries = new Map<Kind, readonly (readonly [string, Story | Error])[]>();

function place(name: string): string {
  const path = join(home, name.replaceAll(/[^\w-]+/g, "_"));
  mkdirSync(path, { recursive: true });
  return path;
}

function told({ stdout, effects }: CrashOutcome): Story {
  const acts = new Map<string, number>();
  const of = (what: string): readonly Record<string, Json>[] =>
    (effects as readonly Record<string, Json>[]).filter((effect) => effect["what"] === what);
  for (const { key } of of("act")) acts.set(String(key), (acts.get(String(key)) ?? 0) + 1);
  const doubts = of("answers").filter(({ key }) => key === "in_doubt").length;
  return { stdout, acts, models: of("model").length, doubts };
}

/** A few at a time: each is a process of its own. */
async function inParallel(works: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...works];
  const worker = async (): Promise<void> => {
    for (let work = waiting.shift(); work !== undefined; work = waiting.shift()) await work();
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, worker));
}

/** The first point of a life that a pattern fits. */
function pointOf(kind: Kind, life: number, at: RegExp): string {
  const found = whole.get(kind)?.lives[life - 1]?.points.find((point) => at.test(point));
  if (found === undefined) throw new Error(`no point of life ${life} fits ${at}`);
  return found;
}

async function attempt(work: () => Promise<CrashOutcome>): Promise<Story | Error> {
  try {
    return told(await work());
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function oneCell(kind: Kind, { id, at, life }: Point): Promise<void> {
  const run = { script, env, timeoutMs, args: [kind], folder: place(`${kind} ${id}`) };
  cells.set(`${id} ${kind}`, await attempt(() => killAt({ ...run, point: pointOf(kind, life, at), life })));
}

/** Dies in a call, and then again at each point of the process that goes on, up to where it is in the call again. */
async function recovery(kind: Kind): Promise<void> {
  const run = { script, env, timeoutMs, args: [kind] };
  const dead = place(`${kind} dead`);
  const point = pointOf(kind, 1, /^act 2 before its effect$/);
  const { lives } = await killAt({ ...run, folder: dead, point });
  const came = lives[1]?.points ?? [];
  const seconds = recovering.flatMap((at) => came.find((each) => at.test(each)) ?? []);
  const stories: (readonly [string, Story | Error])[] = [];
  for (const second of seconds) {
    const folder = place(`${kind} C20 ${second}`);
    stories.push([second, await attempt(() => killInTurn({ ...run, folder, points: [point, second] }))]);
  }
  recoveries.set(kind, stories);
}

beforeAll(async () => {
  await inParallel(
    kinds.map((kind) => async () => {
      whole.set(kind, await untilDone({ script, env, timeoutMs, args: [kind], folder: place(kind) }));
    }),
  );
  await inParallel([
    ...kinds.flatMap((kind) => points.map((point) => () => oneCell(kind, point))),
    ...kinds.map((kind) => () => recovery(kind)),
  ]);
}, 600_000);

function judge(
  kind: Kind,
  story: Story | Error | undefined,
  { asksModelAgain = false, doubt = false }: Partial<Point>,
): void {
  if (!(story !== undefined && "acts" in story)) throw story ?? new Error("it was not lived through");
  const outcome = whole.get(kind);
  if (outcome === undefined) throw new Error("there is nothing to compare with");
  const undisturbed = told(outcome);
  expect(story.stdout).toBe(undisturbed.stdout);
  expect([...story.acts.keys()].sort()).toEqual([...undisturbed.acts.keys()].sort());
  const times = [...story.acts.values()];
  // Under the same key each time: the other side knows it. What may happen once has happened once.
  if (kind !== "idempotent" || !doubt) expect(times.every((count) => count === 1)).toBe(true);
  expect(story.models).toBe(undisturbed.models + (asksModelAgain ? 1 : 0));
  if (kind !== "once" || !doubt) expect(story.doubts).toBe(0);
}

describe.each(kinds)("%s", (kind) => {
  test.each(points.map((point) => [point.id, point.what, point] as const))(
    `%s killed %s, the run ends as if it had not been, and a tool that is ${kind} is treated so`,
    (id, _what, point) => {
      judge(kind, cells.get(`${id} ${kind}`), point);
    },
  );

  test("C8 C9 C10 C11 C12 a call in doubt is asked about, where nobody else knows", () => {
    const doubts = ["C8", "C9", "C10", "C11", "C12"].map((id) => {
      const story = cells.get(`${id} ${kind}`);
      return story !== undefined && "doubts" in story ? story.doubts : -1;
    });
    if (kind === "once") expect(Math.min(...doubts)).toBeGreaterThan(0);
    else expect(doubts).toEqual([0, 0, 0, 0, 0]);
  });

  test("C20 killed again while it recovers, it ends as if it had not been", () => {
    const stories = recoveries.get(kind) ?? [];
    expect(stories.length).toBeGreaterThan(2);
    for (const [, story] of stories) judge(kind, story, { doubt: true });
  });
});

const every = Number(process.env["STATEWRIGHT_PAIRS"] ?? 0);

async function eachPair(): Promise<void> {
  const wrong: string[] = [];
  let pairs = 0;
  for (const kind of kinds) {
    const run = { script, env, timeoutMs, args: [kind] };
    const deaths = (whole.get(kind)?.lives ?? []).flatMap(({ points: came }, life) =>
      came.map((point) => ({ point, life: life + 1 })),
    );
    await inParallel(
      deaths.map(({ point, life }, nth) => async () => {
        const first = place(`${kind} first ${life} ${point}`);
        const { lives } = await killAt({ ...run, folder: first, point, life });
        const seconds = lives[life]?.points ?? [];
        for (const [at, second] of seconds.entries()) {
          if ((at + nth) % every !== 0) continue;
          pairs += 1;
          const folder = place(`${kind} ${life} ${point} then ${second}`);
          const before = Array.from({ length: life - 1 }, () => "no such point");
          const story = await attempt(() => killInTurn({ ...run, folder, points: [...before, point, second] }));
          try {
            judgeLoosely(kind, story);
          } catch (error) {
            wrong.push(`${kind}: ${point} of life ${life}, then ${second}: ${String(error)}`);
          }
          rmSync(folder, { recursive: true, force: true });
        }
        rmSync(first, { recursive: true, force: true });
      }),
    );
  }
  console.log(`pairs: ${pairs}, violations: ${wrong.length}`);
  expect(wrong).toEqual([]);
}

if (every > 0) test("each pair of points", { timeout: 24 * 3_600_000 }, eachPair);

function judgeLoosely(kind: Kind, story: Story | Error): void {
  if (!("acts" in story)) throw story;
  const outcome = whole.get(kind);
  expect(story.stdout).toBe(outcome?.stdout);
  if (kind !== "idempotent") expect([...story.acts.values()].every((count) => count === 1)).toBe(true);
}
