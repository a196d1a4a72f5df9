/** A client of the chat server: sends a message, shows the words as they come, and answers an interrupt. */
import process from "node:process";
import { createClient, foldOpenText } from "@statewright/client";

const [url = "http://127.0.0.1:4270", session = "session-of-ann", chat = "c1", words = "Hello"] = process.argv.slice(2);
const client = createClient({ url, token: session });
const thread = client.thread(chat);

// words and tool calls
const message = { role: "user", content: words } as const;
let shown = "";
for await (const event of thread.stream("assistant", { input: { messages: [message] }, onBusy: "cancel" })) {
  shown = foldOpenText(shown, event);
  if (event.type === "run.completed") console.log(shown);
}

// approval
for (const { id, key, payload } of (await thread.state()).interrupts) {
  console.log(key, JSON.stringify(payload));
  for await (const event of thread.streamAnswer({ answers: { [id]: { approved: true } } }))
    if (event.type === "tool.completed") console.log(JSON.stringify(event["result"]));
}
