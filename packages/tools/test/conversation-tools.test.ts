import { expect, test } from "vitest";
import { askUser, sharedState, todo } from "../src/index.ts";
import { runCall, startCalls } from "./support/tool-calls.ts";

test("todo returns the complete list in its details and counts for the model", async () => {
  const items = [
    { text: "read", status: "done" },
    { text: "write", status: "open" },
  ];
  const came = await runCall(todo(), { items });
  expect(came).toMatchObject({ text: "The list has 2 items, 1 of them done.", result: { details: { items } } });
});

test("shared_state sets, gets, lists and deletes values in one namespace", async () => {
  const say = async (...asked: object[]) => {
    const live = startCalls(
      [{ ...sharedState(), spec: { ...sharedState().spec, execution: { mode: "sequential" } } }],
      asked.map((args) => ({ name: "shared_state", args: { ...args } })),
    );
    return (await live.answers()).map(({ content }) =>
      content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    );
  };
  expect(
    await say(
      { action: "list" },
      { action: "set", key: "plan", value: { steps: [1, 2] } },
      { action: "get", key: "plan" },
      { action: "list" },
      { action: "delete", key: "plan" },
      { action: "get", key: "plan" },
      { action: "get" },
      { action: "set", key: "plan" },
    ),
  ).toEqual([
    "[No values are stored.]",
    "Set plan.",
    '{"steps":[1,2]}',
    "plan",
    "Deleted plan.",
    "[No value is stored under plan.]",
    "Pass the key to get.",
    "Pass the value to set.",
  ]);
});

test("ask_user has no body and is answered by the application", () => {
  expect(askUser().spec).toMatchObject({ name: "ask_user", client: true, label: "Question" });
});
