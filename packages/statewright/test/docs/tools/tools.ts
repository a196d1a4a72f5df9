import {
  channel,
  createAgent,
  defineContext,
  defineMiddleware,
  defineState,
  defineTool,
  inject,
  type Model,
  type Tool,
  type ToolCall,
  type ToolRuntime,
  toolRegistry,
} from "statewright";
import { fromPiTool, jsonSchemaInput, toolSpec } from "statewright/adapter";
import { lintTool } from "statewright/inspect";
import { cacheResults } from "statewright/middleware";
import * as z from "zod";

/** The bank, with the idempotency keys that it has received. */
export const bank = {
  seen: [] as string[],
  refund: async (key: string, customer: string, order: string, cents: number, more: { idempotencyKey: string }) => {
    bank.seen.push(`${key.length} ${customer} ${order} ${cents} ${more.idempotencyKey}`);
    return { receipt: `R-${order}` };
  },
};

export const Shop = defineContext({ customerId: z.string() });
export const Orders = defineState({ cart: z.array(z.string()).default([]) });

export const refund = defineTool({
  name: "refund",
  label: "Refund an order",
  description: "Return money for one order of this customer.",
  input: z.object({
    orderId: z.string().describe("Number of the order"),
    cents: z.int().positive().describe("How much, in cents"),
  }),
  inject: {
    customer: Shop.from((shop) => shop.customerId),
    key: inject.secret("PAY_KEY"),
    cart: Orders.from((state) => state.cart),
  },
  effect: "idempotent", // the bank honours the key; the default is "once"
  safety: { access: "write", network: ["pay.example"], spend: true, confirm: "policy" },
  retry: { attempts: 3, on: ["unavailable", "timeout"] },
  timeoutMs: 20_000,
  run: async ({ orderId, cents }, { injected, progress, idempotencyKey }) => {
    progress("Asking the bank");
    const { customer, key } = injected;
    const receipt = await bank.refund(key.reveal(), customer, orderId, cents, { idempotencyKey });
    return { content: `Refunded ${cents / 100} EUR`, details: receipt };
  },
});

export const Desk = defineState({ notes: channel.list(z.string()) });

export const note = defineTool({
  name: "note",
  description: "Write down what the customer has said.",
  input: z.object({ text: z.string().describe("What was said") }),
  effect: "idempotent",
  run: ({ text }) => ({ content: "Noted.", command: { update: { notes: [text] } } }),
});

export const stats = defineTool({
  name: "stats",
  description: "Mean of a list of numbers.",
  input: z.object({
    numbers: z.array(z.number()).min(1, { error: "numbers must be a non-empty array" }).describe("The numbers"),
    precision: z.int().default(2).describe("Digits after the point"),
  }),
  effect: "pure",
  // some models send "1, 2, 3"
  prepareArguments: (args) => {
    const { numbers, ...rest } = args as { numbers?: unknown };
    return typeof numbers === "string" ? { numbers: numbers.split(",").map(Number), ...rest } : args;
  },
  run: ({ numbers, precision }) => (numbers.reduce((sum, each) => sum + each, 0) / numbers.length).toFixed(precision),
});

export const lookup = defineTool({
  name: "lookup",
  description: "Look a word up in the glossary.",
  input: jsonSchemaInput<{ readonly word: string }>({
    type: "object",
    properties: { word: { type: "string", description: "The word", minLength: 1 } },
    required: ["word"],
    additionalProperties: false,
  }),
  effect: "pure",
  run: ({ word }) => `${word}: a word`,
});

export class CountCart implements Tool<{ readonly cart: readonly string[] }, { readonly customerId: string }> {
  readonly spec = toolSpec({
    name: "count_cart",
    description: "Count what the customer has in the cart.",
    input: z.object({}),
    effect: "pure",
  });
  readonly #unit: string;
  constructor(unit: string) {
    this.#unit = unit;
  }
  call(state: { readonly cart: readonly string[] }, { context }: ToolRuntime<{ customerId: string }>, _call: ToolCall) {
    return `${state.cart.length} ${this.#unit} for ${context.customerId}`;
  }
}

/** What the count depends on, besides the arguments. */
interface CartSource {
  readonly context: { readonly customerId: string };
  readonly state: { readonly cart: readonly string[] };
}

export const cachedCart = cacheResults({
  ttlMs: 60_000,
  scopes: { count_cart: ({ context, state }: CartSource) => JSON.stringify([context.customerId, state.cart]) },
});

export const search = fromPiTool(
  {
    name: "SearchFiles",
    label: "Search Files",
    description: "Search files by glob pattern.",
    parameters: {
      type: "object",
      properties: { glob: { type: "string", description: "Such as **/*.ts" } },
      required: ["glob"],
    },
    execute: async (_toolCallId, params, signal, onUpdate) => {
      signal?.throwIfAborted();
      onUpdate?.({ content: [{ type: "text", text: "Searching" }] });
      return { content: [{ type: "text", text: `Nothing fits ${params["glob"]}` }], details: { files: [] } };
    },
  },
  { effect: "pure", safety: { access: "read", filesystem: "read" } },
);

export const registry = toolRegistry([stats, lookup, search]);
registry.alias("openai", "lookup", "Lookup"); // only models of openai see this name

export const readOnly = defineMiddleware({
  name: "read-only",
  selectTools: (names) => names.filter((name) => registry.get(name)?.spec.safety.access !== "write"),
});

export function shop(model: Model) {
  return createAgent({
    name: "shop",
    model,
    context: Shop,
    state: Orders,
    tools: [refund, stats, new CountCart("things")],
    allowedTools: (state) => (state.cart.length > 0 ? ["refund", "stats", "count_cart"] : ["stats", "count_cart"]),
    onInvalidCall: { not_advertised: "fail" },
  });
}

export const files = (model: Model) => createAgent({ name: "files", model, tools: registry, middleware: [readOnly] });

export const warnings = [refund, stats, lookup, search].flatMap((tool) => lintTool(tool));
export const described = registry.describe();
