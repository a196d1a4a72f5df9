/** Answers checked by the saved schema of their interrupt, without the graph of the thread. */
import { virtualClock } from "@statewright/testing";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  listInterrupts,
  resume,
  run,
  START,
  type Store,
} from "statewright";
import { checkAnswer } from "statewright/inspect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { getFailure, type Place, places } from "../../support/both-stores.ts";

const Log = defineState({ log: channel.list(z.string()) });

/** Schema of another library, without a JSON Schema. */
const anyValue = {
  "~standard": { version: 1 as const, vendor: "test", validate: (value: unknown) => ({ value }) },
};

const graph = defineGraph({
  name: "orders",
  state: Log,
  interrupts: {
    size: z.object({ cm: z.int().min(1), note: z.string().optional() }),
    free: anyValue,
  },
})
  .nodes({
    ask: async (_state, { interrupt }) => ({ log: [`${(await interrupt("size")).cm}`] }),
    after: async (_state, { interrupt }) => ({ log: [String(await interrupt("free"))] }),
  })
  .edges({ [START]: "ask", ask: "after", after: END });

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let store: Store;

  beforeEach(async () => {
    place = open();
    store = place.store;
    await run(graph, { store, thread: "t", input: { log: [] } }).result;
  });
  afterEach(() => place.close());

  const findId = async (branch = "main") =>
    (await listInterrupts(store, { thread: "t" })).find((row) => row.branch === branch)?.id ?? "";

  test("an answer is checked by the saved JSON Schema without the graph, and nothing is written [ND20]", async () => {
    const before = await store.exportThread("t");
    const interrupt = await findId();
    expect(await checkAnswer(store, { thread: "t", interrupt, value: { cm: 3 } })).toMatchObject({
      branch: "main",
      key: "size",
      isChecked: true,
    });
    const refused = await getFailure(
      checkAnswer(store, { thread: "t", interrupt, value: { cm: 0.5, note: 3 } }),
      "invalid_answer",
    );
    expect(refused.message).toMatch(/"size" does not match its schema: .*cm/);
    expect(refused.details).toMatchObject({
      issues: [{ path: "cm" }, { path: "cm" }, { path: "note" }],
      schema: { type: "object" },
    });
    await getFailure(checkAnswer(store, { thread: "t", interrupt, value: undefined }), "invalid_answer");
    expect(await store.exportThread("t")).toEqual(before);
  });

  test("an interrupt without a JSON Schema accepts each value unchecked [ND20]", async () => {
    await resume(graph, { store, thread: "t", answers: { size: { cm: 3 } } }).result;
    const checked = await checkAnswer(store, { thread: "t", interrupt: await findId(), value: [1] });
    expect(checked).toMatchObject({ key: "free", isChecked: false, schema: undefined });
  });

  test("the interrupts of two branches are found by their ids [ND20, SE1]", async () => {
    await fork(graph, { store, thread: "t", at: (await store.head("t"))?.id ?? 0, name: "b2" });
    await resume(graph, { store, thread: "t", branch: "b2" }).result;
    for (const branch of ["main", "b2"]) {
      const interrupt = await findId(branch);
      expect((await checkAnswer(store, { thread: "t", interrupt, value: { cm: 1 } })).branch).toBe(branch);
    }
  });

  test("the error of a second answer names who answered and when, in its message, its details and its JSON [ND20]", async () => {
    const interrupt = await findId();
    await resume(graph, { store, thread: "t", answers: { size: { cm: 3 } }, by: "ann" }).result;
    const [row] = await store.interrupts("t", "main");
    const answeredAt = row?.answeredAt ?? 0;
    for (const answerAgain of [
      () => resume(graph, { store, thread: "t", answers: { [interrupt]: { cm: 4 } } as never }).result,
      () => checkAnswer(store, { thread: "t", interrupt, value: { cm: 4 } }),
    ]) {
      const error = await getFailure(answerAgain(), "already_answered");
      expect(error.message).toContain(`was answered by "ann" at ${new Date(answeredAt).toISOString()}`);
      expect(error.details).toEqual({ interrupt, answer: { cm: 3 }, answeredAt, answeredBy: "ann" });
      expect(JSON.parse(JSON.stringify(error))).toMatchObject({
        code: "already_answered",
        details: { answeredBy: "ann", answeredAt },
      });
    }
  });

  test("unknown, declined and closed interrupts are refused with their reason [ND20]", async () => {
    await getFailure(checkAnswer(store, { thread: "t", interrupt: "9:9:none", value: 1 }), "unknown_interrupt");
    await getFailure(checkAnswer(store, { thread: "nowhere", interrupt: "0:0:size", value: 1 }), "unknown_thread");
    await getFailure(checkAnswer(store, { thread: "t", interrupt: 3 as never, value: 1 }), "invalid_option");
    await resume(graph, { store, thread: "t", answers: { size: { cm: 3 } } }).result;
    const next = await findId();
    await run(graph, { store, thread: "t", input: { log: ["new"] }, onBusy: "rollback" }).result;
    const declined = await getFailure(
      checkAnswer(store, { thread: "t", interrupt: next, value: 1 }),
      "already_answered",
    );
    expect(declined.message).toMatch(/was answered by "run run_/);
    const cancelled = resume(graph, { store, thread: "t" });
    const last = await findId();
    cancelled.cancel("not needed");
    expect((await cancelled.result).status).toBe("cancelled");
    const closed = await getFailure(
      checkAnswer(store, { thread: "t", interrupt: last, value: { cm: 1 } }),
      "unknown_interrupt",
    );
    expect(closed.message).toMatch(/is closed without an answer/);
  });

  test("an interrupt past its expiry is refused, as a resume would refuse its answer [ND20]", async () => {
    const world = virtualClock();
    const offer = defineGraph({
      name: "offer",
      state: Log,
      interrupts: { accept: { answer: z.boolean(), expiresMs: 1_000 } },
    })
      .nodes({ ask: async (_state, { interrupt }) => ({ log: [String(await interrupt("accept"))] }) })
      .edges({ [START]: "ask", ask: END });
    await run(offer, { store, world, thread: "o" }).result;
    const [open] = await listInterrupts(store, { thread: "o", world });
    const answer = { thread: "o", interrupt: open?.id ?? "", value: true, world };
    expect((await checkAnswer(store, answer)).isChecked).toBe(true);
    await world.advance(1_000);
    await getFailure(checkAnswer(store, answer), "interrupt_expired");
  });
});
