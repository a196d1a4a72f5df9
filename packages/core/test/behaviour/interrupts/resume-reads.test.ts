/** Reads and writes of the store that a resume needs. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  memoryStore,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import { call, createToolLoop, getAnswerText, listToolAnswers } from "../../support/tool-loop.ts";

const graph = defineGraph({
  name: "asking",
  state: defineState({ log: channel.list(z.string()) }),
  interrupts: { ok: z.boolean() },
})
  .nodes({
    ask: async (_state, { interrupt, step }) => ({
      log: [await step("look", () => "seen"), `${await interrupt("ok")}`],
    }),
  })
  .edges({ [START]: "ask", ask: END });

/** Names of the reads of a thread. */
const reads = [
  "thread",
  "branches",
  "checkpoint",
  "head",
  "state",
  "effects",
  "interrupts",
  "openInterrupts",
  "runs",
  "inbox",
] as const;

/** Store that lists its claims, commits and reads of a thread. */
function watch(inner: Store): { readonly store: Store; readonly calls: string[] } {
  const calls: string[] = [];
  const watched: Store = { ...inner };
  for (const name of reads) {
    const read = inner[name] as (...args: unknown[]) => unknown;
    Object.assign(watched, {
      [name]: (...args: unknown[]) => {
        calls.push(name);
        return read(...args);
      },
    });
  }
  return {
    store: {
      ...watched,
      claim: (request) => {
        calls.push("claim");
        return inner.claim(request);
      },
      commit: (commit, onCommitted) => {
        calls.push("commit");
        inner.commit(commit, onCommitted);
      },
    },
    calls,
  };
}

test("a resume with an answer claims the thread, reads nothing after its claim, and makes two commits [PK6]", async () => {
  const { store, calls } = watch(memoryStore());
  const waiting = await run(graph, { store, thread: "t", input: {} }).result;
  const id = waiting.status === "waiting" ? (waiting.interrupts[0]?.id ?? "") : "";
  calls.length = 0;
  const { status, state } = await resume(graph, { store, thread: "t", answers: { [id]: true } }).result;
  expect([status, state.log]).toEqual(["done", ["seen", "true"]]);
  expect(calls).toEqual(["claim", "commit", "commit"]);
});

test("a store whose claims bring no rows is read after the claim, and the resume ends the same [PK6]", async () => {
  const inner = memoryStore();
  const { store, calls } = watch({ ...inner, claim: ({ loads: _, ...request }) => inner.claim(request) });
  await run(graph, { store, thread: "t", input: {} }).result;
  calls.length = 0;
  const { status, state } = await resume(graph, { store, thread: "t", answers: { ok: true } }).result;
  expect([status, state.log]).toEqual(["done", ["seen", "true"]]);
  expect(calls).toEqual(["claim", "state", "effects", "interrupts", "interrupts", "commit", "commit"]);
});

test("a once tool that a resume calls reads no other branches, since the claim says that there are none [PK6]", async () => {
  const { store, calls } = watch(memoryStore());
  const send = defineTool({
    name: "send",
    description: "Send.",
    input: z.object({}),
    execution: { needsApproval: () => "Sends a mail" },
    run: () => "sent",
  });
  const loop = createToolLoop({ tools: [send], turns: [[call("send")], ["done"]], store });
  const waiting = await loop.start().result;
  const id = waiting.status === "waiting" ? (waiting.interrupts[0]?.id ?? "") : "";
  calls.length = 0;
  const result = await loop.again({ [id]: { approved: true } }).result;
  expect(listToolAnswers(result).map(getAnswerText)).toEqual(["sent"]);
  expect(calls.filter((name) => name !== "claim" && name !== "commit" && name !== "inbox")).toEqual([]);
});
