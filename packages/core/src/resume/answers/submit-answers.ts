/** `submitAnswers`: saves answers to interrupts, for an engine that continues the run. */
import { checkId } from "../../base/ids.ts";
import { checkOptions, listOptionNames } from "../../base/options.ts";
import type { Graph } from "../../compile/graph.ts";
import type { GraphTypes } from "../../define/graph.ts";
import type { GraphCallOptions, RunResult, SubmitAnswersOptions } from "../../run/session/options/options.ts";
import { engine } from "../engine.ts";

const names = listOptionNames<SubmitAnswersOptions<GraphTypes>>({
  ...{ thread: true, store: true, branch: true, context: true, answers: true, by: true, key: true },
  ...{ world: true, codec: true, migrations: true, older: true },
});

/** Outcome of `submitAnswers`. */
export interface SubmittedAnswers {
  readonly thread: string;
  /** Id of the run whose interrupts were answered. */
  readonly run: string;
  /**
   * `paused`: an engine continues the run with the answers. For a known key the outcome of the run, and `delivered` for
   * a durable machine at work.
   */
  readonly status: RunResult<unknown>["status"];
}

/**
 * Saves answers to open interrupts and starts no node: an engine of the store, in this process or another, continues
 * the run. Checks the answers, and needs a context that fits the graph, as `resume` does; needs no secrets. Rejects with
 * `unknown_thread`, `thread_busy`, `unknown_interrupt`, `ambiguous_answer`, `already_answered`, `interrupt_expired`,
 * `invalid_answer`, `invalid_context`, `invalid_option` and errors of the store.
 *
 * @example
 * ```ts
 * const { status } = await submitAnswers(orders, { store, thread: "order-7", answers: { approve: true }, by: "Kim" });
 * ```
 */
export async function submitAnswers<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: GraphCallOptions<Types>["submitAnswers"],
): Promise<SubmittedAnswers> {
  checkOptions("submitAnswers", options, names);
  const { store, world, codec, migrations, older = [], ...answering } = options as SubmitAnswersOptions<GraphTypes>;
  const thread = checkId("thread", answering.thread);
  const front = engine({
    store,
    graphs: [graph as Graph, ...older],
    ...(world === undefined ? {} : { world }),
    ...(codec === undefined ? {} : { codec }),
    ...(migrations === undefined ? {} : { migrations }),
  });
  const handle = front.resume(graph as Graph, answering);
  const [{ status }] = await Promise.all([handle.result, front.stop({ now: true })]);
  return { thread, run: await handle.run, status };
}
