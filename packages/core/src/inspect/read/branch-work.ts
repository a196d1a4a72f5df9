/** Journal rows and interrupts of a branch from a step on, including the inner graphs. */

import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { isNamespaceWithin } from "../../checkpoint/rules.ts";
import { removeBranchPrefix } from "../../checkpoint/thread-rules.ts";
import { type BranchPart, listBranchParts } from "./list-timeline.ts";
import { splitNamespace } from "./superstep-summary.ts";
import type { ThreadReader } from "./thread-reader.ts";

/** Journal row of a branch, with its place in the branch. */
export interface BranchEffect {
  /** Namespace below the branch: `""` for the branch itself, `/2:0` for an inner graph. */
  readonly suffix: string;
  readonly row: EffectRow;
}

/** Work of a branch. */
export interface BranchWork {
  readonly effects: readonly BranchEffect[];
  readonly interrupts: readonly { readonly suffix: string; readonly row: InterruptRow }[];
}

/** Identity of an effect on every branch: a fork repeats the ids of the tasks. */
export function getEffectIdentity({ suffix, row: { step, task, key } }: BranchEffect): string {
  return JSON.stringify([suffix, step, task, key]);
}

/** Identity of an interrupt on every branch: its id without the prefix of the branch. */
export function getInterruptIdentity({ suffix, row }: BranchWork["interrupts"][number]): string {
  return `${suffix} ${removeBranchPrefix(row.id, splitNamespace(row.branch).branch)}`;
}

/** Beginning of the work: a checkpoint of the branch, or a step of any branch with the same origin. */
export type WorkStart = { readonly checkpoint: number } | { readonly step: number };

/**
 * Loads the work of a branch from a place on, including the pending step of a checkpoint. Parts of ancestors end at
 * their forks: the work of a step that a fork continues belongs to the fork.
 */
export async function loadBranchWork(reader: ThreadReader, branch: string, start: WorkStart): Promise<BranchWork> {
  const { reads, thread } = reader;
  const parts = (await listBranchParts(reads, thread, branch)).filter(
    ({ until }) => !("checkpoint" in start) || until > start.checkpoint,
  );
  const children = (await reads.namespaces(thread, "child")).map(({ name }) => name);
  const effects = new Map<string, BranchEffect>();
  const interrupts = new Map<string, BranchWork["interrupts"][number]>();
  for (const part of parts) {
    for (const name of [
      part.name,
      ...children.filter((each) => each !== part.name && isNamespaceWithin(each, part.name)),
    ]) {
      const suffix = name.slice(part.name.length);
      const isIncluded = await createStepFilter(reader, { name, suffix, until: part.until }, start);
      for (const row of await reads.effects(thread, name)) {
        const identity = getEffectIdentity({ suffix, row });
        if (isIncluded(row.step) && !effects.has(identity)) effects.set(identity, { suffix, row });
      }
      for (const row of await reads.interrupts(thread, name))
        if (isIncluded(row.step) && !interrupts.has(getInterruptIdentity({ suffix, row })))
          interrupts.set(getInterruptIdentity({ suffix, row }), { suffix, row });
    }
  }
  return { effects: [...effects.values()], interrupts: [...interrupts.values()] };
}

/** Returns a filter of the steps of a namespace. An inner graph counts its own steps. */
async function createStepFilter(
  { reads, thread }: ThreadReader,
  { name, suffix, until }: Pick<BranchPart, "name" | "until"> & { readonly suffix: string },
  start: WorkStart,
): Promise<(step: number) => boolean> {
  const getStepAt = async (checkpoint: number): Promise<number | undefined> => {
    const [row] = await reads.history(thread, { branch: name, before: checkpoint + 1, limit: 1 });
    return row?.step;
  };
  const last = until === Number.MAX_SAFE_INTEGER ? undefined : ((await getStepAt(until)) ?? 0);
  const isBeforeFork = (step: number): boolean => last === undefined || step < last;
  if ("checkpoint" in start) {
    const first = (await getStepAt(start.checkpoint)) ?? 0;
    return (step) => step >= first && isBeforeFork(step);
  }
  // The namespace of a call begins with the step of the task.
  const callStep = /^\/(\d+):/.exec(suffix)?.[1];
  if (suffix === "") return (step) => step >= start.step && isBeforeFork(step);
  return (step) => (callStep === undefined || Number(callStep) >= start.step) && isBeforeFork(step);
}
