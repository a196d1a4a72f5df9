/** `fork`: a named branch from any checkpoint, with an edited state; the original stays as it is. */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { systemWorld, type World } from "../base/world.ts";
import type { CheckpointRow } from "../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import { restoreState, stateWriter } from "../checkpoint/saved-state.ts";
import type { Store } from "../checkpoint/store.ts";
import type { Graph } from "../compile/define-graph.ts";
import { planOf } from "../compile/plan.ts";
import { START } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { readUpdate } from "../run/returns.ts";
import { foldEdit } from "../run/superstep.ts";
import { type Codec, plainCodec } from "../state/codec.ts";

/** What `fork` takes. */
export interface ForkOptions<Types extends GraphTypes> {
  readonly store: Store;
  readonly thread: string;
  /** The checkpoint to start from: a `checkpointId` of history. */
  readonly at: number;
  /** The name of the new branch. */
  readonly name: string;
  /** What is different on it, as a node would return it. */
  readonly update?: Types["update"];
  readonly world?: World;
  readonly codec?: Codec;
}

/**
 * Make a branch that goes on from a checkpoint; give it to `resume` as `branch`. Questions that were answered before
 * the checkpoint keep their answers, those after it are asked again. Throws `unknown_thread`, `unknown_checkpoint`,
 * `thread_exists` for a name that is taken, and what a bad update throws.
 */
export async function fork<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: ForkOptions<Types>,
): Promise<string> {
  const { store, at, world = systemWorld(), codec = plainCodec } = options;
  const thread = checkId("thread", options.thread);
  const branch = checkId("branch", options.name);
  const plan = planOf(graph as Graph);
  const from = await store.checkpoint(thread, at);
  if (from === undefined) throw unknownCheckpoint(thread, at);
  const saved = await store.state(thread, at);
  const before = Object.freeze(restoreState(graph.state.channels, codec, saved));
  const writes = options.update === undefined ? [] : readUpdate(plan, START, options.update);
  const { state, deltas } = foldEdit(plan, before, writes);
  const rows = stateWriter(graph.state.channels, codec, saved).rows(deltas, state);
  await store.branch({
    thread,
    branch,
    from: at,
    checkpoint: {
      row: {
        ...from,
        branch,
        parent: from.id,
        source: "fork",
        nodes: [],
        at: world.clock.now(),
        durationMs: 0,
        bytes: rows.reduce((sum, row) => sum + row.text.length, 0),
      },
      deltas: rows,
    },
    interrupts: await keptAnswers(store, thread, from),
  });
  return branch;
}

/** Answers given since the checkpoint, when it is still the newest of its branch; those to an older one are asked for again. */
async function keptAnswers(store: Store, thread: string, from: CheckpointRow): Promise<readonly InterruptRow[]> {
  const head = await store.head(thread, from.branch);
  if (head?.id !== from.id) return [];
  const asked = await store.interrupts(thread, from.branch);
  return asked.filter((row) => row.step === from.step && row.answer !== undefined);
}

function unknownCheckpoint(thread: string, at: number): StatewrightError {
  return new StatewrightError("unknown_checkpoint", {
    what: `the thread "${thread}" has no checkpoint ${at}`,
    next: "Take a checkpointId from history",
    place: { thread },
  });
}
