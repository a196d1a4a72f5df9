import { loadPlugin } from "@statewright/plugins";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, getMessageText } from "statewright";

// load
const query = await loadPlugin({
  command: process.execPath,
  args: ["json_query.ts"],
  effect: "pure",
  safety: { access: "read" },
  timeoutMs: 30_000,
  onStderr: (line) => console.log(`json_query says: ${line}`),
});
const counting = await loadPlugin({
  command: process.execPath,
  args: ["counting.mjs"],
});

const model = scriptedModel([
  [call("json_query", { json: '{"users":[{"name":"ann"}]}', path: "users.0.name" }), call("json_query", { json: "{" })],
  call("count_down", { to: 2 }),
  say("Done."),
]);

// use
const agent = createAgent({
  name: "reader",
  model,
  tools: [...query.tools, ...counting.tools],
});
const run = agent.run({ input: "Who is the first user?" });
run.on((event) => {
  if (event.type === "tool.progress") console.log(`${event.tool}: (${event.text})`);
  if (event.type === "tool.update") console.log(`${event.tool}: ${JSON.stringify(event.partial)}`);
});
const { state } = await run.result;
for (const message of state.messages)
  if (message.role === "tool") console.log(`model reads: ${getMessageText(message)}`);

// restart, close
await query.restart(); // takes changed code, and changed tools
await Promise.all([query.close(), counting.close()]);
console.log(query.pid, counting.pid);
