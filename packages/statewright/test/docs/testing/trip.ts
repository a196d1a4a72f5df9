/** A graph that finds the cheapest flight, asks a person to approve an expensive one, and books it. Tested in docs/testing.md. */
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  goto,
  inputNode,
  route,
  START,
} from "statewright";
import * as z from "zod";

/** Services that the graph calls. */
export interface Airlines {
  price(airline: string): Promise<number>;
  book(key: string): Promise<string>;
}

/** Creates the graph for the given airlines. */
export function tripWith(airlines: Airlines) {
  return defineGraph({
    name: "trip",
    state: defineState({
      airlines: z.array(z.string()).default(["north", "south"]),
      offers: channel.list(z.object({ airline: z.string(), price: z.number() })),
      price: z.number().default(0),
      ticket: z.string().default(""),
    }),
    interrupts: { approve: z.boolean() },
  })
    .nodes({
      plan: () => undefined,
      offer: inputNode(z.string(), async (_state, { input, step }) => ({
        offers: [{ airline: input, price: await step("price", () => airlines.price(input)) }],
      })),
      choose: (state) => ({ price: Math.min(...state.offers.map(({ price }) => price)) }),
      approve: async (state, { interrupt }) =>
        (await interrupt("approve", { payload: { price: state.price } })) ? goto("book") : goto("stay"),
      book: async (_state, { step }) => ({
        ticket: await step("book", ({ idempotencyKey }) => airlines.book(idempotencyKey), { effect: "once" }),
      }),
      stay: () => undefined,
    })
    .edges({
      [START]: "plan",
      plan: fanOut("offer", (state) => state.airlines, { otherwise: "stay" }),
      offer: "choose",
      choose: route(["book", "approve"], (state) => (state.price > 500 ? "approve" : "book")),
      approve: commandTargets("book", "stay"),
      book: END,
      stay: END,
    });
}

/** Creates airlines with these prices, which count bookings. */
export function airlinesAsking(prices: Readonly<Record<string, number>>): Airlines & { readonly booked: string[] } {
  const booked: string[] = [];
  return {
    booked,
    price: async (airline) => prices[airline] ?? 1_000,
    book: async (key) => {
      booked.push(key);
      return `ticket ${booked.length}`;
    },
  };
}
