// A plugin with one tool, which says what it is told, or fails with it.

const parameters = {
  type: "object",
  properties: {
    say: { type: "string", description: "What to say" },
    error: { type: "boolean", description: "Whether the call fails" },
  },
  required: ["say"],
};
const tool = { name: "echo", description: "Says what it is told.", parameters };
const write = (message) => console.log(JSON.stringify(message));

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const { type, call_id, params } = JSON.parse(line);
    if (type === "describe") write(tool);
    if (type === "call")
      write({ call_id, content: [{ type: "text", text: params.say }], error: params.error === true });
  }
});
