import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { defineGraph, defineState, END, engine, START, sqliteStore, submit } from "statewright";
import { countRuns } from "statewright/inspect";
import * as z from "zod";

const Report = defineState({ customer: z.string(), nth: z.number(), pages: z.number().default(0) });
const report = defineGraph({ name: "report", version: 1, state: Report })
  .nodes({
    write: ({ customer, nth }) => {
      console.log(`${customer} ${nth}`);
      return { pages: 3 };
    },
  })
  .edges({ [START]: "write", write: END });

const store = sqliteStore("reports.db");

/** Puts the reports of two customers into the queue: many of one, then two of the other, one of them urgent. */
async function order(): Promise<void> {
  for (let nth = 1; nth <= 20; nth++) await submit(report, { store, tenant: "acme", input: { customer: "acme", nth } });
  await submit(report, { store, tenant: "bell", input: { customer: "bell", nth: 1 } });
  await submit(report, { store, tenant: "bell", input: { customer: "bell", nth: 2 }, priority: 10 });
}

/** Works until the queue is empty. */
async function work(): Promise<void> {
  const host = engine({ store, graphs: [report], concurrency: 4 });
  process.once("SIGTERM", () => void host.stop());
  await host.start();
  for (let open = 1; open > 0; await sleep(20)) {
    const { byStatus } = await countRuns(store);
    open = byStatus.queued + byStatus.running + byStatus.crashed;
  }
  await host.stop();
}

await (process.argv[2] === "order" ? order() : work());
await store.close();
