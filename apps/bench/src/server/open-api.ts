/** Starts a server in a process of its own, and measures the requests of a client in this process. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Work } from "../case.ts";
import { createScratchFolder } from "../scratch-files.ts";
import type { ApiRequests, ApiServer } from "./api-server.ts";
import { createRequestLoop } from "./request-loop.ts";

/** Request that is measured, and the threads that the server has before. */
export interface MeasuredRequest {
  readonly name: keyof ApiRequests;
  readonly threads: number;
}

/** Opens the server of a module. The CPU time of a round is that of the server's process. */
export async function openApi(entry: string, { name, threads }: MeasuredRequest): Promise<Work> {
  const folder = createScratchFolder();
  const program = fileURLToPath(new URL("./api-process.ts", import.meta.url));
  const child = fork(program, [entry, folder.path], { execArgv: ["--no-warnings"] });
  const { port, requests } = await waitForAnswer<ApiServer>(child);
  const loop = createRequestLoop(port);
  await loop.send(requests.createThread, threads);
  const request = requests[name];
  let fastestUs = Number.POSITIVE_INFINITY;
  return {
    run: async (size) => {
      const cpuUs = await measureCpu(child);
      const wall = performance.now();
      await loop.send(request, size);
      const wallUs = (performance.now() - wall) * 1_000;
      fastestUs = Math.min(fastestUs, wallUs / size);
      return { cpuUs: (await measureCpu(child)) - cpuUs, wallUs };
    },
    getNotes: () => `${request.method} ${request.path}, up to ${Math.round(1_000_000 / fastestUs)} requests a second`,
    close: async () => {
      loop.close();
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
      folder.remove();
      return undefined;
    },
  };
}

async function measureCpu(child: ChildProcess): Promise<number> {
  const answer = waitForAnswer<number>(child);
  child.send("cpu");
  return await answer;
}

/** Returns the next message of the process. Throws if the process exits before. */
function waitForAnswer<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const rejectOnExit = (code: number | null): void =>
      reject(new Error(`expected an answer of the server's process, but it exited with code ${code}`));
    child.once("exit", rejectOnExit);
    child.once("message", (message) => {
      child.off("exit", rejectOnExit);
      resolve(message as Message);
    });
  });
}
