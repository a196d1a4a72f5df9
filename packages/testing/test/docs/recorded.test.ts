import { channel, defineGraph, defineState, END, getMessageText, run, START } from "@statewright/core";
import { recordedModel } from "@statewright/testing";
import { expect, test } from "vitest";

test("recordedModel replays a recorded reply", async () => {
  const model = recordedModel(new URL("weather.json", import.meta.url), { redact: [/\+47 [\d ]+/] });
  const graph = defineGraph({ name: "chat", state: defineState({ messages: channel.messages() }) })
    .nodes({
      ask: async (state, runtime) => ({
        messages: [await runtime.model({ model, request: { messages: state.messages, tools: [] } })],
      }),
    })
    .edges({ [START]: "ask", ask: END });
  const text = "Is it raining in Oslo? Call me on +47 22 33 44 55.";
  const input = { messages: [{ role: "user" as const, id: "u1", content: [{ type: "text" as const, text }] }] };
  const { state } = await run(graph, { input }).result;
  expect(state.messages.map(getMessageText).at(-1)).toBe("I cannot see the weather from here.");
});
