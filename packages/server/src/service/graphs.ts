/** Acts that describe graphs. */
import { type Graph, isStatewrightError, type Json, type JsonObject } from "@statewright/core";
import { getGraphShape, toJsonSchema } from "@statewright/core/adapter";
import { toMachineJson, toMermaid } from "@statewright/core/inspect";
import type { CallerScope } from "./caller-scope.ts";
import type { CallerService, GraphDetails, GraphView } from "./caller-service.ts";

/** Creates the acts that describe the graphs of a caller. */
export function createGraphActs(scope: CallerScope): Pick<CallerService, "listGraphs" | "getGraph"> {
  return {
    listGraphs: async () => {
      await scope.ask({ action: "graph.read" });
      return scope.listGraphs().map(toGraphView);
    },
    getGraph: async (name) => {
      await scope.ask({ action: "graph.read", graph: name });
      return describe(scope.requireGraph(name));
    },
  };
}

function toGraphView(graph: Graph): GraphView {
  return { name: graph.name, version: graph.version, shape: getGraphShape(graph) };
}

function describe(graph: Graph): GraphDetails {
  const { input, output, interrupts, nodes } = graph;
  const shown = Object.entries(graph.state.channels).filter(([name]) => !graph.private.has(name));
  return {
    ...toGraphView(graph),
    machine: findMachineJson(graph),
    mermaid: toMermaid(graph),
    schemas: {
      input: input === undefined ? createChannelsSchema(shown, { requires: true }) : toJsonSchema(input),
      state: createChannelsSchema(shown, { requires: false }),
      output: output === undefined ? undefined : toJsonSchema(output),
      answers: listAnswerSchemas(interrupts),
    },
    inputChannels: shown.map(([name]) => name),
    nodes: [...nodes.keys()],
  };
}

/** Machine of a graph of nodes; null for a machine of user code, whose functions JSON cannot hold. */
function findMachineJson(graph: Graph): Json {
  try {
    return toMachineJson(graph);
  } catch (error) {
    if (isStatewrightError(error, "invalid_option")) return null;
    throw error;
  }
}

type ChannelEntry = readonly [string, Graph["state"]["channels"][string]];

/** JSON Schema of an object of channels; with `requires`, channels without an initial value are required. */
function createChannelsSchema(
  channels: readonly ChannelEntry[],
  { requires }: { readonly requires: boolean },
): JsonObject {
  const required = channels.filter(([, channel]) => channel.initial() === undefined).map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(channels.map(([name, channel]) => [name, createChannelSchema(channel)])),
    ...(requires && required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
}

function createChannelSchema({ kind, schema }: ChannelEntry[1]): JsonObject {
  const item = schema === undefined ? {} : (toJsonSchema(schema) ?? {});
  if (kind === "messages") return { type: "array", items: { type: "object" } };
  if (kind === "list") return { type: "array", items: item };
  return kind === "record" ? { type: "object", additionalProperties: item } : item;
}

function listAnswerSchemas(interrupts: Graph["interrupts"]): Readonly<Record<string, Json>> {
  const schemas = Object.entries(interrupts).map(([key, declared]) => {
    const answer = "answer" in declared ? declared.answer : declared;
    return [key, toJsonSchema(answer) ?? {}] as const;
  });
  return Object.fromEntries(schemas);
}
