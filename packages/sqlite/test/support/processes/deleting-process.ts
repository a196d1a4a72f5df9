/** Process that deletes a thread, or only opens the file, and kills itself in a given turn of the event loop. */
import process from "node:process";
import { systemWorld } from "@statewright/core/adapter";
import { sqliteStore } from "@statewright/sqlite";

const [file = "", turn = "1", thread] = process.argv.slice(2);
const world = systemWorld();
let turns = 0;
const soon: typeof world.schedule.soon = (work) => {
  turns += 1;
  if (turns === Number(turn)) process.kill(process.pid, "SIGKILL");
  world.schedule.soon(work);
};
const store = sqliteStore(file, { durability: "normal", world: { ...world, schedule: { ...world.schedule, soon } } });
if (thread !== undefined) await store.delete(thread);
