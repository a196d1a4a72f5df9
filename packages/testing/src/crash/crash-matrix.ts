/** `crashMatrix`: a graph of yours dies at every point of a run, one death a run, and must come to the same end. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Graph, type GraphTypes, type MemoryStore, memoryStore, type Store } from "@statewright/core";
import { beginLife } from "../run/process-run.ts";
import { virtualClock } from "../virtual-clock.ts";
import { type CrashRun, crashFindings } from "./crash-findings.ts";
import type { CrashProgram, CrashProgramOf } from "./crash-program.ts";
import { type CrashedAt, type CrashMatrix, crashReport } from "./crash-report.ts";
import { type CrashEffect, crashOutside, isKnown } from "./external-world.ts";
import { killedLives } from "./run-killed-processes.ts";
import { oneLife, storeWithPoints, taleOf } from "./run-process.ts";

/** What `crashMatrix` takes besides the program. */
export interface CrashMatrixOptions {
  /** Only points for whose name this is true, such as `(point) => point.includes("pay")`. */
  readonly only?: (point: string) => boolean;
  /** Only every so many points, for long runs. Default 1. */
  readonly every?: number;
  /** Where runs in this process are kept: in memory (default), or in the program's own store, which takes longer. */
  readonly store?: "memory" | "own";
  /** How many killed processes may live at the same time. Default 2. */
  readonly parallel?: number;
}

/**
 * Let a run of a graph die at every point, once in each run, and go on in a new process: before and after each commit, before
 * and after each node, step, tool call and answer of a model, and after each thing that it says it did outside. What a crash
 * lost, repeated or changed stands in the result by point.
 *
 * Give a program (in this process: its memory is dropped, its store is opened again), a function that makes it anew for each
 * process, or the URL of a module whose default export is such a function: then real processes die by SIGKILL.
 *
 * ```ts
 * expect(await crashMatrix((outside) => ({ graph: shop(outside), input: { order: "7" } }))).toSurviveCrashes();
 * ```
 *
 * Throws when the run does not come to its end without a crash.
 */
export async function crashMatrix<Types extends GraphTypes>(
  program: CrashProgram<Types> | CrashProgramOf<Types> | URL,
  options: CrashMatrixOptions = {},
): Promise<CrashMatrix> {
  const { only = () => true, every = 1, parallel = 2, store = "memory" } = options;
  const folder = mkdtempSync(join(tmpdir(), "statewright-crashes-"));
  const live =
    program instanceof URL
      ? (run: number, dieAt: number | undefined) => killedLives(fileURLToPath(program), join(folder, `${run}`), dieAt)
      : (run: number, dieAt: number | undefined) =>
          droppedLives(asFunction(program, store), join(folder, `${run}`), dieAt);
  try {
    const [whole, again] = await Promise.all([live(0, undefined), live(-1, undefined)]);
    const { end } = whole.tale;
    if (end.status !== "done" && end.status !== "cancelled") throw neverEnds(whole.graph, end.status, end.why);
    const varying = Object.keys(whole.tale.state).filter((name) => whole.tale.state[name] !== again.tale.state[name]);
    const wanted = whole.points
      .map((name, index) => ({ name, nth: index + 1 }))
      .filter(({ name }) => only(name))
      .filter((_, index) => index % every === 0);
    const results = new Map<number, CrashedAt>();
    const waiting = [...wanted];
    const next = async (): Promise<void> => {
      for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
        const { nth, name } = point;
        results.set(nth, crashedAt(`${nth} ${name}`, await live(nth, nth), whole, varying));
      }
    };
    await Promise.all(Array.from({ length: program instanceof URL ? parallel : 1 }, next));
    return crashReport(
      whole.graph,
      wanted.flatMap(({ nth }) => results.get(nth) ?? []),
      varying,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function crashedAt(point: string, run: CrashRun, whole: CrashRun, varying: readonly string[]): CrashedAt {
  const { end } = run.tale;
  return {
    point,
    findings: crashFindings(run, whole, varying),
    reached: run.died,
    ...(end.status === "in doubt" ? { inDoubt: end.why ?? "an effect" } : {}),
  };
}

function asFunction<Types extends GraphTypes>(
  program: CrashProgram<Types> | CrashProgramOf<Types>,
  kept: "memory" | "own",
): CrashProgramOf {
  const make = (typeof program === "function" ? program : () => program) as CrashProgramOf;
  if (kept === "own") return make;
  return (outside) => {
    const { store: _, ...rest } = make(outside);
    return rest;
  };
}

/** Processes inside this one: what dies enters nothing and hears of nothing any more. */
async function droppedLives(make: CrashProgramOf, folder: string, dieAt: number | undefined): Promise<CrashRun> {
  mkdirSync(folder, { recursive: true });
  const clock = virtualClock();
  const effects: CrashEffect[] = [];
  const points: string[] = [];
  let memory: MemoryStore | undefined;
  let died = false;
  for (;;) {
    const first = points.length === 0;
    let dead = (): boolean => false;
    let die = (): void => undefined;
    const point = (name: string): void => {
      if (dead() || died) return;
      points.push(name);
      if (points.length !== dieAt) return;
      died = true;
      die();
    };
    const outside = crashOutside(
      (effect) => {
        if (dead()) throw new Error("this process is dead");
        effects.push(effect);
        point(`after "${effect.what}"`);
        if (dead()) throw new Error("this process is dead");
      },
      () => effects,
    );
    const program = make(outside);
    if (program.store === undefined) memory = memory?.peer() ?? memoryStore();
    const opened: Store = program.store?.(folder) ?? memory ?? memoryStore();
    const gate = { alive: () => !dead(), point };
    const answered = (answer: CrashEffect): void => {
      if (!isKnown(effects, answer.key)) effects.push(answer);
    };
    const life = beginLife(storeWithPoints(opened, { ...gate, answered }), clock);
    dead = () => !life.alive();
    die = life.die;
    const end = await oneLife(program, { ...gate, store: life.store, world: life.world, clock });
    if (end.status === "died" && first) {
      if (memory === opened) memory.crash();
      else opened.close();
      continue;
    }
    const graph: Graph = program.graph;
    const tale = await taleOf(graph, opened, end, program.codec);
    opened.close();
    return { graph: graph.name, points, died, effects, tale };
  }
}

function neverEnds(graph: string, status: string, why: string | undefined): Error {
  const what =
    status === "waits"
      ? `it waits for ${why}`
      : `it is ${status}${why === undefined ? "" : `: ${why.replace(/\.$/, "")}`}`;
  return new Error(
    `the run of graph "${graph}" does not come to its end without a crash: ${what}.${status === "waits" ? " Give its answers: answers: { … }." : ""}`,
  );
}
