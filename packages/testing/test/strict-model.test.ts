/** `rejectInvalidTranscripts` around any model: streams pass, transcripts that a provider refuses are rejected. */
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  type Message,
  type Model,
  START,
} from "@statewright/core";
import { rejectInvalidTranscripts } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";

/** A model class with private fields. */
class Echo implements Model {
  readonly id = "echo";
  readonly images = false;
  #asked = 0;
  async respond({ messages }: Parameters<Model["respond"]>[0], { delta }: Parameters<Model["respond"]>[1]) {
    this.#asked += 1;
    for (const text of ["asked ", String(this.#asked), ` after ${messages.length}`]) delta?.({ type: "text", text });
    return {
      content: [{ type: "text" as const, text: `asked ${this.#asked} after ${messages.length}` }],
      finish: "stop" as const,
      usage: {},
    };
  }
}

const graph = (model: Model, hides?: (said: readonly Message[]) => readonly Message[]) =>
  defineGraph({ name: "echo", state: defineState({ messages: channel.messages() }) })
    .nodes({
      model: async (state, runtime) => ({
        messages: [
          await runtime.model({
            model,
            request: { messages: state.messages, tools: [] },
            middleware: hides === undefined ? [] : [hiding(hides)],
          }),
        ],
      }),
    })
    .edges({ [START]: "model", model: END });

/** Middleware that changes the request, like trimming. */
const hiding = (hides: (said: readonly Message[]) => readonly Message[]) =>
  defineMiddleware({
    name: "hiding",
    aroundModel: (request, next) => next({ ...request, messages: hides(request.messages) }),
  });

const person: Message = { role: "user", id: "u", content: [{ type: "text", text: "go" }] };
const asks: Message = {
  role: "assistant",
  id: "a",
  finish: "calls",
  content: [{ type: "call", id: "c1", name: "look", args: {} }],
};
const answers: Message = {
  role: "tool",
  id: "t",
  callId: "c1",
  name: "look",
  isError: false,
  content: [{ type: "text", text: "seen" }],
};

test("a streaming model with private fields works behind rejectInvalidTranscripts", async () => {
  const t = await testRun(graph(rejectInvalidTranscripts(new Echo())), {
    input: { messages: [person, asks, answers] },
  });
  await t.finish();
  expect(t.state.messages.at(-1)).toMatchObject({ content: [{ text: "asked 1 after 3" }] });
  const streamed = t.trace.entries.flatMap((entry) => (entry.type === "message.delta" ? [entry.text] : []));
  expect(streamed.join("")).toBe("asked 1 after 3");
});

test("rejectInvalidTranscripts detects middleware that removes an answer from its call [T56]", async () => {
  const cut = graph(rejectInvalidTranscripts(new Echo()), (said) => said.filter(({ role }) => role !== "tool"));
  const t = await testRun(cut, { input: { messages: [person, asks, answers] } });
  await expect(t.finish()).rejects.toThrow('the call "c1" has no answer at the end');
});

test("rejectInvalidTranscripts checks the request that reaches the model, after inner middleware [T56]", async () => {
  const fixedGraph = graph(rejectInvalidTranscripts(new Echo()), (said) =>
    said.filter(({ id }) => id !== "a" && id !== "t"),
  );
  const t = await testRun(fixedGraph, { input: { messages: [person, asks, answers] } });
  await t.finish();
  expect(t.state.messages.at(-1)).toMatchObject({ content: [{ text: "asked 1 after 1" }] });
});
