/** Readers of event streams in a process of their own, so that their CPU time is not the server's. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ReaderRequest } from "./reader-process.ts";

/** Open readers. */
export interface StreamReaders {
  /** Resolves when the readers have received this number of frames since they were opened. */
  readonly waitForFrames: (frames: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Opens a stream for each path, and resolves when each has received its first byte. Each path has a caller of its own. */
export async function openStreamReaders(
  port: number,
  paths: readonly string[],
  marker: string,
): Promise<StreamReaders> {
  const child = fork(fileURLToPath(new URL("./reader-process.ts", import.meta.url)), [], {
    execArgv: ["--no-warnings"],
  });
  const ask = async (request: ReaderRequest): Promise<void> => {
    const response = once(child, "message");
    child.send(request);
    await response;
  };
  const requests = paths.map(
    (path, index) =>
      `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nx-user: user${index}\r\naccept: text/event-stream\r\n\r\n`,
  );
  await ask({ kind: "open", port, requests, marker });
  return {
    waitForFrames: (frames) => ask({ kind: "await", frames }),
    close: async () => {
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
    },
  };
}
