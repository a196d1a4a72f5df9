import { createAgent, defineTool, sqliteStore } from "statewright";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";

const input = z.object({ order: z.string() });
const refund = defineTool({ name: "refund", description: "Refund an order", input, run: () => "refunded" });
const middleware = [confirmTools({ policy: () => "a person approves refunds" })];
const model = "anthropic/claude-sonnet-4-5";
const store = sqliteStore("agent.db");
const agent = createAgent({ name: "support", model, tools: [refund], middleware, store });

const first = await agent.run({ thread: "t1", input: "Please refund order 7." }).result;
if (first.status === "waiting") console.log(first.interrupts[0]?.payload); // saved: the process may end here
const last = await agent.resume({ thread: "t1", answers: { approve: true } }).result;
console.log(last.status, last.text);
