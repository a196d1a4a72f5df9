import { expect, test } from "vitest";
import * as z from "zod";
import { channel, defineGraph, defineState, END, engine, memoryStore, run, START } from "../../../src/index.ts";
import { copyThread } from "../../../src/inspect.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

test("queued runs of a thread and of its copy have the same ids, and an engine runs both [FX103]", async () => {
  const world = createVirtualWorld();
  const store = memoryStore();
  const graph = defineGraph({
    name: "asks",
    state: defineState({ log: channel.list(z.string()) }),
    interrupts: { ok: z.boolean() },
  })
    .nodes({
      ask: async ({ log }, { interrupt }) => {
        if (log.length === 1) await interrupt("ok");
        return { log: ["asked"] };
      },
    })
    .edges({ [START]: "ask", ask: END });
  await run(graph, { store, world, thread: "t", input: { log: ["one"] } }).result;
  const queued = run(graph, { store, world, thread: "t", input: { log: ["two", "three"] }, onBusy: "enqueue" });
  expect((await queued.result).status).toBe("queued");
  await copyThread(store, "t", "copy");
  const host = engine({ store, graphs: [graph], world });
  await host.start();
  await Promise.all(["t", "copy"].map((thread) => host.resume(graph, { thread, answers: { ok: true } }).result));
  await world.advance(5_000);
  for (const thread of ["t", "copy"]) {
    const rows = await store.runs({ thread });
    expect(rows.map(({ id, status }) => [id === queued.id, status])).toEqual([
      [true, "done"],
      [false, "done"],
    ]);
  }
  await host.stop();
});
