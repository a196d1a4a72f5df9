import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, getMessageText } from "statewright";
import { expect, test } from "vitest";
import { friendly, lines, planner, shop, spans, traced } from "./ready-middleware.ts";

test("the shop of the middleware page refuses, asks again, masks and logs", async () => {
  const model = scriptedModel([
    call("order", { what: "a chair" }),
    say("I guarantee that it comes on Monday."),
    say("It should come on Monday."),
    say("Your card 4111 1111 1111 1111 was charged."),
  ]);
  const agent = shop(model);
  const ask = async (input: string) => {
    const { state } = await agent.run({ thread: "t", input }).result;
    return state.messages.map(getMessageText).slice(-2);
  };
  expect(await ask("A chair, please")).toEqual(["Ordered a chair for k***@example.com.", "It should come on Monday."]);
  expect((await ask("Write a poem"))[1]).toBe("I only help with orders.");
  expect((await ask("Did you charge me?"))[1]).toBe("The answer was withheld: it contains personal data (card).");
  expect(lines.filter((line) => line.includes(" tool "))).toEqual([
    expect.stringMatching(/^t tool order, ok, \d+ ms$/),
  ]);
});

test("the planner of the middleware page keeps its list, and a judge model checks the tone", async () => {
  const model = scriptedModel([call("todo", { items: [{ text: "chair", status: "open" }] }), say("On it.")]);
  const { state } = await planner(model, scriptedModel([])).run({ input: "A chair" }).result;
  expect(state).toMatchObject({ todos: [{ text: "chair" }] });
  const answers = scriptedModel([say("You fool.")]);
  const judged = createAgent({ name: "a", model: answers, middleware: [friendly(scriptedModel([say("no")]))] });
  const end = await judged.run({ input: "Hello" }).result;
  expect(end.state.messages.map(getMessageText)).toEqual(["Hello", "I would rather not say."]);
});

test("the run of the middleware page is traced", async () => {
  await traced(scriptedModel([call("order", { what: "a chair" }), say("Done.")], { id: "acme/large" })).result;
  expect(spans).toEqual(["invoke_agent shop", "  chat acme/large", "  execute_tool order", "  chat acme/large"]);
});
