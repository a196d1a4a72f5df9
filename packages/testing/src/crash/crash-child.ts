/** The process that dies: it makes the program of a module, lives one life, and prints what is left. */
import process from "node:process";
import { virtualClock } from "../virtual-clock.ts";
import type { CrashProgramOf } from "./crash-program.ts";
import { type CrashEffect, crashOutside, isKnown } from "./external-world.ts";
import { crashEnv, crashPoint, logEffect, loggedEffects } from "./points.ts";
import { talePrefix } from "./run-killed-processes.ts";
import { oneLife, storeWithPoints, taleOf } from "./run-process.ts";

const [file = ""] = process.argv.slice(2);
const folder = process.env[crashEnv.folder] ?? "";
const dieAt = process.env[crashEnv.point];
const make = await programIn(file);

let points = 0;
const point = (name: string): void => {
  points += 1;
  const nth = String(points);
  crashPoint(nth === dieAt ? nth : name);
};
const write = (effect: CrashEffect): void => logEffect(JSON.parse(JSON.stringify(effect)));
const answered = (answer: CrashEffect): void => {
  if (!isKnown(loggedEffects(folder), answer.key)) write(answer);
};
const outside = crashOutside(
  (effect) => {
    write(effect);
    point(`after "${effect.what}"`);
  },
  () => loggedEffects(folder),
);
const program = make(outside);
if (program.store === undefined)
  throw new Error(`the program of ${file} has no store that outlives its process: give it store: (folder) => …`);
const store = program.store(folder);
const clock = virtualClock();
const gate = { alive: () => true, point };
const end = await oneLife(program, {
  ...gate,
  store: storeWithPoints(store, { ...gate, answered }),
  world: clock,
  clock,
});
const tale = await taleOf(program.graph, store, end, program.codec);
store.close();
process.stdout.write(`\n${talePrefix}${JSON.stringify({ graph: program.graph.name, tale })}\n`);

async function programIn(path: string): Promise<CrashProgramOf> {
  const module: unknown = await import(path);
  const made = typeof module === "object" && module !== null && "default" in module ? module.default : undefined;
  if (typeof made === "function") return made as CrashProgramOf;
  throw new Error(`${path} has no default export that makes a program: export default crashProgram((outside) => …)`);
}
