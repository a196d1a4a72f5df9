/** Routes of the server itself and of its graphs. */
import { type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { formatEtag, matchesEtag } from "../request-headers.ts";
import { graphDetails, graphList } from "../schemas/graphs.ts";
import { info, type WireInfo } from "../schemas/info.ts";
import { toGraph, toGraphDetails } from "../to-wire.ts";

/** Creates the routes of the server and its graphs. `getInfo` describes the server. */
export function createGraphRoutes({
  getInfo,
  getDocument,
}: {
  readonly getInfo: () => WireInfo;
  readonly getDocument: () => unknown;
}): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "GET", path: "/info", action: "graph.read", id: "getInfo", tag: "server" },
      summary: "Version, protocols, limits and role of the server",
      answers: { 200: { description: "The server", schema: info } },
      handle: async () => createJson(getInfo()),
    }),
    defineRoute({
      ...{ method: "GET", path: "/openapi.json", action: "graph.read", id: "getOpenApi", tag: "server" },
      summary: "This document",
      answers: { 200: { description: "OpenAPI 3.1", mediaType: "application/json" } },
      handle: async () => createJson(getDocument()),
    }),
    defineRoute({
      ...{ method: "GET", path: "/graphs", action: "graph.read", id: "listGraphs", tag: "graphs" },
      summary: "Graphs that the caller may use",
      answers: { 200: { description: "The graphs, by name", schema: graphList } },
      handle: async ({ service }) => createJson({ data: (await service.listGraphs()).map(toGraph) }),
    }),
    defineRoute({
      ...{ method: "GET", path: "/graphs/:graph", action: "graph.read", id: "getGraph", tag: "graphs" },
      summary: "A graph with its machine, diagram and JSON Schemas",
      headers: ["if-none-match"],
      answers: {
        200: { description: "The graph", schema: graphDetails, headers: ["etag"] },
        304: { description: "The graph has the shape of `If-None-Match`" },
      },
      handle: async ({ service, params, request }) => {
        const details = await service.getGraph(params["graph"] ?? "");
        const headers = { etag: formatEtag(details.shape), "cache-control": "private, no-cache" };
        if (matchesEtag(request.headers.get("if-none-match"), headers.etag))
          return new Response(null, { status: 304, headers });
        return createJson(toGraphDetails(details), { headers });
      },
    }),
  ];
}
