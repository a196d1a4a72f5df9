import { call, failWith, say, scriptedModel, think } from "@statewright/testing";
import { createAgent, defineTool, type RunEvent, StatewrightError } from "statewright";
import * as z from "zod";

const cut = new StatewrightError("model_failed", {
  what: "the connection broke",
  next: "Ask again",
  details: { retryable: true, kind: "broken_reply" },
});
const script = () =>
  scriptedModel([
    [think("A city, so I look."), say("I look it up.\n"), call(weather, { city: "Oslo" })],
    failWith(cut, { after: say("In Oslo it is dry") }),
    say("In Oslo it rains."),
  ]);
const weather = defineTool({
  name: "get_weather",
  label: "Weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  run: async ({ city }, { progress }) => {
    progress(`asking the station of ${city}`);
    return "Rain, 7 °C";
  },
});
const talker = () =>
  createAgent({ name: "talker", model: script(), tools: [weather], retry: { attempts: 2, initialMs: 0 } });
let last = "\n";

function write(text: string): void {
  process.stdout.write(text);
  if (text !== "") last = text;
}

// text
for await (const text of talker().run({ input: "Oslo?" }).text()) write(text);
write("\n");

// retracted text
const eraser = ({ length }: string): string => `⌫${length} `;
for await (const text of talker().run({ input: "Oslo?" }).text({ formatRetracted: eraser })) write(text);
write("\n");

// all events
let open = "";

function show(event: RunEvent): void {
  switch (event.type) {
    case "message.delta":
      begin(event.kind === "text" ? "says: " : "thinks: ");
      write(event.text);
      return;
    case "message.call_delta":
      begin(`calls ${event.tool} `);
      write(event.argsText);
      return;
    case "message.retracted":
      begin("takes that back");
      return;
    case "tool.progress":
      begin(`${event.label}: `);
      write(event.text);
      return;
    case "tool.completed":
    case "tool.failed":
      begin(`${event.label}: `);
      write(event.type === "tool.completed" ? ", done" : ", failed");
      return;
    case "model.retried":
      begin(`asks ${event.next} after ${event.kind}`);
      return;
    case "run.completed":
      begin("done");
      write("\n");
  }
}

/** Starts a new line for each speaker. */
function begin(who: string): void {
  if (open === who) return;
  write(`${last.endsWith("\n") ? "" : "\n"}${who}`);
  open = who;
}

for await (const event of talker().run({ input: "Oslo?" }).events()) show(event);
