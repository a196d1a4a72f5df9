/** `steer`: say something to what a thread is doing, from anywhere that has its store. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { World } from "../base/world.ts";
import { checkThread } from "../checkpoint/check-writer.ts";
import type { LetterKind } from "../checkpoint/inbox-message.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import { planOf } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { checkCodec, checkGraph, checkStore } from "../run/session/check-run-options.ts";
import { type LetterInput, messagesOf, post, refuseDeaf } from "../run/session/inbox.ts";
import { codecOf, worldOf } from "../run/task/open-session.ts";
import type { Codec } from "../state/codec.ts";

/** What `steer` takes. */
export interface SteerOptions {
  readonly store: Store;
  readonly thread: string;
  /** The thread's head branch when absent. */
  readonly branch?: string;
  /** A text, or messages with the role user or system. */
  readonly input: LetterInput;
  /** `steer` (the default) comes in at the next boundary, `followUp` when the run would end otherwise. */
  readonly kind?: LetterKind;
  readonly world?: World;
  readonly codec?: Codec;
}

const names = optionNames<SteerOptions>({
  store: true,
  thread: true,
  branch: true,
  input: true,
  kind: true,
  world: true,
  codec: true,
});

/**
 * Put messages into the inbox of a thread; they are kept when the promise resolves. The run at work, here or in another
 * process, takes them in at its next boundary; where none is at work, or it ends before, the next run of the thread does.
 * Rejects with `unknown_thread`, `unknown_branch`, `graph_changed` for a thread of another graph, `invalid_input` for other
 * messages than those of users and the system, `invalid_option` for a graph without the channel `messages`.
 */
export async function steer<Types extends GraphTypes>(graph: Graph<Types>, options: SteerOptions): Promise<void> {
  checkGraph("steer", graph);
  checkOptions("steer", options, names);
  const { store, branch, input, kind = "steer" } = options;
  checkStore("steer", store);
  checkCodec("steer", options.codec);
  if (kind !== "steer" && kind !== "followUp") throw unfitKind(kind);
  const thread = checkId("thread", options.thread);
  refuseDeaf(planOf(graph as Graph));
  const known = await store.thread(thread);
  if (known !== undefined) checkThread(known, graph);
  const world = worldOf(options);
  await post({ store, codec: codecOf(options), thread, branch }, world, kind, messagesOf(input, world));
}

function unfitKind(kind: unknown): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the kind of steer is ${describeValue(kind)}`,
    next: 'Give "steer" or "followUp"',
  });
}
