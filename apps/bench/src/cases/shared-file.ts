/** B20: engines in 1, 2, 4 and 8 processes on one file; each run has its own thread. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Case, Contender, Role, Work } from "../case.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";

const program = fileURLToPath(new URL("../engines/engine-process.ts", import.meta.url));

export function createSharedFileCase(): Case {
  return {
    id: "B20",
    title: "runs of engines in 1 to 8 processes on one file, each on its own thread, synchronous=NORMAL",
    unit: "run",
    budget: { cpuUs: 500, text: "8 processes at least 0.9 of the runs a second of 1" },
    disk: true,
    size: 2_000,
    steady: true,
    contenders: [
      ...[1, 2, 4, 8].map((processes) => createContender("ours", processes)),
      ...[1, 8].map((processes) => createContender("limit", processes)),
    ],
  };
}

function createContender(role: Role, processes: number): Contender {
  const count = `${processes} ${processes === 1 ? "process" : "processes"}`;
  return {
    name: role === "ours" ? `statewright, ${count}` : `two raw transactions, ${count}`,
    role,
    ownProcesses: true,
    processes,
    open: () => openProcesses(role === "ours" ? "engine" : "raw", processes),
  };
}

async function openProcesses(kind: "engine" | "raw", processes: number): Promise<Work> {
  const file = createScratchFile("shared.db");
  const children: ChildProcess[] = [];
  for (let nth = 0; nth < processes; nth++) {
    const child = fork(program, [kind, file.path, `process-${nth}`], { execArgv: ["--no-warnings"] });
    await once(child, "message");
    children.push(child);
  }
  return {
    run: async (size): Promise<Sample> => {
      const wall = performance.now();
      const times = children.map(async (child) => {
        const response = once(child, "message");
        child.send(Math.ceil(size / processes));
        const [cpuUs] = (await response) as [number];
        return cpuUs;
      });
      const cpuUs = (await Promise.all(times)).reduce((sum, each) => sum + each, 0);
      return { cpuUs, wallUs: (performance.now() - wall) * 1_000 };
    },
    close: async () => {
      for (const child of children) {
        const exited = once(child, "exit");
        child.disconnect();
        await exited;
      }
      file.remove();
      return undefined;
    },
  };
}
