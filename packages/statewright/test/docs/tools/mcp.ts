import { connectMcp } from "@statewright/mcp";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, getMessageText, memoryStore, toolRegistry } from "statewright";

// connect
await using bookings = await connectMcp({
  name: "bookings",
  command: process.execPath,
  args: ["bookings.mjs"],
  tools: {
    "free-tables": { safety: { access: "read" }, effect: "idempotent" },
  },
  elicitation: "ask",
});
for (const { spec } of bookings.tools) console.log(spec.name, spec.safety.access);

const model = scriptedModel([
  call("free_tables", { day: "Monday" }),
  call("book_table", { day: "Monday" }),
  say("Booked."),
]);
const store = memoryStore();

// use
const agent = createAgent({ name: "waiter", model, store, tools: bookings.tools });
const { messages } = await bookings.prompts.get("a-table", { day: "Monday" });
const first = await agent.run({ thread: "t1", input: messages }).result;

// answer
for (const { id, key, payload } of first.status === "waiting" ? first.interrupts : []) {
  console.log(key, JSON.stringify(payload));
  const answers = { [id]: { action: "accept", content: { seats: 2 } } };
  const { state } = await agent.resume({ thread: "t1", answers }).result;
  for (const message of state.messages)
    if (message.role === "tool") console.log(`model reads: ${getMessageText(message)}`);
}

// registry
const registry = toolRegistry();
const leave = bookings.syncRegistry(registry);
console.log(registry.names());
leave();

// resources
for (const { uri } of await bookings.resources.list()) {
  const [part] = await bookings.resources.read(uri);
  if (part !== undefined && "text" in part) console.log(`${uri}: ${part.text}`);
}

// pins
const { pins } = bookings;
const again = await connectMcp({
  name: "bookings",
  command: process.execPath,
  args: ["bookings.mjs"],
  pins,
  onChange: ({ added, removed, changed }) => {
    console.log({ added, removed, changed });
    return false;
  },
});
await again.close();

// address
export const remote = () =>
  connectMcp({
    name: "tickets",
    url: "https://tickets.example/mcp",
    headers: { "x-team": "support" },
    authProvider: { token: async () => process.env["TICKETS_TOKEN"] },
    prefix: true,
    only: ["search", "create"],
    trustHints: true,
    timeoutMs: 30_000,
  });
