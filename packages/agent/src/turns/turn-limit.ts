/** Turn limit of an agent, against endless and expensive tool loops. */
import type { Middleware, TurnLimit } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { hasTurnCount, type StopWhen } from "../agent/stop-when.ts";
import { isBudget } from "../budget/is-budget.ts";

/** Default maximum of model calls per user input. */
const defaultTurns = 50;

/** Creates a turn limit; undefined for Infinity. */
export function createTurnLimit(turns: number): TurnLimit | undefined {
  return turns === Number.POSITIVE_INFINITY
    ? undefined
    : buildTurnLimit(turns, `the limit of ${turns} turns is reached`);
}

/** Returns the default turn limit; undefined for agents with a budget or a turn-counting condition. */
export function getDefaultTurnLimit(
  middleware: readonly Middleware[],
  stopWhen: StopWhen<never> | undefined,
): TurnLimit | undefined {
  return middleware.some(isBudget) || hasTurnCount(stopWhen) ? undefined : defaultTurnLimit;
}

/** Throws `invalid_option` for an invalid turn limit. */
export function checkMaxTurns(owner: string, maxTurns: unknown): void {
  if (maxTurns === undefined || maxTurns === Number.POSITIVE_INFINITY) return;
  if (typeof maxTurns === "number" && Number.isInteger(maxTurns) && maxTurns >= 1) return;
  throw invalidOption({
    where: owner,
    option: "maxTurns",
    expected: "an integer ≥ 1 or Infinity",
    got: maxTurns,
    fix: "Use an integer ≥ 1, or Infinity for no limit",
  });
}

function buildTurnLimit(turns: number, reason: string): TurnLimit {
  return Object.freeze({
    turns,
    text: `I stop here: the limit of ${turns} turns is reached. Tell me how to continue.`,
    ended: Object.freeze({ by: "maxTurns", reason }),
  });
}

const defaultTurnLimit: TurnLimit = buildTurnLimit(
  defaultTurns,
  `the default limit of ${defaultTurns} turns is reached; set maxTurns of the agent to change it`,
);
