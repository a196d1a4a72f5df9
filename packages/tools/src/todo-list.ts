/** The list that the tool `todo` writes, kept in the state: programs read it there, and a model that cannot see it any more is told. */
import {
  type Channel,
  checkOptions,
  defineMiddleware,
  type Message,
  type Middleware,
  optionNames,
  reduce,
  StatewrightError,
  schemaWhere,
} from "@statewright/core";
import type { TodoItem } from "./todo.ts";

/** What `todoList` takes. */
export interface TodoListOptions {
  /** What the model is told of the list, behind its instructions. */
  readonly instructions?: string;
}

function areItems(value: unknown): value is readonly TodoItem[] {
  return (
    Array.isArray(value) && value.every((item) => typeof item?.text === "string" && Object.hasOwn(marks, item.status))
  );
}

type TodoChannel = Channel<readonly TodoItem[], readonly TodoItem[], readonly TodoItem[] | undefined>;

/** The channel that holds the list: a graph of your own declares it, `defineState({ …, ...todos })`. */
export const todos: { readonly todos: TodoChannel } = {
  todos: reduce(
    schemaWhere("things to do, [{ text, status }]", areItems, []),
    (_before, list: readonly TodoItem[]) => list,
  ) as TodoChannel,
};

const marks: Readonly<Record<TodoItem["status"], string>> = { open: "[ ]", doing: "[>]", done: "[x]" };

const usualInstructions =
  "For work of three steps and more keep a list with the tool todo: write it before you begin, and write it anew whenever a thing is begun or done. Have one thing in work at a time.";

/**
 * Keep the list of `todo()` in the channel `todos`. The model is told how to use it, and is shown it again when the call that
 * wrote it is no longer in the request, as in a trimmed or summarised conversation. Register it behind what shortens one.
 */
export function todoList(options: TodoListOptions = {}): Middleware {
  checkOptions("todoList", options, optionNames<TodoListOptions>({ instructions: true }));
  const { instructions = usualInstructions } = options;
  if (typeof instructions !== "string")
    throw new StatewrightError("invalid_option", {
      what: "the instructions of todoList are no text",
      next: "Give a text, or leave them out",
    });
  return defineMiddleware({
    name: "todoList",
    channels: todos,
    afterTool: ({ tool, result }) => {
      const list = tool?.name === "todo" ? listIn(result.details) : undefined;
      if (result.isError || list === undefined) return undefined;
      const { command } = result;
      return { ...result, command: { ...command, update: { ...command?.update, todos: list } } };
    },
    beforeModel: (request, { state }) => {
      if (!request.tools.some(({ name }) => name === "todo")) return undefined;
      const { todos: list = [] } = state as { readonly todos?: readonly TodoItem[] };
      const isOpen = list.some(({ status }) => status !== "done");
      const shown = isOpen && !request.messages.some(writesList) ? ["The list as it is:", ...list.map(lineOf)] : [];
      const told = [request.instructions ?? "", [instructions, ...shown].join("\n")].filter((text) => text !== "");
      return { ...request, instructions: told.join("\n\n") };
    },
  });
}

function listIn(details: unknown): readonly TodoItem[] | undefined {
  const list = typeof details === "object" && details !== null && "items" in details ? details.items : undefined;
  return areItems(list) ? list : undefined;
}

function writesList(message: Message): boolean {
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

function lineOf({ text, status }: TodoItem): string {
  return `${marks[status]} ${text}`;
}
