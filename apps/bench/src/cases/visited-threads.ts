/** B23 visited: heap that a server keeps of threads whose readers have left. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Case, Work } from "../case.ts";
import { measureSettledHeap } from "../collector.ts";
import { measureTime } from "../measure.ts";
import { createScratchFile } from "../scratch-files.ts";
import { type ChainServer, openChainServer } from "../server/open-chain-server.ts";
import type { VisitRequest } from "../server/visitor-process.ts";

/** Threads whose visits load and compile the code, and fill the caches, before the measurement. */
const warmUpThreads = 1_000;

/** Maximum heap of a visited thread. The smallest object that a server could keep of a thread is larger. */
const maxHeapBytes = 32;

export function createVisitedThreadCase(): Case {
  return {
    id: "B23 visited",
    title: "thread visited over HTTP by a caller of its own: stream opened and closed, state read; 10,000 threads",
    unit: "thread",
    budget: { cpuUs: 2_000, text: `no heap of a visited thread (at most ${maxHeapBytes} bytes)` },
    size: 10_000,
    steady: true,
    contenders: [{ name: "statewright", role: "ours", open: openVisited }],
    amounts: [{ subject: "statewright", measure: "bytes", max: maxHeapBytes }],
  };
}

/** Visits all threads in each round, and measures the heap before and after the first visits. */
function openVisited(): Work {
  const file = createScratchFile("store.db");
  let server: ChainServer | undefined;
  let heapBytes: number | undefined;
  return {
    run: async (size) => {
      const threads = Array.from({ length: size }, (_, index) => `thread-${index}`);
      server ??= await openWarm(file.path, threads);
      const { port } = server;
      const before = heapBytes === undefined ? await measureSettledHeap(size) : 0;
      const sample = await measureTime(() => visit({ port, threads }));
      heapBytes ??= (await measureSettledHeap(size)) - before;
      return sample;
    },
    getBytes: () => heapBytes,
    getNotes: () => "heap for each visited thread",
    close: async () => {
      await server?.close();
      file.remove();
      return undefined;
    },
  };
}

/** Opens a server on the finished runs of another server, and visits other threads. */
async function openWarm(path: string, threads: readonly string[]): Promise<ChainServer> {
  const first = Array.from({ length: Math.min(warmUpThreads, 10 * threads.length) }, (_, index) => `first-${index}`);
  const maker = await openChainServer(path);
  await maker.run([...first, ...threads]);
  await maker.close();
  const server = await openChainServer(path);
  await visit({ port: server.port, threads: first });
  return server;
}

async function visit(request: VisitRequest): Promise<void> {
  const program = fileURLToPath(new URL("../server/visitor-process.ts", import.meta.url));
  const child = fork(program, { execArgv: ["--no-warnings"] });
  const exited = once(child, "exit");
  const visited = once(child, "message");
  child.send(request);
  const isVisited = await Promise.race([visited.then(() => true), exited.then(() => false)]);
  if (!isVisited) throw new Error(`the process of the clients ended before its ${request.threads.length} visits`);
  child.disconnect();
  await exited;
}
