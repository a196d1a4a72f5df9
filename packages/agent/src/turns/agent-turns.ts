/** Turns of an agent: how often its model was asked since the run's input. Counted only for agents that look at it. */
import type { Message, Schema } from "@statewright/core";

/** What an agent that counts its turns has in its state, beside the conversation. Private: no input and no result shows it. */
export interface CountedTurns {
  /** Turns since the run's input. */
  readonly agentTurns: number;
}

/** The channel that counts turns: a graph of your own declares it, `defineState({ …, ...agentTurns })`. */
export const agentTurns: { readonly agentTurns: Schema<number | undefined, number> } = {
  agentTurns: {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value = 0) =>
        Number.isInteger(value) && (value as number) >= 0
          ? { value: value as number }
          : { issues: [{ message: "expected a count of turns" }] },
    },
  },
};

/** The input of a graph that counts turns: each input begins the count anew. */
export const beginsTurns: Schema<never, never> = {
  "~standard": {
    version: 1,
    vendor: "statewright",
    validate: (input) => ({ value: { ...(input as object), agentTurns: 0 } as never }),
  },
};

type Counting = { readonly messages: readonly Message[] } & Partial<CountedTurns>;

/** The number of the turn that begins now; 1 is the first after the run's input. */
export function turnOf({ agentTurns: before = 0 }: Counting): number {
  return before + 1;
}

/** What a turn writes of itself: nothing, where the state counts none. */
export function countTurn(state: Counting): Partial<CountedTurns> {
  return state.agentTurns === undefined ? {} : { agentTurns: state.agentTurns + 1 };
}
