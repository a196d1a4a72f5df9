/** Commands that read a thread: its state, its checkpoints, and the tree of its graphs. */
import { isStatewrightError } from "@statewright/core";
import * as z from "zod";
import type { CallerService, StateView } from "../../service/caller-service.ts";
import { toWireValues } from "../to-wire-values.ts";
import { parseCheckpointId, toCheckpointId } from "../wire-checkpoint.ts";
import { toWireSource } from "../wire-state.ts";
import { findNewestState } from "../wire-thread.ts";
import { type CommandCall, readParams } from "./command-call.ts";
import { CommandError, type CommandResult } from "./command-reply.ts";
import { openThreadEvents, type ThreadEventStream, V2Reader } from "./stream-thread-events.ts";
import type { V2Graph, V2Status } from "./v2-memory.ts";

const namespaceSchema = z.array(z.string().max(256)).max(64).nullish();

const getSchema = z.object({ namespace: namespaceSchema, keys: z.array(z.string()).max(1_000).nullish() });

const listSchema = z.object({
  namespace: namespaceSchema,
  limit: z.number().int().min(1).max(1_000).nullish(),
  before: z.string().nullish(),
});

const treeSchema = z.object({ run_id: z.string().nullish() });

/** Returns the state of the thread, or of an inner graph, with its checkpoint. */
export async function getState(call: CommandCall): Promise<CommandResult> {
  const { namespace, keys } = readParams(call, getSchema);
  const state = await findState(call, namespace ?? []);
  if (state === undefined) return { result: { values: {} } };
  const values = Object.entries(toWireValues(state.values)).filter(([key]) => keys?.includes(key) ?? true);
  const checkpoint = { id: toCheckpointId(state.checkpoint), ns: (namespace ?? []).join("|") };
  return { result: { values: Object.fromEntries(values), checkpoint } };
}

async function findState(
  { service, thread }: CommandCall,
  namespace: readonly string[],
): Promise<StateView | undefined> {
  if (namespace.length === 0) {
    await service.getThread(thread);
    return await findNewestState(service, thread);
  }
  try {
    const nesting = namespace.map((segment) => segment.split(":", 1)[0]).join(".");
    return await service.getState(thread, { nesting });
  } catch (error) {
    if (!isStatewrightError(error, "unknown_checkpoint")) throw error;
    throw new CommandError("no_such_namespace", `The thread has no graph at ${JSON.stringify(namespace)}.`);
  }
}

/** Lists the checkpoints of the thread, newest first. */
export async function listCheckpoints(call: CommandCall): Promise<CommandResult> {
  const { service, thread } = call;
  const { namespace, limit, before } = readParams(call, listSchema);
  if (namespace !== undefined && namespace !== null && namespace.length > 0)
    throw new CommandError("not_supported", "namespace: only checkpoints of the outermost graph are listed.");
  const first = before === undefined || before === null ? undefined : parseCheckpointId(thread, before);
  const checkpoints: object[] = [];
  for await (const state of streamStates(service, thread)) {
    if (first === undefined || state.checkpoint < first) checkpoints.push(toSummary(state));
    if (checkpoints.length === (limit ?? 50)) break;
  }
  return { result: { checkpoints } };
}

async function* streamStates(service: CallerService, thread: string): AsyncGenerator<StateView, undefined, undefined> {
  let before: string | undefined;
  do {
    const page = await service.listStates(thread, { before, limit: 50 });
    yield* page.data;
    before = page.next;
  } while (before !== undefined);
  return undefined;
}

function toSummary({ checkpoint, parent, at, step, source, run }: StateView): object {
  return {
    id: toCheckpointId(checkpoint),
    ...(parent === undefined ? {} : { parent_id: toCheckpointId(parent) }),
    timestamp: new Date(at).toISOString(),
    step,
    metadata: { source: toWireSource(source), ...(run === undefined ? {} : { run_id: run }) },
  };
}

/** Returns the outermost graph of the newest run, with the inner graphs that the run has called. */
export async function getTree(call: CommandCall): Promise<CommandResult> {
  const { service, thread, hitl } = call;
  const { run_id: run } = readParams(call, treeSchema);
  const { branch } = run === undefined || run === null ? await service.getThread(thread) : await service.getRun(run);
  const controller = new AbortController();
  const subscription = { channels: ["lifecycle" as const] };
  const stream: ThreadEventStream = { service, thread, subscription, hitl, signal: controller.signal };
  const reader = new V2Reader(stream);
  for await (const event of await openThreadEvents(stream)) {
    if (event.type === "thread.deleted" || event.type === "snapshot") break;
    if (event.branch === branch) await reader.read(event);
  }
  controller.abort();
  const graphs = [...reader.memory.graphs.values()].filter((graph) => graph.branch === branch);
  const root = graphs.find(({ withinId }) => withinId === "");
  if (root === undefined) throw new CommandError("no_such_run", "The thread has no run.");
  return { result: { tree: toTreeNode(root, graphs) } };
}

interface TreeNode {
  readonly namespace: readonly string[];
  readonly status: V2Status;
  readonly graph_name: string;
  readonly children?: readonly TreeNode[];
}

function toTreeNode({ namespace, status, name }: V2Graph, graphs: readonly V2Graph[]): TreeNode {
  const inner = graphs.filter((graph) => isChild(namespace, graph.namespace));
  const children = inner.map((graph) => toTreeNode(graph, graphs));
  return { namespace, status, graph_name: name, ...(children.length === 0 ? {} : { children }) };
}

function isChild(parent: readonly string[], child: readonly string[]): boolean {
  return child.length === parent.length + 1 && parent.every((segment, index) => segment === child[index]);
}
