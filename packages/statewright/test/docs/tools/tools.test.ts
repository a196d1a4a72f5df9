import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, env, getMessageText } from "statewright";
import { expect, test, vi } from "vitest";
import { bank, CountCart, cachedCart, Desk, described, files, note, Orders, Shop, shop, warnings } from "./tools.ts";

test("the tools of the tools page work as described", async () => {
  vi.stubEnv("PAY_KEY", "SENTINEL-key");
  const model = scriptedModel([
    [call("refund", { orderId: "7", cents: 900 }), call("count_cart", {}), call("stats", { numbers: "1,2,6" })],
    say("Done"),
  ]);
  const agent = shop(model);
  const events: string[] = [];
  const options = { context: { customerId: "c1" }, secrets: env(["PAY_KEY"]) };
  const run = agent.run({ thread: "t", input: "Refund order 7", state: { cart: ["lamp"] }, ...options });
  run.on((event) => {
    if (event.type === "tool.progress") events.push(`${event.label}: ${event.text}`);
  });
  const { state } = await run.result;
  expect(bank.seen).toEqual([expect.stringMatching(/^12 c1 7 900 t\/[0-9a-z]{12}\/main\/.+\/call_1$/)]);
  expect(events).toEqual(["Refund an order: Asking the bank"]);
  expect(state.messages.flatMap((message) => (message.role === "tool" ? message.content : []))).toEqual([
    { type: "text", text: "Refunded 9 EUR" },
    { type: "text", text: "1 things for c1" },
    { type: "text", text: "3.00" },
  ]);
  const wires = JSON.stringify(model.requests);
  for (const hidden of ["SENTINEL", "customerId", "PAY_KEY", "Refund an order", "R-7"])
    expect(wires).not.toContain(hidden);
});

test("tool updates are applied in call order, and an unknown channel fails the call", async () => {
  const said = [call(note, { text: "a" }), call(note, { text: "b" })];
  const options = { name: "desk", tools: [note] };
  const { state } = await createAgent({ ...options, state: Desk, model: scriptedModel([said, say("Done")]) }).run({
    input: "Note this.",
  }).result;
  expect(state.notes).toEqual(["a", "b"]);
  const without = createAgent({ ...options, model: scriptedModel([said, say("Done")]) });
  const refused = await without.run({ input: "Note this." }).result;
  expect(JSON.stringify(refused.state.messages)).toMatch(/refused its update.+notes/);
});

test("a refund with an empty cart is not advertised and fails the run", async () => {
  const model = scriptedModel([call("refund", { orderId: "7", cents: 900 }), say("Done")]);
  const run = shop(model).run({ thread: "t", input: "Refund order 7", context: { customerId: "c1" } });
  await expect(run.result).rejects.toThrow(/tool_failed.+"refund"/);
  expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["count_cart", "stats"]);
});

test("the agent with a registry advertises its tools, and the tools of the page explain themselves", async () => {
  const model = scriptedModel([call("lookup", { word: "graph" }), call("search_files", { glob: "*" }), say("Done")]);
  const { state } = await files(model).run({ thread: "t", input: "What is a graph?" }).result;
  expect(state.messages.flatMap((message) => (message.role === "tool" ? [message.isError] : []))).toEqual([
    false,
    false,
  ]);
  expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["lookup", "search_files", "stats"]);
  expect(warnings).toEqual([]);
  expect(described.map(({ name, originalName, aliases }) => [name, originalName, aliases])).toEqual([
    ["lookup", undefined, { openai: "Lookup" }],
    ["search_files", "SearchFiles", undefined],
    ["stats", undefined, undefined],
  ]);
});

test("the cached cart of the tools page never answers one customer with the cart of another [FX61]", async () => {
  const tool = new CountCart("things");
  const counts: string[] = [];
  for (const [customerId, cart] of [
    ["ann", ["lamp"]],
    ["bob", []],
    ["bob", ["lamp", "bed"]],
  ] as const) {
    const agent = createAgent({
      name: "shop",
      model: scriptedModel([call("count_cart", {}), call("count_cart", {}), say("Done")]),
      tools: [tool],
      state: Orders,
      context: Shop,
      middleware: [cachedCart],
    });
    const { state } = await agent.run({ input: "Count.", context: { customerId }, state: { cart } }).result;
    for (const message of state.messages) if (message.role === "tool") counts.push(getMessageText(message));
  }
  expect(counts).toEqual([
    "1 things for ann",
    "1 things for ann",
    "0 things for bob",
    "0 things for bob",
    "2 things for bob",
    "2 things for bob",
  ]);
});
