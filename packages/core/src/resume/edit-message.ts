/** `editMessage`: say something else at one place of a conversation, and go on from there. */
import { StatewrightError } from "../base/errors.ts";
import { checkId, freshId } from "../base/ids.ts";
import { isPlainObject } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { systemWorld } from "../base/world.ts";
import { deltaOf } from "../checkpoint/codec/saved-state.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import type { GraphTypes } from "../define/graph.ts";
import type { Message } from "../model/message.ts";
import { checkGraph, resumeNames } from "../run/session/check-run-options.ts";
import type { ResumeOptions, RunHandle } from "../run/session/options.ts";
import { type Codec, plainCodec } from "../state/codec.ts";
import { fork } from "./fork.ts";
import { resume } from "./resume.ts";

/** The types of a graph with a conversation in the channel `messages`. */
export interface ConversationTypes extends GraphTypes {
  readonly state: { readonly messages: readonly Message[] };
}

/** What `editMessage` takes besides what a resume takes: the message as it should have been, under the id that it has. */
export type EditOptions<Types extends GraphTypes> = Omit<ResumeOptions<Types>, "answers"> & {
  readonly message: Message;
  /** The name of the new branch; one is made when it is absent. */
  readonly name?: string;
};

const names = [
  ...resumeNames,
  ...optionNames<Pick<EditOptions<ConversationTypes>, "message" | "name">>({ message: true, name: true }),
];

/**
 * Put a message in place of the one with its id, on a new branch that begins where that was written, and go on from
 * there: what was said later is not part of it, and the original branch stays as it is (rule E66). Throws
 * `unknown_checkpoint` when no checkpoint of the branch has written a message with this id, and what `fork` throws.
 */
export async function editMessage<Types extends ConversationTypes>(
  graph: Graph<Types>,
  options: EditOptions<Types>,
): Promise<RunHandle<Types["result"], Types["output"]>> {
  checkGraph("editMessage", graph);
  checkOptions("editMessage", options, names);
  const { message, name, ...rest } = options;
  const { store, world = systemWorld(), codec = plainCodec } = rest;
  const thread = checkId("thread", options.thread);
  const at = await writtenAt(store, codec, thread, options.branch, message.id);
  if (at === undefined) throw neverSaid(thread, message.id);
  const branch = await fork(graph, {
    store,
    thread,
    at,
    name: name ?? freshId("edit_", world.random),
    update: { messages: [message] } as Types["update"],
    world,
    codec,
  });
  return resume(graph, { ...rest, branch } as ResumeOptions<Types>);
}

/** The checkpoint that first wrote a message with this id. */
async function writtenAt(
  store: Store,
  codec: Codec,
  thread: string,
  branch: string | undefined,
  id: string,
): Promise<number | undefined> {
  let found: number | undefined;
  for (let before: number | undefined; ; ) {
    const page = await store.history(thread, { branch, before, limit: 50 });
    for (const row of page) {
      const written = row.deltas.filter(({ channel }) => channel === "messages").map((delta) => deltaOf(codec, delta));
      if (
        written.some(
          (delta) => "items" in delta && delta.items.some((item) => isPlainObject(item) && item["id"] === id),
        )
      )
        found = row.id;
    }
    before = page[page.length - 1]?.id;
    if (page.length < 50) return found;
  }
}

function neverSaid(thread: string, id: string): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `no checkpoint of the thread "${thread}" has written a message with the id "${id}"`,
    next: "Take the id of a message in its state, on the branch that is named",
    place: { thread },
  });
}
