/** A growing graph: each superstep runs one effect and saves a large text. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { defineGraph, defineState, END, route, START } from "@statewright/core";

/** Schema that accepts every value of its type without a check. */
export function createOpenSchema<Value>() {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value: unknown) => ({ value: value as Value }),
      types: undefined as { readonly input: Value; readonly output: Value } | undefined,
    },
  } as const;
}

/** Initial state. */
export const first = { round: 0, text: "" } as const;

const State = defineState({ round: createOpenSchema<number>(), text: createOpenSchema<string>() });

/** Each effect appends a line to the diary and returns a text of `bytes` characters, which the state keeps. */
export function createGrowingGraph(diary: string, bytes: number, rounds: number) {
  return defineGraph({ name: "growing", state: State })
    .nodes({
      grow: async ({ round }, { step }) => {
        const text = await step(
          "effect",
          async () => {
            appendFileSync(diary, `${round}\n`);
            return String(round).padEnd(bytes, ".");
          },
          { effect: "once" },
        );
        return { round: round + 1, text };
      },
    })
    .edges({ [START]: "grow", grow: route(["grow", END], ({ round }) => (round < rounds ? "grow" : END)) });
}

/** Rounds whose effect ran, in order. */
export function listEffects(diary: string): readonly number[] {
  return existsSync(diary) ? readFileSync(diary, "utf8").trim().split("\n").map(Number) : [];
}

export function listRounds(rounds: number): readonly number[] {
  return Array.from({ length: rounds }, (_, index) => index);
}
