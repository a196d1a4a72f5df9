/** Marks budget middleware: an agent with a budget has no default turn limit. */
import type { Middleware } from "@statewright/core";

const budgets: WeakSet<Middleware> = new WeakSet();

/** Marks middleware as a budget. */
export function markAsBudget(middleware: Middleware): Middleware {
  budgets.add(middleware);
  return middleware;
}

/** True for middleware marked as a budget. */
export function isBudget(middleware: Middleware): boolean {
  return typeof middleware === "object" && middleware !== null && budgets.has(middleware);
}
