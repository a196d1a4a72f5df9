/**
 * `once` effects of other branches. A fork starts at a checkpoint as if no later checkpoint existed, but a `once`
 * effect after that checkpoint on another branch has still happened (rule E44). Before a branch performs a `once`
 * effect, the journals of its sibling branches are searched: branches with the same root branch, at the same step and
 * in the same namespace.
 */

import { type EffectRow, isInFlight } from "../../checkpoint/journal.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Migration } from "../../compile/migration.ts";
import type { ActiveThread, Persistence } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";

/** A `once` effect that started or finished on another branch. */
export interface PriorEffect {
  readonly branch: string;
  /** The branch, or a child namespace of the branch. */
  readonly namespace: string;
  readonly row: EffectRow;
}

/** Sibling branches of the active thread's branch; empty for most threads. */
const siblingBranches: WeakMap<ActiveThread, Promise<readonly string[]> | readonly string[]> = new WeakMap();

/** Prior effects in the sibling journals of the current step; read again at the next step. */
const siblingJournals: WeakMap<Persistence, { readonly step: number; readonly rows: Promise<readonly PriorEffect[]> }> =
  new WeakMap();

/**
 * Finds the `once` effects of the current step on other branches. Returns undefined synchronously when the session
 * repeats effects or the thread is known to have a single branch.
 */
export function findPriorEffects(
  env: RunEnvironment,
  position: Position,
  saved: Persistence,
): Promise<readonly PriorEffect[]> | undefined {
  return hasNoPriorEffects(env, saved) ? undefined : loadPriorEffects(env, position, saved);
}

/** Returns true if the session is known to have no `once` effects on other branches, without a read. */
export function hasNoPriorEffects(env: RunEnvironment, { thread, claim }: Persistence): boolean {
  if (env.onPriorEffect === "repeat") return true;
  const known = siblingBranches.get(thread);
  if (known !== undefined) return Array.isArray(known) && known.length === 0;
  // Without a checkpoint at the claim, no branch had a checkpoint either.
  if (claim.nextCheckpoint > 1 && claim.loaded?.isOnlyBranch !== true) return false;
  siblingBranches.set(thread, []);
  return true;
}

async function loadPriorEffects(
  env: RunEnvironment,
  position: Position,
  saved: Persistence,
): Promise<readonly PriorEffect[]> {
  const branches = await getSiblingBranches(position, saved);
  if (branches.length === 0) return [];
  const { step } = position;
  let known = siblingJournals.get(saved);
  if (known?.step !== step) {
    known = { step, rows: readSiblingJournals(env, position, saved, branches) };
    siblingJournals.set(saved, known);
  }
  return await known.rows;
}

async function getSiblingBranches(
  { run: { thread, branch } }: Position,
  saved: Persistence,
): Promise<readonly string[]> {
  const known = siblingBranches.get(saved.thread) ?? findSiblingBranches(saved.store, thread, branch);
  siblingBranches.set(saved.thread, known);
  const found = await known;
  siblingBranches.set(saved.thread, found);
  return found;
}

/** Finds the other branches of a thread with the same root branch. */
export async function findSiblingBranches(
  store: Pick<Store, "branches" | "checkpoint">,
  thread: string,
  branch: string,
): Promise<readonly string[]> {
  const branches = await store.branches(thread);
  if (branches.length < 2) return [];
  const origins = new Map<string, string | undefined>();
  for (const { name, from } of branches)
    origins.set(
      name,
      from === undefined ? undefined : ((await store.checkpoint(thread, from))?.branch ?? unknownOrigin),
    );
  const findRootBranch = (name: string): string => {
    const origin = origins.get(name);
    return origin === undefined ? name : findRootBranch(origin);
  };
  const ownRoot = findRootBranch(branch);
  return branches.flatMap(({ name }) => {
    const otherRoot = findRootBranch(name);
    return name !== branch && (otherRoot === ownRoot || otherRoot === unknownOrigin || ownRoot === unknownOrigin)
      ? [name]
      : [];
  });
}

/** Origin of a branch whose first checkpoint was deleted: any other branch may be a sibling. */
const unknownOrigin = "";

/**
 * Reads the sibling journals. A nested graph has the same namespace on every branch after the branch name, or one of
 * its previous names.
 */
async function readSiblingJournals(
  env: RunEnvironment,
  position: Position,
  { store }: Persistence,
  branches: readonly string[],
): Promise<readonly PriorEffect[]> {
  const { run, step } = position;
  const found: PriorEffect[] = [];
  for (const suffix of listNamespaceHistory(env, position))
    for (const branch of branches)
      for (const row of await store.effects(run.thread, branch + suffix, step))
        if (row.effect === "once" && (row.outcome !== undefined || isInFlight(row)))
          found.push({ branch, namespace: branch + suffix, row });
  return found;
}

/**
 * Selects the most conclusive record of an effect: a record with an outcome, else the latest start. Earlier starts
 * were already put to a person as interrupts.
 */
export function selectPriorEffect(found: readonly PriorEffect[]): PriorEffect | undefined {
  const [first, ...others] = found;
  if (first === undefined) return undefined;
  const last = others.reduce((latest, other) => (other.row.startedAt >= latest.row.startedAt ? other : latest), first);
  return found.find(({ row }) => row.outcome !== undefined) ?? last;
}

/**
 * Describes the prior effects of an interrupt. The answer does not apply to a later start or to an outcome recorded
 * since.
 */
export function describePriorEffects(found: readonly PriorEffect[]): string {
  return found.map(({ namespace, row: { state, startedAt } }) => `${namespace} ${state} ${startedAt}`).join(", ");
}

/** A level of nesting: the node or tool that runs the graph, and its segment of the namespace. */
interface NestingLevel {
  readonly holder: string;
  readonly segment: string;
}

/**
 * Lists the session's namespace below its branch, current name first, then each name before a migration. Each segment
 * has a leading slash.
 */
function listNamespaceHistory({ versions }: RunEnvironment, { namespace, run, nesting }: Position): readonly string[] {
  const current = namespace.slice(run.branch.length);
  if (nesting === undefined || versions.migrations.length === 0) return [current];
  const segments = current.split("/").slice(1);
  const found = new Map([
    [current, nesting.path.map((holder, index): NestingLevel => ({ holder, segment: segments[index] ?? "" }))],
  ]);
  // The loop also visits namespaces found on the way: several migrations may rename the same node.
  for (const levels of found.values())
    for (const migration of versions.migrations)
      for (const previous of listPreviousLevels(levels, migration))
        found.set(previous.map(({ segment }) => `/${segment}`).join(""), [...previous]);
  return [...found.keys()];
}

function listPreviousLevels(
  levels: readonly NestingLevel[],
  migration: Migration | undefined,
): readonly (readonly NestingLevel[])[] {
  const [level, ...innerLevels] = levels;
  if (level === undefined) return [[]];
  const { holder, segment } = level;
  const renamed = Object.entries(migration?.nodes ?? {}).flatMap(([old, current]) => (current === holder ? [old] : []));
  return [holder, ...renamed].flatMap((old) =>
    listPreviousLevels(innerLevels, migration?.inner[old]).map((rest) => [
      { holder: old, segment: segment === holder ? old : segment },
      ...rest,
    ]),
  );
}
