/** One thread, read through three protocols at once. */
import { engine, memoryStore } from "@statewright/core";
import { expect, onTestFinished, test } from "vitest";
import { uiStream } from "../../src/ai-sdk.ts";
import { serve } from "../../src/index.ts";
import { langgraph } from "../../src/langgraph.ts";
import { createChat } from "./agents.ts";
import { applyChunks } from "./apply-chunks.ts";
import { createSubmit, createUserMessage, readResponse } from "./ui-server.ts";

const token = "a-token-that-is-long-enough";

test("a run that a page begins streams to a LangGraph client and to a native reader of the thread [V38]", async () => {
  const store = memoryStore();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const chat = createChat({
    store,
    model: {
      id: "held",
      respond: async (_request, { delta }) => {
        delta?.({ type: "text", text: "Three " });
        await held;
        return { content: [{ type: "text", text: "Three readers." }], finish: "stop" };
      },
    },
  });
  const host = engine({ store, graphs: [chat] });
  await host.start();
  onTestFinished(() => host.stop({ now: true }));
  const server = serve({ engine: host, access: { token }, protocols: [uiStream(), langgraph()] });
  onTestFinished(() => server.close());
  const send = (path: string, body?: object): Promise<Response> =>
    server.fetch(
      new Request(`http://localhost${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", accept: "text/event-stream" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  await send("/api/threads", { id: "t1" });
  const page = await send("/ui/chat", createSubmit([createUserMessage("u1", "hello")]));
  const runs = (await (await send("/api/threads/t1/runs")).json()) as { data: { id: string }[] };
  const run = runs.data[0]?.id ?? "";
  const native = await send("/api/threads/t1/events?end=idle");
  const legacy = await send(`/langgraph/threads/t1/runs/${run}/stream?stream_mode=messages-tuple&stream_mode=values`);
  expect([page.status, native.status, legacy.status]).toEqual([200, 200, 200]);
  release();
  const [{ chunks }, events, parts] = await Promise.all([readResponse(page), native.text(), legacy.text()]);
  expect(applyChunks(chunks)).toMatchObject([{ type: "step-start" }, { type: "text", text: "Three readers." }]);
  expect(chunks[0]).toMatchObject({ type: "start", messageId: run });
  expect(events).toContain("event: run.completed");
  expect(events).toContain("Three readers.");
  expect(parts).toContain("event: end");
  expect(parts).toContain("Three readers.");
});
