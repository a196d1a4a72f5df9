// A plugin of protocol version 2: two tools, parallel calls, updates, cancels.
import { setTimeout } from "node:timers/promises";

const parameters = {
  type: "object",
  properties: { to: { type: "integer", description: "How far" } },
  required: ["to"],
};
const description = {
  tools: [
    { name: "count_up", description: "Count up to a number.", parameters, effect: "pure" },
    { name: "count_down", description: "Count down from a number.", parameters, effect: "pure" },
  ],
  protocol: 2,
  capabilities: ["update", "cancel", "shutdown", "concurrent"],
};

const cancelled = new Set();
const say = (message) => console.log(JSON.stringify(message));
const text = (said) => [{ type: "text", text: `${said}` }];

async function count({ call_id, tool, params }) {
  say({ type: "progress", call_id, text: `${tool} begins` });
  for (let done = 1; done <= params.to && !cancelled.has(call_id); done++) {
    const shown = tool === "count_up" ? done : params.to - done;
    say({ type: "update", call_id, content: text(shown), details: { done, of: params.to } });
    await setTimeout(1);
  }
  const error = cancelled.delete(call_id);
  say({ call_id, content: text(error ? "cancelled" : `counted to ${params.to}`), error });
}

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const message = JSON.parse(line);
    if (message.type === "describe") say(description);
    if (message.type === "call") void count(message);
    if (message.type === "cancel") cancelled.add(message.call_id);
    if (message.type === "shutdown") process.stdin.destroy();
  }
});
