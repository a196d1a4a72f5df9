/** Interrupt of a budget: the value shown to people, and the schema of the answer. */
import type { JsonObject, Schema } from "@statewright/core";
import { type BudgetKind, type BudgetLimits, type BudgetSpent, budgetKinds } from "./budget-spent.ts";

/** Answer at a limit: the amounts to add, `true` to add the whole limit again, `false` to end the agent. */
export type BudgetAnswer = boolean | BudgetLimits;

/** Interrupt value shown to people at a budget limit. */
export interface BudgetInterrupt {
  readonly budget: string;
  readonly per: "run" | "thread";
  /** Exhausted limit; `unknown` when tokens or cost of a model call are unknown. */
  readonly exceeded: BudgetKind | "unknown";
  readonly reason: string;
  readonly limits: BudgetLimits;
  readonly spent: BudgetSpent;
}

const answerJsonSchema: JsonObject = {
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

/** Schema of a budget answer. */
export const budgetAnswer: Schema<BudgetAnswer> = {
  "~standard": {
    version: 1,
    vendor: "statewright",
    validate: (value) => {
      if (typeof value === "boolean") return { value };
      if (typeof value !== "object" || value === null || Array.isArray(value)) return { issues: [invalidAnswerIssue] };
      const entries = Object.entries(value);
      const isValid = entries.every(
        ([kind, amount]) =>
          budgetKinds.includes(kind as BudgetKind) && typeof amount === "number" && amount > 0 && amount < Infinity,
      );
      return isValid && entries.length > 0 ? { value: value as BudgetLimits } : { issues: [invalidAnswerIssue] };
    },
    ...{ jsonSchema: { input: () => answerJsonSchema } },
  },
};

const invalidAnswerIssue: { readonly message: string } = {
  message: `expected true, false, or an object with the amounts to add: ${budgetKinds.join(", ")}`,
};
