/** Tool calls through a tool node without a model, with the complete machine of a call. */
import {
  channel,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type JsonObject,
  listToolCalls,
  type Message,
  type RunEvent,
  type RunHandle,
  run,
  START,
  type Store,
  type Tool,
  type ToolMessage,
  type ToolNodeOptions,
  toolNode,
  type World,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";

/** A tool call as a model makes it. */
export interface RequestedCall {
  readonly name?: string;
  readonly id?: string;
  readonly args: JsonObject;
}

/** Active tool calls. */
export interface LiveCalls {
  readonly handle: RunHandle<{ readonly messages: readonly Message[] }>;
  readonly events: readonly RunEvent[];
  /** Answers in call order. */
  readonly answers: () => Promise<readonly ToolMessage[]>;
}

/** Starts tool calls of one message. */
export function startCalls(
  tools: readonly Tool[],
  asked: readonly RequestedCall[],
  options: {
    readonly world?: World;
    readonly strategy?: ToolNodeOptions<unknown, unknown>["strategy"];
    readonly store?: Store;
  } = {},
): LiveCalls {
  const graph = defineGraph({ name: "calls", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools, ...(options.strategy === undefined ? {} : { strategy: options.strategy }) }) })
    .edges({ [START]: "tools", tools: END });
  const asks: Message = {
    role: "assistant",
    id: "asks",
    finish: "calls",
    content: asked.map(({ name = "echo", id, args }, index) => ({
      type: "call",
      id: id ?? `call_${index + 1}`,
      name,
      args,
    })),
  };
  const threadOptions = options.store === undefined ? {} : { store: options.store, thread: "calls" };
  const handle = run(graph, { input: { messages: [asks] }, world: options.world ?? systemWorld(), ...threadOptions });
  const events: RunEvent[] = [];
  handle.on((event) => {
    events.push(event);
  });
  return {
    handle,
    events,
    answers: async () => {
      const { state } = await handle.result;
      const answers = state.messages.filter((message) => message.role === "tool");
      if (answers.length !== listToolCalls(asks).length)
        throw new Error(`${answers.length} answers to ${asked.length} calls`);
      return answers;
    },
  };
}

/** Runs tool calls and returns their answers. */
export function collectAnswers(
  tools: readonly Tool[],
  asked: readonly RequestedCall[],
  options: Parameters<typeof startCalls>[2] = {},
): Promise<readonly ToolMessage[]> {
  return startCalls(tools, asked, options).answers();
}

/** Runs one tool call and returns the text of its answer. */
export async function callTool(tools: readonly Tool[], args: JsonObject, name = "echo"): Promise<string> {
  const [answer] = await collectAnswers(tools, [{ name, args }]);
  return answer === undefined ? "" : getMessageText(answer);
}
