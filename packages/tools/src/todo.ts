/** The tool `todo`: the list of what is to be done, written anew with each call, so that it stands in the conversation. */
import { type DefinedTool, defineTool, jsonSchemaInput } from "@statewright/core";

/** One thing to do. */
export interface TodoItem {
  readonly text: string;
  readonly status: "open" | "doing" | "done";
}

/** What the model gives to `todo`. */
export interface TodoArgs {
  readonly items: readonly TodoItem[];
}

/** The tool `todo`. The list is in the result's details, for whoever shows it. */
export function todo(): DefinedTool<"todo", TodoArgs> {
  return defineTool({
    name: "todo",
    label: "Task List",
    description:
      "Write down what is to be done, and how far it is. Each call gives the whole list anew; use it for work of three steps and more.",
    input: jsonSchemaInput<TodoArgs>({
      type: "object",
      properties: {
        items: {
          type: "array",
          maxItems: 100,
          description: "All things to do, in their order.",
          items: {
            type: "object",
            properties: {
              text: { type: "string", minLength: 1, maxLength: 500, description: "What is to be done." },
              status: { type: "string", enum: ["open", "doing", "done"], description: "How far it is." },
            },
            required: ["text", "status"],
            additionalProperties: false,
          },
        },
      },
      required: ["items"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "none" },
    run: ({ items }) => {
      const done = items.filter(({ status }) => status === "done").length;
      return { content: `The list has ${items.length} items, ${done} of them done.`, details: { items } };
    },
  });
}
