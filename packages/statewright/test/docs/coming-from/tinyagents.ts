import { call, say, scriptedModel } from "@statewright/testing";
import {
  createAgent,
  defineContext,
  defineState,
  defineTool,
  env,
  getMessageText,
  inject,
  type Message,
  memoryStore,
  type RunEvent,
  type Tool,
  type ToolCall,
  ToolError,
  type ToolRuntime,
  toolRegistry,
} from "statewright";
import { toolSpec } from "statewright/adapter";
import { confirmTools, refuseUnclassified } from "statewright/middleware";
import * as z from "zod";

const Shop = defineContext({ customer: z.string() });
const Orders = defineState({ open: z.array(z.string()).default(["o7"]) });

let busy = 1;

// a tool as a class
class Refund implements Tool<{ readonly open: readonly string[] }, { readonly customer: string }> {
  readonly spec = toolSpec({
    name: "refund",
    description: "Return money for one open order.",
    input: z.object({
      order: z.string().describe("Number of the order"),
      cents: z.int().positive().describe("How much, in cents"),
    }),
    output: z.object({ receipt: z.string() }),
    safety: {
      access: "write",
      network: ["pay.example"],
      spend: true,
      confirm: "always",
    },
    effect: "idempotent",
    timeoutMs: 20_000,
    retry: { attempts: 3, initialMs: 1, on: ["unavailable"] },
  });

  async call(
    state: { readonly open: readonly string[] },
    { context, emit, idempotencyKey }: ToolRuntime<{ readonly customer: string }>,
    { args }: ToolCall,
  ) {
    const { order, cents } = args as { readonly order: string; readonly cents: number };
    if (!state.open.includes(order)) throw ToolError.notFound(`${order} is not open.`);
    if (busy-- > 0) throw ToolError.unavailable("the bank is busy");
    emit("refunded", { order, cents, key: `…${idempotencyKey.slice(-11)}` });
    return {
      content: `Refunded ${cents} cents to ${context.customer}`,
      value: { receipt: `r-${order}` },
    };
  }
}

// hidden arguments
const exportOrders = defineTool({
  name: "export_orders",
  description: "Export all orders of the customer as text.",
  input: z.object({}),
  inject: {
    customer: Shop.from(({ customer }) => customer),
    open: Orders.from(({ open }) => open),
    key: inject.secret("SHOP_KEY"),
  },
  effect: "pure",
  safety: { access: "read", network: ["shop.example"] },
  run: (_args, { injected: { customer, open } }) => `${customer} has ${open.length} open\n`.repeat(1_000),
});

const unclassified = defineTool({
  name: "mystery",
  description: "Does something that it does not tell.",
  input: z.object({}),
  run: () => "done",
});

// a registry
const tools = toolRegistry([new Refund(), exportOrders, unclassified]);
tools.alias("openai", "refund", "RefundOrder");

const model = scriptedModel([
  [
    call("refund", { order: "o7", cents: 900 }),
    call("export_orders", { customer: "somebody else" }),
    call(unclassified, {}),
    call("refnud", {}),
  ],
  say("Refunded."),
]);

// policies
const store = memoryStore();
const shop = createAgent({
  name: "shop",
  model,
  context: Shop,
  state: Orders,
  tools,
  middleware: [refuseUnclassified(), confirmTools()],
  strategy: "sequential",
  onInvalidCall: { not_advertised: "fail" },
  store,
});

const secrets = env(["SHOP_KEY"]);
const common = { thread: "t1", context: { customer: "Ann" }, secrets };
const first = shop.run({ ...common, input: "Refund o7." });
first.on(printEvent);
const { status } = await first.result;
console.log(status);

const second = shop.resume({ ...common, answers: { approve: true } });
second.on(printEvent);
const { state } = await second.result;
for (const message of state.messages) if (message.role === "tool") console.log(`model reads: ${shown(message)}`);

/** Returns the start of the text that the model reads: the text, or the preview of an artifact. */
function shown(message: Message): string {
  const [first] = message.content;
  const text = typeof first === "object" && first.type === "artifact" ? first.preview : getMessageText(message);
  return `${text.split("\n")[0]?.slice(0, 50)} (${text.length} characters)`;
}

// events
function printEvent(event: RunEvent): void {
  if (event.type === "tool.started") console.log(`${event.type} ${event.tool} ${JSON.stringify(event.args)}`);
  else if (event.type === "tool.rejected" || event.type === "tool.denied")
    console.log(`${event.type} ${event.tool}: ${event.reason}`);
  else if (event.type === "tool.forged_arg_stripped") console.log(`${event.type} ${event.tool}: ${event.keys}`);
  else if (event.type === "tool.retried") console.log(`${event.type} ${event.tool}: ${event.error}`);
  else if (event.type === "custom") console.log(`${event.name} ${JSON.stringify(event.payload)}`);
  else if (event.type === "tool.failed") console.log(`${event.type} ${event.tool}: ${event.result.error?.kind}`);
  else if (event.type === "tool.completed")
    console.log(
      `${event.type} ${event.tool} ${JSON.stringify(event.result.value ?? event.result.artifacts?.[0]?.bytes)}`,
    );
}
