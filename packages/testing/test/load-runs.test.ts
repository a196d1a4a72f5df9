import { channel, defineGraph, defineState, END, memoryStore, resume, run, START } from "@statewright/core";
import { createCodec } from "@statewright/core/store";
import { loadRuns } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";

const graph = (version: number, node: string) =>
  defineGraph({
    name: "g",
    version,
    state: defineState({ log: channel.list(z.unknown()) }),
    interrupts: { ok: z.string() },
  })
    .nodes({
      ask: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }),
      tell: () => ({ log: ["told"] }),
    })
    .edges({ [START]: node === "ask" ? "ask" : "tell", ask: "tell", tell: END });

test("toLoadRuns checks open runs and reads finished runs back to their first checkpoint", async () => {
  const store = memoryStore();
  const first = graph(1, "ask");
  for (const thread of ["open", "over"]) await run(first, { store, thread }).result;
  await resume(first, { store, thread: "over", answers: { ok: "yes" } }).result;
  const report = await loadRuns(store, [graph(2, "ask")]);
  expect(report.refused).toEqual([]);
  expect(report.runs.map(({ run: { thread }, loads, verdict, reason }) => [thread, loads, verdict, reason])).toEqual([
    ["open", true, "continues", "the run was written by version 1 and is compatible with version 2"],
    ["over", true, undefined, "the run is finished, and its 3 checkpoints are readable"],
  ]);
  const nothing = await loadRuns(store, []);
  expect(nothing.refused).toHaveLength(2);
});

test("toLoadRuns reports an unregistered class for each run", async () => {
  class Money {
    readonly cents: number;
    constructor(cents: number) {
      this.cents = cents;
    }
  }
  const codec = createCodec([
    {
      tag: "money",
      matches: (value): value is Money => value instanceof Money,
      encode: ({ cents }: Money) => cents,
      decode: (cents) => new Money(Number(cents)),
    },
  ]);
  const store = memoryStore();
  const pays = defineGraph({ name: "g", state: defineState({ log: channel.list(z.unknown()) }) })
    .nodes({ pay: () => ({ log: [new Money(5)] }) })
    .edges({ [START]: "pay", pay: END });
  await run(pays, { store, thread: "t", codec }).result;
  expect((await loadRuns(store, [pays], { codec })).refused).toEqual([]);
  expect((await loadRuns(store, [pays])).refused).toMatchObject([
    { reason: expect.stringContaining('unknown tag "money"') },
  ]);
});
