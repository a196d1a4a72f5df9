// A plugin of the first protocol: one line in, one line out.
import { createInterface } from "node:readline";

const definition = {
  name: "stars",
  description: "Draw a number as stars.",
  parameters: {
    type: "object",
    properties: { count: { type: "integer", description: "How many" } },
    required: ["count"],
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.type === "describe") console.log(JSON.stringify(definition));
  if (message.type !== "call") continue;
  const { count } = message.params;
  const text = count > 9 ? "that many do not fit" : "*".repeat(count);
  console.error(`drew ${count}`);
  console.log(JSON.stringify({ content: [{ type: "text", text }], error: count > 9 }));
}
