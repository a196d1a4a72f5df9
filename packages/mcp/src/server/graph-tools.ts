/** The two MCP tools of an offered graph: one starts or continues a conversation, `…_continue` resumes a thread. */
import type { Tool as McpTool } from "@modelcontextprotocol/server";
import type { JsonObject } from "@statewright/core";
import { toAnnotations } from "./annotations.ts";
import { threadNameRule } from "./caller.ts";
import type { OfferedGraph } from "./offer-graph.ts";

/** Name suffix of the second tool of each graph: `name_continue`. */
export const continueSuffix = "_continue";

/** Tool of an offered graph, by its name. */
export interface GraphTool {
  readonly offered: OfferedGraph;
  /** True for the tool `name_continue`. */
  readonly isContinuation: boolean;
}

/** Finds the graph of a tool name; undefined for a name that belongs to no graph. */
export function findGraphTool(byName: ReadonlyMap<string, OfferedGraph>, name: string): GraphTool | undefined {
  const offered = byName.get(name);
  if (offered !== undefined) return { offered, isContinuation: false };
  const continued = name.endsWith(continueSuffix) ? byName.get(name.slice(0, -continueSuffix.length)) : undefined;
  return continued === undefined ? undefined : { offered: continued, isContinuation: true };
}

/** Creates both tools of a graph. */
export function createGraphTools(offered: OfferedGraph): readonly McpTool[] {
  return [createStartTool(offered), createContinueTool(offered)];
}

function createStartTool({ name, spec, input }: OfferedGraph): McpTool {
  const properties = { ...(input["properties"] as JsonObject | undefined), thread: threadProperty };
  return {
    name,
    title: spec.label,
    description: spec.description,
    inputSchema: { ...(input as McpTool["inputSchema"]), properties },
    outputSchema,
    annotations: toAnnotations(spec),
  };
}

function createContinueTool({ name, spec }: OfferedGraph): McpTool {
  const label = `${spec.label}: continue`;
  return {
    name: name + continueSuffix,
    title: label,
    description: `Continue a thread of ${name} that was interrupted, failed, or waits for answers; or read its result. Recorded effects do not run again.`,
    inputSchema: {
      type: "object",
      properties: {
        thread: { type: "string", description: "Thread name from an earlier result." },
        answers: { type: "object", description: "Answers by interrupt id, from an earlier result." },
      },
      required: ["thread"],
      additionalProperties: false,
    },
    outputSchema,
    annotations: toAnnotations({ ...spec, label }),
  };
}

const threadProperty = {
  type: "string",
  description: `Thread name from an earlier result, to continue a conversation. Or a new name (${threadNameRule}), to find the thread again after an interruption.`,
};

const outputSchema: NonNullable<McpTool["outputSchema"]> = {
  type: "object",
  properties: {
    thread: { type: "string" },
    status: { type: "string" },
    output: {},
    interrupts: { type: "array", items: { type: "object" } },
  },
  required: ["thread", "status"],
};
