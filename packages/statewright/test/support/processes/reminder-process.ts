/**
 * One process with a reminder due in thirty days, over a SQLite file. The clock is at the first argument until the
 * reminder is saved, and at the second argument in later processes. The first process exits without releasing its
 * thread, the process that fires the timer exits for one more start, and the last one only reads.
 */
import process from "node:process";
import { crashPoint, crashPoints, logEffect, restartExitCode, virtualClock } from "@statewright/testing";
import { durableMachine, getHistory, resume, run, sqliteStore } from "statewright";
import { assign, fromPromise, setup } from "xstate";

const thread = "reminder-1";

const machine = setup({
  types: { context: {} as { readonly reminders: number } },
  actors: {
    remind: fromPromise(async ({ self }) => {
      logEffect({ what: "remind", key: self.sessionId });
      crashPoint("inside remind");
    }),
  },
}).createMachine({
  id: "reminder",
  context: { reminders: 0 },
  initial: "quiet",
  states: {
    quiet: {
      after: {
        [30 * 86_400_000]: {
          target: "reminding",
          actions: assign({ reminders: ({ context }) => context.reminders + 1 }),
        },
      },
    },
    reminding: { invoke: { src: "remind", onDone: "over" } },
    over: { type: "final" },
  },
});
const reminder = durableMachine(machine, { version: 1, effects: { remind: "idempotent" } });

const store = crashPoints(sqliteStore("reminders.db", { durability: "normal" }));
const hasStarted = (await store.head(thread)) !== undefined;
const world = virtualClock({ now: Number(process.argv[hasStarted ? 3 : 2]) });
if (hasStarted) {
  const [before] = await store.runs({ thread });
  const { state } = await resume(reminder, { store, thread, world }).result;
  if (before?.status === "done") {
    const states: string[] = [];
    for await (const { nodes, next, at } of getHistory(reminder, { store, thread }))
      states.unshift(`${nodes.join()} → ${next.join()} at ${at}`);
    console.log(JSON.stringify({ state, states, timers: await store.timers() }));
  } else process.exitCode = restartExitCode;
  await store.close();
} else {
  const handle = run(reminder, { store, thread, world });
  await new Promise<void>((resolve) => {
    handle.on(({ type }) => type === "step.committed" && resolve());
  });
  console.log(JSON.stringify(await store.timers({ dueBy: Number(process.argv[3]) })));
  crashPoint("armed");
  process.exit(restartExitCode);
}
