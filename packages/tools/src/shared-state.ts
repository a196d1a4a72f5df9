/** Tool `shared_state`: small named values shared between calls, runs and threads. */
import { type DefinedTool, defineTool, type Json, ToolError } from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";

/** Namespace of the shared values. */
export interface SharedStateOptions {
  /** Namespace in the long-term store; agents with the same namespace share values. Default `shared`. */
  readonly namespace?: string;
}

/** Arguments of `shared_state`. */
export interface SharedStateArgs {
  readonly action: "get" | "set" | "delete" | "list";
  readonly key?: string;
  readonly value?: Json;
}

/** Creates the tool `shared_state`. Requires a store; a written value is committed with the result of the call. */
export function sharedState(options: SharedStateOptions = {}): DefinedTool<"shared_state", SharedStateArgs> {
  const { namespace = "shared" } = options;
  return defineTool({
    name: "shared_state",
    label: "Shared Values",
    description: "Store a small value under a name for other runs, read one, delete one, or list the names.",
    input: jsonSchemaInput<SharedStateArgs>({
      type: "object",
      properties: {
        action: { type: "string", enum: ["get", "set", "delete", "list"], description: "The action." },
        key: {
          type: "string",
          pattern: "^[A-Za-z0-9_.-]{1,100}$",
          description: "The name, for get, set and delete: letters, digits, _, . and -.",
        },
        value: { description: "JSON value, for set." },
      },
      required: ["action"],
      additionalProperties: false,
    }),
    effect: "idempotent",
    safety: { access: "write", filesystem: "none" },
    run: async ({ action, key, value }, { longTerm }) => {
      const values = longTerm(namespace);
      if (action === "list") {
        const keys = (await values.list({ limit: 200 })).map((item) => item.key);
        return keys.length === 0 ? "[No values are stored.]" : keys.join("\n");
      }
      if (key === undefined) throw ToolError.invalidArgs(`Pass the key to ${action}.`);
      if (action === "get") {
        const item = await values.get(key);
        return item === undefined ? `[No value is stored under ${key}.]` : JSON.stringify(item.value);
      }
      if (action === "delete") {
        await values.delete(key);
        return `Deleted ${key}.`;
      }
      if (value === undefined) throw ToolError.invalidArgs("Pass the value to set.");
      await values.put(key, value);
      return `Set ${key}.`;
    },
  });
}
