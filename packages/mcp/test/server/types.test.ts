/** Values that cannot be served do not compile, or are refused when they are offered. */
import { defineContext, defineGraph, defineState, defineTool, END, START, toolRegistry } from "@statewright/core";
import { offerGraph, serveMcp } from "@statewright/mcp/server";
import { expect, test } from "vitest";
import * as z from "zod";

const Shop = defineContext({ customer: z.string() });
const Cart = defineState({ cart: z.array(z.string()).default([]) });
const about = { name: "x", version: "1.0.0" };
const plain = { description: "Do.", input: z.object({}), run: () => "done" };
const bare = defineTool({ ...plain, name: "bare" });
const forShop = defineTool({ ...plain, name: "for_shop", inject: { customer: Shop.from((shop) => shop.customer) } });
const forCart = defineTool({ ...plain, name: "for_cart", inject: { cart: Cart.from((state) => state.cart) } });
const shop = defineGraph({ name: "shop", state: Cart, context: Shop })
  .nodes({ look: () => ({}) })
  .edges({ [START]: "look", look: END });

test("an MCP tool or graph without its context, and an MCP tool that reads state, do not compile (types)", () => {
  serveMcp({ ...about, tools: [bare] });
  serveMcp({ ...about, tools: [bare, forShop], context: { customer: "ann" } });
  serveMcp({ ...about, tools: toolRegistry([forShop]), context: ({ id }) => ({ customer: id }) });
  // @ts-expect-error the tool injects a context
  serveMcp({ ...about, tools: [forShop] });
  // @ts-expect-error and this is not it
  serveMcp({ ...about, tools: [forShop], context: { customer: 7 } });
  // @ts-expect-error a call from outside has no cart
  serveMcp({ ...about, tools: [forCart] });
  offerGraph(shop, { description: "Shop.", context: { customer: "ann" } });
  // @ts-expect-error the graph has a context
  offerGraph(shop, { description: "Shop." });
});

test("serveMcp refuses tools and graphs that a host could not use", () => {
  const expectRefusal = (what: () => unknown) =>
    expect(what).toThrow(expect.objectContaining({ code: "invalid_option" }));
  const taken = defineGraph({ name: "taken", state: defineState({ thread: z.string() }) })
    .nodes({ look: () => ({}) })
    .edges({ [START]: "look", look: END });
  expectRefusal(() => offerGraph(taken, { description: "Take." }));
  expectRefusal(() => offerGraph(shop, { description: "Shop.", context: { customer: "ann" }, name: "s".repeat(41) }));
  expectRefusal(() =>
    serveMcp({
      ...about,
      tools: [bare],
      graphs: [
        offerGraph(taken, {
          description: "Take.",
          name: "bare",
          input: z.object({ text: z.string() }),
          toInput: ({ text }) => ({ thread: text }),
        }),
      ],
    }),
  );
  expectRefusal(() => serveMcp({ ...about, limits: { calls: 0 } }));
  expectRefusal(() => serveMcp({ ...about, resources: [{ uri: "menu", name: "menu", read: () => "soup" }] }));
});
