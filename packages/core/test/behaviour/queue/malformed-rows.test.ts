/** Rows of a foreign export that no run can read: each is set aside once, and the thread continues. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  getMessageText,
  memoryStore,
  run,
  START,
  type Store,
  steer,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import type { ThreadExport } from "../../../src/store.ts";
import { user } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const graph = defineGraph({
  name: "chat",
  state: defineState({ messages: channel.messages() }),
  interrupts: { ok: z.boolean() },
})
  .nodes({
    ask: async ({ messages: all }, { interrupt }) => {
      if (all.length === 1) await interrupt("ok");
    },
    end: () => undefined,
  })
  .edges({ [START]: "ask", ask: "end", end: END });

/** Creates a thread that waits for an answer, with an inbox message and a queued input. */
async function createExport(): Promise<ThreadExport> {
  const store = memoryStore();
  await run(graph, { store, thread: "t", input: { messages: [user("one")] } }).result;
  await steer(graph, { store, thread: "t", input: "steered" });
  await run(graph, { store, thread: "t", input: { messages: [user("two", "u2")] }, onBusy: "enqueue" }).result;
  return await store.exportThread("t");
}

/** Creates a store that counts claims; a run that is retried without end exceeds the limit. */
async function importInto(exported: ThreadExport): Promise<Store & { readonly claims: () => number }> {
  const inner = memoryStore();
  await inner.importThread(exported);
  let claims = 0;
  const claim: Store["claim"] = (request) => {
    claims += 1;
    return claims > 60 ? new Promise(() => undefined) : inner.claim(request);
  };
  return { ...inner, claim, claims: () => claims };
}

const unreadableMessages = [
  "not json",
  "5",
  "null",
  "[]",
  "[null]",
  '[{"role":"tool","id":"x","content":[]}]',
  '[{"role":"user","id":5,"content":"text"}]',
];

for (const text of unreadableMessages)
  test(`the unreadable inbox message ${text} of a foreign export is removed once with an error, and the thread continues [FX67]`, async () => {
    const world = createVirtualWorld();
    const exported = await createExport();
    const namespaces = exported.namespaces.map((namespace) => ({
      ...namespace,
      inbox: namespace.inbox.flatMap((message) => [
        { ...message, messages: text },
        { ...message, id: "readable" },
        { ...message, id: "follow", kind: "followUp" as const, messages: text },
      ]),
    }));
    const store = await importInto({ ...exported, namespaces });
    const host = engine({ store, graphs: [graph], world });
    await host.start();
    const resumed = await host.resume(graph, { thread: "t", answers: { ok: true } }).result;
    await world.advance(60_000);
    expect(resumed.status).toBe("done");
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done", "done"]);
    expect(resumed.state.messages.map(getMessageText)).toEqual(["one", "steered"]);
    const entries = world.lines.filter(({ message }) => message === "an unreadable inbox message was removed");
    expect(entries.map(({ level }) => level)).toEqual(["error", "error"]);
    expect(await store.inbox("t", "main")).toEqual([]);
    expect(store.claims()).toBeLessThan(10);
    await host.stop();
  });

for (const input of ["not json", "5", '{"messages":[null]}', '{"unknown":1}'])
  test(`the malformed queued input ${input} of a foreign export is set aside once with an error, and the next input runs [FX67]`, async () => {
    const world = createVirtualWorld();
    const exported = await createExport();
    const queued = exported.runs.find(({ status }) => status === "queued");
    if (queued === undefined) throw new Error("no queued run");
    const runs = exported.runs.flatMap((row) => (row === queued ? [{ ...row, id: "bad", input }, row] : [row]));
    const store = await importInto({ ...exported, runs });
    const host = engine({ store, graphs: [graph], world });
    await host.start();
    await host.resume(graph, { thread: "t", answers: { ok: true } }).result;
    await world.advance(60_000);
    const rows = await listRuns(store);
    expect(rows.find(({ id }) => id === "bad")).toMatchObject({
      status: "cancelled",
      reason: expect.stringMatching(/^invalid_input: /),
    });
    expect(rows.find(({ id }) => id === queued.id)?.status).toBe("done");
    expect(world.lines.filter(({ message }) => message === "a run started from the queue failed")).toHaveLength(1);
    expect(store.claims()).toBeLessThan(10);
    await host.stop();
  });

test("an engine tries a queued input with an unknown class once, and leaves it to a process that can decode it [FX67]", async () => {
  const world = createVirtualWorld();
  const exported = await createExport();
  const runs = exported.runs.map((row) =>
    row.status === "queued" ? { ...row, input: '{"messages":{"$":"unknown","v":"x"}}' } : row,
  );
  const store = await importInto({ ...exported, runs });
  const host = engine({ store, graphs: [graph], world });
  await host.start();
  await host.resume(graph, { thread: "t", answers: { ok: true } }).result;
  await world.advance(60_000);
  expect((await listRuns(store)).map(({ status }) => status)).toEqual(["queued", "done"]);
  expect(world.lines.length).toBeLessThan(8);
  expect(store.claims()).toBeLessThan(10);
  await host.stop();
});
