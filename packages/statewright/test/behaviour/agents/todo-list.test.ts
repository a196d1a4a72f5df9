import { call, say, scriptedModel } from "@statewright/testing";
import { type TodoItem, todo, todoList } from "@statewright/tools";
import { createAgent, memoryStore } from "statewright";
import { trimMessages } from "statewright/middleware";
import { expect, test } from "vitest";

const list = (...items: readonly (readonly [string, TodoItem["status"]])[]) => ({
  items: items.map(([text, status]) => ({ text, status })),
});

test("the todo list is state and is shown to a model that no longer sees it until every item is done", async () => {
  const model = scriptedModel([
    call("todo", list(["dig", "doing"], ["plant", "open"])),
    say("digging"),
    say("still digging"),
    call("todo", list(["dig", "done"], ["plant", "done"])),
    say("done"),
    say("bye"),
  ]);
  const middleware = [trimMessages({ maxUserTurns: 1 }), todoList({ instructions: "Keep a list." })];
  const agent = createAgent({
    name: "garden",
    model,
    tools: [todo()],
    instructions: "Help.",
    middleware,
    store: memoryStore(),
  });
  const ask = (input: string) => agent.run({ thread: "t", input }).result;
  const first = await ask("Make a garden");
  expect(first.state).toMatchObject({
    todos: [
      { text: "dig", status: "doing" },
      { text: "plant", status: "open" },
    ],
  });
  await ask("How far are you?");
  await ask("Go on");
  await ask("Thanks");
  const observed = model.requests.map(({ instructions }) => instructions);
  const shown = "Help.\n\nKeep a list.\nThe current list:\n[>] dig\n[ ] plant";
  expect(observed).toEqual([
    "Help.\n\nKeep a list.",
    "Help.\n\nKeep a list.",
    shown,
    shown,
    "Help.\n\nKeep a list.",
    "Help.\n\nKeep a list.",
  ]);
});

test("todoList adds no instructions without its tool and refuses invalid options", async () => {
  const model = scriptedModel([say("ok")]);
  await createAgent({ name: "a", model, instructions: "Help.", middleware: [todoList()] }).run({ input: "go" }).result;
  expect(model.requests[0]?.instructions).toBe("Help.");
  expect(() => todoList({ instructions: 3 } as never)).toThrow(/invalid_option/);
});
