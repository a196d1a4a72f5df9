/** Commands of a run request that exclude each other. */
import { channel, defineGraph, defineState, END, memoryStore, START, type Store } from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";
import { langgraph } from "../../src/langgraph.ts";
import { createTestServer } from "../support/create-test-server.ts";

const echo = defineGraph({ name: "echo", state: defineState({ text: z.string() }) })
  .nodes({ repeat: ({ text }) => ({ text: `${text}${text}` }) })
  .edges({ [START]: "repeat", repeat: END });

/** Store whose deletions fail. */
function createUndeletableStore(): Store {
  return new Proxy(memoryStore(), {
    get: (store, name) => {
      if (name === "delete") return () => Promise.reject(new Error("the disk is gone"));
      const value: unknown = Reflect.get(store, name);
      return typeof value === "function" ? value.bind(store) : value;
    },
  });
}

test("an enqueued input on a thread that waits for a person ends the waiting run and starts [V36]", async () => {
  const { sendJson } = await createTestServer({ protocols: [langgraph()] });
  await sendJson("/langgraph/threads", { body: { thread_id: "t1" } });
  const ask = (id: string, content: string) => ({
    assistant_id: "assistant",
    input: { messages: [{ type: "human", id, content }] },
    multitask_strategy: "enqueue",
  });
  await sendJson("/langgraph/threads/t1/runs/wait", { body: ask("m1", "transfer") });
  const { status, body } = await sendJson("/langgraph/threads/t1/runs/wait", { body: ask("m2", "Hello") });
  expect(status).toBe(200);
  expect(JSON.stringify(body)).toContain("You said: Hello");
});

test("an input that is enqueued behind a run that comes to wait later ends that run and starts [V36]", async () => {
  let enter = (): void => undefined;
  let open = (): void => undefined;
  const isEntered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const isOpen = new Promise<void>((resolve) => {
    open = resolve;
  });
  const graph = defineGraph({
    name: "gated",
    state: defineState({ text: z.string().default(""), seen: channel.list(z.string()) }),
    interrupts: { sure: { payload: z.string(), answer: z.boolean() } },
  })
    .nodes({
      ask: async ({ text }, { interrupt }) => {
        if (text !== "first") return { seen: [text] };
        enter();
        await isOpen;
        return { seen: [String(await interrupt("sure", { payload: "Sure?" }))] };
      },
    })
    .edges({ [START]: "ask", ask: END });
  const { sendJson, clock } = await createTestServer({ protocols: [langgraph()], graphs: [graph] });
  await sendJson("/langgraph/threads", { body: { thread_id: "t1" } });
  const ask = (text: string) => ({ assistant_id: "gated", input: { text }, multitask_strategy: "enqueue" });
  const first = sendJson("/langgraph/threads/t1/runs/wait", { body: ask("first") });
  await clock.until(isEntered);
  const path = "/langgraph/threads/t1/runs";
  const waited = sendJson(`${path}/wait`, { body: ask("second") });
  const page = z.array(z.object({ status: z.string() }));
  while (page.parse((await sendJson(path)).body).length < 2);
  open();
  expect(JSON.stringify((await first).body)).toContain("__interrupt__");
  expect(await waited).toMatchObject({ status: 200, body: { text: "second", seen: ["second"] } });
  expect(page.parse((await sendJson(path)).body).map(({ status }) => status)).toEqual(["success", "interrupted"]);
});

test("a command with an answer and an update is refused with 422, and the interrupt stays open [V53]", async () => {
  const { sendJson } = await createTestServer({ protocols: [langgraph()] });
  const input = { messages: [{ type: "human", id: "m1", content: "transfer" }] };
  await sendJson("/langgraph/threads", { body: { thread_id: "t1" } });
  const asked = await sendJson("/langgraph/threads/t1/runs/wait", { body: { assistant_id: "assistant", input } });
  expect(asked.status).toBe(200);
  const command = { resume: { decisions: [{ type: "approve" }] }, update: { messages: [] } };
  const body = { assistant_id: "assistant", command };
  expect(await sendJson("/langgraph/threads/t1/runs/wait", { body })).toMatchObject({
    status: 422,
    body: { detail: expect.stringContaining("An update closes the interrupts") },
  });
  const { body: thread } = await sendJson("/langgraph/threads/t1");
  expect(thread).toMatchObject({ status: "interrupted" });
});

test("a refused run without a thread leaves no thread behind [V51]", async () => {
  const { sendJson } = await createTestServer({ protocols: [langgraph()] });
  const body = { assistant_id: "assistant", input: { unknown: 1 }, on_completion: "keep" };
  expect((await sendJson("/langgraph/runs", { body })).status).toBe(422);
  expect(await sendJson("/langgraph/threads/search", { body: {} })).toEqual({ status: 200, body: [] });
});

test("a deletion that fails after the response of a run without a thread is logged [V51]", async () => {
  const lines: string[] = [];
  const { sendJson, clock } = await createTestServer({
    store: createUndeletableStore(),
    protocols: [langgraph()],
    graphs: [echo],
    log: (_level, message) => void lines.push(message),
  });
  expect((await sendJson("/langgraph/runs", { body: { assistant_id: "echo", input: { text: "a" } } })).status).toBe(
    200,
  );
  await clock.advance(5_000);
  expect(lines).toContain("the deletion of the thread of a run without a thread failed");
});
