/** Calls of tools through a tool node, without a model: every call gets its answer from the whole machine of a call. */
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

/** One call that a model might make. */
export interface Asked {
  readonly name?: string;
  readonly id?: string;
  readonly args: JsonObject;
}

/** Calls on their way. */
export interface LiveCalls {
  readonly handle: RunHandle<{ readonly messages: readonly Message[] }>;
  readonly events: readonly RunEvent[];
  /** The answers, in the order of the calls. */
  readonly answers: () => Promise<readonly ToolMessage[]>;
}

/** Make calls, all in one message. */
export function begin(
  tools: readonly Tool[],
  asked: readonly Asked[],
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
  const kept = options.store === undefined ? {} : { store: options.store, thread: "calls" };
  const handle = run(graph, { input: { messages: [asks] }, world: options.world ?? systemWorld(), ...kept });
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

/** Make calls and give their answers. */
export function answers(
  tools: readonly Tool[],
  asked: readonly Asked[],
  options: Parameters<typeof begin>[2] = {},
): Promise<readonly ToolMessage[]> {
  return begin(tools, asked, options).answers();
}

/** Make one call and give the text of its answer. */
export async function say(tools: readonly Tool[], args: JsonObject, name = "echo"): Promise<string> {
  const [answer] = await answers(tools, [{ name, args }]);
  return answer === undefined ? "" : getMessageText(answer);
}
