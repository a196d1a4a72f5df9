/**
 * Middleware that stores the list of the tool `todo` in state, and shows it to a model that no longer sees the call.
 */
import { type Channel, channel, defineMiddleware, type Message, type Middleware } from "@statewright/core";
import { checkOptions, createGuardSchema, invalidOption, listOptionNames } from "@statewright/core/adapter";
import type { TodoItem } from "./todo.ts";

/** System prompt text about the list. */
export interface TodoListOptions {
  /** Text about the list, appended to the system prompt. */
  readonly instructions?: string;
}

function isTodoItems(value: unknown): value is readonly TodoItem[] {
  return (
    Array.isArray(value) && value.every((item) => typeof item?.text === "string" && Object.hasOwn(marks, item.status))
  );
}

type TodoChannel = Channel<readonly TodoItem[], readonly TodoItem[], readonly TodoItem[] | undefined>;

/** Channel of the todo list, for a user-defined graph: `defineState({ …, ...todos })`. */
export const todos: { readonly todos: TodoChannel } = {
  todos: channel.reduce(
    createGuardSchema("todo items, [{ text, status }]", isTodoItems, []),
    (_before, list: readonly TodoItem[]) => list,
  ) as TodoChannel,
};

const marks: Readonly<Record<TodoItem["status"], string>> = { open: "[ ]", doing: "[>]", done: "[x]" };

const defaultInstructions =
  "For work of three or more steps keep a list with the tool todo: write it before you begin, and write it again whenever an item is begun or done. Work on one item at a time.";

/**
 * Stores the list of `todo()` in the channel `todos`. Explains its use in the system prompt, and shows the list again
 * when the request no longer contains the last call of the tool, as in a trimmed or summarized conversation. Register
 * this middleware after middleware that shortens the conversation.
 */
export function todoList(options: TodoListOptions = {}): Middleware {
  checkOptions("todoList", options, listOptionNames<TodoListOptions>({ instructions: true }));
  const { instructions = defaultInstructions } = options;
  if (typeof instructions !== "string")
    throw invalidOption({ where: "todoList", option: "instructions", expected: "a string", got: instructions });
  return defineMiddleware({
    name: "todoList",
    channels: todos,
    afterTool: ({ tool, result }) => {
      const list = tool?.name === "todo" ? parseList(result.details) : undefined;
      if (result.isError || list === undefined) return undefined;
      const { command } = result;
      return { ...result, command: { ...command, update: { ...command?.update, todos: list } } };
    },
    beforeModel: (request, { state }) => {
      if (!request.tools.some(({ name }) => name === "todo")) return undefined;
      const { todos: list = [] } = state as { readonly todos?: readonly TodoItem[] };
      const isOpen = list.some(({ status }) => status !== "done");
      const listLines =
        isOpen && !request.messages.some(hasTodoCall) ? ["The current list:", ...list.map(formatItem)] : [];
      const instructionParts = [request.instructions ?? "", [instructions, ...listLines].join("\n")].filter(
        (text) => text !== "",
      );
      return { ...request, instructions: instructionParts.join("\n\n") };
    },
  });
}

function parseList(details: unknown): readonly TodoItem[] | undefined {
  const list = typeof details === "object" && details !== null && "items" in details ? details.items : undefined;
  return isTodoItems(list) ? list : undefined;
}

function hasTodoCall(message: Message): boolean {
  return (
    message.role === "assistant" &&
    message.content.some(
      (block) =>
        block.type === "call" &&
        block.name === "todo" &&
        typeof block.args === "object" &&
        block.args !== null &&
        "items" in block.args,
    )
  );
}

function formatItem({ text, status }: TodoItem): string {
  return `${marks[status]} ${text}`;
}
