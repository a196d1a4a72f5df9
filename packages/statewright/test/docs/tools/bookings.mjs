// An MCP server without a library: finds tables, and asks before it books one.
const say = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const text = (said) => ({ content: [{ type: "text", text: said }] });
const schema = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const day = { type: "string", description: "The day" };

const tools = [
  {
    name: "free-tables",
    description: "Which tables are free.",
    inputSchema: schema({ day }),
    annotations: { readOnlyHint: true },
  },
  { name: "book-table", description: "Book a table.", inputSchema: schema({ day }) },
];
const asked = new Map();

function call(id, { name, arguments: args }) {
  if (name === "free-tables") return say({ id, result: text(`Table 4 is free on ${args.day}.`) });
  asked.set(`how many ${id}`, ({ action, content } = {}) =>
    say({ id, result: text(action === "accept" ? `Booked for ${content.seats}.` : "Not booked.") }),
  );
  return say({
    id: `how many ${id}`,
    method: "elicitation/create",
    params: {
      message: `How many are you on ${args.day}?`,
      requestedSchema: schema({ seats: { type: "integer", minimum: 1 } }),
    },
  });
}

const methods = {
  initialize: (id, { protocolVersion }) =>
    say({
      id,
      result: {
        protocolVersion,
        capabilities: { tools: {}, resources: {}, prompts: {} },
        serverInfo: { name: "bookings", version: "1.0.0" },
      },
    }),
  "tools/list": (id) => say({ id, result: { tools } }),
  "tools/call": call,
  "resources/list": (id) => say({ id, result: { resources: [{ uri: "menu://today", name: "menu" }] } }),
  "resources/read": (id, { uri }) => say({ id, result: { contents: [{ uri, text: "Soup" }] } }),
  "prompts/get": (id, { arguments: { day: on } }) =>
    say({
      id,
      result: { messages: [{ role: "user", content: { type: "text", text: `Is there a table on ${on}?` } }] },
    }),
};

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const { id, method, params, result } = JSON.parse(line);
    if (method === undefined) asked.get(id)?.(result);
    else methods[method]?.(id, params);
  }
});
