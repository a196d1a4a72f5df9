/** Text of a failed model request, as a reader of the native stream sees it. */
import { createAgent } from "@statewright/agent";
import type { Model } from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";
import { createNativeServer, type Frame, say } from "../support/native-server.ts";

const shown = z.object({ messageId: z.string(), text: z.string().optional() });

/** Texts that a reader shows, by the id of the message. */
function applyFrames(texts: Map<string, string>, frames: readonly Frame[]): void {
  for (const { event, data } of frames) {
    if (event !== "message.delta" && event !== "message.retracted") continue;
    const { messageId, text = "" } = shown.parse(data);
    if (event === "message.delta") texts.set(messageId, (texts.get(messageId) ?? "") + text);
    else texts.delete(messageId);
  }
}

test("text of a failed model request is retracted in the native stream, and exactly the second text stays [V32]", async () => {
  let fail = (): void => undefined;
  const isRead = new Promise<void>((resolve) => {
    fail = resolve;
  });
  let requests = 0;
  const model: Model = {
    id: "failing",
    respond: async (_request, { delta }) => {
      requests += 1;
      const text = requests === 1 ? "one two three four five six seven eight nine ten " : "The right answer.";
      for (const word of text.split(/(?<= )/)) delta?.({ type: "text", text: word });
      if (requests > 1) return { content: [{ type: "text", text }], finish: "stop" };
      await isRead;
      throw Object.assign(new Error("overloaded"), { status: 503 });
    },
  };
  const assistant = createAgent({ name: "assistant", model, retry: { attempts: 2, initialMs: 1, jitter: 0 } });
  const { open } = await createNativeServer({ graphs: [assistant] });
  const body = { graph: "assistant", input: say("hello") };
  const stream = await open("/threads/t/runs", { body, headers: { accept: "text/event-stream" } });
  const texts = new Map<string, string>();
  applyFrames(texts, await stream.readUntil(({ data }) => JSON.stringify(data).includes("ten ")));
  fail();
  const frames = await stream.readUntil(({ event }) => event === "run.completed");
  expect(frames.map(({ event }) => event)).toContain("message.retracted");
  applyFrames(texts, frames);
  expect([...texts.values()]).toEqual(["The right answer."]);
  await stream.close();
});
