/** Graph of a tool node: a tool call of an MCP client equals a call by a model. */
import {
  approval,
  channel,
  clientAnswer,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  type Graph,
  type InterruptShape,
  type Message,
  type Middleware,
  START,
  type StateShape,
  type ToolRegistry,
  toolNode,
} from "@statewright/core";
import { canRequestApproval } from "@statewright/core/adapter";

/** State of tools called by MCP clients: the message with the tool call. */
export interface CallState {
  readonly messages: readonly Message[];
}

/** Creates the graph of a server. Throws the errors of `toolNode` and `defineGraph`. */
export function createToolGraph(registry: ToolRegistry<CallState>, userMiddleware: readonly Middleware[]): Graph {
  const middleware = userMiddleware.some(canRequestApproval) ? userMiddleware : [...userMiddleware, confirmMiddleware];
  const channels: StateShape = Object.assign({}, ...middleware.map((each) => each.channels));
  const interrupts: InterruptShape = Object.assign({}, ...middleware.map((each) => each.interrupts));
  const clientTools = [...registry.tools().values()].filter(({ spec }) => spec.client === true);
  return defineGraph({
    name: "mcp-tool-call",
    state: defineState({ ...channels, messages: channel.messages() }),
    interrupts: {
      ...interrupts,
      ...Object.fromEntries(clientTools.map(({ spec }) => [spec.name, clientAnswer(spec)])),
      approve: approval,
    },
  })
    .nodes({ tools: toolNode({ tools: registry, middleware }) })
    .edges({ [START]: "tools", tools: END }) as Graph;
}

/** Asks for approval of tools with `confirm: "always"` if no other middleware does. */
const confirmMiddleware: Middleware = defineMiddleware({
  name: "confirmsForMcp",
  required: true,
  interrupts: { approve: approval },
  beforeTool: ({ call, tool }) =>
    tool.safety.confirm === "always" ? decide.interrupt(call, `${tool.label} needs approval`) : undefined,
});
