/** Acts that change states of threads: forks, updates, and edits of messages. */
import {
  type ConversationTypes,
  fork,
  type Graph,
  type GraphTypes,
  getState,
  type JsonObject,
  type Message,
  StatewrightError,
  updateState,
} from "@statewright/core";
import { createId, createSha256, forkEditedMessage } from "@statewright/core/adapter";
import type { CallerScope, OwnThread } from "./caller-scope.ts";
import type { CallerService, StartedRun } from "./caller-service.ts";
import { listMessages } from "./new-messages.ts";
import { omitUndefined } from "./omit-undefined.ts";
import { createRunContext } from "./runs/run-context.ts";
import { createReusedKeyError } from "./runs/run-keys.ts";
import { awaitSavedStart } from "./runs/saved-start.ts";
import { checkBranch, findHeadRun, toStartedRun } from "./runs/started-run.ts";
import { createInvalidRequestProblem } from "./service-problems.ts";
import { createNoStateError, loadStateView } from "./states.ts";
import type { ThreadLocks } from "./thread-locks.ts";

type ChangeActs = "fork" | "updateState" | "editMessage";

/** Creates the acts that change states of a caller. */
export function createChangeActs(scope: CallerScope, locks: ThreadLocks): Pick<CallerService, ChangeActs> {
  const { store, world, codec } = scope;
  return {
    fork: async (thread, { at, name, changes, moveHead }) => {
      const { own, graph } = await requireGraphThread(scope, thread);
      checkPublicChannels(graph, changes);
      const options = { store, thread: own.stored, at, name: name ?? createId("fork_", world.random), world, codec };
      const branch = await fork(graph, { ...options, ...omitUndefined({ moveHead, update: changes }) });
      return { branch, state: await loadStateView(scope, own, { branch }) };
    },
    updateState: async (thread, { changes, as, branch }) => {
      const { own, graph } = await requireGraphThread(scope, thread);
      checkPublicChannels(graph, changes);
      await checkBranch(scope, own, { branch });
      const run = await findHeadRun(scope, own, branch ?? own.row.headBranch);
      const context = await createRunContext(scope, { graph, thread, asked: undefined, run });
      const migrations = (scope.engine.migrations ?? []).filter(({ to }) => to.name === graph.name);
      const options = { store, thread: own.stored, values: changes, world, codec, migrations, ...context };
      const { checkpointId } = await updateState(graph, { ...options, ...omitUndefined({ as, branch }) });
      return await loadStateView(scope, own, { at: checkpointId });
    },
    editMessage: async (thread, request) => await locks(scope.toStoredId(thread), () => edit(scope, thread, request)),
  };
}

/** Thread of a caller with the graph that wrote it. */
interface GraphThread {
  readonly own: OwnThread;
  readonly graph: Graph;
}

async function requireGraphThread(scope: CallerScope, thread: string): Promise<GraphThread> {
  const own = await scope.requireThread(thread, { action: "thread.write", changes: true });
  if (own.row.graph === undefined) throw createNoStateError(thread);
  return { own, graph: scope.requireGraph(own.row.graph) };
}

/** Throws `invalid_update` for a channel that the graph does not have, or that is private. */
function checkPublicChannels(graph: Graph, changes: JsonObject | undefined): void {
  const isPublic = (name: string): boolean => Object.hasOwn(graph.state.channels, name) && !graph.private.has(name);
  const unknown = Object.keys(changes ?? {}).find((name) => !isPublic(name));
  if (unknown === undefined) return;
  const known = Object.keys(graph.state.channels).filter(isPublic);
  throw new StatewrightError("invalid_update", {
    what: `the changes have the channel "${unknown}", which the graph "${graph.name}" does not show`,
    next: `Use its channels: ${known.join(", ")}`,
    place: { graph: graph.name },
  });
}

type EditRequest = Parameters<CallerService["editMessage"]>[1];

/**
 * Replaces a message of the user on a new branch and runs the graph there. With a key the name of the branch holds the
 * hash of the key and of the message, so that a repeated edit finds its branch.
 */
async function edit(scope: CallerScope, thread: string, request: EditRequest): Promise<StartedRun> {
  const { message, branch, key, asked } = request;
  const { graph, own } = await requireGraphThread(scope, thread);
  await scope.ask({ action: "run.start", graph: graph.name, thread, changes: true });
  if (!isConversation(graph)) throw createInvalidRequestProblem(`message: the graph "${graph.name}" has no messages.`);
  await checkBranch(scope, own, { branch });
  await checkIsFromUser(scope, { own, graph }, request);
  const { store, world, codec } = scope;
  const keyed = key === undefined ? undefined : toKeyedBranch(key, message);
  const branches = keyed === undefined ? [] : await store.branches(own.stored);
  const existing = branches.find(({ name }) => keyed !== undefined && name.startsWith(keyed.prefix));
  if (existing !== undefined && existing.name !== keyed?.name) throw createReusedKeyError(thread, key ?? "");
  const name = keyed?.name ?? createId("edit_", world.random);
  if (existing === undefined)
    await forkEditedMessage(graph, {
      store,
      thread: own.stored,
      message,
      name,
      world,
      codec,
      ...omitUndefined({ branch }),
    });
  const run = existing === undefined ? undefined : await findHeadRun(scope, own, name);
  if (run !== undefined) return await toStartedRun(scope, own.stored, { run: run.id, seq: undefined, isNew: false });
  const context = await createRunContext(scope, { graph, thread, asked });
  const options = { thread: own.stored, branch: name, by: scope.caller.id, ...omitUndefined({ key }) };
  const handle = scope.options.engine.resume<GraphTypes>(graph, { ...context, ...options });
  return await toStartedRun(scope, own.stored, { ...(await awaitSavedStart(handle, async () => false)), isNew: true });
}

function isConversation(graph: Graph): graph is Graph<ConversationTypes> {
  return graph.state.channels["messages"]?.kind === "messages";
}

/** Throws `invalid_input` when the message, or the message that it replaces, is not of the user. */
async function checkIsFromUser(scope: CallerScope, { own, graph }: GraphThread, { message, branch }: EditRequest) {
  const { store, codec } = scope;
  const { state } = await getState(graph, { store, codec, thread: own.stored, ...omitUndefined({ branch }) });
  const messages = isConversation(graph) ? listMessages(state) : [];
  const replaced = messages.find(({ id }) => id === message.id);
  if (message.role === "user" && (replaced === undefined || replaced.role === "user")) return;
  throw new StatewrightError("invalid_input", {
    what: `the edit of the message "${message.id}" is not about a message of the user`,
    next: "Edit messages of the user only",
    place: { thread: own.wire },
  });
}

/** Name of the branch of an edit under a key; `prefix` is the same for all messages under the key. */
function toKeyedBranch(key: string, message: Message): { readonly prefix: string; readonly name: string } {
  const prefix = `edit_${hashText(key)}_`;
  return { prefix, name: prefix + hashText(JSON.stringify(message)) };
}

function hashText(text: string): string {
  const hash = createSha256();
  hash.add(new TextEncoder().encode(text));
  return hash.finish().slice(0, 24);
}
