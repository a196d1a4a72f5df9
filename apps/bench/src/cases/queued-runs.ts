/** B20 queue and B20 slots: queued runs of one file, run by engines in 1 to 8 processes. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { sqliteStore, submit } from "statewright";
import type { Case, Contender, Work } from "../case.ts";
import { createQueuedCounter } from "../engines/queued-counter.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";

const program = fileURLToPath(new URL("../engines/queue-process.ts", import.meta.url));

/** Time between two counts of the finished runs. */
const pollMs = 5;

export function createQueuedRunsCase(): Case {
  return {
    id: "B20 queue",
    title: "queued runs of 100 tenants, run by engines in 1 to 8 processes on one file, synchronous=NORMAL",
    unit: "run",
    budget: {
      cpuUs: 500,
      text: "8 processes at least 0.9 of the runs a second of 1, and at most 1.3 of the CPU of a run",
    },
    disk: true,
    size: 2_000,
    steady: true,
    contenders: [1, 2, 4, 8].map((processes) => createContender(processes, { concurrency: 64, waitMs: 0 })),
  };
}

export function createSlotsCase(): Case {
  return {
    id: "B20 slots",
    title: "queued runs whose node waits for 20 ms, in 8 processes with 8 slots each on one file, synchronous=NORMAL",
    unit: "run",
    budget: { cpuUs: 600, text: "at most 417 µs a run: 0.75 of the ideal, which is 20 ms for 64 runs" },
    disk: true,
    size: 2_000,
    steady: true,
    contenders: [createContender(8, { concurrency: 8, waitMs: 20 })],
  };
}

interface EngineSettings {
  readonly concurrency: number;
  readonly waitMs: number;
}

function createContender(processes: number, settings: EngineSettings): Contender {
  return {
    name: `statewright, ${processes} ${processes === 1 ? "process" : "processes"}`,
    role: "ours",
    ownProcesses: true,
    processes,
    open: () => openProcesses(processes, settings),
  };
}

async function openProcesses(processes: number, { concurrency, waitMs }: EngineSettings): Promise<Work> {
  const file = createScratchFile("queue.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  const graph = createQueuedCounter(waitMs);
  const children: ChildProcess[] = [];
  for (let nth = 0; nth < processes; nth++) {
    const child = fork(program, [file.path, String(concurrency), String(waitMs)], { execArgv: ["--no-warnings"] });
    await once(child, "message");
    children.push(child);
  }
  let queued = 0;
  return {
    run: async (size): Promise<Sample> => {
      const runs = Array.from({ length: size }, (_, nth) => ({
        thread: `t${queued + nth}`,
        tenant: `tenant-${nth % 100}`,
      }));
      for (let from = 0; from < size; from += 250)
        await Promise.all(runs.slice(from, from + 250).map((run) => submit(graph, { ...run, store, input: { n: 0 } })));
      queued += size;
      const wall = performance.now();
      for (const child of children) child.send("start");
      while ((await store.countRuns()).byStatus.done < queued) await setTimeout(pollMs);
      const wallUs = (performance.now() - wall) * 1_000;
      const times = children.map(async (child) => {
        const response = once(child, "message");
        child.send("stop");
        const [cpuUs] = (await response) as [number];
        return cpuUs;
      });
      return { cpuUs: (await Promise.all(times)).reduce((sum, each) => sum + each, 0), wallUs };
    },
    close: async () => {
      for (const child of children) {
        const exited = once(child, "exit");
        child.disconnect();
        await exited;
      }
      await store.close();
      file.remove();
      return undefined;
    },
  };
}
