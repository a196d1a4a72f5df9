/** `steer`: sends messages to a thread, from any process with its store. */

import { checkId } from "../base/ids.ts";
import { checkChoice, checkOptions, listOptionNames } from "../base/options.ts";
import type { World } from "../base/world.ts";
import type { ConversationMessageKind } from "../checkpoint/inbox-message.ts";
import type { Store } from "../checkpoint/store.ts";
import { checkThread } from "../checkpoint/thread-rules.ts";
import type { Graph } from "../compile/graph.ts";
import { getPlan } from "../compile/plan.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import type { GraphTypes } from "../define/graph.ts";
import { checkConversation, postMessages, toMessages } from "../run/session/inbox/inbox.ts";
import type { InboxInput } from "../run/session/inbox/inbox-input.ts";
import { checkCodecOption, checkStoreOption, checkWorldOption } from "../run/session/options/check-run-options.ts";
import { getCodec, getWorld } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";

/** Options of `steer`. */
export interface SteerOptions {
  /** Store of the thread. */
  readonly store: Store;
  /** Id of the thread. */
  readonly thread: string;
  /** Default: the thread's head branch. */
  readonly branch?: string;
  /** Text, or messages with the role user or system. */
  readonly input: InboxInput;
  /** `steer` (default) delivers at the next boundary, `followUp` when the run would otherwise end. */
  readonly kind?: ConversationMessageKind;
  /**
   * Id of the inbox message. A repeated call with the id of a message that waits, or that an unfinished run has
   * received, adds nothing. Default: a random id.
   */
  readonly id?: string;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
  /** Codec of values other than plain data, as in the run. Default: plain data and built-in types. */
  readonly codec?: Codec;
}

const names = listOptionNames<SteerOptions>({
  store: true,
  thread: true,
  branch: true,
  input: true,
  kind: true,
  id: true,
  world: true,
  codec: true,
});

/**
 * Adds messages to the inbox of a thread; durable when the promise resolves. The active run, in any process, receives
 * the messages at its next boundary; without an active run, or when the run ends first, the next run of the thread
 * does. Rejects with `unknown_thread`, `unknown_branch`, `graph_changed` for a thread of another graph,
 * `invalid_input` for messages of other roles than user and system, `invalid_option` for a graph without the channel
 * `messages`.
 */
export async function steer<Types extends GraphTypes>(graph: Graph<Types>, options: SteerOptions): Promise<void> {
  checkGraphOption("steer", graph);
  checkOptions("steer", options, names);
  const { store, branch, input, kind = "steer", id } = options;
  checkStoreOption("steer", store ?? null);
  checkWorldOption("steer", options.world);
  if (branch !== undefined) checkId("branch", branch);
  if (id !== undefined) checkId("message", id);
  checkCodecOption("steer", options.codec);
  checkChoice("steer", { kind }, ["steer", "followUp"]);
  const thread = checkId("thread", options.thread);
  checkConversation(getPlan(graph as Graph));
  const known = await store.thread(thread);
  if (known !== undefined) checkThread(known, graph);
  const world = getWorld(options);
  await postMessages({ store, codec: getCodec(options), thread, branch }, world, {
    kind,
    messages: toMessages(input, world),
    ...(id === undefined ? {} : { id }),
  });
}
