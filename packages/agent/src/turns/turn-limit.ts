/** The limit of turns of an agent: one that spins on tool calls for ever would cost money for ever. */
import { type Middleware, StatewrightError, type TurnLimit } from "@statewright/core";
import { countsTurns, type StopWhen } from "../agent/stop-when.ts";
import { limitsSpending } from "../budget/is-budget.ts";

/** As often as the model of an agent is asked between two words of people, where nothing else limits that. */
const usualTurns = 50;

/** The limit that an agent asks for; none for Infinity. */
export function turnLimit(turns: number): TurnLimit | undefined {
  return turns === Number.POSITIVE_INFINITY ? undefined : limitOf(turns, `the limit of ${turns} turns is reached`);
}

/** The limit of an agent that names none: none either where it has a budget of its own, or a condition that counts turns. */
export function usualTurnLimit(
  middleware: readonly Middleware[],
  stopWhen: StopWhen<never> | undefined,
): TurnLimit | undefined {
  return middleware.some(limitsSpending) || countsTurns(stopWhen) ? undefined : usual;
}

/** Throws `invalid_option` for what is no limit of turns. */
export function checkMaxTurns(owner: string, maxTurns: unknown): void {
  if (maxTurns === undefined || maxTurns === Number.POSITIVE_INFINITY) return;
  if (typeof maxTurns === "number" && Number.isInteger(maxTurns) && maxTurns >= 1) return;
  throw new StatewrightError("invalid_option", {
    what: `maxTurns of ${owner} is ${JSON.stringify(maxTurns)}`,
    next: "Give a whole number from 1, or Infinity for no limit",
  });
}

function limitOf(turns: number, reason: string): TurnLimit {
  return Object.freeze({
    turns,
    text: `I stop here: the limit of ${turns} turns is reached. Say how to go on, and I do.`,
    ended: Object.freeze({ by: "maxTurns", reason }),
  });
}

const usual: TurnLimit = limitOf(
  usualTurns,
  `the default limit of ${usualTurns} turns is reached; maxTurns of the agent says another`,
);
