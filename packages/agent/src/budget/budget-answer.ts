/** The question of a budget to a person: what it shows, and what may be answered. */
import type { JsonObject, Schema } from "@statewright/core";
import { type BudgetKind, type BudgetLimits, type BudgetSpent, budgetKinds } from "./budget-spent.ts";

/** A person's answer at a limit: how much more of what, `true` for as much again, `false` to end the agent. */
export type BudgetAnswer = boolean | BudgetLimits;

/** What people are shown at a limit. */
export interface BudgetQuestion {
  readonly budget: string;
  readonly per: "run" | "thread";
  /** What is used up; `unknown` where nobody knows what was spent. */
  readonly exceeded: BudgetKind | "unknown";
  readonly reason: string;
  readonly limits: BudgetLimits;
  readonly spent: BudgetSpent;
}

const shown: JsonObject = {
  anyOf: [
    { type: "boolean" },
    {
      type: "object",
      properties: Object.fromEntries(budgetKinds.map((kind) => [kind, { type: "number", exclusiveMinimum: 0 }])),
      additionalProperties: false,
      minProperties: 1,
    },
  ],
};

/** The schema of that answer. */
export const budgetAnswer: Schema<BudgetAnswer> = {
  "~standard": {
    version: 1,
    vendor: "statewright",
    validate: (value) => {
      if (typeof value === "boolean") return { value };
      if (typeof value !== "object" || value === null || Array.isArray(value)) return { issues: [notAnswer] };
      const given = Object.entries(value);
      const fits = given.every(
        ([kind, more]) =>
          budgetKinds.includes(kind as BudgetKind) && typeof more === "number" && more > 0 && more < Infinity,
      );
      return fits && given.length > 0 ? { value: value as BudgetLimits } : { issues: [notAnswer] };
    },
    ...{ jsonSchema: { input: () => shown } },
  },
};

const notAnswer: { readonly message: string } = {
  message: `expected true, false, or how much more: ${budgetKinds.join(", ")}`,
};
