/** Process of clients: opens event streams over plain sockets, and counts the frames that arrive. */
import { connect, type Socket } from "node:net";
import process from "node:process";

/** Request to the process. */
export type ReaderRequest =
  | { readonly kind: "open"; readonly port: number; readonly requests: readonly string[]; readonly marker: string }
  /** Responds when the streams have received this number of frames in total. */
  | { readonly kind: "await"; readonly frames: number };

/** Sockets that connect at the same time. */
const batchSize = 100;

const sockets: Socket[] = [];
let frames = 0;
let awaited = 0;

function openStream(port: number, request: string, marker: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    let tail = "";
    socket.setEncoding("latin1");
    socket.on("error", reject);
    socket.on("data", (text: string) => {
      resolve();
      const received = tail + text;
      for (let at = received.indexOf(marker); at !== -1; at = received.indexOf(marker, at + 1)) frames += 1;
      tail = received.slice(-(marker.length - 1));
      respondWhenReached();
    });
    socket.write(request);
  });
}

function respondWhenReached(): void {
  if (awaited === 0 || frames < awaited) return;
  awaited = 0;
  process.send?.("reached");
}

process.on("disconnect", () => process.exit());
process.on("message", async (request: ReaderRequest) => {
  if (request.kind === "await") {
    awaited = request.frames;
    respondWhenReached();
    return;
  }
  const { port, requests, marker } = request;
  for (let from = 0; from < requests.length; from += batchSize)
    await Promise.all(requests.slice(from, from + batchSize).map((text) => openStream(port, text, marker)));
  process.send?.("open");
});
