/** Channel of a budget's spending. */
import { type Channel, channel, type Schema } from "@statewright/core";
import { createGuardSchema } from "@statewright/core/adapter";
import { addSpending, type BudgetSpent, budgetKinds, createEmptySpent, type Spending } from "./budget-spent.ts";

/**
 * Creates a new channel per budget, because ledgers identify a budget by its channel. A budget per run resets with
 * each run.
 */
export function createBudgetChannel(per: "run" | "thread"): Channel<BudgetSpent, Spending> {
  return channel.reduce(spentSchema, (spent, entry: Spending) =>
    addSpending(per === "run" && spent.run !== entry.run ? createEmptySpent(entry.run) : spent, entry),
  ) as Channel<BudgetSpent, Spending>;
}

const spentSchema: Schema<BudgetSpent | undefined, BudgetSpent> = createGuardSchema(
  "the spending of a budget",
  isBudgetSpent,
  createEmptySpent(""),
);

function isBudgetSpent(value: unknown): value is BudgetSpent {
  return (
    typeof value === "object" &&
    value !== null &&
    budgetKinds.every((kind) => Number.isFinite(Reflect.get(value, kind)))
  );
}
