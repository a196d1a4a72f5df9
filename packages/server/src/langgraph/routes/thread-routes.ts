/** Routes about threads. */
import { isStatewrightError, type Json, type JsonObject } from "@statewright/core";
import * as z from "zod";
import { RequestProblem } from "../../http/problem.ts";
import type { Route, RouteCall } from "../../http/route.ts";
import type { ThreadQuery, ThreadView } from "../../service/caller-service.ts";
import { resolveAssistant } from "../assistants.ts";
import { createInputProblem, createRefusal } from "../create-problem.ts";
import type { LangGraphSettings } from "../options.ts";
import { isGiven } from "../run-request.ts";
import { listThreadStatuses, toWireThreadStatus } from "../wire-status.ts";
import { toWireThread } from "../wire-thread.ts";

const record = z.record(z.string(), z.unknown());

const createSchema = z.object({
  thread_id: z.string().nullish(),
  metadata: record.nullish(),
  if_exists: z.enum(["raise", "do_nothing"]).nullish(),
  supersteps: z.unknown().optional(),
  ttl: z.unknown().optional(),
});

const patchSchema = z.object({ metadata: record.nullish(), ttl: z.unknown().optional() });

const querySchema = z.object({
  metadata: record.nullish(),
  values: record.nullish(),
  status: z.string().nullish(),
  ids: z.array(z.string()).max(200).nullish(),
  limit: z.number().int().min(0).max(1_000).nullish(),
  offset: z.number().int().min(0).max(10_000).nullish(),
  sort_by: z.enum(["thread_id", "status", "created_at", "updated_at", "state_updated_at"]).nullish(),
  sort_order: z.enum(["asc", "desc"]).nullish(),
  select: z.array(z.string()).nullish(),
});

const pruneSchema = z.object({
  thread_ids: z.array(z.string()).min(1).max(200),
  strategy: z.enum(["delete", "keep_latest"]).nullish(),
});

/** Creates the routes about threads. */
export function createThreadRoutes(settings: LangGraphSettings): readonly Route[] {
  const read = { action: "thread.read", isRead: true } as const;
  const write = { action: "thread.write", isRead: false } as const;
  return [
    { method: "POST", path: "/threads", ...write, handle: (call) => createThread(call, settings) },
    { method: "POST", path: "/threads/search", ...read, handle: (call) => searchThreads(call, settings) },
    { method: "POST", path: "/threads/count", ...read, handle: countThreads },
    { method: "POST", path: "/threads/prune", action: "thread.delete", isRead: false, handle: pruneThreads },
    { method: "GET", path: "/threads/:thread", ...read, handle: (call) => readThread(call, settings) },
    { method: "PATCH", path: "/threads/:thread", ...write, handle: (call) => patchThread(call, settings) },
    { method: "DELETE", path: "/threads/:thread", action: "thread.delete", isRead: false, handle: deleteThread },
    { method: "POST", path: "/threads/:thread/copy", ...write, handle: (call) => copyThread(call, settings) },
  ];
}

/** Returns the id of the thread of a request. */
export function getThreadId({ params }: RouteCall): string {
  return params["thread"] ?? "";
}

async function createThread(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { thread_id: id, metadata, if_exists: ifExists, supersteps, ttl } = await call.readJson(createSchema);
  refuseTtl(ttl);
  if (isGiven(supersteps))
    throw createRefusal("supersteps: a thread begins empty. Use POST /threads/{thread_id}/copy.");
  const { thread } = await call.service.createThread({
    id: id ?? undefined,
    metadata: toMetadata(metadata),
    ifExists: ifExists === "do_nothing" ? "keep" : "throw",
  });
  return Response.json(await toWireThread(call.service, thread, settings));
}

function refuseTtl(ttl: unknown): void {
  if (isGiven(ttl)) throw createRefusal("ttl: retention is an option of the store. Delete threads with DELETE.");
}

/** Values of a parsed body are JSON. */
function toMetadata(metadata: Readonly<Record<string, unknown>> | null | undefined): JsonObject | undefined {
  return metadata === null || metadata === undefined ? undefined : (metadata as JsonObject);
}

async function readThread(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const thread = await call.service.getThread(getThreadId(call));
  return Response.json(await toWireThread(call.service, thread, settings));
}

async function patchThread(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { metadata, ttl } = await call.readJson(patchSchema);
  refuseTtl(ttl);
  const thread = await call.service.updateThread(getThreadId(call), { metadata: toMetadata(metadata) });
  if (call.request.headers.get("prefer") === "return=minimal") return new Response(null, { status: 204 });
  return Response.json(await toWireThread(call.service, thread, settings));
}

async function deleteThread(call: RouteCall): Promise<Response> {
  await call.service.deleteThread(getThreadId(call));
  return new Response(null, { status: 204 });
}

async function copyThread(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const copy = await call.service.copyThread(getThreadId(call));
  return Response.json(await toWireThread(call.service, copy, settings));
}

/** A request deletes a single thread at most: a mistake in a list must not empty a tenant. */
async function pruneThreads(call: RouteCall): Promise<Response> {
  const { thread_ids: ids, strategy } = await call.readJson(pruneSchema);
  if (strategy === "keep_latest") {
    for (const id of ids) await call.service.pruneThread(id, { latest: 1 });
    return Response.json({ pruned_count: ids.length });
  }
  const [id, ...others] = ids;
  if (id === undefined || others.length > 0)
    throw createInputProblem(
      "/thread_ids",
      "expected a single thread to delete. Use DELETE /threads/{thread_id} for each",
    );
  await call.service.deleteThread(id);
  return Response.json({ pruned_count: 1 });
}

type Query = z.infer<typeof querySchema>;

async function countThreads(call: RouteCall): Promise<Response> {
  const query = await call.readJson(querySchema);
  const filter = await toFilter(call, query);
  if (filter === undefined) return Response.json(0);
  if (query.status !== "idle") return Response.json(await call.service.countThreads(filter));
  return Response.json((await listThreads(call, query, maxListed)).length);
}

/** Most threads that a search reads to sort or to filter them. */
const maxListed = 10_000;

async function searchThreads(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const query = await call.readJson(querySchema);
  const start = query.offset ?? 0;
  const end = start + (query.limit ?? 10);
  const isSorted = !isGiven(query.sort_by) || (query.sort_by === "updated_at" && query.sort_order !== "asc");
  const found = await listThreads(call, query, isSorted ? end : maxListed);
  if (!isSorted && found.length >= maxListed)
    throw createInputProblem("/sort_by", `expected a filter that leaves fewer than ${maxListed} threads to sort`);
  const page = (isSorted ? found : sortThreads(found, query)).slice(start, end);
  const withValues =
    !isGiven(query.select) || query.select?.some((field) => field === "values" || field === "interrupts");
  const threads = await Promise.all(
    page.map((thread) => toWireThread(call.service, thread, { ...settings, withValues })),
  );
  return Response.json(
    threads.map((thread) => selectFields(thread, query.select)),
    { headers: listTotals(start, threads) },
  );
}

function listTotals(start: number, threads: readonly unknown[]): Record<string, string> {
  return threads.length === 0 ? {} : { "x-pagination-next": String(start + threads.length) };
}

function selectFields(thread: object, select: readonly string[] | null | undefined): object {
  if (select === null || select === undefined) return thread;
  return Object.fromEntries(Object.entries(thread).filter(([field]) => select.includes(field)));
}

/** Lists threads that match a query, most recently changed first, up to a number. */
async function listThreads(call: RouteCall, query: Query, count: number): Promise<readonly ThreadView[]> {
  if (isGiven(query.ids)) return listNamedThreads(call, query);
  const filter = await toFilter(call, query);
  const threads: ThreadView[] = [];
  let before: string | undefined;
  while (filter !== undefined && threads.length < count) {
    const page = await call.service.listThreads({
      ...filter,
      before,
      limit: Math.min(200, Math.max(1, count - threads.length)),
    });
    threads.push(...page.data.filter((thread) => hasStatus(thread, query)));
    before = page.next;
    if (before === undefined) break;
  }
  return threads;
}

/** Returns the named threads that exist and match the query. */
async function listNamedThreads(call: RouteCall, query: Query): Promise<readonly ThreadView[]> {
  const filter = await toFilter(call, query);
  if (filter === undefined) return [];
  const found = await Promise.all((query.ids ?? []).map((id) => findThread(call, id)));
  return found.filter((thread): thread is ThreadView => thread !== undefined && isMatch(thread, query, filter));
}

async function findThread({ service }: RouteCall, id: string): Promise<ThreadView | undefined> {
  try {
    return await service.getThread(id);
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "invalid_id")) return undefined;
    throw error;
  }
}

function isMatch(
  thread: ThreadView,
  query: Query,
  { graph, metadata = {} }: Pick<ThreadQuery, "graph" | "metadata">,
): boolean {
  const hasMetadata = Object.entries(metadata).every(([key, value]) => thread.metadata[key] === value);
  return hasMetadata && (graph === undefined || thread.graph === graph) && hasStatus(thread, query);
}

function hasStatus({ status }: ThreadView, query: Query): boolean {
  return !isGiven(query.status) || toWireThreadStatus(status) === query.status;
}

/** Returns the query of the service; undefined for a query that no thread matches. */
async function toFilter(call: RouteCall, query: Query): Promise<Omit<ThreadQuery, "before" | "limit"> | undefined> {
  if (isGiven(query.values) && Object.keys(query.values ?? {}).length > 0)
    throw createRefusal("values: threads are found by metadata and status. States are not indexed.");
  const { graph_id: graphId, assistant_id: assistantId, ...rest } = query.metadata ?? {};
  const asked = graphId ?? assistantId;
  const graph = typeof asked === "string" ? await findGraph(call, asked) : undefined;
  if (typeof asked === "string" && graph === undefined) return undefined;
  const metadata = toScalars(rest);
  // A thread without a run is idle and has no status that the service could find.
  const status = !isGiven(query.status) || query.status === "idle" ? undefined : listThreadStatuses(query.status ?? "");
  if (status?.length === 0) throw createInputProblem("/status", "expected idle, busy, interrupted or error");
  return { graph, metadata, status };
}

async function findGraph({ service }: RouteCall, name: string): Promise<string | undefined> {
  try {
    return await resolveAssistant(service, name);
  } catch (error) {
    if (error instanceof RequestProblem && error.problem.status === 404) return undefined;
    throw error;
  }
}

type Scalars = Readonly<Record<string, string | number | boolean | null>>;

function toScalars(metadata: Readonly<Record<string, unknown>>): Scalars | undefined {
  const entries = Object.entries(metadata).filter(([, value]) => value !== undefined);
  if (entries.length === 0) return undefined;
  const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
  return Object.fromEntries(
    entries.map(([key, value]) => {
      const parsed = scalar.safeParse(value);
      if (!parsed.success) throw createInputProblem(`/metadata/${key}`, "expected a plain value to compare with");
      return [key, parsed.data];
    }),
  );
}

function sortThreads(threads: readonly ThreadView[], { sort_by: by, sort_order: order }: Query): readonly ThreadView[] {
  const getKey = (thread: ThreadView): Json => {
    if (by === "thread_id") return thread.id;
    if (by === "status") return toWireThreadStatus(thread.status);
    return by === "created_at" ? thread.createdAt : thread.updatedAt;
  };
  const sign = order === "asc" ? 1 : -1;
  return threads.toSorted((a, b) => sign * compareKeys(getKey(a), getKey(b)));
}

function compareKeys(a: Json, b: Json): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
}
