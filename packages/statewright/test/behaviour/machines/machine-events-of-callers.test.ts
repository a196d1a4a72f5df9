/** Events of callers for durable machines. */
import { createServices } from "@statewright/server";
import { durableMachine, engine, isStatewrightError, memoryStore } from "statewright";
import { expect, test } from "vitest";
import { setup } from "xstate";

const order = durableMachine(
  setup({}).createMachine({
    id: "order",
    initial: "open",
    states: {
      open: { on: { PAY: "paid", CANCEL: "closed" } },
      paid: { on: { SHIP: "closed" } },
      closed: { type: "final" },
    },
  }),
  { version: 1 },
);

test("a durable machine takes the events of a caller by their type or by their id, and once under a key", async () => {
  const host = engine({ store: memoryStore(), graphs: [order] });
  const service = createServices({ engine: host }).forCaller({ id: "ann", tenant: "acme" }, "native");
  const never = new AbortController().signal;
  const getCode = (error: unknown): string => (isStatewrightError(error) ? error.code : String(error));
  const { run } = await service.startRun("t", { graph: "order" });
  await service.waitForRun(run.id, never);
  expect((await service.getState("t")).interrupts.map(({ id }) => id)).toEqual(["0:PAY", "0:CANCEL"]);
  expect(await service.answer("t", { answers: { SHIP: {} } }).catch(getCode)).toMatch(
    /event_refused|unknown_interrupt/,
  );
  const paid = await service.answer("t", { answers: { PAY: {} }, key: "k1" });
  expect([paid.run.id, paid.isNew]).toEqual([run.id, true]);
  await service.waitForRun(run.id, never);
  expect((await service.answer("t", { answers: { PAY: {} }, key: "k1" })).isNew).toBe(false);
  expect((await service.getState("t")).values).toMatchObject({ value: "paid" });
  await service.answer("t", { answers: { "1:SHIP": {} } });
  expect((await service.waitForRun(run.id, never)).status).toBe("done");
  expect(await service.answer("t", { answers: { PAY: {} } }).catch(getCode)).toBe("event_refused");
  await host.stop();
});
