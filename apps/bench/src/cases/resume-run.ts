/** B9 resume: resume of a run that waits at an interrupt, with its answer, until the run is finished. */
import { resume, run, sqliteStore } from "statewright";
import type { Case, Contender, Work } from "../case.ts";
import { interruptGraph } from "../interrupt-graph.ts";
import { measureTime } from "../measure.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";
import { closeFile, openRawTransactions } from "./superstep.ts";

export function createResumeCase({ langgraph }: Peers): Case {
  return {
    id: "B9 resume",
    title: "resume of a waiting run with an answer, until its end, saved to SQLite, synchronous=NORMAL",
    unit: "resume",
    budget: { cpuUs: 500, text: "a quarter of LangGraph.js" },
    disk: true,
    size: 100,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", open: openStatewright },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph)]),
      { name: "one raw transaction", role: "limit", open: () => openRawTransactions("normal", "one row") },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 1.1 }],
  };
}

/** Lets all runs of a round wait first, and measures their resumes. */
async function measureResumes(
  threads: readonly string[],
  wait: (thread: string) => Promise<unknown>,
  finish: (thread: string) => Promise<unknown>,
): Promise<Sample> {
  for (const thread of threads) await wait(thread);
  return measureTime(async () => {
    for (const thread of threads) await finish(thread);
  });
}

function openStatewright(): Work {
  const file = createScratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  const interrupts = new Map<string, string>();
  let runs = 0;
  return {
    run: (size) =>
      measureResumes(
        Array.from({ length: size }, () => `thread-${runs++}`),
        async (thread) => {
          const waiting = await run(interruptGraph, { store, thread, input: { log: [] } }).result;
          if (waiting.status === "waiting") interrupts.set(thread, waiting.interrupts[0]?.id ?? "");
        },
        (thread) => resume(interruptGraph, { store, thread, answers: { [interrupts.get(thread) ?? ""]: true } }).result,
      ),
    close: () => closeFile(file, runs, () => store.close()),
  };
}

function createPeerContender({ StateGraph, Annotation, SqliteSaver, Command, interrupt }: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    open: () => {
      const file = createScratchFile("theirs.db");
      const saver = SqliteSaver.fromConnString(file.path);
      const graph = new StateGraph(Annotation.Root({ log: Annotation() }))
        .addNode("ask", () => ({ log: [`${interrupt("ok")}`] }))
        .addEdge("__start__", "ask")
        .addEdge("ask", "__end__")
        .compile({ checkpointer: saver });
      const createConfig = (thread: string): object => ({ durability: "sync", configurable: { thread_id: thread } });
      let runs = 0;
      return {
        run: (size) =>
          measureResumes(
            Array.from({ length: size }, () => `thread-${runs++}`),
            (thread) => graph.invoke({ log: [] }, createConfig(thread)),
            (thread) => graph.invoke(new Command({ resume: true }), createConfig(thread)),
          ),
        close: () => closeFile(file, runs, () => saver.db.close()),
      };
    },
  };
}
