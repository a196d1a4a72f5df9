/** The program of docs/budgets.md. */
import {
  type Agent,
  agentTool,
  createAgent,
  defineState,
  type Model,
  type OpenInterrupt,
  type Store,
  type Tool,
} from "statewright";
import { type BudgetInterrupt, budget } from "statewright/middleware";

/** An agent with a limit of every kind. */
export function limited(model: Model, tools: readonly Tool[]) {
  return createAgent({
    name: "clerk",
    model,
    tools,
    middleware: [budget({ turns: 20, toolCalls: 50, tokens: 200_000, wallMs: 10 * 60_000 })],
  });
}

/** An agent with limits of turns and tool calls only. */
export function short(model: Model, tools: readonly Tool[]) {
  return createAgent({ name: "clerk", model, tools, maxTurns: 10 });
}

/** A monthly budget in money. */
export function paid(model: Model, tools: readonly Tool[]) {
  const prices = {
    "anthropic/claude-sonnet-4-5": { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
    "anthropic/claude-haiku-4-5": { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 },
  };
  return createAgent({
    name: "clerk",
    model,
    tools,
    middleware: [budget({ name: "money", per: "thread", cost: 2.5, prices, warnAt: 0.8, onExceeded: "ask" })],
  });
}

/** Asks a person at the limit, and continues. */
export async function extended(clerk: Agent, store: Store, decide: (shown: BudgetInterrupt) => boolean) {
  const result = await clerk.run({ store, thread: "t", input: "Sort the mail." }).result;
  if (result.status !== "waiting") return result;
  const answers = Object.fromEntries(
    result.interrupts.map(({ id, payload }: OpenInterrupt) => [
      id,
      decide(payload as BudgetInterrupt) ? { cost: 1 } : false,
    ]),
  );
  return clerk.resume({ store, thread: "t", answers }).result;
}

/** One budget for a lead and its researchers. */
export function team(lead: Model, researcher: Model) {
  const research = createAgent({ name: "research", model: researcher });
  return createAgent({
    name: "lead",
    model: lead,
    tools: [agentTool(research, { description: "Finds out one thing." })],
    middleware: [budget({ turns: 30, tokens: 500_000 })],
  });
}

/** Returns the spending from a channel of the agent's state. */
export async function counted(model: Model, tools: readonly Tool[]) {
  const money = budget({ name: "money", per: "thread", turns: 500 });
  const clerk = createAgent({
    name: "clerk",
    model,
    tools,
    state: defineState({ ...money.channels }),
    middleware: [money],
  });
  const { state } = await clerk.run({ input: "Sort the mail." }).result;
  return state.moneySpent.turns;
}
