/** Services over an engine with a small graph, on each kind of store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { channel, defineGraph, defineState, END, engine, memoryStore, START, type Store } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import * as z from "zod";
import type { Caller } from "../../src/access/caller.ts";
import { createServices, type ServiceOptions } from "../../src/index.ts";

export const ann: Caller = { id: "ann", tenant: "acme" };
export const bob: Caller = { id: "bob", tenant: "globex" };

const state = defineState({
  topic: z.string().default(""),
  notes: channel.list(z.string()),
  draft: z.string().default(""),
});

/** Graph that writes a draft, asks whether it is good, and ends. `topic: "fail"` fails the first node. */
export const review = defineGraph({
  name: "review",
  state,
  private: ["draft"],
  interrupts: { approve: z.object({ approved: z.boolean() }) },
})
  .nodes({
    write: ({ topic }) => {
      if (topic === "fail") throw new Error("the secret path /app/keys");
      return { draft: `private draft about ${topic}`, notes: [`wrote about ${topic}`] };
    },
    ask: async ({ topic }, { interrupt }) => {
      if (topic === "quick") return { notes: ["no question"] };
      const { approved } = await interrupt("approve", { payload: { question: `Is ${topic} good?` } });
      return { notes: [approved ? "approved" : "refused"] };
    },
  })
  .edges({ [START]: "write", write: "ask", ask: END });

/** Stores by name, each with what closes it. */
export const stores: Readonly<Record<string, () => { readonly store: Store; readonly close: () => Promise<void> }>> = {
  memory: () => {
    const store = memoryStore();
    return { store, close: () => store.close() };
  },
  sqlite: () => {
    const folder = mkdtempSync(join(tmpdir(), "service-"));
    const store = sqliteStore(join(folder, "threads.db"));
    return {
      store,
      close: async () => {
        await store.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
};

/** Services over an engine with the graph `review`. */
export function createReviewServices(store: Store, options: Omit<ServiceOptions, "engine"> = {}) {
  const host = engine({ store, graphs: [review] });
  return { host, services: createServices({ engine: host, ...options }) };
}
