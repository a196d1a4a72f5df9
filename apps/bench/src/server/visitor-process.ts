/**
 * Process of clients: opens and closes an event stream of each thread, and reads its state. Each thread has a caller of
 * its own.
 */
import { Agent, get } from "node:http";
import process from "node:process";
import { text } from "node:stream/consumers";

/** Request to the process: visits these threads, and responds at the end. */
export interface VisitRequest {
  readonly port: number;
  readonly threads: readonly string[];
}

/** Threads that are visited at the same time. */
const batchSize = 50;

const agent = new Agent({ keepAlive: true, maxSockets: batchSize });

/** Opens the event stream of a thread, and closes it after its first byte. */
function touchStream(port: number, thread: string, user: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "x-user": user, accept: "text/event-stream" };
    const request = get({ host: "127.0.0.1", port, path: `/api/threads/${thread}/events`, headers, agent: false });
    request.on("error", reject);
    request.on("response", (response) => {
      if (response.statusCode !== 200) reject(new Error(`the stream of ${thread} answered ${response.statusCode}`));
      response.on("error", reject);
      response.once("data", () => {
        response.off("error", reject).on("error", ignoreOwnEnd);
        request.off("error", reject).on("error", ignoreOwnEnd);
        request.destroy();
        resolve();
      });
    });
  });
}

function ignoreOwnEnd(): void {
  // The client ended the connection in the middle of the stream.
}

function readState(port: number, thread: string, user: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const path = `/api/threads/${thread}/state`;
    const request = get({ host: "127.0.0.1", port, path, headers: { "x-user": user }, agent }, (response) => {
      text(response).then((body) => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the state of ${thread} answered ${response.statusCode}: ${body}`));
      }, reject);
    });
    request.on("error", reject);
  });
}

process.on("disconnect", () => process.exit());
process.on("message", async ({ port, threads }: VisitRequest) => {
  for (let from = 0; from < threads.length; from += batchSize)
    await Promise.all(
      threads.slice(from, from + batchSize).map(async (thread, index) => {
        const user = `user-${from + index}`;
        await touchStream(port, thread, user);
        await readState(port, thread, user);
      }),
    );
  process.send?.("visited");
});
