/** A graph that grows: each superstep does something once and saves a large text. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { defineGraph, defineState, END, route, START } from "@statewright/core";

/** A schema that takes what its type says, unlooked at. */
export function anything<Value>() {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value: unknown) => ({ value: value as Value }),
      types: undefined as { readonly input: Value; readonly output: Value } | undefined,
    },
  } as const;
}

/** Where it begins. */
export const first = { round: 0, text: "" } as const;

const State = defineState({ round: anything<number>(), text: anything<string>() });

/** Each effect is a line in the diary; it gives so many characters, which the state keeps. */
export function growing(diary: string, bytes: number, rounds: number) {
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

/** Rounds whose effect happened, in their order. */
export function happened(diary: string): readonly number[] {
  return existsSync(diary) ? readFileSync(diary, "utf8").trim().split("\n").map(Number) : [];
}

export function upTo(rounds: number): readonly number[] {
  return Array.from({ length: rounds }, (_, index) => index);
}
