/** Server of Statewright with a graph of three nodes, saved to SQLite with synchronous=NORMAL, behind a token. */
import { join } from "node:path";
import { serve } from "@statewright/server";
import { engine, sqliteStore } from "statewright";
import type { ClosableApiServer } from "./api-server.ts";
import { chain } from "./open-chain-server.ts";

const token = "the-token-of-the-bench";

/** Starts the server. */
export async function start(folder: string): Promise<ClosableApiServer> {
  const store = sqliteStore(join(folder, "store.db"), { durability: "normal" });
  const host = engine({ store, graphs: [chain] });
  await host.start();
  const server = serve({ engine: host, access: { token } });
  const { port } = await server.listen({ port: 0, handleSigterm: false });
  const headers = { authorization: `Bearer ${token}` };
  return {
    port,
    close: async () => {
      await server.close();
      await host.stop();
      await store.close();
    },
    requests: {
      createThread: {
        method: "POST",
        path: "/api/threads",
        headers,
        body: { id: "{id}", title: "Trip" },
        expected: { text: '"title":"Trip"', times: 1 },
      },
      listThreads: {
        method: "GET",
        path: "/api/threads?limit=50",
        headers,
        expected: { text: '"title":"Trip"', times: 50 },
      },
      run: {
        method: "POST",
        path: "/api/threads/{id}/runs",
        headers: { ...headers, prefer: "wait=60" },
        body: { graph: "chain", input: { n: 0 } },
        expected: { text: '"values":{"n":3}', times: 1 },
      },
    },
  };
}
