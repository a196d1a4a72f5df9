/** Tool calls through a tool node without a model, with the complete machine of a call. */
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

/** A tool call as a model makes it. */
export interface RequestedCall {
  readonly name: string;
  readonly args: JsonObject;
}

/** Active tool calls. */
export interface LiveCalls {
  readonly handle: RunHandle<{ readonly messages: readonly Message[] }>;
  readonly events: readonly RunEvent[];
  readonly store: ReturnType<typeof memoryStore>;
  /** Texts of all updates so far. */
  updates(): readonly string[];
  /** Waits until an update contains this text. */
  shows(text: string): Promise<void>;
  /** Answers for the model, in call order. */
  answers(): Promise<readonly ToolMessage[]>;
  /** Results for programs, in call order. */
  results(): Promise<readonly ToolResult[]>;
}

/** Starts tool calls of one message. */
export function startCalls(tools: readonly Tool[], asked: readonly RequestedCall[]): LiveCalls {
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

/** Result of one call: answer for the model and result for programs. */
export interface CallOutcome {
  readonly text: string;
  readonly isError: boolean;
  readonly answer: ToolMessage;
  readonly result: ToolResult;
}

/** Runs one tool call. */
export async function runCall(tool: Tool, args: JsonObject): Promise<CallOutcome> {
  const live = startCalls([tool], [{ name: tool.spec.name, args }]);
  const [[answer], [result]] = [await live.answers(), await live.results()];
  if (answer === undefined || result === undefined) throw new Error("the call has no answer");
  return { text: getMessageText(answer), isError: answer.isError, answer, result };
}
