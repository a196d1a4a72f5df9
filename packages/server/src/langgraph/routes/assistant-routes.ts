/** Routes about the server and its assistants. */
import type { Json } from "@statewright/core";
import { packageVersion } from "@statewright/core/adapter";
import * as z from "zod";
import type { Route, RouteCall } from "../../http/route.ts";
import { loadAssistantGraph, toWireAssistant } from "../assistants.ts";
import { isRecord } from "../is-record.ts";
import { toGraphJson } from "../to-graph-json.ts";
import type { WireObject } from "../to-wire-message.ts";

const searchSchema = z.object({
  graph_id: z.string().nullish(),
  name: z.string().nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  limit: z.number().int().min(1).max(1_000).nullish(),
  offset: z.number().int().min(0).nullish(),
});

/** Routes that describe the server and its graphs. */
export const assistantRoutes: readonly Route[] = [
  createRead("/info", async () => ({
    version: packageVersion,
    flags: { assistants: true, crons: false, langsmith: false },
  })),
  createRead("/ok", async () => ({ ok: true })),
  { method: "POST", path: "/assistants/search", action: "graph.read", isRead: true, handle: searchAssistants },
  { method: "POST", path: "/assistants/count", action: "graph.read", isRead: true, handle: countAssistants },
  createRead("/assistants/:assistant", async (call) => toWireAssistant(await loadGraph(call))),
  createRead("/assistants/:assistant/graph", async (call) => toGraphJson(await loadGraph(call))),
  createRead("/assistants/:assistant/schemas", async (call) => describeSchemas(await loadGraph(call))),
  createRead("/assistants/:assistant/subgraphs", async (call) => {
    await loadGraph(call);
    return {};
  }),
];

function createRead(path: string, read: (call: RouteCall) => Promise<WireObject>): Route {
  return {
    method: "GET",
    path,
    action: "graph.read",
    isRead: true,
    handle: async (call) => Response.json(await read(call)),
  };
}

function loadGraph({ service, params }: RouteCall) {
  return loadAssistantGraph(service, params["assistant"] ?? "");
}

async function searchAssistants(call: RouteCall): Promise<Response> {
  const { limit, offset, ...query } = await call.readJson(searchSchema);
  const found = await findAssistants(call, query);
  const start = offset ?? 0;
  return Response.json(found.slice(start, start + (limit ?? 10)));
}

async function countAssistants(call: RouteCall): Promise<Response> {
  return Response.json((await findAssistants(call, await call.readJson(searchSchema))).length);
}

async function findAssistants(
  { service }: RouteCall,
  { graph_id, name, metadata }: Pick<z.infer<typeof searchSchema>, "graph_id" | "name" | "metadata">,
): Promise<readonly WireObject[]> {
  const graphs = await service.listGraphs();
  const assistants = await Promise.all(graphs.map(toWireAssistant));
  return assistants.filter(
    (assistant) =>
      (graph_id ?? assistant["graph_id"]) === assistant["graph_id"] &&
      String(assistant["name"]).includes(name ?? "") &&
      Object.entries(metadata ?? {}).every(([key, value]) => key === "created_by" && value === "system"),
  );
}

function describeSchemas({ name, schemas }: Awaited<ReturnType<typeof loadGraph>>): WireObject {
  return {
    graph_id: name,
    input_schema: withProperties(schemas.input),
    output_schema: withProperties(schemas.output ?? schemas.state),
    state_schema: withProperties(schemas.state),
    config_schema: withProperties(undefined),
    context_schema: withProperties(undefined),
  };
}

/** Clients read `properties` of each schema, without a check. */
function withProperties(schema: Json | undefined): WireObject {
  const object = isRecord(schema) ? schema : {};
  return { type: "object", ...object, properties: isRecord(object["properties"]) ? object["properties"] : {} };
}
