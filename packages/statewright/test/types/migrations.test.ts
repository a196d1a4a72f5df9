/** Migrations are typed by both graphs. Only the definitions run. */
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  type CheckRunsOptions,
  channel,
  checkRuns,
  defineGraph,
  defineMigration,
  defineState,
  END,
  type Graph,
  START,
  type Store,
} from "../../src/index.ts";
import type { RunRow } from "../../src/store.ts";

const old = defineGraph({
  name: "g",
  version: 1,
  state: defineState({ cents: z.number(), log: channel.list(z.string()), note: z.string().default("") }),
  interrupts: { approve: z.boolean() },
})
  .nodes({ ask: () => ({}), pay: () => ({}) })
  .edges({ [START]: "ask", ask: "pay", pay: END });

/** The same state with an additional default. */
const near = defineGraph({
  name: "g",
  version: 2,
  state: defineState({ cents: z.number(), log: channel.list(z.string()), by: z.string().default("nobody") }),
})
  .nodes({ ask: () => ({}), pay: () => ({}) })
  .edges({ [START]: "ask", ask: "pay", pay: END });

/** A channel of another type, and a channel that requires a value. */
const far = defineGraph({
  name: "g",
  version: 3,
  state: defineState({
    cents: z.string(),
    euros: z.number(),
    log: channel.list(z.string()),
    by: z.string().default("nobody"),
  }),
  interrupts: { sign: z.boolean() },
})
  .nodes({ confirm: () => ({}), pay: () => ({}) })
  .edges({ [START]: "confirm", confirm: "pay", pay: END });

test("defineMigration requires values for new required channels and not for defaulted or unchanged ones", () => {
  expect(defineMigration({ from: old, to: near }).to).toBe(near);
  defineMigration({ from: old, to: near, state: ({ cents }) => ({ cents: cents + 1 }) });
  defineMigration({ from: old, to: near, state: () => ({ by: "Ann", log: ["migrated"] }) });
  const whole = defineMigration({
    from: old,
    to: far,
    nodes: { ask: "confirm" },
    interrupts: { approve: "sign" },
    state: (before) => {
      expectTypeOf(before.cents).toEqualTypeOf<number>();
      return { cents: String(before.cents), euros: before.cents / 100 };
    },
  });
  expect(whole.from).toBe(old);

  // @ts-expect-error two channels need values
  defineMigration({ from: old, to: far });
  // @ts-expect-error "cents" has another type
  defineMigration({ from: old, to: far, state: () => ({ euros: 1 }) });
  // @ts-expect-error "euros" has no default
  defineMigration({ from: old, to: far, state: () => ({ cents: "1" }) });
  // @ts-expect-error a value of another type
  defineMigration({ from: old, to: near, state: () => ({ by: 1 }) });
  // @ts-expect-error the old state has no such channel
  defineMigration({ from: old, to: near, state: ({ euros }) => ({ cents: euros }) });
});

test("defineMigration accepts only names of its two graphs", () => {
  const state = () => ({ cents: "1", euros: 1 });
  // @ts-expect-error the old graph has no such node
  expect(() => defineMigration({ from: old, to: far, state, nodes: { asks: "confirm" } })).toThrow('"asks"');
  // @ts-expect-error the new graph has no such node
  expect(() => defineMigration({ from: old, to: far, state, nodes: { ask: "confirms" } })).toThrow('"confirms"');
  // @ts-expect-error the old graph asks nothing under this key
  expect(() => defineMigration({ from: old, to: far, state, interrupts: { allow: "sign" } })).toThrow('"allow"');
  // @ts-expect-error the new graph asks nothing under this key
  expect(() => defineMigration({ from: old, to: far, state, interrupts: { approve: "allow" } })).toThrow('"allow"');
});

test("checkRuns returns a verdict for each run (types)", () => {
  expectTypeOf(checkRuns).toEqualTypeOf<
    (
      store: Store,
      graphs: readonly Graph[],
      options?: CheckRunsOptions,
    ) => Promise<
      readonly { readonly run: RunRow; readonly verdict: "continues" | "migrates" | "parks"; readonly reason: string }[]
    >
  >();
});
