/** `compareBranches`: two branches of a thread since their common ancestor. */

import { deepFreeze } from "../../base/json.ts";
import { isSameValue } from "../../base/same-value.ts";
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { EffectSummaryRow, SuperstepRow } from "../../checkpoint/superstep.ts";
import { diffValues, type JsonPatchOp } from "../../state/json-patch.ts";
import {
  type BranchEffect,
  type BranchWork,
  getEffectIdentity,
  getInterruptIdentity,
  loadBranchWork,
} from "./branch-work.ts";
import { findCheckpoint, loadState } from "./find-checkpoint.ts";
import { type BranchPart, listBranchParts, listTimeline } from "./list-timeline.ts";
import { type SuperstepSummary, toSuperstepSummary } from "./superstep-summary.ts";
import { type ReadOptions, readThread, type ThreadReader } from "./thread-reader.ts";

/** Options of `compareBranches`. */
export interface CompareBranchesOptions extends ReadOptions {
  /** Name of the first branch. */
  readonly a: string;
  /** Name of the second branch. */
  readonly b: string;
}

/** Answer to one interrupt on two branches; a branch without an answer has no value. */
export interface AnswerDifference {
  /** Id of the interrupt on `a`; on `b` for an interrupt of `b` only. */
  readonly id: string;
  readonly key: string;
  readonly a?: unknown;
  readonly b?: unknown;
}

/** Effect of a branch. */
export interface BranchEffectRow extends EffectSummaryRow {
  /** Namespace of an inner graph below the branch, such as `2:0`; absent for the branch itself. */
  readonly namespace?: string;
}

/** Differences of two branches. */
export interface BranchComparison {
  /** Newest checkpoint that both branches have; absent for branches without a common one. */
  readonly ancestor?: number;
  /** First supersteps after the ancestor that differ in nodes or changes; a branch that ended before has none. */
  readonly first?: { readonly a?: SuperstepSummary; readonly b?: SuperstepSummary };
  /** Operations that turn the newest state of `a` into the newest state of `b`. */
  readonly state: readonly JsonPatchOp[];
  /** Interrupts since the ancestor with different answers. */
  readonly answers: readonly AnswerDifference[];
  /** Effects since the ancestor: the number that both branches recorded, and those of a branch. */
  readonly effects: {
    readonly shared: number;
    readonly onlyA: readonly BranchEffectRow[];
    readonly onlyB: readonly BranchEffectRow[];
  };
}

/**
 * Compares two branches since their common ancestor. Effects and interrupts are the same on both branches when
 * namespace, step, task and key are equal.
 *
 * @throws `unknown_thread`, `unknown_checkpoint` for a branch without a checkpoint, `invalid_option`, and errors of the
 * store.
 * @example
 * const { first, state } = await compareBranches(store, { thread: "support-7", a: "main", b: "retry" });
 */
export async function compareBranches(store: Store, options: CompareBranchesOptions): Promise<BranchComparison> {
  return await readThread({ call: "compareBranches", store, options, optionNames: ["a", "b"] }, async (reader) => {
    const { a, b } = options;
    const [headA, headB] = [
      await findCheckpoint("compareBranches", reader, { branch: a }),
      await findCheckpoint("compareBranches", reader, { branch: b }),
    ];
    const ancestor = await findAncestor(reader, { a, b, headA, headB });
    const start = { checkpoint: ancestor?.id ?? 0 };
    const [workA, workB] = [await loadBranchWork(reader, a, start), await loadBranchWork(reader, b, start)];
    const first = await findFirstDifference(reader, { a, b }, ancestor?.seq ?? 0);
    const state = diffValues(await loadState(reader, headA.id), await loadState(reader, headB.id));
    return deepFreeze({
      ...(ancestor === undefined ? {} : { ancestor: ancestor.id }),
      ...(first === undefined ? {} : { first }),
      state: state.map(({ op }) => op),
      answers: listAnswerDifferences(reader, workA, workB),
      effects: compareEffects(reader, workA.effects, workB.effects),
    });
  });
}

async function findAncestor(
  { reads, thread }: ThreadReader,
  { a, b, headA, headB }: BranchPair,
): Promise<CheckpointRow | undefined> {
  const partsB = new Map((await listBranchParts(reads, thread, b)).map((part) => [part.name, part]));
  for (const part of await listBranchParts(reads, thread, a)) {
    const other = partsB.get(part.name);
    if (other === undefined) continue;
    const until = Math.min(getEnd(part, headA), getEnd(other, headB));
    return await reads.checkpoint(thread, until);
  }
  return undefined;
}

/** Two branches with their newest checkpoints. */
interface BranchPair extends Pick<CompareBranchesOptions, "a" | "b"> {
  readonly headA: CheckpointRow;
  readonly headB: CheckpointRow;
}

function getEnd({ until }: BranchPart, { id }: CheckpointRow): number {
  return Math.min(until, id);
}

const pageSize = 50;

/** Compares the supersteps of both branches in order, without the copies that forks begin with. */
async function findFirstDifference(
  reader: ThreadReader,
  { a, b }: Pick<CompareBranchesOptions, "a" | "b">,
  after: number,
): Promise<BranchComparison["first"]> {
  const [ofA, ofB] = [streamSupersteps(reader, a, after), streamSupersteps(reader, b, after)];
  for (;;) {
    const [one, other] = [(await ofA.next()).value, (await ofB.next()).value];
    if (one === undefined && other === undefined) return undefined;
    if (one !== undefined && other !== undefined && (await isSameSuperstep(reader, one, other))) continue;
    return {
      ...(one === undefined ? {} : { a: toSuperstepSummary(reader.codec, one) }),
      ...(other === undefined ? {} : { b: toSuperstepSummary(reader.codec, other) }),
    };
  }
}

async function* streamSupersteps(
  { reads, thread }: ThreadReader,
  branch: string,
  start: number,
): AsyncGenerator<SuperstepRow, undefined, undefined> {
  for (let after = start; ; ) {
    const page = await listTimeline(reads, thread, { branch, after, limit: pageSize });
    for (const entry of page) {
      after = "superstep" in entry ? entry.superstep.checkpoint.seq : entry.durableEvent.seq;
      if (!("superstep" in entry)) continue;
      const { checkpoint, changes } = entry.superstep;
      const isCopy = checkpoint.source === "fork" && changes.length === 0;
      if (!isCopy && !checkpoint.branch.includes("/")) yield entry.superstep;
    }
    if (page.length < pageSize) return undefined;
  }
}

async function isSameSuperstep(reader: ThreadReader, one: SuperstepRow, other: SuperstepRow): Promise<boolean> {
  if (!isSameValue(one.checkpoint.nodes, other.checkpoint.nodes)) return false;
  if (one.checkpoint.source !== other.checkpoint.source || !isSameValue(sortChanges(one), sortChanges(other)))
    return false;
  return isSameValue(await loadTexts(reader, one), await loadTexts(reader, other));
}

function sortChanges({ changes }: SuperstepRow): readonly unknown[] {
  return changes.toSorted((one, other) => (one.channel < other.channel ? -1 : 1));
}

async function loadTexts({ reads, thread }: ThreadReader, { checkpoint }: SuperstepRow): Promise<unknown> {
  const { branch, id } = checkpoint;
  const [row] = await reads.history(thread, { branch, before: id + 1, limit: 1 });
  return Object.fromEntries((row?.deltas ?? []).map(({ channel, text }) => [channel, text]));
}

function listAnswerDifferences(
  { codec, redact }: ThreadReader,
  workA: BranchWork,
  workB: BranchWork,
): readonly AnswerDifference[] {
  const toAnswers = ({ interrupts }: BranchWork) =>
    new Map(interrupts.map((each) => [getInterruptIdentity(each), each.row]));
  const [ofA, ofB] = [toAnswers(workA), toAnswers(workB)];
  const differences: AnswerDifference[] = [];
  for (const place of new Set([...ofA.keys(), ...ofB.keys()])) {
    const [one, other] = [ofA.get(place), ofB.get(place)];
    const row = one ?? other;
    if (row === undefined || one?.answer === other?.answer) continue;
    differences.push({
      id: row.id,
      key: row.key,
      ...(one?.answer === undefined ? {} : { a: redact(codec.decode(one.answer)) }),
      ...(other?.answer === undefined ? {} : { b: redact(codec.decode(other.answer)) }),
    });
  }
  return differences;
}

function compareEffects(
  reader: ThreadReader,
  ofA: readonly BranchEffect[],
  ofB: readonly BranchEffect[],
): BranchComparison["effects"] {
  const [inA, inB] = [new Set(ofA.map(getEffectIdentity)), new Set(ofB.map(getEffectIdentity))];
  return {
    shared: [...inA].filter((each) => inB.has(each)).length,
    onlyA: ofA.filter((each) => !inB.has(getEffectIdentity(each))).map((each) => toEffectRow(reader, each)),
    onlyB: ofB.filter((each) => !inA.has(getEffectIdentity(each))).map((each) => toEffectRow(reader, each)),
  };
}

/** Returns an effect without outcome and arguments, redacted: a tool wrote its progress. */
export function toEffectRow({ redact }: ThreadReader, { suffix, row }: BranchEffect): BranchEffectRow {
  const { outcome: _outcome, args: _args, ...whole } = row;
  const summary = redact(whole);
  return suffix === "" ? summary : { ...summary, namespace: suffix.slice(1) };
}
