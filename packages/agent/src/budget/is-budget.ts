/** Which middleware is a budget: an agent that has one says by itself how much it may spend. */
import type { Middleware } from "@statewright/core";

const budgets: WeakSet<Middleware> = new WeakSet();

/** Remember that this is a budget. */
export function asBudget(middleware: Middleware): Middleware {
  budgets.add(middleware);
  return middleware;
}

/** Whether it limits what an agent spends. */
export function limitsSpending(middleware: Middleware): boolean {
  return typeof middleware === "object" && middleware !== null && budgets.has(middleware);
}
