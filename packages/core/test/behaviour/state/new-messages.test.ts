/** Messages without ids of their own: the engine gives each an id when it is written. */
import { describe, expect, test } from "vitest";
import {
  assistantMessage,
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  fork,
  getHistory,
  getMessageText,
  getState,
  type Message,
  memoryStore,
  overwrite,
  resume,
  run,
  START,
  subgraph,
  systemMessage,
  toolMessage,
  updateState,
  userMessage,
} from "../../../src/index.ts";
import { createActingModel, createReply } from "../../support/acting-model.ts";
import { getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const state = defineState({ messages: channel.messages() });
const answers = (...written: readonly Message[]) =>
  defineGraph({ name: "chat", state })
    .nodes({ answer: () => ({ messages: written }) })
    .edges({ [START]: "answer", answer: END });

const ids = (messages: readonly Message[]): readonly string[] => messages.map(({ id }) => id);

describe("helpers of messages", () => {
  test("userMessage takes a text, a text with files, or blocks, and files precede the text [Y3]", () => {
    expect(userMessage("Hi")).toEqual({ role: "user", id: "", content: [{ type: "text", text: "Hi" }] });
    const url = new URL("https://pictures.example/oslo.png");
    expect(userMessage({ text: "What is this?", files: [url] }, { id: "u1" })).toEqual({
      role: "user",
      id: "u1",
      content: [
        { type: "image", mimeType: "image/png", url: url.href },
        { type: "text", text: "What is this?" },
      ],
    });
    expect(userMessage([{ type: "text", text: "Block" }]).content).toEqual([{ type: "text", text: "Block" }]);
  });

  test("systemMessage, assistantMessage and toolMessage fill in what a message needs [Y3]", () => {
    expect(systemMessage("Be brief.")).toEqual({ role: "system", id: "", content: "Be brief." });
    expect(assistantMessage("4")).toEqual({
      role: "assistant",
      id: "",
      content: [{ type: "text", text: "4" }],
      finish: "stop",
    });
    const call = { type: "call", id: "c1", name: "sum", args: { a: 2 } } as const;
    expect(assistantMessage([call])).toMatchObject({ finish: "calls", content: [call] });
    expect(toolMessage({ callId: "c1", name: "sum", content: "4" })).toEqual({
      role: "tool",
      id: "",
      callId: "c1",
      name: "sum",
      content: [{ type: "text", text: "4" }],
      isError: false,
    });
    expect(toolMessage({ callId: "c1", name: "sum", content: { value: { total: 4 } }, isError: true })).toMatchObject({
      content: [{ type: "json", value: { total: 4 } }],
      isError: true,
    });
  });

  test.each<[string, () => unknown, string]>([
    [
      "a number as text of a user",
      () => userMessage(7 as never),
      "userMessage: expected a text, { text, files } or a list of blocks, got 7",
    ],
    ["an unknown part of a user message", () => userMessage({ image: "x" } as never), 'has no option "image"'],
    ["an empty id", () => userMessage("Hi", { id: "" }), "`id` must be a non-empty text"],
    ["a number as system message", () => systemMessage(7 as never), "systemMessage: expected a text, got 7"],
    ["blocks without a type", () => assistantMessage([7 as never]), "expected a text or a list of blocks"],
    ["a tool message without a call", () => toolMessage({ name: "x", content: "y" } as never), "`callId` must be"],
  ])("%s is refused with what to write [Y3]", async (_what, make, says) => {
    expect((await getFailure(make, "invalid_option")).message).toContain(says);
  });
});

describe("ids of written messages", () => {
  test("messages of an input and of a node without ids get distinct ids, and own ids stay [Y3]", async () => {
    const graph = answers(assistantMessage("One"), assistantMessage("One"), assistantMessage("Two", { id: "own" }));
    const input = { messages: [userMessage("Hi"), userMessage("Hi")] };
    const { messages } = (await run(graph, { input }).result).state;
    expect(messages.map(getMessageText)).toEqual(["Hi", "Hi", "One", "One", "Two"]);
    expect(new Set(ids(messages)).size).toBe(5);
    expect(
      ids(messages)
        .slice(0, 4)
        .every((id) => /^msg_[0-9a-f]{16}$/.test(id)),
    ).toBe(true);
    expect(messages[4]?.id).toBe("own");
  });

  test("a node that runs again after a crash writes its messages under the same ids [Y3]", async () => {
    const seen: string[][] = [];
    const store = memoryStore();
    let fails = true;
    const graph = defineGraph({ name: "chat", state })
      .nodes({
        answer: () => ({ messages: [assistantMessage("One")] }),
        check: ({ messages }) => {
          seen.push([...ids(messages)]);
          if (fails) throw new Error("crash");
          return { messages: overwrite([...messages, assistantMessage("Two")]) };
        },
      })
      .edges({ [START]: "answer", answer: "check", check: END });
    const options = { store, thread: "t", world: createVirtualWorld() };
    await expect(run(graph, { ...options, input: { messages: [userMessage("Hi")] } }).result).rejects.toThrow("crash");
    fails = false;
    const { messages } = (await resume(graph, options).result).state;
    expect(seen[0]).toEqual(seen[1]);
    expect(ids(messages).slice(0, 2)).toEqual(seen[0]);
    expect(messages[2]?.id).toMatch(/^msg_/);
  });

  test("the same text in two runs of a thread is two messages, also through an inner graph [Y3]", async () => {
    const inner = answers(assistantMessage("Yes"));
    const graph = defineGraph({ name: "outer", state })
      .nodes({
        ask: subgraph(inner, {
          input: () => ({ messages: [userMessage("Hi")] }),
          output: ({ messages }) => ({ messages }),
        }),
      })
      .edges({ [START]: "ask", ask: END });
    const store = memoryStore();
    const options = { store, thread: "t" };
    await run(graph, { ...options, input: { messages: [userMessage("Hi")] } }).result;
    const { messages } = (await run(graph, { ...options, input: { messages: [userMessage("Hi")] } }).result).state;
    expect(messages.map(getMessageText)).toEqual(["Hi", "Hi", "Yes", "Hi", "Hi", "Yes"]);
    expect(new Set(ids(messages)).size).toBe(6);
  });

  test("messages of hooks, updates, forks and steering without ids get distinct ids [Y3]", async () => {
    const model = createActingModel(
      "m",
      async () => {
        await handle.steer([userMessage("Wait"), userMessage("Wait")]);
        return createReply("Answer");
      },
      () => createReply("Answer"),
    );
    const noting = defineMiddleware({
      name: "noting",
      beforeModel: (_request, { write }) => {
        write({ messages: [userMessage("Note")] });
        write({ messages: [userMessage("Note again")] });
        return undefined;
      },
    });
    const graph = defineGraph({ name: "chat", state, middleware: [noting] })
      .nodes({
        ask: async ({ messages }, runtime) => ({
          messages: [await runtime.model({ model, request: { messages, tools: [] } })],
        }),
      })
      .edges({ [START]: "ask", ask: END });
    const store = memoryStore();
    const handle = run(graph, { store, thread: "t", input: { messages: [userMessage("Hi")] } });
    await handle.result;
    await run(graph, { store, thread: "t", input: { messages: [userMessage("Hi")] } }).result;
    await updateState(graph, { store, thread: "t", as: "ask", values: { messages: [userMessage("Hi")] } });
    let at = -1;
    for await (const { checkpointId } of getHistory(graph, { store, thread: "t" })) at = Math.max(at, checkpointId);
    await fork(graph, { store, thread: "t", at, name: "other", update: { messages: [userMessage("Hi")] } });
    const { messages } = (await getState(graph, { store, thread: "t", branch: "other" })).state;
    const texts = messages.map(getMessageText);
    expect(texts.filter((text) => text === "Wait")).toHaveLength(2);
    expect(texts.filter((text) => text === "Hi")).toHaveLength(4);
    expect(texts).toContain("Note again");
    expect(new Set(ids(messages)).size).toBe(messages.length);
    expect(ids(messages)).not.toContain("");
  });
});
