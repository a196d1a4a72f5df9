/** Act that starts a run. */
import type { Json, RunHandle } from "@statewright/core";
import { digestArgs } from "@statewright/core/adapter";
import type { CallerScope } from "../caller-scope.ts";
import type { StartedRun, StartRequest } from "../caller-service.ts";
import { findRunRow } from "../find-run-row.ts";
import { selectInput } from "../new-messages.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { createUnknownThreadError } from "../thread-ids.ts";
import { toJson } from "../to-json.ts";
import { keepOwnRun } from "./own-runs.ts";
import { createRunContext } from "./run-context.ts";
import { createReusedKeyError, findAnswered } from "./run-keys.ts";
import { awaitSavedStart } from "./saved-start.ts";
import { checkBranch, toBreakpoints, toStartedRun } from "./started-run.ts";

/** Handles whose first caller has its answer: a later call under the same key starts no run. */
const knownHandles: WeakSet<RunHandle<unknown>> = new WeakSet();

/**
 * Starts a run, or queues it; with a known key returns the run of the key. Resolves when it is saved. Throws the errors
 * of `run` and `key_reused`.
 */
export async function startRun(scope: CallerScope, thread: string, request: StartRequest): Promise<StartedRun> {
  const { store, caller, options } = scope;
  const stored = scope.toStoredId(thread);
  await scope.ask({ action: "run.start", graph: request.graph, thread, changes: true });
  const graph = scope.requireGraph(request.graph);
  const known = await store.thread(stored);
  if (known !== undefined && !scope.isVisible(known)) throw createUnknownThreadError(thread);
  await checkBranch(scope, { wire: thread, stored }, { branch: request.branch, isNewThread: known === undefined });
  const { key, branch, onBusy, metadata, removeMessages } = request;
  const keyed = key === undefined ? undefined : { stored, key, body: toKeyBody(request) };
  const repeated = keyed === undefined ? undefined : await findRepeatedStart(scope, keyed);
  if (repeated !== undefined) return repeated;
  let input: object | undefined;
  try {
    input = await selectInput(scope, { graph, stored, branch, key }, request.input);
  } catch (error) {
    // Another call under the key has saved the messages meanwhile.
    const other = keyed === undefined ? undefined : await findRepeatedStart(scope, keyed);
    if (other !== undefined) return other;
    throw error;
  }
  const context = await createRunContext(scope, { graph, thread, asked: request.asked });
  const handle = options.engine.run(graph, {
    ...context,
    thread: stored,
    onKeyReused: "refuse",
    ...omitUndefined({ key, keyBody: keyed?.body, branch, onBusy, metadata, removeMessages, input }),
    ...toBreakpoints(request.breakpoints),
    tenant: caller.tenant,
    owner: caller.id,
  });
  const isFirst = !knownHandles.has(handle);
  knownHandles.add(handle);
  const saved = await awaitSavedStart(handle, async (run) => (await findRunRow(store, stored, run)) !== undefined);
  keepOwnRun(options.engine, saved.run, handle);
  const isNew = isFirst && saved.run === handle.id;
  return await toStartedRun(scope, stored, { ...saved, isNew });
}

/** Start under a key. */
interface KeyedStart {
  readonly stored: string;
  readonly key: string;
  readonly body: Json;
}

/** What a start under a key is about: a repeated one is equal. */
function toKeyBody({ graph, input, metadata = {}, removeMessages = [] }: StartRequest): Json {
  return [graph, toJson(input), metadata, [...removeMessages]];
}

/** Returns the run that an earlier start of the key began. Throws `key_reused` for another request under the key. */
async function findRepeatedStart(
  scope: CallerScope,
  { stored, key, body }: KeyedStart,
): Promise<StartedRun | undefined> {
  const { store, codec } = scope;
  const [run] = await store.runs({ thread: stored, key, limit: 1 });
  const isSame = run?.bodyHash === undefined || run.bodyHash === digestArgs(codec, body);
  if (!isSame || (run === undefined && (await findAnswered(scope, stored, key)).length > 0))
    throw createReusedKeyError(scope.toWireId(stored), key);
  return run === undefined
    ? undefined
    : await toStartedRun(scope, stored, { run: run.id, seq: undefined, isNew: false });
}
