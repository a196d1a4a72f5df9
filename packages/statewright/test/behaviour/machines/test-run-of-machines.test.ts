/** testRun of a durable machine: sends events, and explains refused events by their guards. */
import { durableMachine } from "@statewright/core";
import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { setup } from "xstate";

const door = setup({
  types: { events: {} as { type: "OPEN"; code: number } | { type: "CLOSE" } },
  guards: { fits: ({ event }) => event.type === "OPEN" && event.code === 7 },
}).createMachine({
  id: "door",
  initial: "closed",
  states: {
    closed: { tags: "safe", on: { OPEN: [{ guard: "fits", target: "open.wide" }, { target: "alarm" }] } },
    open: { initial: "wide", states: { wide: { on: { CLOSE: "#door.closed" } } } },
    alarm: { on: { CLOSE: "closed" } },
  },
});

test("a durable machine in testRun accepts events, has its own tags, and explains refused events by guards", async () => {
  const t = await testRun(durableMachine(door, { version: 1 }), {});
  await t.finish();
  expect(t).toBeInState("closed");
  expect(t).toHaveTag("safe");
  expect(t).toAccept("OPEN");
  expect(() => expect(t).toAccept("CLOSE")).toThrowErrorMatchingInlineSnapshot(`
    [Error: the run does not accept "CLOSE" in "closed": it accepts the event "OPEN".
    The path: start → closed
    The run waits in "closed" and accepts the event "OPEN".]
  `);
  await t.send({ type: "OPEN", code: 8 });
  expect(t).toBeInState("alarm");
  expect(() => expect(t).toBeInState("open.wide")).toThrowErrorMatchingInlineSnapshot(`
    [Error: the run is not in "open.wide" but in "alarm".
    The path: start → closed → alarm
    The run waits in "alarm" and accepts the event "CLOSE".
    In "closed" the guard "fits" refused OPEN, which led to "alarm".]
  `);
  await t.send({ type: "CLOSE" });
  await t.crash();
  await t.send({ type: "OPEN", code: 7 });
  expect(t).toBeInState("open");
  expect(t.trace).toMatchInlineSnapshot(`
    xstate.init: start → closed
    waits for OPEN
    (resume with OPEN)
    OPEN: closed → alarm
    waits for CLOSE
    (resume with CLOSE)
    CLOSE: alarm → closed
    waits for OPEN
    (crash)
    (resume with OPEN)
    OPEN: closed → open.wide
    waits for CLOSE
  `);
});
