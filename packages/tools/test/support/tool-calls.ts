/** Calls of tools through a tool node, without a model, with the whole machine of a call around them. */
import {
  channel,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type JsonObject,
  type Message,
  memoryStore,
  type RunEvent,
  type RunHandle,
  run,
  START,
  type Tool,
  type ToolMessage,
  type ToolResult,
  toolNode,
} from "@statewright/core";

/** One call that a model might make. */
export interface Asked {
  readonly name: string;
  readonly args: JsonObject;
}

/** Calls on their way. */
export interface LiveCalls {
  readonly handle: RunHandle<{ readonly messages: readonly Message[] }>;
  readonly events: readonly RunEvent[];
  readonly store: ReturnType<typeof memoryStore>;
  /** The text of every update so far. */
  updates(): readonly string[];
  /** Waits until an update holds this text. */
  shows(text: string): Promise<void>;
  /** The answers that the model reads, in the order of the calls. */
  answers(): Promise<readonly ToolMessage[]>;
  /** What programs get, in the order of the calls. */
  results(): Promise<readonly ToolResult[]>;
}

/** Make calls, all in one message. */
export function begin(tools: readonly Tool[], asked: readonly Asked[]): LiveCalls {
  const store = memoryStore();
  const graph = defineGraph({ name: "calls", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools }) })
    .edges({ [START]: "tools", tools: END });
  const ids = asked.map((_, index) => `call_${index + 1}`);
  const asks: Message = {
    role: "assistant",
    id: "asks",
    finish: "calls",
    content: asked.map(({ name, args }, index) => ({ type: "call", id: ids[index] ?? "", name, args })),
  };
  const handle = run(graph, { input: { messages: [asks] }, store, thread: "t" });
  const events: RunEvent[] = [];
  const waits: { readonly text: string; readonly resolve: () => void }[] = [];
  const updates = () =>
    events.flatMap((event) => (event.type === "tool.update" ? [String(event.partial.content)] : []));
  handle.on((event) => {
    events.push(event);
    if (event.type !== "tool.update") return;
    for (const { text, resolve } of waits) if (String(event.partial.content).includes(text)) resolve();
  });
  return {
    handle,
    events,
    store,
    updates,
    shows: (text) =>
      new Promise((resolve) => {
        if (updates().some((update) => update.includes(text))) resolve();
        else waits.push({ text, resolve });
      }),
    answers: async () => {
      const { state } = await handle.result;
      return state.messages.filter((message) => message.role === "tool");
    },
    results: async () => {
      await handle.result;
      const ended = events.flatMap((event) =>
        event.type === "tool.completed" || event.type === "tool.failed" ? [event.result] : [],
      );
      return ids.flatMap((id) => ended.filter(({ callId }) => callId === id));
    },
  };
}

/** What one call came to: what the model reads, and what programs get. */
export interface Came {
  readonly text: string;
  readonly isError: boolean;
  readonly answer: ToolMessage;
  readonly result: ToolResult;
}

/** Make one call. */
export async function call(tool: Tool, args: JsonObject): Promise<Came> {
  const live = begin([tool], [{ name: tool.spec.name, args }]);
  const [[answer], [result]] = [await live.answers(), await live.results()];
  if (answer === undefined || result === undefined) throw new Error("the call has no answer");
  return { text: getMessageText(answer), isError: answer.isError, answer, result };
}
