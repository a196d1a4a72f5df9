/** A plugin in TypeScript: the value at a dot path. Start it with `node json_query.ts`, or with `deno run json_query.ts`. */
import process from "node:process";

const definition = {
  name: "json_query",
  description: "Find the value at a dot path in a JSON text, such as users.0.name.",
  parameters: {
    type: "object",
    properties: {
      json: { type: "string", description: "The JSON text" },
      path: { type: "string", description: "Names and indexes with dots between them; empty for all of it" },
    },
    required: ["json", "path"],
    additionalProperties: false,
  },
  effect: "pure",
};

interface Call {
  readonly type: "call";
  readonly params: { readonly json: string; readonly path: string };
}
type Message = { readonly type: "describe" } | Call;

function valueAt(json: string, path: string): unknown {
  let value: unknown = JSON.parse(json);
  for (const part of path === "" ? [] : path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part))
      throw new Error(`there is nothing at "${path}"`);
    value = Reflect.get(value, part);
  }
  return value;
}

function answer({ params }: Call): object {
  try {
    return { content: [{ type: "text", text: JSON.stringify(valueAt(params.json, params.path)) }] };
  } catch (problem) {
    return { content: [{ type: "text", text: problem instanceof Error ? problem.message : "failed" }], error: true };
  }
}

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk: string) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const message: Message = JSON.parse(line);
    if (message.type === "describe") process.stdout.write(`${JSON.stringify(definition)}\n`);
    else if (message.type === "call") process.stdout.write(`${JSON.stringify(answer(message))}\n`);
  }
});
