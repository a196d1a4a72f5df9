/**
 * Child process of the gate `machines`: runs the machine of a seed on a file of SQLite, from its start or from the
 * crash of the process before. At a crash it saves the state of the simulation and kills itself by SIGKILL; at the end
 * it prints the result as a line of JSON.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createChance } from "@statewright/testing";
import { createKilledStores } from "./machine-stores.ts";
import { createMachinePlan } from "./random-machine.ts";
import { type SavedSimulation, Simulation } from "./run-durable.ts";
import { addKill, type KilledState, stateFile } from "./run-killed.ts";

const [folder = "", seed = "0"] = process.argv.slice(2);
const file = join(folder, stateFile);
const state: KilledState | undefined = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
const kills = state?.kills ?? 0;
const stores = createKilledStores(join(folder, "machine.db"), () => {
  const saved: SavedSimulation = simulation.save();
  writeFileSync(file, JSON.stringify({ kills: kills + 1, saved } satisfies KilledState));
  process.kill(process.pid, "SIGKILL");
});
const plan = addKill(createMachinePlan(Number(seed)), Number(seed));
// Each life has random numbers of its own: ids are unique over all lives.
const chance = createChance(Number(seed) + 0x5eed + kills * 7_919);
const simulation = new Simulation(plan, stores, chance, state?.saved);
const result = await simulation.run();
await stores.dispose();
process.stdout.write(`${JSON.stringify({ ...result, endTimes: [...result.endTimes] })}\n`);
process.exitCode = 0;
