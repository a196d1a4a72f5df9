/** One process of an MCP server over stdio. A file records the effects of its graph; a file named `go` releases it. */
import { appendFileSync, existsSync } from "node:fs";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { offerGraph, serveMcp } from "@statewright/mcp/server";
import { defineGraph, defineState, END, START, sqliteStore } from "statewright";
import { systemWorld } from "statewright/adapter";
import * as z from "zod";

const recordWork = (what: string): void => appendFileSync("did.txt", `${what}\n`);

const order = defineGraph({
  name: "order",
  state: defineState({ item: z.string(), street: z.string().default("") }),
  input: z.object({ item: z.string() }),
  output: z.object({ item: z.string(), street: z.string() }),
  interrupts: { street: z.string() },
})
  .nodes({
    reserve: async ({ item }, { step }) => {
      await step("reserve", () => recordWork(`reserved ${item}`));
    },
    pay: async ({ item }, { step }) => {
      await step("pay", () => recordWork(`paid ${item}`));
    },
    carry: async (_state, { progress }) => {
      progress("under way");
      while (!existsSync("go")) await setTimeout(5);
    },
    ask: async (_state, { interrupt }) => ({ street: await interrupt("street", { payload: "Where to?" }) }),
    send: async ({ street }, { step }) => {
      await step("send", () => recordWork(`sent to ${street}`));
    },
  })
  .edges({ [START]: "reserve", reserve: "pay", pay: "carry", carry: "ask", ask: "send", send: END });

const store = sqliteStore("orders.db");
const mcp = serveMcp({
  name: "orders",
  version: "1.0.0",
  graphs: [offerGraph(order, { description: "Order something." })],
  store,
  world: systemWorld({ log: (_level, line) => process.stderr.write(`${line}\n`) }),
});
await mcp.stdio();
await store.close();
recordWork("process ended");
