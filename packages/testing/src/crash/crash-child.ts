/**
 * Child process of `crashMatrix`: creates the program of a module, runs the program in a single process until the end
 * or a kill, and prints the result.
 */
import process from "node:process";
import { virtualClock } from "../virtual-clock.ts";
import type { CrashProgramFactory } from "./crash-program.ts";
import { type CrashEffect, createExternalWorld, isKnown } from "./external-world.ts";
import { crashEnv, crashPoint, logEffect, readLoggedEffects } from "./points.ts";
import { resultPrefix } from "./run-killed-processes.ts";
import { addCommitPoints, loadRunResult, runProcess } from "./run-process.ts";

const [file = ""] = process.argv.slice(2);
const folder = process.env[crashEnv.folder] ?? "";
const killPoint = process.env[crashEnv.point];
const createProgram = await loadProgram(file);

let points = 0;
const reachPoint = (name: string): void => {
  points += 1;
  const nth = String(points);
  crashPoint(nth === killPoint ? nth : name);
};
const writeEffect = (effect: CrashEffect): void => logEffect(JSON.parse(JSON.stringify(effect)));
const recordAnswer = (answer: CrashEffect): void => {
  if (!isKnown(readLoggedEffects(folder), answer.key)) writeEffect(answer);
};
const outside = createExternalWorld(
  (effect) => {
    writeEffect(effect);
    reachPoint(`after "${effect.what}"`);
  },
  () => readLoggedEffects(folder),
);
const program = createProgram(outside);
if (program.store === undefined)
  throw new Error(
    `crashMatrix: expected the program of ${file} to have a store outside the process, got none. Add store: (folder) => sqliteStore(…).`,
  );
const store = program.store(folder);
const clock = virtualClock();
const gate = { alive: () => true, point: reachPoint };
const end = await runProcess(program, {
  ...gate,
  store: addCommitPoints(store, { ...gate, recordAnswer }),
  world: clock,
  clock,
});
const result = await loadRunResult(program.graph, store, end, program.codec);
await store.close();
process.stdout.write(`\n${resultPrefix}${JSON.stringify({ graph: program.graph.name, result })}\n`);

async function loadProgram(path: string): Promise<CrashProgramFactory> {
  const module: unknown = await import(path);
  const factory = typeof module === "object" && module !== null && "default" in module ? module.default : undefined;
  if (typeof factory === "function") return factory as CrashProgramFactory;
  throw new Error(
    `crashMatrix: expected ${path} to have a default export that creates a program, got ${typeof factory}. Add export default crashProgram((outside) => …).`,
  );
}
