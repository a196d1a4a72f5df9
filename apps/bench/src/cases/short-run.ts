/** B2 short: a superstep of a run of ten, each run on a new thread: the start and the end of a run count. */
import { run, sqliteStore } from "statewright";
import type { Case, Contender, Work } from "../case.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import { createScratchFile } from "../scratch-files.ts";
import { closeFile, counter, createPeerCounter, openRawTransactions, runPeerCounter } from "./superstep.ts";

const supersteps = 10;

export function createShortRunCase({ langgraph }: Peers): Case {
  return {
    id: "B2 short",
    title: "superstep of a run of ten on a new thread, saved to SQLite, synchronous=NORMAL",
    unit: "superstep",
    budget: { cpuUs: 50, text: "50 µs; 3.5x of one raw transaction" },
    disk: true,
    size: 400,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", open: openStatewright },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph)]),
      { name: "one raw transaction", role: "limit", open: () => openRawTransactions("normal", "one row") },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.4 }],
  };
}

function openStatewright(): Work {
  const file = createScratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  let runs = 0;
  return {
    run: async (size) => {
      for (let nth = 0; nth < size; nth += supersteps)
        await run(counter, { input: { n: 0, limit: supersteps }, store, thread: `thread-${runs++}` }).result;
      return undefined;
    },
    close: () => closeFile(file, runs * supersteps, () => store.close()),
  };
}

function createPeerContender(langgraph: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    size: 100,
    open: () => {
      const file = createScratchFile("theirs.db");
      const saver = langgraph.SqliteSaver.fromConnString(file.path);
      const graph = createPeerCounter(langgraph, saver);
      let runs = 0;
      return {
        run: async (size) => {
          for (let nth = 0; nth < size; nth += supersteps) await runPeerCounter(graph, supersteps, `thread-${runs++}`);
          return undefined;
        },
        close: () => closeFile(file, runs * supersteps, () => saver.db.close()),
      };
    },
  };
}
