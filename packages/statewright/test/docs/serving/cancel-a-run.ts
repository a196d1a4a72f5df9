import process from "node:process";
import { say, scriptedModel, stall } from "@statewright/testing";
import { cancelRun, createAgent, engine, pauseRun, resume, sqliteStore, submit, userMessage } from "statewright";
import { watchStore } from "statewright/inspect";

const [role = "work", thread = "talk-1"] = process.argv.slice(2);
const store = sqliteStore("talks.db");
// A model that writes the first words of its answer, and continues until its signal fires.
const talker = createAgent({
  name: "talker",
  model: scriptedModel(() => stall({ after: say("In Oslo it rains, and ") })),
});

/** Puts a question into the queue of the worker. */
async function ask(): Promise<void> {
  await submit(talker, { store, thread, input: { messages: [userMessage("How is the weather?")] } });
}

/** Serves all threads until one of their runs ends or rests, and prints how. */
async function work(): Promise<void> {
  const host = engine({
    store,
    graphs: [talker],
    onRun: async (run) => {
      const result = await run.result;
      console.log(result.status, result.status === "cancelled" ? result.reason : "");
      await host.stop();
    },
  });
  await host.start();
}

/** Waits until a worker runs the thread. */
async function waitForStart(): Promise<void> {
  const reading = new AbortController();
  const changed = watchStore(store, { signal: reading.signal });
  while ((await store.thread(thread))?.status !== "running") await changed.next();
  reading.abort();
}

/** Cancels the run of the thread, wherever it runs. */
async function cancel(): Promise<void> {
  const { status, runStatus } = await cancelRun(store, { thread, reason: "the customer has left", by: "Kim" });
  console.log(status, runStatus);
}

/** Pauses the run of the thread at its next boundary. */
async function pause(): Promise<void> {
  const { status, runStatus } = await pauseRun(store, { thread, by: "Kim" });
  console.log(status, runStatus);
}

/** Continues a paused run in this process. */
async function proceed(): Promise<void> {
  const run = resume(talker, { store, thread });
  console.log((await run.result).status);
}

const roles: Readonly<Record<string, () => Promise<void>>> = {
  ...{ ask, work, cancel, pause, resume: proceed },
  wait: waitForStart,
};
await roles[role]?.();
