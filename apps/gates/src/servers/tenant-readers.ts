/**
 * Process of clients: opens event streams of several tenants over plain sockets, and counts the frames of their own and
 * of other tenants.
 */
import { connect, type Socket } from "node:net";
import process from "node:process";

/** Request to the process. */
export type ReadersRequest =
  /** Opens a stream of each caller to the thread `talk` of each tenant; the response is the number of open streams. */
  | { readonly kind: "open"; readonly port: number; readonly tenants: readonly string[]; readonly callers: number }
  /** Responds when all streams have a text, with the number of streams that have the text of another tenant. */
  | { readonly kind: "read"; readonly text: string };

/** Sockets that connect at the same time. */
const batchSize = 100;

interface Reader {
  readonly tenant: string;
  received: string;
}

const readers: Reader[] = [];
const sockets: Socket[] = [];
let onText = (): void => undefined;

function openStream(port: number, tenant: string, caller: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const reader: Reader = { tenant, received: "" };
    const socket = connect(port, "127.0.0.1");
    sockets.push(socket);
    readers.push(reader);
    socket.setEncoding("latin1");
    socket.on("error", reject);
    socket.on("close", () => resolve(false));
    socket.on("data", (text: string) => {
      reader.received += text;
      resolve(reader.received.startsWith("HTTP/1.1 200 "));
      onText();
    });
    const lines = [`x-tenant: ${tenant}`, `x-user: user-${caller}`, "accept: text/event-stream"];
    socket.write(`GET /api/threads/talk/events HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${lines.join("\r\n")}\r\n\r\n`);
  });
}

async function openAll({ port, tenants, callers }: Extract<ReadersRequest, { readonly kind: "open" }>) {
  const all = tenants.flatMap((tenant) => Array.from({ length: callers }, (_, caller) => [tenant, caller] as const));
  let open = 0;
  for (let from = 0; from < all.length; from += batchSize) {
    const batch = all.slice(from, from + batchSize).map(([tenant, caller]) => openStream(port, tenant, caller));
    open += (await Promise.all(batch)).filter(Boolean).length;
  }
  return open;
}

/** Waits until each stream has the text of its tenant; the text ends with the name of the tenant and a dot. */
function readAll(text: string): Promise<number> {
  return new Promise((resolve) => {
    onText = () => {
      if (!readers.every(({ tenant, received }) => received.includes(`${text} ${tenant}.`))) return;
      onText = () => undefined;
      const isForeign = ({ tenant, received }: Reader): boolean =>
        received.replaceAll(`${text} ${tenant}.`, "").includes(text);
      resolve(readers.filter(isForeign).length);
    };
    onText();
  });
}

process.on("disconnect", () => process.exit());
process.on("message", async (request: ReadersRequest) => {
  process.send?.(request.kind === "open" ? await openAll(request) : await readAll(request.text));
});
