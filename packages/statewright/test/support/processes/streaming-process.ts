/**
 * One process whose agent reads a model stream with the real client of a provider. Its arguments are the server
 * address and the part at which the process hangs: it is killed when its request is in the journal.
 */
import process from "node:process";
import { createAnthropic } from "@ai-sdk/anthropic";
import { crashPoint, logEffect } from "@statewright/testing";
import { createAgent, defineTool, sqliteStore } from "statewright";
import * as z from "zod";

const [, , baseURL = "", part = ""] = process.argv;
const thread = "talk";
const store = sqliteStore("talk.db", { durability: "normal" });

const note = defineTool({
  name: "note",
  description: "Write a note down.",
  input: z.object({ text: z.string() }),
  effect: "once",
  run: ({ text }) => {
    logEffect({ note: text });
    return "noted";
  },
});
const agent = createAgent({
  name: "talker",
  model: createAnthropic({ baseURL, apiKey: "sk-ant-test-123456" })("claude-sonnet-4-5"),
  tools: [note],
  store,
});

const isNew = (await store.head(thread)) === undefined;
const handle = isNew ? agent.run({ thread, input: "Note hi." }) : agent.resume({ thread });
const texts = listTexts(handle.text());
const observed: unknown[] = [];
for await (const event of handle.events()) {
  if (event.type === "message.retracted") observed.push([event.type, event.messageId, event.kind, event.text ?? null]);
  if (event.type === "message.delta") observed.push([event.type, event.messageId, event.text]);
  const streamed =
    event.type === "message.delta" ? event.text : event.type === "message.call_delta" ? event.argsText : "";
  if (part === "" || streamed !== part) continue;
  while (!(await isAsked())) await new Promise((resolve) => setImmediate(resolve));
  crashPoint("in the stream");
}
const { status, state } = await handle.result;
process.stdout.write(JSON.stringify({ status, messages: state.messages, observed, text: (await texts).join("") }));
await store.close();

/** Returns whether the file has the start of the request. */
async function isAsked(): Promise<boolean> {
  const rows = await store.effects(thread, "main");
  return rows.some(({ kind, state: stands }) => kind === "model" && stands === "started");
}

async function listTexts(given: AsyncIterable<string>): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const text of given) all.push(text);
  return all;
}
