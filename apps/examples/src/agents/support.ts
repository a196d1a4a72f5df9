/** Support desk: finds orders without approval, and waits for a person's approval of large refunds. */
import { type Caller, serve } from "@statewright/server";
import { type AnyModel, createAgent, defineContext, defineTool, engine, env, inject, type Store } from "statewright";
import { confirmTools, redactPersonal } from "statewright/middleware";
import * as z from "zod";

const CustomerContext = defineContext({ customerId: z.string() });

/** External payment service for refunds. */
export interface Bank {
  readonly refund: (payment: {
    readonly key: string;
    readonly orderId: string;
    readonly cents: number;
    readonly idempotencyKey: string;
  }) => Promise<{ readonly receipt: string }>;
}

/** Orders of the shop. */
export interface Orders {
  readonly list: (
    customerId: string,
  ) => readonly { readonly id: string; readonly cents: number; readonly item: string }[];
}

/** Services of the support desk. */
export interface SupportServices {
  readonly bank: Bank;
  readonly orders: Orders;
  readonly store: Store;
}

/** Creates the support desk. The customer id and the bank key are injected and not visible to the model. */
export function createSupportDesk(model: AnyModel, { bank, orders, store }: SupportServices) {
  const myOrders = defineTool({
    name: "my_orders",
    description: "List the orders of the customer.",
    input: z.object({}),
    inject: { customer: CustomerContext.from(({ customerId }) => customerId) },
    effect: "pure",
    safety: { access: "read" },
    run: (_args, { injected }) => JSON.stringify(orders.list(injected.customer)),
  });
  const refund = defineTool({
    name: "refund",
    label: "Refund an order",
    description: "Refund one order.",
    input: z.object({ orderId: z.string(), cents: z.int().positive() }),
    inject: { customer: CustomerContext.from(({ customerId }) => customerId), key: inject.secret("BANK_KEY") },
    effect: "idempotent",
    safety: { access: "write", network: ["bank.example"], spend: true, confirm: "policy" },
    run: async ({ orderId, cents }, { injected, idempotencyKey }) => {
      const order = orders.list(injected.customer).find(({ id }) => id === orderId);
      if (order === undefined) return `Order ${orderId} is not an order of this customer.`;
      if (cents > order.cents) return `Order ${orderId} cost ${order.cents} cents. A refund cannot exceed this amount.`;
      const { receipt } = await bank.refund({ key: injected.key.reveal(), orderId, cents, idempotencyKey });
      return { content: `Refunded ${cents} cents for order ${orderId}.`, details: { receipt } };
    },
  });
  return createAgent({
    name: "support",
    model,
    store,
    context: CustomerContext,
    instructions: "You answer customers of a shop. Look up their orders before you promise anything.",
    tools: [myOrders, refund],
    middleware: [
      redactPersonal({ kinds: ["card", "iban"] }),
      confirmTools({
        policy: (call) =>
          refund.is(call) && call.args.cents > 5_000 && `${call.args.cents} cents is more than 50 euros`,
      }),
    ],
  });
}

/** Returns the customer of a request; undefined for a request without a customer. */
type FindCaller = (request: Request) => Caller | undefined;

type SupportDesk = ReturnType<typeof createSupportDesk>;

/** Puts the support desk behind HTTP: each customer is a caller, whose id becomes the hidden customer id. */
export async function serveSupportDesk(
  desk: SupportDesk,
  {
    store,
    authenticate,
    port,
  }: Pick<SupportServices, "store"> & { readonly authenticate: FindCaller; readonly port: number },
) {
  const host = engine({
    store,
    graphs: [desk],
    secrets: env(["BANK_KEY"]),
    context: ({ owner }) => ({ customerId: owner }),
  });
  await host.start();
  const server = serve({ engine: host, access: { authenticate, scope: "caller" } });
  const { url } = await server.listen({ port });
  return { host, server, url };
}
