/** Schemas of graphs. */
import type { Json } from "@statewright/core";
import * as z from "zod";
import { json, nameSchema } from "./common.ts";

/** Graph in a list. */
export interface WireGraph {
  readonly name: string;
  readonly version: number;
  readonly description?: string | undefined;
  readonly shape: string;
}

const fields = {
  name: z.string(),
  version: z.number().int(),
  description: z.string().optional(),
  shape: z.string().describe("Fingerprint of channels, nodes, edges and tools"),
};

/** Graph in a list. */
const graph: z.ZodType<WireGraph> = nameSchema("Graph", z.strictObject(fields));

/** Graphs that the caller may use. */
export interface WireGraphList {
  readonly data: readonly WireGraph[];
}

/** Graphs that the caller may use. */
export const graphList: z.ZodType<WireGraphList> = nameSchema("GraphList", z.strictObject({ data: z.array(graph) }));

/** Graph with its machine, diagram and JSON Schemas. */
export interface WireGraphDetails extends WireGraph {
  readonly machine: Json;
  readonly mermaid: string;
  readonly schemas: {
    readonly input?: Json | undefined;
    readonly state?: Json | undefined;
    readonly output?: Json | undefined;
    readonly answers: Readonly<Record<string, Json>>;
  };
  readonly inputChannels: readonly string[];
  readonly nodes: readonly string[];
}

/** Graph with its machine, diagram and JSON Schemas. */
export const graphDetails: z.ZodType<WireGraphDetails> = nameSchema(
  "GraphDetails",
  z.strictObject({
    ...fields,
    machine: json.describe("Machine of the graph, as XState JSON"),
    mermaid: z.string().describe("Diagram in Mermaid syntax"),
    schemas: z
      .strictObject({
        input: json.optional(),
        state: json.optional(),
        output: json.optional(),
        answers: z.record(z.string(), json).describe("By the key of the interrupt"),
      })
      .describe("JSON Schemas; absent where a schema has none"),
    inputChannels: z.array(z.string()).describe("Channels that an input may set"),
    nodes: z.array(z.string()),
  }),
);
