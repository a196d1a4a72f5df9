/** Server of Statewright in this process, with a graph of three nodes and finished runs, saved to SQLite. */
import { serve } from "@statewright/server";
import { defineGraph, defineState, END, engine, START, sqliteStore } from "statewright";
import * as z from "zod";

const count = ({ n }: { readonly n: number }) => ({ n: n + 1 });

export const chain = defineGraph({ name: "chain", state: defineState({ n: z.number() }) })
  .nodes({ first: count, second: count, third: count })
  .edges({ [START]: "first", first: "second", second: "third", third: END });

/** Open server. */
export interface ChainServer {
  readonly port: number;
  /** Runs the graph on new threads. Resolves when all runs are done. */
  readonly run: (threads: readonly string[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Runs at the same time. */
const batchSize = 50;

/** Opens the server on a file. The header `x-user` names the caller; all callers have one tenant. */
export async function openChainServer(path: string): Promise<ChainServer> {
  const store = sqliteStore(path, { durability: "normal" });
  const host = engine({ store, graphs: [chain] });
  await host.start();
  const server = serve({
    engine: host,
    access: { authenticate: (request) => ({ id: request.headers.get("x-user") ?? "user", tenant: "bench" }) },
  });
  const listener = await server.listen({ port: 0, handleSigterm: false, keepAliveTimeoutMs: 60_000 });
  const run = async (thread: string): Promise<void> => {
    const request = new Request(`${listener.url}/api/threads/${thread}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", prefer: "wait=60" },
      body: JSON.stringify({ graph: "chain", input: { n: 0 } }),
    });
    const response = await server.fetch(request);
    const body = await response.text();
    if (response.status !== 200) throw new Error(`the run on ${thread} answered ${response.status}: ${body}`);
  };
  return {
    port: listener.port,
    run: async (threads) => {
      for (let from = 0; from < threads.length; from += batchSize)
        await Promise.all(threads.slice(from, from + batchSize).map(run));
    },
    close: async () => {
      await server.close();
      await host.stop();
      await store.close();
    },
  };
}
