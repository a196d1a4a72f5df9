/** Tool `todo`: a todo list, written completely with each call, so that the conversation contains the list. */
import { type DefinedTool, defineTool } from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";

/** Item of a todo list. */
export interface TodoItem {
  readonly text: string;
  readonly status: "open" | "doing" | "done";
}

/** Arguments of `todo`. */
export interface TodoArgs {
  readonly items: readonly TodoItem[];
}

/** Creates the tool `todo`. The details of its result contain the list, for display. */
export function todo(): DefinedTool<"todo", TodoArgs> {
  return defineTool({
    name: "todo",
    label: "Task List",
    description:
      "Write down the list of things to do and their status. Each call replaces the whole list; use it for work of three or more steps.",
    input: jsonSchemaInput<TodoArgs>({
      type: "object",
      properties: {
        items: {
          type: "array",
          maxItems: 100,
          description: "All items, in order.",
          items: {
            type: "object",
            properties: {
              text: { type: "string", minLength: 1, maxLength: 500, description: "The thing to do." },
              status: { type: "string", enum: ["open", "doing", "done"], description: "Status of the item." },
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
