import process from "node:process";
import { say, scriptedModel } from "@statewright/testing";
import { createAgent, engine, type RunEvent, sqliteStore, streamEvents, submit, userMessage } from "statewright";
import { streamMessageText } from "statewright/inspect";
import { socketRelay } from "statewright/store";

const [role = "work"] = process.argv.slice(2);
const thread = "talk-1";
const store = sqliteStore("talks.db");
const relay = socketRelay("talks.db");
const talker = createAgent({ name: "talker", model: scriptedModel([say("In Oslo it rains today.")]) });

/** Puts a question into the queue of the worker. */
async function ask(): Promise<void> {
  await submit(talker, { store, thread, input: { messages: [userMessage("Oslo?")] } });
}

/** Serves all threads until the first answer is complete. */
async function work(): Promise<void> {
  const host = engine({
    store,
    graphs: [talker],
    relay,
    onRun: (run) => void run.result.finally(() => host.stop()),
  });
  await host.start();
}

/** Prints the words of the thread as they come, until its run is complete. */
async function watch(): Promise<void> {
  for await (const text of streamMessageText(followRun())) process.stdout.write(text);
  process.stdout.write("\n");
}

/** Streams the events of the thread up to the end of its run. */
async function* followRun(): AsyncGenerator<RunEvent> {
  const reading = new AbortController();
  for await (const event of streamEvents({ store, thread, relay, follow: reading.signal })) {
    yield event;
    if (event.type === "run.completed") return;
  }
}

/** Prints the open messages whenever they change: what a page shows below the saved conversation. */
async function showOpen(): Promise<void> {
  const open = new Map<string, string>();
  for await (const event of followRun()) {
    if (event.type === "snapshot") {
      open.clear();
      for (const { id, text } of event.messages) open.set(id, text);
    } else if (event.type === "message.delta" && event.kind === "text")
      open.set(event.messageId, (open.get(event.messageId) ?? "") + event.text);
    else if (event.type === "message.retracted") open.delete(event.messageId);
    else if (event.type === "step.committed") open.clear();
    else continue;
    console.log(event.seq, [...open.values()].join("\n"));
  }
}

const roles: Readonly<Record<string, () => Promise<void>>> = { ask, work, watch, open: showOpen };
await roles[role]?.();
