/**
 * The crash matrix: SIGKILL of a process at each point of a superstep with three tool calls; another process continues
 * on the same SQLite file, and an external log records the effects. Each row is a test. Rows with a call in doubt run
 * with every kind of tool, other rows with a once tool; with STATEWRIGHT_WHOLE=1 every cell runs.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type CrashOutcome, killAt, killInSequence, runUntilDone } from "@statewright/testing";
import type { Json } from "statewright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Kind, kinds } from "../../support/crash-matrix-run.ts";
import { runInParallel } from "../../support/in-parallel.ts";
import { removeKeySalt } from "../../support/remove-key-salt.ts";

const script = new URL("../../support/processes/matrix-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-matrix-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
// All processes load the same modules: the compile cache halves their start time.
const timeoutMs = 120_000;

/** Crash point and expected behaviour of a row. */
interface Point {
  readonly at: RegExp;
  /** The calls have a hook, so that their starts are not part of the commit of their intents. */
  readonly hasHook?: boolean;
  /** The model request is repeated. */
  readonly asksModelAgain?: boolean;
  /** A call may have started without a recorded outcome. */
  readonly doubt?: boolean;
}

const points = {
  C1: { at: /^model asked 1$/, asksModelAgain: true },
  C3: { at: /^model answered 1$/, asksModelAgain: true },
  C4: { at: /^inside checkpoint ask$/, asksModelAgain: true },
  C5: { at: /^after checkpoint ask$/, hasHook: true },
  "C5 with starts": { at: /^after checkpoint ask$/, doubt: true },
  C6: { at: /^told checkpoint ask$/, hasHook: true },
  C7: { at: /^inside start call_1/, hasHook: true },
  C8: { at: /^after start call_1/, doubt: true, hasHook: true },
  "C8 with intents": { at: /^told checkpoint ask$/, doubt: true },
  C9: { at: /^act 1 before its effect$/, doubt: true },
  C10: { at: /^act 1 after its effect$/, doubt: true },
  C11: { at: /^before result call_1/, doubt: true },
  C12: { at: /^inside result call_1/, doubt: true },
  C13: { at: /^after result call_1/, doubt: true },
  C14: { at: /^told result call_1/, doubt: true },
  C15: { at: /^before checkpoint tools/, doubt: true },
  C16: { at: /^inside checkpoint tools/, doubt: true },
  C17: { at: /^after checkpoint tools/ },
  C18: { at: /^after question check.sure$/ },
  C19: { at: /^after answer check.sure$/ },
} satisfies Readonly<Record<string, Point>>;
type Id = keyof typeof points;
const ids = Object.keys(points) as readonly Id[];

/** Arguments of the process of a row. */
function getArgs(kind: Kind, { hasHook = false }: Partial<Point>): readonly string[] {
  return hasHook ? [kind, "hook"] : [kind];
}

/** Points at which recovery depends on the kind of the tool. */
const doubtful: readonly Id[] = ["C5 with starts", "C8", "C8 with intents", "C9", "C10", "C11", "C12"];
const everyCell = process.env["STATEWRIGHT_WHOLE"] === "1";

/** Kinds of tool to run for a point. */
function kindsAt(id: Id): readonly Kind[] {
  return everyCell || doubtful.includes(id) ? kinds : ["once"];
}

/** Crash points of the recovering process. */
const recovering = [
  /^inside run running$/,
  /^after run running$/,
  /^after start call_1$/,
  /^act [12] before its effect$/,
  /^after question in_doubt$/,
];

/** Kinds of tool whose recovering process is killed too. */
const recovered: readonly Kind[] = everyCell ? kinds : ["once"];

interface Story {
  readonly stdout: string;
  readonly acts: ReadonlyMap<string, number>;
  readonly models: number;
  readonly doubts: number;
}

/** Undisturbed runs, by the arguments of their process. */
const whole = new Map<string, CrashOutcome>();
const cells = new Map<string, Story | Error>();
const recoveries = new Map<Kind, readonly (readonly [string, Story | Error])[]>();

function place(name: string): string {
  const path = join(home, name.replaceAll(/[^\w-]+/g, "_"));
  mkdirSync(path, { recursive: true });
  return path;
}

function readStory({ stdout, effects }: CrashOutcome): Story {
  const acts = new Map<string, number>();
  const of = (what: string): readonly Record<string, Json>[] =>
    (effects as readonly Record<string, Json>[]).filter((effect) => effect["what"] === what);
  for (const key of of("act").map(({ key }) => removeKeySalt(String(key)))) acts.set(key, (acts.get(key) ?? 0) + 1);
  const doubts = of("answers").filter(({ key }) => key === "in_doubt").length;
  return { stdout: removeKeySalt(stdout), acts, models: of("model").length, doubts };
}

/** First point of a process that matches a pattern. */
function getPoint(args: readonly string[], life: number, at: RegExp): string {
  const found = whole.get(args.join(" "))?.processes[life - 1]?.points.find((point) => at.test(point));
  if (found === undefined) throw new Error(`no point of life ${life} fits ${at}`);
  return found;
}

async function attempt(work: () => Promise<CrashOutcome>): Promise<Story | Error> {
  try {
    return readStory(await work());
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function oneCell(kind: Kind, id: Id): Promise<void> {
  const args = getArgs(kind, points[id]);
  const run = { script, timeoutMs, args, folder: place(`${kind} ${id}`) };
  cells.set(`${id} ${kind}`, await attempt(() => killAt({ ...run, point: getPoint(args, 1, points[id].at) })));
}

/** Kills the process in a call, and then at each point of the recovering process up to the same call. */
async function recovery(kind: Kind): Promise<void> {
  const run = { script, timeoutMs, args: [kind] };
  const dead = place(`${kind} dead`);
  const point = getPoint([kind], 1, /^act 2 before its effect$/);
  const { processes } = await killAt({ ...run, folder: dead, point });
  const came = processes[1]?.points ?? [];
  const seconds = recovering.flatMap((at) => came.find((each) => at.test(each)) ?? []);
  const stories: (readonly [string, Story | Error])[] = [];
  for (const second of seconds) {
    const folder = place(`${kind} C20 ${second}`);
    stories.push([second, await attempt(() => killInSequence({ ...run, folder, points: [point, second] }))]);
  }
  recoveries.set(kind, stories);
}

beforeAll(async () => {
  await runInParallel(
    kinds.flatMap((kind) =>
      [false, true].map((hasHook) => async () => {
        const args = getArgs(kind, { hasHook });
        const name = args.join(" ");
        whole.set(name, await runUntilDone({ script, timeoutMs, args, folder: place(name) }));
      }),
    ),
  );
  await runInParallel([
    ...ids.flatMap((id) => kindsAt(id).map((kind) => () => oneCell(kind, id))),
    ...recovered.map((kind) => () => recovery(kind)),
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
  const undisturbed = readStory(outcome);
  expect(story.stdout).toBe(undisturbed.stdout);
  expect([...story.acts.keys()].sort()).toEqual([...undisturbed.acts.keys()].sort());
  const times = [...story.acts.values()];
  // All attempts have the same key, and a once effect occurs once.
  if (kind !== "idempotent" || !doubt) expect(times.every((count) => count === 1)).toBe(true);
  expect(story.models).toBe(undisturbed.models + (asksModelAgain ? 1 : 0));
  if (kind !== "once" || !doubt) expect(story.doubts).toBe(0);
}

/** Checks that a killed run ends like an uninterrupted one, with the tool effects that its kind allows. */
function judgeRow(id: Id): void {
  for (const kind of kindsAt(id)) judge(kind, cells.get(`${id} ${kind}`), points[id]);
}

test("a process killed before the model request makes the request again [C1]", () => judgeRow("C1"));
test("a process killed after the model reply and before the intents asks the model again and has executed nothing [C3]", () =>
  judgeRow("C3"));
test("a process killed inside the intents transaction leaves all intents or none [C4]", () => judgeRow("C4"));
test("a process killed after committing intents and before emitting events never asks the model again [C5]", () => {
  judgeRow("C5");
  judgeRow("C5 with starts");
});
test("a process killed between a call's intent and start runs the call [C6]", () => judgeRow("C6"));
test("a process killed inside the start of a call runs the call [C7]", () => judgeRow("C7"));
test("a call killed after its start and before its code runs again, is reconciled, or is in doubt [C8]", () =>
  judgeRow("C8"));
test("a call killed after the commit of its intent and its start runs again, is reconciled, or is in doubt [C8]", () =>
  judgeRow("C8 with intents"));
test("a call killed inside the tool before its effect runs again, is reconciled, or is in doubt [C9]", () =>
  judgeRow("C9"));
test("a call killed after its effect runs again under its key, is reconciled, or is in doubt [C10]", () =>
  judgeRow("C10"));
test("a call killed after the tool returned runs again under its key, is reconciled, or is in doubt [C11]", () =>
  judgeRow("C11"));
test("a call killed inside the transaction of its result runs again under its key, is reconciled, or is in doubt [C12]", () =>
  judgeRow("C12"));
test("a call killed after its result was committed and before its events never runs again [C13]", () =>
  judgeRow("C13"));
test("a process killed after one of three calls completed keeps that result and runs only the others [C14]", () =>
  judgeRow("C14"));
test("a process killed after all calls and before the checkpoint folds the journal again [C15]", () => judgeRow("C15"));
test("a process killed inside the checkpoint transaction folds the journal again [C16]", () => judgeRow("C16"));
test("a process killed after the checkpoint and before its events continues with the next step [C17]", () =>
  judgeRow("C17"));
test("an interrupt recorded before a kill and not yet shown is listed with the same id [C18]", () => judgeRow("C18"));
test("a process killed after an answer was committed and before the resume continues with that answer [C19]", () =>
  judgeRow("C19"));

test("a call in doubt interrupts only for once calls without a reconciler [C8, C9, C10, C11, C12]", () => {
  for (const kind of kinds) {
    const doubts = doubtful.map((id) => {
      const story = cells.get(`${id} ${kind}`);
      return story !== undefined && "doubts" in story ? story.doubts : -1;
    });
    if (kind === "once") expect(Math.min(...doubts)).toBeGreaterThan(0);
    else expect(doubts).toEqual(doubtful.map(() => 0));
  }
});

test("a process killed again during recovery ends like a process that was not killed [C20]", () => {
  for (const kind of recovered) {
    const stories = recoveries.get(kind) ?? [];
    expect(stories.length).toBeGreaterThan(2);
    for (const [, story] of stories) judge(kind, story, { doubt: true });
  }
});
