import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineTool, isStatewrightError, type Message, memoryStore, run, steer } from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import {
  type ChatState,
  call,
  checkTranscript,
  createToolLoop,
  type Loop,
  listEvents,
  user,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const look = defineTool({ name: "look", description: "Look.", input: z.object({}), run: () => "seen" });

/** Creates a thread with a question, a tool call, its answer and a final answer. */
async function createConversation(): Promise<Loop & { readonly said: readonly Message[] }> {
  const loop = createToolLoop({ tools: [look], turns: [[call("look")], ["Done."], ["Again."], ["And again."]] });
  const { state } = await loop.start().result;
  return { ...loop, said: state.messages };
}

const continuation = (loop: Loop) => ({
  store: loop.store ?? memoryStore(),
  thread: "t",
  world: loop.world,
  context: {},
});

const continueWith = (loop: Loop, messages: readonly Message[]) =>
  run(loop.graph, {
    ...continuation(loop),
    input: { messages },
  });

async function refusal(loop: Loop, messages: readonly Message[]): Promise<string> {
  const error: unknown = await continueWith(loop, messages).result.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(isStatewrightError(error, "invalid_input")).toBe(true);
  return (error as Error).message;
}

const texts = ({ messages }: Pick<ChatState, "messages">): readonly string[] =>
  messages.map((message) =>
    typeof message.content === "string"
      ? message.content
      : message.content.map((block) => (block.type === "text" ? block.text : block.type)).join(""),
  );

describe("input with known messages", () => {
  test("an input may repeat the complete conversation: known messages keep their place and new messages are added", async () => {
    const loop = await createConversation();
    const { state } = await continueWith(loop, [...loop.said, user("More", "u2")]).result;
    expect(texts(state as ChatState)).toEqual(["go", "call", "seen", "Done.", "More", "Again."]);
  });

  test("an input message that changes the role of a known message is refused, and the thread continues unchanged", async () => {
    const loop = await createConversation();
    const id = loop.said[1]?.id ?? "";
    expect(await refusal(loop, [user("More", id)])).toContain(
      `the input of graph "desk" has a message of the role user with the id "${id}", but the conversation has that id for a message of the role assistant`,
    );
    const { state } = await continueWith(loop, [user("More", "u2")]).result;
    expect(texts(state as ChatState)).toEqual(["go", "call", "seen", "Done.", "More", "Again."]);
  });

  test("an input that separates a tool call from its answer is refused: other calls, another answer, or a removal", async () => {
    const loop = await createConversation();
    const [, asking, answer] = loop.said as [Message, Message, Message];
    const other = { ...asking, content: [call("look", {}, "other")] } as Message;
    expect(await refusal(loop, [other, user("More", "u2")])).toContain("would separate tool calls from their answers");
    const stray = { ...answer, callId: "other" } as Message;
    expect(await refusal(loop, [stray, user("More", "u2")])).toContain("would answer no call");
    const options = { ...continuation(loop), removeMessages: [answer.id], input: { messages: [user("More", "u2")] } };
    const error = await getFailure(run(loop.graph, options).result, "invalid_input");
    expect(error.message).toContain('the call "id_look" would have no answer');
  });

  test("an input that removes messages is refused before the store is read, also by an engine that queues it [FX73]", async () => {
    const loop = await createConversation();
    const { store } = loop;
    const removal = { remove: loop.said[0]?.id } as never;
    expect(await refusal(loop, [removal, user("More", "u2")])).toContain(
      'the input of graph "desk" removes the message "u1"',
    );
    const queued = run(loop.graph, { ...continuation(loop), onBusy: "enqueue", input: { messages: [removal] } });
    await getFailure(queued.result, "invalid_input");
    expect(await store?.runs({ thread: "t", status: "queued" })).toEqual([]);
    const { state } = await continueWith(loop, [user("More", "u2")]).result;
    expect(texts(state as ChatState)).toEqual(["go", "call", "seen", "Done.", "More", "Again."]);
  });

  test("the option removeMessages removes messages before the input is added, also for a queued input [FX73]", async () => {
    const loop = await createConversation();
    const [, asking, answer] = loop.said as [Message, Message, Message];
    const options = { ...continuation(loop), onBusy: "enqueue" as const, input: { messages: [user("More", "u2")] } };
    const { state } = await run(loop.graph, { ...options, removeMessages: [asking.id, answer.id] }).result;
    expect(texts(state as ChatState)).toEqual(["go", "Done.", "More", "Done."]);
    await getFailure(() => run(loop.graph, { ...options, removeMessages: [7 as never] }), "invalid_option");
  });

  test("an imported history is accepted unchanged, and refused when its tool calls have no answers", async () => {
    const { said } = await createConversation();
    const renamedMessages = said.map((message) => ({ ...message, id: `old_${message.id}` }) as Message);
    const loop = createToolLoop({ tools: [look], turns: [[], [], ["Again."]] });
    const { state } = await continueWith(loop, [...renamedMessages, user("More", "u2")]).result;
    expect(texts(state as ChatState)).toEqual(["go", "call", "seen", "Done.", "More", "Again."]);
    const [question, asking] = renamedMessages as [Message, Message];
    const other = createToolLoop({ tools: [look], turns: [["Never."]] });
    expect(await refusal(other, [question, asking, user("More", "u2")])).toContain(
      'the call "id_look" would have no answer',
    );
    expect(other.requests).toEqual([]);
  });

  test("two different input messages with one id are refused, and one message given twice is stored once", async () => {
    const loop = await createConversation();
    const { state } = await continueWith(loop, [user("More", "u3"), user("More", "u3")]).result;
    expect(texts(state as ChatState).slice(4)).toEqual(["More", "Again."]);
    expect(await refusal(loop, [user("One", "u2"), user("Two", "u2")])).toContain(
      'has two different messages with the id "u2"',
    );
  });
});

describe("inbox message with a known id", () => {
  test.each(["here", "from elsewhere"])(
    "an inbox message with a known id is appended under a new id: sent %s",
    async (from) => {
      const world = createVirtualWorld();
      const slow = defineTool({
        name: "look",
        description: "Look.",
        input: z.object({}),
        run: () => new Promise<string>((resolve) => world.schedule.after(10, () => resolve("seen"))),
      });
      const store = memoryStore();
      const loop = createToolLoop({
        tools: [slow],
        world,
        store,
        steering: "finish-batch",
        turns: [[call("look")], ["Done."]],
      });
      const handle = loop.start();
      await world.advance(5);
      const asking = loop.events.find((event) => event.type === "message.completed");
      const known = asking?.type === "message.completed" ? asking.message.id : "";
      const said = [user("Stop", "u1"), user("Now", known)];
      await (from === "here" ? handle.steer(said) : steer(loop.graph, { store, thread: "t", input: said, world }));
      await world.advance(1_000);
      const { state } = await handle.result;
      checkTranscript(state.messages);
      expect(texts(state)).toEqual(["go", "call", "seen", "Stop", "Now", "Done."]);
      expect(new Set(state.messages.map(({ id }) => id)).size).toBe(6);
      const [taken] = listEvents(loop, "inbox.delivered");
      expect(taken?.messages.map(({ id }) => id)).toEqual(state.messages.slice(3, 5).map(({ id }) => id));
    },
  );

  test("two inbox messages with one id are stored as two messages", async () => {
    const loop = await createConversation();
    const { store = memoryStore(), graph, world } = loop;
    await steer(graph, { store, thread: "t", input: [user("One", "u2")], world });
    await steer(graph, { store, thread: "t", input: [user("Two", "u2")], world });
    const { state } = await continueWith(loop, [user("Three", "u3")]).result;
    expect(texts(state as ChatState)).toEqual(["go", "call", "seen", "Done.", "One", "Two", "Three", "Again."]);
  });
});
