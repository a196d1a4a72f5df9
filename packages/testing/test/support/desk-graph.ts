/** A chat graph: a model and two tools in a loop. */
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  type EffectClass,
  END,
  listToolCalls,
  type Model,
  route,
  START,
  toolNode,
} from "@statewright/core";
import { toModelTool } from "@statewright/core/adapter";
import { scriptedModel } from "@statewright/testing";
import * as z from "zod";

/** Variations of the graph. */
export interface DeskOptions {
  readonly model?: Model;
  readonly instructions?: string;
  readonly effect?: EffectClass;
  readonly did?: (what: string) => void;
  readonly shout?: boolean;
  /** Target after the tools. */
  readonly after?: "model" | typeof END;
}

/** Creates an input with one user message. */
export function createInput(text: string) {
  return { messages: [{ role: "user" as const, id: "u1", content: [{ type: "text" as const, text }] }] };
}

/** Creates a graph of a model node and a tool node. */
export function createDeskGraph(options: DeskOptions = {}) {
  const {
    model = scriptedModel([]),
    instructions = "Be kind.",
    effect = "once",
    did,
    shout,
    after = "model",
  } = options;
  const lookup = defineTool({
    name: "lookup",
    description: "Find an order.",
    input: z.object({ order: z.string() }),
    effect: "pure",
    safety: { access: "read" },
    run: ({ order }) => `order ${order} was delivered`,
  });
  const mail = defineTool({
    name: "mail",
    description: "Send a mail.",
    input: z.object({ to: z.string() }),
    effect,
    safety: { access: "write" },
    run: ({ to }) => {
      did?.(`a mail to ${to}`);
      return "sent";
    },
  });
  const tools = [lookup, mail];
  const loud = defineMiddleware({
    name: "loud",
    afterTool: ({ result }) => ({ ...result, content: [{ type: "text", text: "DONE" }] }),
  });
  return defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
    .nodes({
      model: async (state, runtime) => {
        const system = { role: "system" as const, id: "s", content: instructions };
        const request = { messages: [system, ...state.messages], tools: tools.map((tool) => toModelTool(tool.spec)) };
        return { messages: [await runtime.model({ model, request })] };
      },
      tools: toolNode({ tools, ...(shout === true ? { middleware: [loud] } : {}) }),
    })
    .edges({
      [START]: "model",
      model: route(["tools", END], (state) => {
        const last = state.messages.at(-1);
        return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
      }),
      tools: after,
    });
}
