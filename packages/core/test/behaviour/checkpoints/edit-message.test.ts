/** Editing a message of a thread. */
import { expect, test } from "vitest";
import {
  channel,
  defineGraph,
  defineState,
  END,
  editMessage,
  getMessageText,
  getState,
  type Message,
  memoryStore,
  run,
  START,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";

const createUserMessage = (id: string, text: string): Message => ({
  role: "user",
  id,
  content: [{ type: "text", text }],
});

function echo(log: string[]) {
  return defineGraph({ name: "echo", state: defineState({ messages: channel.messages() }) })
    .nodes({
      answer: (state, { run: { step } }) => {
        const userText = getMessageText(state.messages.at(-1) as Message);
        log.push(userText);
        return { messages: [createUserMessage(`answer_${step}_${userText}`, `${userText}, you say`)] };
      },
    })
    .edges({ [START]: "answer", answer: END });
}

test("editing a message and continuing from it is one call; later messages are excluded and the original is unchanged [E66]", async () => {
  const log: string[] = [];
  const graph = echo(log);
  const store = memoryStore();
  for (const text of ["one", "two", "three"])
    await run(graph, { store, thread: "t", input: { messages: [createUserMessage(text, text)] } }).result;
  const handle = await editMessage(graph, {
    store,
    thread: "t",
    message: createUserMessage("two", "deux"),
    name: "french",
  });
  const { branch, state } = await handle.result;
  expect(branch).toBe("french");
  expect(state.messages.map(getMessageText)).toEqual(["one", "one, you say", "deux", "deux, you say"]);
  expect(log).toEqual(["one", "two", "three", "deux"]);
  const original = await getState(graph, { store, thread: "t", branch: "main" });
  expect(original.state.messages.map(getMessageText)).toHaveLength(6);
  const second = await editMessage(graph, {
    store,
    thread: "t",
    branch: "french",
    message: createUserMessage("one", "un"),
  });
  expect((await second.result).state.messages.map(getMessageText)).toEqual(["un", "un, you say"]);
  const never = editMessage(graph, { store, thread: "t", message: createUserMessage("four", "quatre") });
  expect((await getFailure(never, "unknown_checkpoint")).message).toContain('"four"');
});

test("an edited message has an id of its branch, keeps its place among the messages of its checkpoint, and can be edited again [SE1]", async () => {
  const graph = echo([]);
  const store = memoryStore();
  const messages = ["one", "two", "three"].map((text) => createUserMessage(text, text));
  await run(graph, { store, thread: "t", input: { messages } }).result;
  const edit = { store, thread: "t", message: createUserMessage("two", "deux"), name: "french" };
  const first = (await (await editMessage(graph, edit)).result).state.messages;
  expect(first.slice(0, 3).map(({ id }) => id)).toEqual(["one", "french.two", "three"]);
  expect(first.slice(0, 3).map(getMessageText)).toEqual(["one", "deux", "three"]);
  const message = createUserMessage("french.two", "zwei");
  const again = await editMessage(graph, { store, thread: "t", branch: "french", message, name: "german" });
  const second = (await again.result).state.messages;
  expect(second.slice(0, 3).map(({ id }) => id)).toEqual(["one", "german.two", "three"]);
});
