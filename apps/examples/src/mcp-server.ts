/**
 * MCP server for any host: two tools, and a graph with an interrupt that the host's user answers. Runs of the graph
 * survive a restart of the process.
 */
import process from "node:process";
import { offerGraph, serveMcp } from "@statewright/mcp/server";
import { defineGraph, defineState, END, START, sqliteStore } from "statewright";
import * as z from "zod";
import { calculator } from "./calculator.ts";
import { processRows } from "./rows.ts";

const parcel = defineGraph({
  name: "parcel",
  state: defineState({ item: z.string(), street: z.string().default("") }),
  input: z.object({ item: z.string().describe("Item to send") }),
  output: z.object({ item: z.string(), street: z.string() }),
  interrupts: { address: z.object({ street: z.string().describe("Where to") }) },
})
  .nodes({
    ask: async ({ item }, { interrupt }) => ({ street: (await interrupt("address", { payload: { item } })).street }),
    send: async ({ item, street }, { step }) => {
      await step("send", () => process.stderr.write(`sending ${item} to ${street}\n`));
    },
  })
  .edges({ [START]: "ask", ask: "send", send: END });

const [file = "parcels.db"] = process.argv.slice(2);
const store = sqliteStore(file);
const mcp = serveMcp({
  name: "statewright-examples",
  version: "1.0.0",
  instructions: "Calculates, counts rows, and sends parcels.",
  tools: [calculator, processRows],
  graphs: [offerGraph(parcel, { description: "Send a parcel. Asks for the address." })],
  store,
});
process.once("SIGTERM", () => mcp.close());
await mcp.stdio();
await store.close();
