/** Values of unknown classes in events, interrupts and answers, read without the graph and its codec. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  defineGraph,
  defineState,
  END,
  memoryStore,
  type RunEvent,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import { checkAnswer, listInterrupts, streamEvents } from "../../../src/inspect.ts";
import { getFailure } from "../../support/failure.ts";
import { Money, moneyCodec } from "../../support/random-thread.ts";

const thread = "t";
const foreign = { foreign: "money", data: { cents: 5 } };

const priced = defineGraph({
  name: "priced",
  state: defineState({ price: z.instanceof(Money).optional() }),
  interrupts: { pay: z.instanceof(Money) },
})
  .nodes({
    set: () => ({ price: new Money(5) }),
    ask: async ({ price }, { interrupt }) => ({ price: await interrupt("pay", { payload: { price } }) }),
  })
  .edges({ [START]: "set", set: "ask", ask: END });

/** Runs the graph up to its interrupt. */
async function runToInterrupt(): Promise<Store> {
  const store = memoryStore();
  await run(priced, { store, thread, codec: moneyCodec, input: {} }).result;
  return store;
}

test("streamEvents and listInterrupts show values of unknown classes as foreign, and known ones with their codec [ND5]", async () => {
  const store = await runToInterrupt();
  const events: RunEvent[] = [];
  for await (const event of streamEvents({ store, thread })) events.push(event);
  expect(events.find((event) => event.type === "step.committed" && event.nodes.includes("set"))).toMatchObject({
    changes: { price: { value: foreign } },
  });
  expect(await listInterrupts(store)).toMatchObject([{ payload: { price: foreign } }]);
  expect(await listInterrupts(store, { codec: moneyCodec })).toMatchObject([{ payload: { price: new Money(5) } }]);
});

test("checkAnswer refuses a second answer with the first one, whose unknown class is foreign [ND5, ND20]", async () => {
  const store = await runToInterrupt();
  const [interrupt] = await listInterrupts(store);
  await resume(priced, { store, thread, codec: moneyCodec, answers: { pay: new Money(5) }, by: "kim" }).result;
  const again = checkAnswer(store, { thread, interrupt: interrupt?.id ?? "", value: 1 });
  expect((await getFailure(again, "already_answered")).details).toMatchObject({ answer: foreign, answeredBy: "kim" });
});
