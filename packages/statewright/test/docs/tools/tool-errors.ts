import { call, say, scriptedModel } from "@statewright/testing";
import {
  createAgent,
  defineTool,
  getMessageText,
  isStatewrightError,
  memoryStore,
  type RunEvent,
  type Tool,
  ToolError,
} from "statewright";
import * as z from "zod";

// failures
const findOrder = defineTool({
  name: "find_order",
  description: "Look an order up by its number.",
  input: z.object({ orderId: z.string().describe("Number of the order") }),
  effect: "pure",
  run: ({ orderId }) => {
    if (orderId !== "7")
      throw ToolError.notFound(`There is no order ${orderId}. Ask for its number.`, {
        userMessage: `Order ${orderId} is unknown.`,
      });
    return { content: "Order 7: two lamps", value: { orderId, lamps: 2 } };
  },
});

// retries
let busy = 2;
const reserve = defineTool({
  name: "reserve",
  description: "Reserve what an order needs.",
  input: z.object({ orderId: z.string() }),
  effect: "idempotent",
  retry: { attempts: 3, initialMs: 10, on: ["unavailable", "timeout"] },
  run: async ({ orderId }, { attempt }) => {
    if (busy-- > 0) throw ToolError.unavailable("The stock answers 503", { retryAfterMs: 5 });
    return `Order ${orderId} is reserved, in attempt ${attempt}`;
  },
});

// policies
const charge = defineTool({
  name: "charge",
  description: "Charge the customer.",
  input: z.object({ cents: z.int().positive() }),
  onError: "fail",
  run: () => {
    throw new Error("the account is closed");
  },
});
const audit = defineTool({
  name: "write_audit",
  description: "Write a line into the audit log.",
  input: z.object({ line: z.string() }),
  onError: { message: "The audit log cannot be written now. Go on without it." },
  run: () => {
    throw new Error("disk /dev/sda1 is full");
  },
});

// grace
const countRows = defineTool({
  name: "count_rows",
  description: "Count the rows of a large table.",
  input: z.object({ table: z.string() }),
  effect: "pure",
  timeoutMs: 30,
  graceMs: 1_000,
  run: async ({ table }, { signal, update }) => {
    let rows = 0;
    while (!signal.aborted) {
      rows += await nextPage(table);
      update?.({ content: `${rows} rows so far`, details: { rows } });
    }
    return `Stopped early: ${table} has at least ${rows > 0 ? "one page of" : "no"} rows`;
  },
});

async function nextPage(_table: string): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 5));
  return 100;
}

const store = memoryStore();
let threads = 0;

/** Runs the calls, and prints one line per event. */
async function tell(tool: Tool, ...calls: ReturnType<typeof call>[]): Promise<void> {
  const agent = createAgent({ name: "desk", model: scriptedModel([calls, say("I see.")]), tools: [tool], store });
  const handle = agent.run({ thread: `t${++threads}`, input: "Go" });
  handle.on((event) => {
    const line = lineOf(event);
    if (line !== undefined) console.log(line);
  });
  try {
    const { state } = await handle.result;
    for (const message of state.messages)
      if (message.role === "tool") console.log("the model reads:", getMessageText(message));
  } catch (error) {
    if (!isStatewrightError(error, "tool_failed")) throw error;
    console.log("the run fails:", error.code);
  }
}

function lineOf(event: RunEvent): string | undefined {
  switch (event.type) {
    case "tool.retried":
      return `attempt ${event.attempt} failed: ${event.error}; again in ${event.delayMs} ms`;
    case "tool.failed":
      return `${event.tool} failed: ${event.result.error?.kind}, ${event.result.error?.disposition}; people read: ${event.result.error?.message}`;
    case "tool.completed":
      return `${event.tool} is done after ${event.result.attempts} attempts`;
    default:
      return undefined;
  }
}

await tell(findOrder, call(findOrder, { orderId: "8" }));
await tell(reserve, call(reserve, { orderId: "7" }));
await tell(audit, call(audit, { line: "refunded" }));
await tell(charge, call(charge, { cents: 900 }));
await tell(countRows, call(countRows, { table: "events" }));
