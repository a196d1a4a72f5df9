/** Agent turn kind: a model node, which takes a single turn of an agent in each task. */
import type { Message, Schema } from "@statewright/core";
import { functionKind, type NodeKind } from "@statewright/core/adapter";

/**
 * Kind of a node created by `modelNode`. Its body makes a single model call, between the hooks at both ends of the
 * agent's run.
 */
export const agentTurnKind: NodeKind = Object.freeze({
  ...functionKind,
  shownAs: "turn",
  execute: (engine, task) => engine.runBody(task, task.node.body),
  findProblems: ({ name: node }, { state: { channels } }) =>
    Object.hasOwn(channels, "messages")
      ? []
      : [
          {
            code: "unknown_channel",
            node,
            message: `the model node "${node}" has no channel "messages" for its conversation`,
            hint: "add messages: channel.messages() to the state",
          },
        ],
} satisfies NodeKind);

/** Private state of an agent that counts turns; never part of an input or result. */
export interface CountedTurns {
  /** Model calls since the input of the run. */
  readonly agentTurns: number;
}

/** Channel that counts turns, for a user-defined graph: `defineState({ …, ...agentTurns })`. */
export const agentTurns: { readonly agentTurns: Schema<number | undefined, number> } = {
  agentTurns: {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value = 0) =>
        Number.isInteger(value) && (value as number) >= 0
          ? { value: value as number }
          : { issues: [{ message: "expected an integer ≥ 0 as count of turns" }] },
    },
  },
};

/** Input schema of a graph that counts turns: each input resets the count. */
export const agentTurnsInput: Schema<never, never> = {
  "~standard": {
    version: 1,
    vendor: "statewright",
    validate: (input) => ({ value: { ...(input as object), agentTurns: 0 } as never }),
  },
};

type CountingState = { readonly messages: readonly Message[] } & Partial<CountedTurns>;

/** Returns the number of the next turn; the first turn after the input is 1. */
export function getNextTurn({ agentTurns: previousTurns = 0 }: CountingState): number {
  return previousTurns + 1;
}

/** Returns the state update of a turn; empty when the state has no turn channel. */
export function countTurn(state: CountingState): Partial<CountedTurns> {
  return state.agentTurns === undefined ? {} : { agentTurns: state.agentTurns + 1 };
}
