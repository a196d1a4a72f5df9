/** A support desk: it looks orders up by itself, and a person decides about large refunds, today or next week. */
import {
  type AnyModel,
  confirmTools,
  createAgent,
  defineContext,
  defineTool,
  redactPersonal,
  type Store,
  secret,
} from "statewright";
import * as z from "zod";

const Desk = defineContext({ customerId: z.string() });

/** Another company's service: it gives money back. */
export interface Bank {
  readonly refund: (payment: {
    readonly key: string;
    readonly orderId: string;
    readonly cents: number;
    readonly idempotencyKey: string;
  }) => Promise<{ readonly receipt: string }>;
}

/** The shop's orders. */
export interface Orders {
  readonly of: (
    customerId: string,
  ) => readonly { readonly id: string; readonly cents: number; readonly item: string }[];
}

/** What the desk works with. */
export interface DeskParts {
  readonly bank: Bank;
  readonly orders: Orders;
  readonly store: Store;
}

/** The desk. Whose orders they are, and the key of the bank, are hidden from the model. */
export function supportDesk(model: AnyModel, { bank, orders, store }: DeskParts) {
  const myOrders = defineTool({
    name: "my_orders",
    description: "The orders of the customer who asks.",
    input: z.object({}),
    inject: { customer: Desk.from(({ customerId }) => customerId) },
    effect: "pure",
    safety: { access: "read" },
    run: (_args, { injected }) => JSON.stringify(orders.of(injected.customer)),
  });
  const refund = defineTool({
    name: "refund",
    label: "Refund an order",
    description: "Return money for one order.",
    input: z.object({ orderId: z.string(), cents: z.int().positive() }),
    inject: { customer: Desk.from(({ customerId }) => customerId), key: secret("BANK_KEY") },
    effect: "idempotent",
    safety: { access: "write", network: ["bank.example"], spend: true, confirm: "policy" },
    run: async ({ orderId, cents }, { injected, idempotencyKey }) => {
      const order = orders.of(injected.customer).find(({ id }) => id === orderId);
      if (order === undefined) return `The customer has no order ${orderId}.`;
      if (cents > order.cents) return `Order ${orderId} was ${order.cents} cents: no more than that can go back.`;
      const { receipt } = await bank.refund({ key: injected.key.reveal(), orderId, cents, idempotencyKey });
      return { content: `Refunded ${cents} cents for order ${orderId}.`, details: { receipt } };
    },
  });
  return createAgent({
    name: "support",
    model,
    store,
    context: Desk,
    instructions: "You answer customers of a shop. Look their orders up before you promise anything.",
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
