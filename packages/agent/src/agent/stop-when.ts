/** Conditions that end an agent after the answers of a set of calls, before its model is asked again. */
import { callsOf, type Message, StatewrightError } from "@statewright/core";
import type { CountedTurns } from "../turns/agent-turns.ts";

/** What a condition sees. */
export interface StopMoment<State = unknown> {
  readonly state: State;
  readonly messages: readonly Message[];
  /** How often the model was asked since the run's input. */
  readonly turns: number;
}

/**
 * Whether the agent ends here. Asked after each set of calls is answered; it decides from the state alone, at once, so that
 * it says the same after a crash.
 */
export type StopCondition<State = unknown> = (moment: StopMoment<State>) => boolean;

/** One condition, or several of which any ends the agent. */
export type StopWhen<State = unknown> = StopCondition<State> | readonly StopCondition<State>[];

/** End after so many turns; the calls of the last one are answered. Throws `invalid_option` for what is no whole number from 1. */
export function turnCountIs(count: number): StopCondition {
  if (!(Number.isInteger(count) && count >= 1))
    throw new StatewrightError("invalid_option", {
      what: `turnCountIs got ${JSON.stringify(count)}`,
      next: "Give a whole number from 1",
    });
  const isReached: StopCondition = ({ turns }) => turns >= count;
  counting.add(isReached);
  return isReached;
}

const counting: WeakSet<StopCondition<never>> = new WeakSet();

/** Whether one of the conditions is {@link turnCountIs}: such an agent has its limit. */
export function countsTurns(stopWhen: StopWhen<never> | undefined): boolean {
  if (stopWhen === undefined) return false;
  return (typeof stopWhen === "function" ? [stopWhen] : stopWhen).some((condition) => counting.has(condition));
}

/** End when the last message of the model called one of these tools, and the call is answered. */
export function hasToolCall(...names: readonly string[]): StopCondition {
  if (names.length === 0)
    throw new StatewrightError("invalid_option", {
      what: "hasToolCall got no name of a tool",
      next: 'Give the tools whose call ends the agent: hasToolCall("submit")',
    });
  return ({ messages }) => {
    const last = messages.findLast(({ role }) => role === "assistant");
    return last?.role === "assistant" && callsOf(last).some(({ name }) => names.includes(name));
  };
}

/** Throws `invalid_option` for what is no condition and no list of them. */
export function checkStopWhen(owner: string, given: unknown): void {
  const conditions = Array.isArray(given) ? given : [given];
  if (given === undefined || conditions.every((condition) => typeof condition === "function")) return;
  throw new StatewrightError("invalid_option", {
    what: `stopWhen of ${owner} has something that is no condition`,
    next: "Give turnCountIs(20), hasToolCall(name), a function of { state, messages, turns } that says true, or a list of them",
  });
}

/** Whether any of the conditions holds. */
export function isToStop(
  stopWhen: StopWhen<never> | undefined,
  state: { readonly messages: readonly Message[] } & Partial<CountedTurns>,
): boolean {
  if (stopWhen === undefined) return false;
  const conditions = typeof stopWhen === "function" ? [stopWhen] : stopWhen;
  const moment = { state: state as never, messages: state.messages, turns: state.agentTurns ?? 0 };
  return conditions.some((condition) => {
    const holds: unknown = condition(moment);
    if (typeof holds === "boolean") return holds;
    if (holds instanceof Promise) holds.catch(nobodyAwaits);
    throw new StatewrightError("invalid_option", {
      what: `a condition of stopWhen answered with ${holds instanceof Promise ? "a promise" : typeof holds}`,
      next: "Answer true or false at once; what must be looked up belongs in the state",
    });
  });
}

function nobodyAwaits(): void {
  // The condition is refused already; its late verdict has no reader.
}
