/** Routes of the long-term store. The namespaces of a caller begin with its tenant. */
import type { LongTerm, LongTermItem, LongTermScalar } from "@statewright/core";
import * as z from "zod";
import type { Route, RouteCall } from "../../http/route.ts";
import { createInputProblem, createRefusal } from "../create-problem.ts";
import type { WireObject } from "../to-wire-message.ts";

const namespace = z.array(z.string()).max(16);
const putSchema = z.object({
  namespace,
  key: z.string(),
  value: z.record(z.string(), z.unknown()),
  ttl: z.number().positive().nullish(),
  index: z.union([z.literal(false), z.array(z.string())]).nullish(),
});
const deleteSchema = z.object({ namespace, key: z.string() });
const limit = z.number().int().min(1).max(200).nullish();
const offset = z.number().int().min(0).max(10_000).nullish();
const searchSchema = z.object({
  namespace_prefix: namespace.nullish(),
  filter: z.record(z.string(), z.unknown()).nullish(),
  query: z.string().nullish(),
  limit,
  offset,
});
const namespacesSchema = z.object({
  prefix: namespace.nullish(),
  suffix: namespace.nullish(),
  max_depth: z.number().int().min(1).max(16).nullish(),
  limit,
  offset,
});

/** Creates the routes of the long-term store. Without a store they answer 404. */
export function createStoreRoutes(longTerm: LongTerm | undefined): readonly Route[] {
  const open = ({ caller }: RouteCall): LongTerm => {
    if (longTerm === undefined)
      throw createRefusal("The server has no long-term store. Pass longTerm to langgraph.", 404);
    return longTerm.under(caller.tenant);
  };
  const read = { action: "thread.read", isRead: true } as const;
  const write = { action: "thread.write", isRead: false } as const;
  return [
    { method: "PUT", path: "/store/items", ...write, handle: (call) => putItem(call, open(call)) },
    { method: "GET", path: "/store/items", ...read, handle: (call) => getItem(call, open(call)) },
    { method: "DELETE", path: "/store/items", ...write, handle: (call) => deleteItem(call, open(call)) },
    { method: "POST", path: "/store/items/search", ...read, handle: (call) => searchItems(call, open(call)) },
    { method: "POST", path: "/store/namespaces", ...read, handle: (call) => listNamespaces(call, open(call)) },
  ];
}

async function putItem(call: RouteCall, root: LongTerm): Promise<Response> {
  const { namespace: path, key, value, ttl, index } = await call.readJson(putSchema);
  const options = {
    ...(typeof ttl === "number" ? { ttlMs: Math.ceil(ttl * 60_000) } : {}),
    ...(index === undefined || index === null ? {} : { index }),
  };
  await root.under(...path).put(key, value, options);
  return new Response(null, { status: 204 });
}

async function getItem({ query }: RouteCall, root: LongTerm): Promise<Response> {
  const path = query.get("namespace")?.split(".").filter(Boolean) ?? [];
  const item = await root.under(...path).get(query.get("key") ?? "");
  if (item === undefined) throw createRefusal("There is no item with this key.", 404);
  return Response.json(toWireItem(item));
}

async function deleteItem(call: RouteCall, root: LongTerm): Promise<Response> {
  const { namespace: path, key } = await call.readJson(deleteSchema);
  await root.under(...path).delete(key);
  return new Response(null, { status: 204 });
}

async function searchItems(call: RouteCall, root: LongTerm): Promise<Response> {
  const { namespace_prefix: prefix, filter, query, limit: size, offset: skip } = await call.readJson(searchSchema);
  const start = skip ?? 0;
  const end = start + (size ?? 10);
  const found = await root.under(...(prefix ?? [])).search({
    limit: end,
    ...(typeof query === "string" && query !== "" ? { text: query } : {}),
    ...(filter === null || filter === undefined ? {} : { filter: toFilter(filter) }),
  });
  return Response.json({ items: found.slice(start, end).map(toWireItem) });
}

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

function toFilter(filter: Readonly<Record<string, unknown>>): Readonly<Record<string, LongTermScalar>> {
  const entries = Object.entries(filter).map(([field, value]) => {
    const parsed = scalar.safeParse(value);
    if (!parsed.success) throw createInputProblem(`/filter/${field}`, "expected a plain value to compare with");
    return [field, parsed.data] as const;
  });
  return Object.fromEntries(entries);
}

/** The tenant is no part of what its callers see. */
function toWireItem({ namespace: path, key, value, createdAt, updatedAt, score }: LongTermItem): WireObject {
  return {
    namespace: path.slice(1),
    key,
    value,
    created_at: new Date(createdAt).toISOString(),
    updated_at: new Date(updatedAt).toISOString(),
    ...(score === undefined ? {} : { score }),
  };
}

async function listNamespaces(call: RouteCall, root: LongTerm): Promise<Response> {
  const { prefix, suffix, max_depth: depth, limit: size, offset: skip } = await call.readJson(namespacesSchema);
  const start = skip ?? 0;
  const end = start + (size ?? 100);
  const below = root.under(...(prefix ?? []));
  const base = prefix?.length ?? 0;
  if (typeof depth === "number" && depth <= base)
    throw createInputProblem("/max_depth", "expected more levels than the prefix has");
  const options = { limit: end, ...(typeof depth === "number" ? { depth: depth - base } : {}) };
  const found = (await below.namespaces(options)).map((path) => path.slice(1));
  const matching = found.filter((path) =>
    (suffix ?? []).every((id, index) => path.at(index - (suffix?.length ?? 0)) === id),
  );
  return Response.json({ namespaces: matching.slice(start, end) });
}
