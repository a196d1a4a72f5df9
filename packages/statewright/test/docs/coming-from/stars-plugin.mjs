// A plugin of protocol version 1: one line in, one line out.
const definition = {
  name: "stars",
  description: "Draw a number as stars.",
  parameters: {
    type: "object",
    properties: { count: { type: "integer", description: "How many" } },
    required: ["count"],
  },
};

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const message = JSON.parse(line);
    if (message.type === "describe") console.log(JSON.stringify(definition));
    if (message.type === "call") console.log(JSON.stringify(draw(message.params)));
  }
});

function draw({ count }) {
  console.error(`drew ${count}`);
  const text = count > 9 ? "that many do not fit" : "*".repeat(count);
  return { content: [{ type: "text", text }], error: count > 9 };
}
