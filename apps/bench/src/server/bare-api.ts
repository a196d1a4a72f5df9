/** Server on `node:http` and better-sqlite3 without a framework: one query for a list, two transactions for a run. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import Database from "better-sqlite3";
import type { ApiServer } from "./api-server.ts";

/** Starts the server. */
export async function start(folder: string): Promise<ApiServer> {
  const answer = openTables(join(folder, "store.db"));
  const server = createServer(async (request, response) => {
    const body = JSON.stringify(answer(request, request.method === "POST" ? JSON.parse(await text(request)) : {}));
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const expected = { text: '"title":"Trip"', times: 1 };
  return {
    port: (server.address() as AddressInfo).port,
    requests: {
      createThread: { method: "POST", path: "/threads", body: { id: "{id}", title: "Trip" }, expected },
      listThreads: { method: "GET", path: "/threads", expected: { ...expected, times: 50 } },
      run: { method: "POST", path: "/runs", body: { id: "{id}", n: 0 }, expected: { text: '"n":3', times: 1 } },
    },
  };
}

type Answer = (request: IncomingMessage, body: { readonly [name: string]: unknown }) => unknown;

function openTables(path: string): Answer {
  const db = new Database(path);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = NORMAL");
  db.exec("CREATE TABLE threads (id TEXT PRIMARY KEY, title TEXT, n INTEGER, status TEXT, at INTEGER) STRICT");
  db.exec("CREATE INDEX threads_at ON threads (at)");
  const insert = db.prepare("INSERT INTO threads VALUES (?, ?, ?, ?, ?)");
  const update = db.prepare("UPDATE threads SET n = ?, status = 'done', at = ? WHERE id = ?");
  const list = db.prepare("SELECT * FROM threads ORDER BY at DESC LIMIT 50");
  return ({ method, url }, body) => {
    if (method === "GET") return { data: list.all() };
    const { id = randomUUID(), title = null, n = null } = body;
    db.transaction(() => insert.run(id, title, n, "running", Date.now())).immediate();
    if (url === "/threads") return { id, title };
    const result = Number(n) + 3;
    db.transaction(() => update.run(result, Date.now(), id)).immediate();
    return { id, n: result };
  };
}
