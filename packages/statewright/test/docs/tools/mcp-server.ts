/** An agent and a tool, offered to hosts over HTTP. */
import { type McpServer, offerGraph, serveMcp } from "@statewright/mcp/server";
import { createAgent, defineContext, defineTool, env, inject, type Model, type Store } from "statewright";
import * as z from "zod";

const Shop = defineContext({ customerId: z.string() });

/** Orders that were refunded; read by the tests. */
export const refunds: string[] = [];

// tool
const refund = defineTool({
  name: "refund",
  description: "Return money for one order of this customer.",
  input: z.object({ orderId: z.string(), cents: z.int().positive() }),
  inject: { customer: Shop.from((shop) => shop.customerId), key: inject.secret("PAY_KEY") },
  effect: "idempotent",
  safety: { access: "write", network: ["pay.example"], spend: true, confirm: "always" },
  run: ({ orderId, cents }, { injected }) => {
    refunds.push(`${injected.customer} ${orderId} ${cents}`);
    return `Refunded ${cents / 100} EUR`;
  },
});

export function shop(model: Model, store: Store): McpServer {
  // serve
  const assistant = createAgent({ name: "assistant", model, context: Shop });
  return serveMcp({
    name: "shop",
    version: "1.0.0",
    tools: [refund],
    graphs: [
      offerGraph(assistant, {
        description: "Answers questions about orders.",
        context: ({ id }) => ({ customerId: id }),
      }),
    ],
    context: ({ id }) => ({ customerId: id }),
    secrets: env(["PAY_KEY"]),
    store,
  });
}

/** Listens for one client; the token is generated. */
export async function listen(mcp: McpServer) {
  // listen
  const { url, token, close } = await mcp.listen({ port: 0 });
  return { url, token, close };
}

/** Listens for several clients, and returns a handler for another server. */
export async function listenToSeveral(mcp: McpServer, ann: string, ben: string, subjectOf: (token: string) => string) {
  // several
  const listener = await mcp.listen({ port: 0, tokens: { ann, ben } });
  // mount
  const { fetch } = mcp.http({ authorize: (token) => subjectOf(token), hosts: ["mcp.example"] });
  return { listener, fetch };
}
