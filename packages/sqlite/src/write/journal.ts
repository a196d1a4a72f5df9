/** Journal of namespaces: effects of a commit, in rows of their own or folded into the next checkpoint. */

import { type Commit, type EffectRow, type NamespaceJournal, storeRules } from "@statewright/core/store";
import { isFoldable, type ThreadCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Reader } from "../read/reader.ts";
import type { EffectRows } from "../rows/effect-rows.ts";
import type { NamespaceRows } from "../rows/namespace-rows.ts";
import { foldedEffectSum } from "../rows/row-sums.ts";
import { type ClaimedThread, cacheNamespace, type NamespaceState } from "./claimed-thread.ts";

/** Step folded by a checkpoint. */
export interface Fold {
  /** Undefined when the commit folds no step. */
  readonly step: number | undefined;
  /** Effects of the step if none needs a row of its own; undefined otherwise, or if the step already has rows. */
  readonly effects: readonly EffectRow[] | undefined;
}

const noFold: Fold = { step: undefined, effects: undefined };

function prepareStatements(db: Database) {
  return {
    dropTasks: db.prepare<[number, number]>(
      "DELETE FROM effects WHERE branch = ? AND step = ? AND kind = 'task' AND effect <> 'once'",
    ),
    dropOutcomes: db.prepare<[number, number]>(
      "UPDATE effects SET outcome = NULL, sum = " +
        foldedEffectSum +
        " WHERE branch = ? AND step = ? AND effect <> 'once'",
    ),
  };
}

/** Writes journals; call inside a transaction. */
export class Journal {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #reader: Reader;
  readonly #effects: EffectRows;
  readonly #namespaces: NamespaceRows;

  constructor(
    db: Database,
    {
      reader,
      effects,
      namespaces,
    }: { readonly reader: Reader; readonly effects: EffectRows; readonly namespaces: NamespaceRows },
  ) {
    this.#sql = prepareStatements(db);
    this.#reader = reader;
    this.#effects = effects;
    this.#namespaces = namespaces;
  }

  /** Writes an effect, replacing an existing row. */
  put(cipher: ThreadCipher | undefined, { key, name }: NamespaceState, effect: EffectRow): void {
    this.#effects.put({ namespace: { key, name }, cipher }, effect);
  }

  /**
   * Writes the effects of a commit, except effects stored in the row of the folding checkpoint. Returns the state of
   * the namespace with its journal.
   */
  write(
    cipher: ThreadCipher | undefined,
    state: NamespaceState,
    effects: readonly EffectRow[] | undefined,
    fold: Fold,
  ): NamespaceState {
    let next: NamespaceState = state;
    for (const effect of effects ?? []) {
      if (effect.step !== fold.step) {
        this.put(cipher, state, effect);
        next = addToJournal(next, effect);
      } else if (fold.effects === undefined && !isFoldedTask(effect, state))
        this.put(cipher, state, removeOutcome(effect));
    }
    return next;
  }

  /** Removes the rows and outcomes of a folded step that are useless after the fold. */
  dropFolded(namespace: number, step: number): void {
    this.#sql.dropTasks.run(namespace, step);
    this.#sql.dropOutcomes.run(namespace, step);
  }

  /** Writes journal rows of an enclosing namespace of a commit. */
  writeParent(claimed: ClaimedThread, { namespace: name, effects }: NamespaceJournal): void {
    const state = claimed.namespaces.get(name) ?? this.#findState(claimed, name);
    if (state === undefined) throw storeRules.createUnknownBranchError(claimed.id, name);
    for (const effect of effects) this.put(claimed.cipher, state, effect);
    cacheNamespace(claimed, effects.reduce(addToJournal, state));
  }

  #findState(claimed: ClaimedThread, name: string): NamespaceState | undefined {
    const found = this.#reader.namespaces.find(claimed.id, name);
    if (found === undefined) return undefined;
    const head = this.#reader.checkpoints.getNamespaceHead(claimed.id, found.key);
    return this.#namespaces.createState(name, found.key, { head });
  }
}

/** Returns the step folded by a commit. */
export function selectFold(state: NamespaceState, { checkpoint, effects }: Commit): Fold {
  const { step } = state;
  if (checkpoint === undefined || step === undefined || checkpoint.row.step === step) return noFold;
  if (state.journal >= step) return { step, effects: undefined };
  const ofStep = (effects ?? []).filter((effect) => effect.step === step && !isFoldedTask(effect, state));
  return { step, effects: ofStep.every(isFoldable) ? ofStep : undefined };
}

/** Returns true for a task outcome that is useless after the fold of its step and has no row to remove. */
function isFoldedTask(
  { step, kind, effect }: EffectRow,
  { journal, hasFoldableRows }: Pick<NamespaceState, "journal" | "hasFoldableRows">,
): boolean {
  return kind === "task" && effect !== "once" && (journal < step || !hasFoldableRows);
}

/** Returns the state of a namespace with the journal row of an effect. */
function addToJournal(state: NamespaceState, { step, effect }: EffectRow): NamespaceState {
  const { journal, hasFoldableRows } = state;
  const isFoldable = effect !== "once";
  if (step > journal) return { ...state, journal: step, hasFoldableRows: isFoldable };
  return isFoldable && !hasFoldableRows ? { ...state, hasFoldableRows: true } : state;
}

/** Returns the effect without its outcome, which is useless after the fold of its step, unless it is once. */
function removeOutcome(effect: EffectRow): EffectRow {
  return effect.effect === "once" ? effect : { ...effect, outcome: undefined };
}
