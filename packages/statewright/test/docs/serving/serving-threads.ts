import { existsSync } from "node:fs";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { channel, defineGraph, defineState, END, engine, env, START, sqliteStore } from "statewright";
import * as z from "zod";

const Transfer = defineState({ order: z.string(), log: channel.list(z.string()) });

/** Resolves when the file of a settled order exists. */
async function settled(order: string): Promise<void> {
  console.log(`waiting for the bank: ${order}`);
  while (!existsSync(`${order}.settled`)) await sleep(5);
}

const transfer = defineGraph({ name: "transfer", version: 1, state: Transfer })
  .nodes({
    settle: async ({ order }) => {
      await settled(order);
      return { log: ["settled"] };
    },
    notify: () => ({ log: ["notified"] }),
  })
  .edges({ [START]: "settle", settle: "notify", notify: END });

const store = sqliteStore("transfers.db");

const host = engine({ store, graphs: [transfer], secrets: env(["PAY_KEY"]) });
await host.start();
process.once("SIGTERM", () => {
  console.log("stopping");
  host.stop();
});
for (const order of process.argv.slice(2)) {
  const handle = host.run(transfer, { thread: order, input: { order }, key: "transfer", metadata: { customer: "c1" } });
  handle.on((event) => console.log(order, event.type));
}
console.log("serving");
