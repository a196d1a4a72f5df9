/** One process with many unfinished runs, for another process to recover after a kill. */
import process from "node:process";
import { fileURLToPath } from "node:url";
import { channel, defineGraph, defineState, END, run, START, sqliteStore } from "statewright";
import * as z from "zod";

const State = defineState({ log: channel.list(z.string()) });

/** Graph of two steps; the second step ends in every process except the first. */
export function createUnfinishedGraph(ends: boolean) {
  return defineGraph({ name: "unending", version: 1, state: State })
    .nodes({
      first: () => ({ log: ["first"] }),
      second: () => (ends ? { log: ["second"] } : new Promise<undefined>(() => undefined)),
    })
    .edges({ [START]: "first", first: "second", second: END });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const store = sqliteStore(process.argv[2] as string, { durability: "normal" });
  const graph = createUnfinishedGraph(false);
  let waiting = 0;
  const count = Number(process.argv[3]);
  for (let nth = 0; nth < count; nth++) {
    run(graph, { store, thread: `t${nth}` }).on((event) => {
      if (event.type === "step.committed" && event.step === 1 && ++waiting === count) process.send?.("standing");
    });
  }
  process.on("disconnect", () => process.exit());
}
