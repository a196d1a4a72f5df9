/** The channel in which a budget keeps what was spent. */
import { type Channel, reduce, type Schema, schemaWhere } from "@statewright/core";
import { type BudgetSpent, budgetKinds, nothingSpent, type Spending, spentOf } from "./budget-spent.ts";

/** A channel of its own for each budget: ledgers know it by that. One of a run begins anew with each run. */
export function budgetChannel(per: "run" | "thread"): Channel<BudgetSpent, Spending> {
  return reduce(spentSchema, (before, entry: Spending) =>
    spentOf(per === "run" && before.run !== entry.run ? nothingSpent(entry.run) : before, entry),
  ) as Channel<BudgetSpent, Spending>;
}

const spentSchema: Schema<BudgetSpent | undefined, BudgetSpent> = schemaWhere(
  "what a budget has spent",
  isSpent,
  nothingSpent(""),
);

function isSpent(value: unknown): value is BudgetSpent {
  return (
    typeof value === "object" &&
    value !== null &&
    budgetKinds.every((kind) => Number.isFinite(Reflect.get(value, kind)))
  );
}
