/** `previewFork`: the effects that a fork would perform again, before it is made. */

import { type ErrorRecord, isStatewrightError, toErrorRecord } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { checkCount } from "../../base/options.ts";
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import { isInFlight } from "../../checkpoint/journal.ts";
import type { Store } from "../../checkpoint/store.ts";
import { checkWriter } from "../../checkpoint/thread-rules.ts";
import type { Graph } from "../../compile/graph.ts";
import type { GraphTypes } from "../../define/graph.ts";
import { applyForkUpdate } from "../../resume/fork.ts";
import { findSiblingBranches } from "../../run/journal/prior-effects.ts";
import { checkPriorEffectOption } from "../../run/session/options/check-run-options.ts";
import type { OnPriorEffect } from "../../run/session/options/options.ts";
import { createGuardedCodec, plainCodec } from "../../state/codec.ts";
import { type BranchEffect, getEffectIdentity, loadBranchWork } from "./branch-work.ts";
import { type BranchEffectRow, toEffectRow } from "./compare-branches.ts";
import { findCheckpoint } from "./find-checkpoint.ts";
import { splitNamespace } from "./superstep-summary.ts";
import { type ReadOptions, readThread, type ThreadReader } from "./thread-reader.ts";

/** Options of `previewFork`. */
export interface PreviewForkOptions<Types extends GraphTypes = GraphTypes> extends ReadOptions {
  /** Checkpoint id that the fork would start from. */
  readonly at: number;
  /** State update of the fork; checked only with a graph. */
  readonly update?: Types["update"];
  /** Graph of the checkpoint: checks that the fork would be accepted. */
  readonly graph?: Graph<Types>;
  /** Rule of the run on the fork for `once` effects of other branches. Default `ask`. */
  readonly onPriorEffect?: OnPriorEffect;
}

/** Effects of a fork that takes the path of the existing branches. */
export interface ForkPreview {
  /** With a graph: true when `fork` would accept the checkpoint and the update, otherwise its error. */
  readonly fits?: true | ErrorRecord;
  /** Effects that would be performed again. */
  readonly again: readonly BranchEffectRow[];
  /** `once` effects for which the run would ask a person first. */
  readonly asks: readonly BranchEffectRow[];
  /** `once` effects whose recorded outcome would be used, with `onPriorEffect: "reuse"`. */
  readonly reused: readonly BranchEffectRow[];
  /** Number of effects up to the checkpoint, whose results are in the state of the fork. */
  readonly kept: number;
}

const optionNames = ["at", "update", "graph", "onPriorEffect"];

/**
 * Previews a fork. The effects after the checkpoint on its own branch, and `once` effects of the same steps on all
 * branches with the same origin, are sorted by what the run of the fork would do: a fork with another path meets
 * others.
 *
 * @throws `unknown_thread`, `unknown_checkpoint`, `invalid_option`, and errors of the store.
 * @example
 * const { again, asks } = await previewFork(store, { thread: "support-7", at: 4 });
 */
export async function previewFork<Types extends GraphTypes>(
  store: Store,
  options: PreviewForkOptions<Types>,
): Promise<ForkPreview> {
  checkCount("previewFork", { at: options?.at ?? null }, 0);
  checkPriorEffectOption("previewFork", options.onPriorEffect);
  const call = { call: "previewFork", store, options: options as PreviewForkOptions, optionNames };
  return await readThread(call, async (reader) => {
    const { at, graph, onPriorEffect = "ask" } = options;
    const row = await findCheckpoint("previewFork", reader, { at });
    const { branch } = splitNamespace(row.branch);
    const own = (await loadBranchWork(reader, branch, { checkpoint: row.id })).effects;
    const siblings = await findSiblingBranches(reader.reads, reader.thread, branch);
    const others: BranchEffect[] = [];
    for (const sibling of siblings)
      others.push(...(await loadBranchWork(reader, sibling, { step: row.step })).effects.filter(isPriorEffect));
    const all = new Map([...own, ...others].map((each) => [getEffectIdentity(each), each]));
    const decisions = [...all.values()].map((each) => ({ each, decision: decide(each, onPriorEffect) }));
    const select = (decision: Decision): readonly BranchEffectRow[] =>
      decisions.filter((each) => each.decision === decision).map(({ each }) => toEffectRow(reader, each));
    const ownIdentities = new Set(own.map(getEffectIdentity));
    const whole = (await loadBranchWork(reader, branch, { checkpoint: 0 })).effects;
    return deepFreeze({
      ...(graph === undefined ? {} : { fits: await checkFit(reader, row, options, graph) }),
      again: select("again"),
      asks: select("asks"),
      reused: select("reused"),
      kept: whole.filter((each) => !ownIdentities.has(getEffectIdentity(each))).length,
    });
  });
}

async function checkFit<Types extends GraphTypes>(
  { reads, thread, threadRow }: ThreadReader,
  row: CheckpointRow,
  { update, codec = plainCodec }: PreviewForkOptions<Types>,
  graph: Graph<Types>,
): Promise<true | ErrorRecord> {
  const guarded = createGuardedCodec(codec);
  try {
    checkWriter(threadRow, row, guarded, graph);
    const request = { store: reads, thread, ...(update === undefined ? {} : { update }) };
    await applyForkUpdate(graph as Graph, request, row, { codec: guarded, now: row.at });
    return true;
  } catch (thrown) {
    if (isStatewrightError(thrown)) return toErrorRecord(thrown);
    throw thrown;
  }
}

type Decision = "again" | "asks" | "reused";

/** Returns true for an effect that other branches take into account. */
function isPriorEffect({ row }: BranchEffect): boolean {
  return row.effect === "once" && (row.outcome !== undefined || isInFlight(row));
}

function decide(effect: BranchEffect, rule: OnPriorEffect): Decision {
  if (!isPriorEffect(effect) || rule === "repeat") return "again";
  return rule === "reuse" && effect.row.outcome !== undefined ? "reused" : "asks";
}
