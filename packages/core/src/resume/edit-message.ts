/** `editMessage`: replaces a single message of a conversation on a new branch and continues from there. */

import { StatewrightError } from "../base/errors.ts";
import { checkId, createId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import { systemWorld, type World } from "../base/world.ts";
import type { CheckpointRow } from "../checkpoint/checkpoint.ts";
import { parseDelta, restoreState } from "../checkpoint/codec/saved-state.ts";
import type { Store } from "../checkpoint/store.ts";
import { removeBranchPrefix, toBranchPrefix } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import type { GraphTypes } from "../define/graph.ts";
import type { Message, MessageWrite } from "../model/message.ts";
import {
  checkCodecOption,
  checkStoreOption,
  checkWorldOption,
  resumeOptionNames,
} from "../run/session/options/check-run-options.ts";
import type { BranchName, ResumeOptions, RunOf } from "../run/session/options/options.ts";
import { type Codec, plainCodec } from "../state/codec.ts";
import type { Delta } from "../state/delta.ts";
import { fork } from "./fork.ts";
import { resume } from "./resume.ts";

/** Types of a graph with the channel `messages`. */
export interface ConversationTypes extends GraphTypes {
  readonly state: { readonly messages: readonly Message[] };
}

/** Options of `editMessage`: the options of a resume, and the edited message with its existing id. */
export type EditOptions<Types extends GraphTypes> = Omit<ResumeOptions<Types>, "answers"> & {
  /** The replacement, with the id of the message to replace. */
  readonly message: Message;
  /** Name of the new branch; default: a generated name. */
  readonly name?: string;
};

const names = [
  ...resumeOptionNames,
  ...listOptionNames<Pick<EditOptions<ConversationTypes>, "message" | "name">>({ message: true, name: true }),
];

/**
 * Replaces the message with the same id on a new branch, from the checkpoint that wrote the message, and resumes
 * there: later messages are not part of the branch, and the original branch is unchanged (rule E66). The replacement
 * has a new id: the former id after the name of the branch, as in `b2.m1`. Throws `unknown_checkpoint` when no checkpoint of the branch wrote a message with this id, and the errors of `fork`.
 */
export async function editMessage<Types extends ConversationTypes>(
  graph: Graph<Types>,
  options: EditOptions<Types>,
): Promise<RunOf<Types>> {
  checkGraphOption("editMessage", graph);
  checkOptions("editMessage", options, names);
  checkStoreOption("editMessage", options.store ?? null);
  checkCodecOption("editMessage", options.codec);
  checkWorldOption("editMessage", options.world);
  const branch = await forkEditedMessage(graph, options);
  const { message: _, name: __, ...rest } = options;
  return resume(graph, { ...rest, branch } as ResumeOptions<Types>);
}

/** Options of {@link forkEditedMessage}. */
interface ForkEditOptions {
  readonly store: Store;
  readonly thread: string;
  readonly branch?: string | undefined;
  readonly message: Message;
  readonly name?: string | undefined;
  readonly world?: World | undefined;
  readonly codec?: Codec | undefined;
}

/** Creates the branch of `editMessage`, and resumes nothing. Returns its name. Throws the errors of `editMessage`. */
export async function forkEditedMessage<Types extends ConversationTypes>(
  graph: Graph<Types>,
  options: ForkEditOptions,
): Promise<BranchName<Types["nodes"]>> {
  const { message, name, ...rest } = options;
  if (!isPlainObject(message))
    throw invalidOption({ where: "editMessage", option: "message", expected: "a message", got: message });
  const { store, world = systemWorld(), codec = plainCodec } = rest;
  const thread = checkId("thread", options.thread);
  const written = await findWritingCheckpoint(store, codec, thread, { branch: options.branch, id: message.id });
  if (written === undefined) throw createUnknownMessageError(thread, message.id);
  const newBranch = name === undefined ? createId("edit_", world.random) : checkId("branch", name);
  const edited = { ...message, id: toBranchPrefix(newBranch) + removeBranchPrefix(message.id, written.branch) };
  const channels = restoreState(graph.state.channels, codec, await store.state(thread, written.id));
  const messages = replaceMessage(channels["messages"] as readonly Message[], message.id, edited);
  return await fork(graph, {
    store,
    thread,
    at: written.id,
    name: newBranch,
    update: { messages } as Types["update"],
    world,
    codec,
  });
}

/** Finds the first checkpoint that wrote a message with this id. */
async function findWritingCheckpoint(
  store: Store,
  codec: Codec,
  thread: string,
  { branch, id }: { readonly branch: string | undefined; readonly id: string },
): Promise<CheckpointRow | undefined> {
  let found: CheckpointRow | undefined;
  for (let before: number | undefined; ; ) {
    const page = await store.history(thread, { branch, before, limit: 50 });
    for (const row of page) {
      const deltas = row.deltas
        .filter(({ channel }) => channel === "messages")
        .map((delta) => parseDelta(codec, delta));
      if (deltas.flatMap(listWrittenItems).some((item) => isPlainObject(item) && item["id"] === id)) found = row;
    }
    before = page[page.length - 1]?.id;
    if (page.length < 50) return found;
  }
}

/** Lists the items that a delta of a conversation writes. */
function listWrittenItems(delta: Delta): readonly unknown[] {
  if (delta.kind === "append") return delta.items;
  return delta.kind === "patch" ? delta.patches.map(({ value }) => value) : [];
}

/** Returns the writes that put a message with another id in the place of a message: later messages keep their order. */
function replaceMessage(messages: readonly Message[], id: string, edited: Message): readonly MessageWrite[] {
  const [, ...later] = messages.slice(messages.findIndex((message) => message.id === id));
  return [{ remove: id }, ...later.map((message) => ({ remove: message.id })), edited, ...later];
}

function createUnknownMessageError(thread: string, id: string): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `no checkpoint of thread "${thread}" has written a message with the id "${id}"`,
    next: "Pass the id of a message in the state of the given branch",
    place: { thread },
  });
}
