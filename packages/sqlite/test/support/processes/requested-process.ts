/** Process that runs a graph with two parallel nodes: one ends at once, one waits until its signal fires. */
import process from "node:process";
import { channel, defineGraph, defineState, END, run, START } from "@statewright/core";
import { createOpenSchema } from "../growing-graph.ts";
import { sqliteStore } from "../sqlite-store.ts";

const [file = ""] = process.argv.slice(2);
const report = (what: string): void => void process.send?.(what);

/** The graph of the process; the test continues its threads without running a node. */
export const graph = defineGraph({
  name: "pair",
  state: defineState({ log: channel.list(createOpenSchema<string>()) }),
})
  .nodes({
    quick: () => ({ log: ["quick"] }),
    slow: (_, { signal }) =>
      new Promise<never>((_resolve, reject) => {
        report("waits");
        signal.addEventListener("abort", () => {
          report(`aborted: ${(signal.reason as Error).message}`);
          reject(signal.reason as Error);
        });
      }),
  })
  .edges({ [START]: ["quick", "slow"], quick: END, slow: END });

if (file !== "") {
  const store = sqliteStore(file, { durability: "normal" });
  const handle = run(graph, { store, thread: "t" });
  const result = await handle.result;
  report(`ended: ${result.status}`);
  await store.close();
}
