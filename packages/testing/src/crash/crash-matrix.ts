/**
 * `crashMatrix`: crashes a graph at every point of a run, a single crash per run, and compares the results with a run
 * without a crash.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Graph, type GraphTypes, type MemoryStore, memoryStore, type Store } from "@statewright/core";
import { startProcessRun } from "../run/process-run.ts";
import { virtualClock } from "../virtual-clock.ts";
import { type CrashRun, findCrashFindings } from "./crash-findings.ts";
import type { CrashProgram, CrashProgramFactory } from "./crash-program.ts";
import { type CrashMatrix, type CrashPointResult, createCrashReport } from "./crash-report.ts";
import { type CrashEffect, createExternalWorld, isKnown } from "./external-world.ts";
import { runKilledProcesses } from "./run-killed-processes.ts";
import { addCommitPoints, loadRunResult, runProcess } from "./run-process.ts";

/** Options of `crashMatrix`. */
export interface CrashMatrixOptions {
  /** Selects points by name, for example `(point) => point.includes("pay")`. */
  readonly only?: (point: string) => boolean;
  /** Tests only every n-th point, for long runs. Default 1. */
  readonly every?: number;
  /** Store of in-process runs: memory (default), or the program's own store, which is slower. */
  readonly store?: "memory" | "own";
  /** Maximum number of concurrent killed processes. Default 2. */
  readonly parallel?: number;
}

/**
 * Crashes a run of a graph at every point, a single crash per run, and continues each run in a new process. Points are
 * before and after each commit, before and after each node, step, tool call and model reply, and after each reported
 * external effect. The result lists lost, repeated and changed data by point.
 *
 * Pass a program (in-process: the memory is dropped and the store is opened again), a function that creates the
 * program anew for each process, or the URL of a module whose default export is such a function: then real processes
 * are killed by SIGKILL.
 *
 * ```ts
 * expect(await crashMatrix((outside) => ({ graph: shop(outside), input: { order: "7" } }))).toSurviveCrashes();
 * ```
 *
 * Throws when the run does not finish without a crash.
 */
export async function crashMatrix<Types extends GraphTypes>(
  program: CrashProgram<Types> | CrashProgramFactory<Types> | URL,
  options: CrashMatrixOptions = {},
): Promise<CrashMatrix> {
  const { only = () => true, every = 1, parallel = 2, store = "memory" } = options;
  const folder = mkdtempSync(join(tmpdir(), "statewright-crashes-"));
  const runProgram =
    program instanceof URL
      ? (run: number, dieAt: number | undefined) =>
          runKilledProcesses(fileURLToPath(program), join(folder, `${run}`), dieAt)
      : (run: number, dieAt: number | undefined) =>
          runSimulatedProcesses(toFactory(program, store), join(folder, `${run}`), dieAt);
  try {
    const [reference, control] = await Promise.all([runProgram(0, undefined), runProgram(-1, undefined)]);
    const { end } = reference.result;
    if (end.status !== "done" && end.status !== "cancelled")
      throw createUnfinishedError(reference.graph, end.status, end.reason);
    const varying = Object.keys(reference.result.state).filter(
      (name) => reference.result.state[name] !== control.result.state[name],
    );
    const selected = reference.points
      .map((name, index) => ({ name, nth: index + 1 }))
      .filter(({ name }) => only(name))
      .filter((_, index) => index % every === 0);
    const results = new Map<number, CrashPointResult>();
    const waiting = [...selected];
    const testPoints = async (): Promise<void> => {
      for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
        const { nth, name } = point;
        results.set(nth, toPointResult(`${nth} ${name}`, await runProgram(nth, nth), reference, varying));
      }
    };
    await Promise.all(Array.from({ length: program instanceof URL ? parallel : 1 }, testPoints));
    return createCrashReport(
      reference.graph,
      selected.flatMap(({ nth }) => results.get(nth) ?? []),
      varying,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function toPointResult(
  point: string,
  run: CrashRun,
  reference: CrashRun,
  varying: readonly string[],
): CrashPointResult {
  const { end } = run.result;
  return {
    point,
    findings: findCrashFindings(run, reference, varying),
    reached: run.died,
    ...(end.status === "in doubt" ? { inDoubt: end.reason ?? "an effect" } : {}),
  };
}

function toFactory<Types extends GraphTypes>(
  program: CrashProgram<Types> | CrashProgramFactory<Types>,
  storeKind: "memory" | "own",
): CrashProgramFactory {
  const make = (typeof program === "function" ? program : () => program) as CrashProgramFactory;
  if (storeKind === "own") return make;
  return (outside) => {
    const { store: _, ...rest } = make(outside);
    return rest;
  };
}

/** Runs a program in simulated processes inside this process. A dead process starts nothing and receives nothing. */
async function runSimulatedProcesses(
  createProgram: CrashProgramFactory,
  folder: string,
  killPoint: number | undefined,
): Promise<CrashRun> {
  mkdirSync(folder, { recursive: true });
  const clock = virtualClock();
  const effects: CrashEffect[] = [];
  const points: string[] = [];
  let memory: MemoryStore | undefined;
  let hasCrashed = false;
  for (;;) {
    const isFirst = points.length === 0;
    let isDead = (): boolean => false;
    let killProcess = (): void => undefined;
    const reachPoint = (name: string): void => {
      if (isDead() || hasCrashed) return;
      points.push(name);
      if (points.length !== killPoint) return;
      hasCrashed = true;
      killProcess();
    };
    const outside = createExternalWorld(
      (effect) => {
        if (isDead()) throw new Error("the simulated process has crashed");
        effects.push(effect);
        reachPoint(`after "${effect.what}"`);
        if (isDead()) throw new Error("the simulated process has crashed");
      },
      () => effects,
    );
    const program = createProgram(outside);
    if (program.store === undefined) memory = memory?.peer() ?? memoryStore();
    const opened: Store = program.store?.(folder) ?? memory ?? memoryStore();
    const gate = { alive: () => !isDead(), point: reachPoint };
    const recordAnswer = (answer: CrashEffect): void => {
      if (!isKnown(effects, answer.key)) effects.push(answer);
    };
    const simulated = startProcessRun(addCommitPoints(opened, { ...gate, recordAnswer }), clock);
    isDead = () => !simulated.isAlive();
    killProcess = simulated.kill;
    const end = await runProcess(program, { ...gate, store: simulated.store, world: simulated.world, clock });
    if (end.status === "died" && isFirst) {
      if (memory === opened) memory.crash();
      else await opened.close();
      continue;
    }
    const graph: Graph = program.graph;
    const result = await loadRunResult(graph, opened, end, program.codec);
    await opened.close();
    return { graph: graph.name, points, died: hasCrashed, effects, result };
  }
}

function createUnfinishedError(graph: string, status: string, reason: string | undefined): Error {
  const state =
    status === "waits"
      ? `the run waits for ${reason}`
      : `the run is ${status}${reason === undefined ? "" : `: ${reason.replace(/\.$/, "")}`}`;
  return new Error(
    `crashMatrix: expected the run of graph "${graph}" to finish without a crash, but ${state}.${status === "waits" ? " Add the answers to the program: answers: { … }." : ""}`,
  );
}
