/** A client of the chat server: sends a message, shows the words as they come, and answers an interrupt. */
import process from "node:process";
import { ClientError, createClient, foldOpenText } from "@statewright/client";
import type { assistant } from "./chat-server.ts";

const [url = "http://127.0.0.1:4270", session = "session-of-ann", chat = "c1", words = "Hello"] = process.argv.slice(2);
const client = createClient<{ assistant: typeof assistant }>({ url, token: session });
const thread = client.thread(chat);

// words and tool calls
const message = { role: "user", content: words } as const;
let shown = "";
for await (const event of thread.stream("assistant", { input: { messages: [message] }, onBusy: "cancel" })) {
  shown = foldOpenText(shown, event);
  if (event.type === "run.completed") console.log(shown);
}

// approval
const { interrupts } = await thread.state();
for (const { id, key, payload } of interrupts) {
  console.log(key, JSON.stringify(payload));
  for await (const event of thread.streamAnswer({ answers: { [id]: { approved: true } } }))
    if (event.type === "tool.completed") console.log(JSON.stringify(event["result"]));
}

// another tab, which still shows the question
for (const { id } of interrupts) {
  try {
    await thread.answer({ answers: { [id]: { approved: true } } });
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== "already_answered") throw error;
    console.log("answered before");
  }
}
