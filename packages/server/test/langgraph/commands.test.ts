/** Commands of a run request that exclude each other. */
import { expect, test } from "vitest";
import { langgraph } from "../../src/langgraph.ts";
import { createTestServer } from "../support/create-test-server.ts";

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
