/** Routes about states of threads: read, history, change and fork. */
import * as z from "zod";
import type { Route, RouteCall } from "../../http/route.ts";
import type { CallerService, StateView } from "../../service/caller-service.ts";
import { buildUpdate } from "../build-input.ts";
import { createInputProblem, createRefusal } from "../create-problem.ts";
import type { LangGraphSettings } from "../options.ts";
import { checkpointSchema, checkThreadId, isGiven } from "../run-request.ts";
import { parseCheckpointId, rootCheckpoint, toWireCheckpoint } from "../wire-checkpoint.ts";
import { createRootState, toWireState } from "../wire-state.ts";
import { findNewestState } from "../wire-thread.ts";
import { getThreadId } from "./thread-routes.ts";

const readSchema = z.object({ checkpoint: checkpointSchema });

const historySchema = z.object({
  limit: z.number().int().min(1).max(1_000).nullish(),
  before: z.union([z.string(), z.object({ configurable: checkpointSchema }), checkpointSchema]).nullish(),
  checkpoint: checkpointSchema.nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
});

const changeSchema = z.object({
  values: z.unknown().optional(),
  as_node: z.string().nullish(),
  checkpoint: checkpointSchema.nullish(),
  checkpoint_id: z.string().nullish(),
});

/** Creates the routes about states. */
export function createStateRoutes(settings: LangGraphSettings): readonly Route[] {
  const read = { action: "thread.read", isRead: true } as const;
  return [
    { method: "GET", path: "/threads/:thread/state", ...read, handle: (call) => readHead(call, settings) },
    { method: "GET", path: "/threads/:thread/state/:checkpoint", ...read, handle: (call) => readNamed(call, settings) },
    {
      method: "POST",
      path: "/threads/:thread/state/checkpoint",
      ...read,
      handle: (call) => readPosted(call, settings),
    },
    { method: "POST", path: "/threads/:thread/state", action: "thread.write", isRead: false, handle: changeState },
    { method: "GET", path: "/threads/:thread/history", ...read, handle: (call) => readHistory(call, settings) },
    { method: "POST", path: "/threads/:thread/history", ...read, handle: (call) => readHistory(call, settings) },
  ];
}

async function readHead(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const thread = getThreadId(call);
  await call.service.getThread(thread);
  const state = await findNewestState(call.service, thread);
  if (state === undefined) return Response.json(createEmptyState(thread));
  return Response.json(await toHeadState(call.service, state, settings));
}

/** State of a thread that no run has written. */
function createEmptyState(thread: string): object {
  const checkpoint = { thread_id: thread, checkpoint_ns: "", checkpoint_id: null, checkpoint_map: null };
  const none = { next: [], tasks: [], interrupts: [], parent_checkpoint: null, created_at: null };
  return { values: {}, metadata: {}, checkpoint, ...none };
}

/** The failure of a run is shown on the state at which the run failed. */
async function toHeadState(service: CallerService, state: StateView, { hitl }: LangGraphSettings): Promise<object> {
  const hasFailed = state.status === "failed" || state.status === "parked";
  const run = hasFailed && state.run !== undefined ? await service.getRun(state.run) : undefined;
  return toWireState(state, { hitl, run });
}

async function readNamed(call: RouteCall, { hitl }: LangGraphSettings): Promise<Response> {
  const thread = getThreadId(call);
  const at = parseCheckpointId(thread, call.params["checkpoint"] ?? "");
  return Response.json(await readAt(call.service, { thread, at, nesting: undefined }, { hitl }));
}

async function readPosted(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const { checkpoint } = await call.readJson(readSchema);
  const thread = getThreadId(call);
  checkThreadId(thread, "/checkpoint/thread_id", checkpoint.thread_id);
  const nesting = toNesting(checkpoint.checkpoint_ns);
  const id = checkpoint.checkpoint_id ?? undefined;
  if (id === undefined && nesting === undefined) return readHead(call, settings);
  const at = id === undefined ? undefined : parseCheckpointId(thread, id);
  return Response.json(await readAt(call.service, { thread, at, nesting }, settings));
}

interface NamedPlace {
  readonly thread: string;
  readonly at: number | undefined;
  readonly nesting: string | undefined;
}

async function readAt(
  service: CallerService,
  { thread, ...place }: NamedPlace,
  options: Pick<LangGraphSettings, "hitl">,
): Promise<object> {
  if (place.at === rootCheckpoint) return createRootState(await service.getState(thread));
  return toWireState(await service.getState(thread, place), options);
}

/** Returns the path of an inner graph: the namespace `outer:0:1|inner:0:2` is the path `outer.inner`. */
function toNesting(namespace: string | null | undefined): string | undefined {
  if (namespace === undefined || namespace === null || namespace === "") return undefined;
  return namespace
    .split("|")
    .map((level) => level.split(":")[0])
    .join(".");
}

/**
 * Returns the states of all branches, newest first: clients find the branches of a conversation by the parents of its
 * states.
 */
async function readHistory(call: RouteCall, settings: LangGraphSettings): Promise<Response> {
  const query = call.request.method === "GET" ? readHistoryQuery(call) : await call.readJson(historySchema);
  const thread = getThreadId(call);
  checkThreadId(thread, "/checkpoint/thread_id", query.checkpoint?.thread_id);
  const namespace = query.checkpoint?.checkpoint_ns;
  if (isGiven(namespace) && namespace !== "") return Response.json([await readInner(call, namespace ?? "", settings)]);
  const before = findBefore(thread, query.before);
  const limit = query.limit ?? 10;
  const states = await listStates(call.service, thread, { before, limit });
  const shown = states.map((state, index) =>
    index === 0 && before === undefined ? toHeadState(call.service, state, settings) : toWireState(state, settings),
  );
  const oldest = states.at(-1);
  const root = oldest !== undefined && states.length < limit ? [createRootState(oldest)] : [];
  return Response.json([...(await Promise.all(shown)), ...root]);
}

async function readInner(call: RouteCall, namespace: string, { hitl }: LangGraphSettings): Promise<object> {
  return toWireState(await call.service.getState(getThreadId(call), { nesting: toNesting(namespace) }), { hitl });
}

function readHistoryQuery({ query }: RouteCall): z.infer<typeof historySchema> {
  const limit = query.get("limit");
  const parsed = historySchema.safeParse({
    limit: limit === null ? undefined : Number(limit),
    before: query.get("before"),
  });
  if (parsed.success) return parsed.data;
  throw createInputProblem("/limit", "expected a limit of 1 to 1000");
}

function findBefore(thread: string, before: z.infer<typeof historySchema>["before"]): number | undefined {
  const named =
    typeof before === "object" && before !== null && "configurable" in before ? before.configurable : before;
  if (typeof named === "object") checkThreadId(thread, "/before/thread_id", named?.thread_id);
  const id = typeof named === "string" ? named : named?.checkpoint_id;
  return isGiven(id) ? parseCheckpointId(thread, id ?? "") : undefined;
}

interface HistoryRange {
  readonly before: number | undefined;
  readonly limit: number;
}

async function listStates(service: CallerService, thread: string, range: HistoryRange): Promise<readonly StateView[]> {
  const states = new Map<number, StateView>();
  if ((await findNewestState(service, thread)) === undefined) return [];
  for (const { name } of await service.listBranches(thread)) {
    for (const state of await listBranchStates(service, thread, name, range)) states.set(state.checkpoint, state);
  }
  return [...states.values()].toSorted((a, b) => b.checkpoint - a.checkpoint).slice(0, range.limit);
}

async function listBranchStates(
  service: CallerService,
  thread: string,
  branch: string,
  { before, limit }: HistoryRange,
): Promise<readonly StateView[]> {
  const states: StateView[] = [];
  let cursor: string | undefined;
  do {
    const page = await service.listStates(thread, { branch, before: cursor, limit: Math.min(200, limit) });
    states.push(...page.data.filter(({ checkpoint }) => before === undefined || checkpoint < before));
    cursor = page.next;
  } while (cursor !== undefined && states.length < limit);
  return states;
}

/** Writes channels of the state, at another checkpoint on a new branch; the node `__copy__` makes the branch only. */
async function changeState(call: RouteCall): Promise<Response> {
  const { values, as_node: node, checkpoint, checkpoint_id: given } = await call.readJson(changeSchema);
  const thread = getThreadId(call);
  const { service } = call;
  checkThreadId(thread, "/checkpoint/thread_id", checkpoint?.thread_id);
  const head = await service.getState(thread);
  if (isGiven(checkpoint?.checkpoint_ns) && checkpoint?.checkpoint_ns !== "")
    throw createRefusal(
      "checkpoint.checkpoint_ns: states of inner graphs are changed by their runs. Use an empty checkpoint_ns.",
    );
  const id = checkpoint?.checkpoint_id ?? given ?? undefined;
  const at = id === undefined ? head.checkpoint : parseCheckpointId(thread, id);
  const isCopy = node === "__copy__";
  const branch = isCopy || at !== head.checkpoint ? await service.fork(thread, { at, moveHead: true }) : undefined;
  if (isCopy && branch !== undefined) return respondWithCheckpoint(branch.state);
  const graph = await service.getGraph(head.graph);
  const changes = buildUpdate(graph, values ?? {}, "/values");
  const as = node === null || node === undefined || node === "__start__" ? undefined : node;
  return respondWithCheckpoint(await service.updateState(thread, { changes, as, branch: branch?.branch }));
}

function respondWithCheckpoint({ thread, checkpoint }: StateView): Response {
  const reference = toWireCheckpoint(thread, checkpoint);
  return Response.json({ checkpoint: reference, configurable: reference, checkpoint_id: reference["checkpoint_id"] });
}
