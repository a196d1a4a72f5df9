/** Assistants: graphs under the names of LangGraph. */
import type { CallerService, GraphDetails, GraphView } from "../service/caller-service.ts";
import { createRefusal } from "./create-problem.ts";
import { toHex } from "./to-hex.ts";
import type { WireObject } from "./to-wire-message.ts";

/** Namespace of the ids that LangGraph servers derive from names of graphs. */
const graphNamespace = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

/** Returns the UUID (version 5) of a graph name: the id of the assistant that a LangGraph server makes for a graph. */
export async function toAssistantId(name: string): Promise<string> {
  const namespace = Uint8Array.from(graphNamespace.replaceAll("-", "").match(/../g) ?? [], (byte) =>
    Number.parseInt(byte, 16),
  );
  const input = new Uint8Array([...namespace, ...new TextEncoder().encode(name)]);
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-1", input)).slice(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return toHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** Returns the name of the graph of an assistant id: the name itself or its UUID. Throws 404 for another id. */
export async function resolveAssistant(service: CallerService, id: string): Promise<string> {
  for (const { name } of await service.listGraphs()) if (name === id || (await toAssistantId(name)) === id) return name;
  throw createRefusal(`There is no assistant ${JSON.stringify(id)}.`, 404);
}

/** Returns the graph of an assistant id with its schemas. */
export async function loadAssistantGraph(service: CallerService, id: string): Promise<GraphDetails> {
  return service.getGraph(await resolveAssistant(service, id));
}

/** Graphs have no time of creation: all assistants have this one. */
const epoch = new Date(0).toISOString();

/** Converts a graph to an assistant. */
export async function toWireAssistant({ name, version, description }: GraphView): Promise<WireObject> {
  return {
    assistant_id: await toAssistantId(name),
    graph_id: name,
    name,
    version,
    description: description ?? null,
    ...{ config: {}, context: {}, metadata: { created_by: "system" } },
    ...{ created_at: epoch, updated_at: epoch },
  };
}
