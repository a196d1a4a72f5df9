/** A graph of a model and a tool over a client with a connection that the test controls. */
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  listToolCalls,
  type Message,
  type Model,
  type ModelCallPolicy,
  type RunEvent,
  route,
  run,
  START,
  toolNode,
} from "@statewright/core";
import { rejectInvalidTranscripts, type VirtualClock } from "@statewright/testing";
import * as z from "zod";
import { user } from "./requests.ts";

/** End of a run over such a connection. */
export interface ToolRun {
  readonly status: string;
  readonly error: unknown;
  /** Arguments of each tool execution. */
  readonly ran: readonly unknown[];
  /** Requests and tool executions, in order. */
  readonly log: readonly string[];
  readonly messages: readonly Message[];
  readonly events: readonly RunEvent[];
}

/** Returns the response to the n-th request of a run with the given body. */
export type Responder = (nth: number, body: string) => ReadableStream<Uint8Array> | string;

/** Sequential runs of one graph: request the weather, run the tool, request the answer. */
export interface ToolRuns {
  /** Runs the graph; `answering` controls the connection of the client. */
  readonly run: (answering: Responder, world?: VirtualClock) => Promise<ToolRun>;
}

/** Creates a graph of a model and a tool. `make` creates the model with a `fetch` that the test controls. */
export function createToolRuns(
  make: (at: { readonly fetch: typeof fetch }) => Model,
  policy: ModelCallPolicy,
): ToolRuns {
  let answer: Responder = () => "";
  let requests = 0;
  let log: string[] = [];
  let ran: unknown[] = [];
  const model = make({
    fetch: async (_url, init) => {
      log.push("request");
      const body = answer(++requests, String(init?.body));
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const weather = defineTool({
    name: "get_weather",
    description: "Current weather for a city.",
    input: z.object({ city: z.string() }),
    effect: "once",
    run: ({ city }) => {
      ran.push({ city });
      log.push("tool");
      return `Rain in ${city}`;
    },
  });
  const strict = rejectInvalidTranscripts(model);
  const graph = defineGraph({ name: "weather", state: defineState({ messages: channel.messages() }) })
    .nodes({
      ask: async (state, runtime) => {
        const { name, description } = weather.spec;
        const inputSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
        const request = { messages: state.messages, tools: [{ name, description, inputSchema }] };
        return { messages: [await runtime.model({ ...policy, model: strict, request })] };
      },
      tools: toolNode({ tools: [weather] }),
    })
    .edges({
      [START]: "ask",
      ask: route(["tools", END], ({ messages }) => {
        const last = messages.at(-1);
        return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
      }),
      tools: "ask",
    });
  return {
    run: async (answering, world) => {
      [answer, requests, log, ran] = [answering, 0, [], []];
      const handle = run(graph, { input: { messages: [user("Oslo?")] }, ...(world && { world }) });
      const events: RunEvent[] = [];
      handle.on((event) => events.push(event));
      const ending = handle.result.then(
        ({ status, state }) => ({ status, error: undefined, messages: state.messages }),
        (error: unknown) => ({ status: "failed", error, messages: [] }),
      );
      await world?.runAll();
      return { ...(await ending), ran, log, events };
    },
  };
}
