/** Conditions that end an agent after tool results, before the next model call. */
import { listToolCalls, type Message } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import type { CountedTurns } from "../turns/agent-turn-kind.ts";

/** Argument of a stop condition. */
export interface StopInput<State = unknown> {
  readonly state: State;
  readonly messages: readonly Message[];
  /** Model calls since the input of the run. */
  readonly turns: number;
}

/**
 * Returns true to end the agent. Called after each set of tool results. Must be synchronous and depend only on its
 * argument, so that the decision is the same after a crash.
 */
export type StopCondition<State = unknown> = (input: StopInput<State>) => boolean;

/** A condition, or several; the agent ends when any condition returns true. */
export type StopWhen<State = unknown> = StopCondition<State> | readonly StopCondition<State>[];

/**
 * Creates a condition that ends the agent after `count` turns; tool calls of the last turn are answered. Throws
 * `invalid_option` when `count` is not an integer ≥ 1.
 */
export function turnCountIs(count: number): StopCondition {
  if (!(Number.isInteger(count) && count >= 1))
    throw invalidOption({ where: "turnCountIs", expected: "an integer ≥ 1", got: count });
  const isReached: StopCondition = ({ turns }) => turns >= count;
  turnCountConditions.add(isReached);
  return isReached;
}

const turnCountConditions: WeakSet<StopCondition<never>> = new WeakSet();

/** True when a condition is {@link turnCountIs}: such an agent has no default turn limit. */
export function hasTurnCount(stopWhen: StopWhen<never> | undefined): boolean {
  if (stopWhen === undefined) return false;
  return (typeof stopWhen === "function" ? [stopWhen] : stopWhen).some((condition) =>
    turnCountConditions.has(condition),
  );
}

/**
 * Creates a condition that ends the agent after the last model message called any of these tools, and the call is
 * answered.
 */
export function hasToolCall(...names: readonly string[]): StopCondition {
  if (names.length === 0)
    throw invalidOption({
      where: "hasToolCall",
      expected: "at least one tool name",
      found: "none",
      fix: 'Pass the tools whose call ends the agent: hasToolCall("submit")',
    });
  return ({ messages }) => {
    const last = messages.findLast(({ role }) => role === "assistant");
    return last?.role === "assistant" && listToolCalls(last).some(({ name }) => names.includes(name));
  };
}

/** Throws `invalid_option` for a value that is neither a condition nor a list of conditions. */
export function checkStopWhen(owner: string, value: unknown): void {
  const conditions = Array.isArray(value) ? value : [value];
  if (value === undefined || conditions.every((condition) => typeof condition === "function")) return;
  throw invalidOption({
    where: owner,
    option: "stopWhen",
    expected: "a function or a list of functions",
    got: conditions.find((condition) => typeof condition !== "function"),
    fix: "Use turnCountIs(20), hasToolCall(name), a function of { state, messages, turns } that returns a boolean, or a list of them",
  });
}

/** True when any condition returns true. */
export function shouldStop(
  stopWhen: StopWhen<never> | undefined,
  state: { readonly messages: readonly Message[] } & Partial<CountedTurns>,
): boolean {
  if (stopWhen === undefined) return false;
  const conditions = typeof stopWhen === "function" ? [stopWhen] : stopWhen;
  const input = { state: state as never, messages: state.messages, turns: state.agentTurns ?? 0 };
  return conditions.some((condition) => {
    const verdict: unknown = condition(input);
    if (typeof verdict === "boolean") return verdict;
    if (verdict instanceof Promise) verdict.catch(ignoreRejection);
    throw invalidOption({
      where: "a condition of stopWhen",
      expected: "a boolean",
      got: verdict,
      fix: "Return true or false synchronously; put values to look up into the state",
    });
  });
}

function ignoreRejection(): void {
  // The condition was already rejected as asynchronous; the result is not used.
}
