/**
 * One process that raises an interrupt and continues with the answer, over a SQLite file. Records the open interrupts
 * and the result of a second answer. The crash test starts, kills and restarts it.
 */
import process from "node:process";
import { crashPoints, logEffect, restartExitCode } from "@statewright/testing";
import {
  channel,
  defineGraph,
  defineState,
  END,
  isStatewrightError,
  listInterrupts,
  resume,
  run,
  START,
  sqliteStore,
} from "statewright";
import * as z from "zod";

const thread = "approval-1";

const approval = defineGraph({
  name: "approval",
  state: defineState({ log: channel.list(z.string()) }),
  interrupts: { approve: z.object({ ok: z.boolean() }) },
})
  .nodes({
    ask: async (_state, { interrupt }) => ({ log: [`approved ${(await interrupt("approve")).ok}`] }),
    after: () => ({ log: ["after"] }),
  })
  .edges({ [START]: "ask", ask: "after", after: END });

const store = crashPoints(sqliteStore("agent.db", { durability: "normal" }));
const asked = await listInterrupts(store);
logEffect({ waiting: asked.map(({ id }) => id) });
const head = await store.head(thread);
const status = head === undefined ? (await run(approval, { store, thread }).result).status : await continueRun();
if (status === "waiting") process.exitCode = restartExitCode;
else {
  const { state } = await resume(approval, { store, thread }).result;
  console.log(JSON.stringify({ status, log: state.log, second: await answerAgain(false) }));
}
await store.close();

/** Answers open interrupts; without any, an earlier process answered or the interrupt was never recorded. */
async function continueRun(): Promise<string> {
  const answers = { approve: { ok: true } };
  if (asked.length > 0) return (await resume(approval, { store, thread, answers, by: "ann" }).result).status;
  const second = await answerAgain(false);
  if (second !== null) logEffect({ second });
  return (await resume(approval, { store, thread }).result).status;
}

/** Result of a second answer; undefined before the interrupt exists. */
async function answerAgain(ok: boolean): Promise<{ readonly code: string; readonly details: never } | null> {
  try {
    await resume(approval, { store, thread, answers: { approve: { ok } } }).result;
    throw new Error("a second answer was taken");
  } catch (error) {
    if (isStatewrightError(error, "unknown_interrupt")) return null;
    if (!isStatewrightError(error)) throw error;
    const { answer, answeredBy } = error.details as { readonly answer: unknown; readonly answeredBy: unknown };
    return { code: error.code, details: { answer, answeredBy } as never };
  }
}
