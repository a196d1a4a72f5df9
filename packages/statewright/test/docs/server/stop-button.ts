/** A stop button: cancels the answer of an agent in mid-sentence, over HTTP. */
import { createClient, foldOpenText } from "@statewright/client";
import { serve } from "@statewright/server";
import { say, scriptedModel, stall } from "@statewright/testing";
import { createAgent, engine, memoryStore } from "statewright";

// A model that writes the first words of its answer, and continues until its signal fires.
const model = scriptedModel(() => stall({ after: say("In Oslo it rains, and ") }));
const talker = createAgent({ name: "talker", model });
const host = engine({ store: memoryStore(), graphs: [talker] });
await host.start();
const server = serve({ engine: host, access: { token: "a-token-of-this-page" } });
const client = createClient({
  url: "http://localhost",
  token: "a-token-of-this-page",
  fetch: (url, init) => server.fetch(new Request(url, init)),
});

// the button
let shown = "";
const thread = client.thread("talk-1");
async function stop(): Promise<void> {
  console.log("shown:", shown);
  const run = await thread.cancel({ reason: "The user pressed stop.", wait: true });
  console.log("stopped:", run.status);
}

// the page
const message = { role: "user", content: "How is the weather?" } as const;
let stopping: Promise<void> | undefined;
for await (const event of thread.stream("talker", { input: { messages: [message] } })) {
  shown = foldOpenText(shown, event);
  if (shown.endsWith("and ")) stopping ??= stop();
}
await stopping;
const { status, values } = await thread.state();
console.log("the thread is", status);
console.log("saved messages:", Array.isArray(values["messages"]) ? values["messages"].length : 0);
await server.close();
await host.stop();
