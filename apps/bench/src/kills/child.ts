/**
 * A process that is to die, or that races another for the same answer. Arguments: contender, folder, the module of the peer,
 * the number of the point to die at (0: none). Told `live`, it goes on with the thread to its next stop and ends; told a list
 * of threads, it goes on with all of them at the same moment and says what became of each.
 */
import process from "node:process";
import { outsideIn } from "./external-world.ts";
import { openLangGraph } from "./langgraph.ts";
import { type ContenderId, isPeer, type Program, type Stop } from "./program.ts";
import { openStatewright, refusalOf } from "./statewright.ts";

/** What the process is told. */
export type Order = "live" | { readonly goOn: readonly string[] };

/** What it says. */
export type Said =
  | { readonly kind: "ready" }
  | { readonly kind: "stopped"; readonly stop: Stop; readonly points: number }
  | { readonly kind: "went on"; readonly outcomes: readonly string[] };

const [id, folder = "", entry = "", dieAt = "0"] = process.argv.slice(2);
const contender = id as ContenderId;
const outside = outsideIn(folder, Number(dieAt));
const program: Program = isPeer(contender)
  ? await openLangGraph(folder, { kind: contender, entry, outside })
  : openStatewright(folder, contender, outside);

process.on("message", (order: Order) => {
  if (order === "live") live();
  else Promise.all(order.goOn.map(outcomeOf)).then((outcomes) => say({ kind: "went on", outcomes }));
});
process.on("disconnect", () => process.exit());
say({ kind: "ready" });

async function live(): Promise<void> {
  const stop = await program.goOn("thread");
  program.close();
  say({ kind: "stopped", stop, points: outside.points() });
  process.disconnect();
}

async function outcomeOf(thread: string): Promise<string> {
  try {
    return (await program.goOn(thread)).kind;
  } catch (error) {
    return refusalOf(error) ?? (error instanceof Error ? error.message : String(error));
  }
}

function say(said: Said): void {
  process.send?.(said);
}
