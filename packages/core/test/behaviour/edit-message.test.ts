/** Editing what was said. */
import { expect, test } from "vitest";
import {
  defineGraph,
  defineState,
  END,
  editMessage,
  getState,
  type Message,
  memoryStore,
  messages,
  run,
  START,
  textOf,
} from "../../src/index.ts";
import { failureOf } from "../support/failure.ts";

const say = (id: string, text: string): Message => ({ role: "user", id, content: [{ type: "text", text }] });

function echo(log: string[]) {
  return defineGraph({ name: "echo", state: defineState({ messages: messages() }) })
    .nodes({
      answer: (state, { run: { step } }) => {
        const heard = textOf(state.messages.at(-1) as Message);
        log.push(heard);
        return { messages: [say(`answer_${step}_${heard}`, `${heard}, you say`)] };
      },
    })
    .edges({ [START]: "answer", answer: END });
}

test("E66 editing a message and going on from there is one call; what came later is not part of it, the original stays", async () => {
  const log: string[] = [];
  const graph = echo(log);
  const store = memoryStore();
  for (const text of ["one", "two", "three"])
    await run(graph, { store, thread: "t", input: { messages: [say(text, text)] } }).result;
  const handle = await editMessage(graph, { store, thread: "t", message: say("two", "deux"), name: "french" });
  const { branch, state } = await handle.result;
  expect(branch).toBe("french");
  expect(state.messages.map(textOf)).toEqual(["one", "one, you say", "deux", "deux, you say"]);
  expect(log).toEqual(["one", "two", "three", "deux"]);
  const original = await getState(graph, { store, thread: "t", branch: "main" });
  expect(original.state.messages.map(textOf)).toHaveLength(6);
  const second = await editMessage(graph, { store, thread: "t", branch: "french", message: say("one", "un") });
  expect((await second.result).state.messages.map(textOf)).toEqual(["un", "un, you say"]);
  const never = editMessage(graph, { store, thread: "t", message: say("four", "quatre") });
  expect((await failureOf(never, "unknown_checkpoint")).message).toContain('"four"');
});
