/** Runs that outlive their request: closed streams, dead processes, and the context of a continued run. */
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  END,
  engine,
  memoryStore,
  route,
  START,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import type { RunRow } from "@statewright/core/store";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createServices } from "../../src/index.ts";
import { ann, createTestServices, never } from "../support/create-test-services.ts";
import { openTestStore, storeKinds } from "../support/test-store.ts";

const Desk = defineContext({ user: z.string() });
const desk = defineGraph({
  name: "desk",
  state: defineState({ log: channel.list(z.string()) }),
  context: Desk,
  interrupts: { go: z.boolean() },
})
  .nodes({
    read: (_state, { context }) => ({ log: [`first ${context.user}`] }),
    wait: async (_state, { context, interrupt }) => ({ log: [`${await interrupt("go")} ${context.user}`] }),
  })
  .edges({ [START]: "read", read: "wait", wait: END });

describe.each(storeKinds)("in a store of kind %s", (kind) => {
  test("a closed stream, and a caller that waits no longer, end no run [V31]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const started = await service.startRun("t", {
      graph: "assistant",
      input: { messages: [{ role: "user", content: [{ type: "text", text: "long" }] }] },
    });
    const closing = new AbortController();
    for await (const { type } of await service.streamEvents("t", { after: started.after, signal: closing.signal }))
      if (type === "run.started") closing.abort();
    const gone = AbortSignal.abort();
    await service.waitForRun(started.run.id, gone);
    expect((await service.waitForRun(started.run.id, never)).status).toBe("done");
    expect(JSON.stringify((await service.getState("t")).values)).toContain("word60");
  });
});

test("a continued run gets the context of its caller: from contextOf here, and from its row in another process [V103]", async () => {
  const store = memoryStore();
  const rows: Pick<RunRow, "tenant" | "owner">[] = [];
  const context = (row: RunRow) => {
    rows.push({ tenant: row.tenant, owner: row.owner });
    return { user: `row of ${row.owner} at ${row.tenant}` };
  };
  const first = engine({ store, graphs: [desk], context });
  const services = createServices({
    engine: first,
    contextOf: ({ id }, asked, place) => ({
      user: `${id} asked ${JSON.stringify(asked)} for ${place.graph} ${place.thread}`,
    }),
  });
  const service = services.forCaller(ann, "native");
  const asked = { token: "a-header-value-4711", user: "bob" };
  const { run } = await service.startRun("t", { graph: "desk", asked });
  await service.waitForRun(run.id, never);
  expect((await service.getState("t")).values["log"]).toEqual([`first ann asked ${JSON.stringify(asked)} for desk t`]);
  const exported = JSON.stringify(await store.exportThread("t.acme.t"));
  // The node above has saved what it was given; no row of the run or of the thread has it.
  expect(JSON.stringify([await store.run(run.id), await store.thread("t.acme.t")])).not.toContain("4711");
  expect(exported).not.toMatch(/authorization|x-api-key/);

  const next = engine({ store: store.peer(), graphs: [desk], context });
  const later = createServices({ engine: next }).forCaller({ ...ann, id: "eve" }, "native");
  const [interrupt] = (await later.getState("t")).interrupts;
  await later.answer("t", { answers: { [interrupt?.id ?? ""]: true } });
  expect((await later.waitForRun(run.id, never)).status).toBe("done");
  expect((await later.getState("t")).values["log"]).toContain("true row of ann at acme");
  expect(rows).toEqual([{ tenant: "acme", owner: "ann" }]);
});

test("an update of a state gives the routes after its node the context of the run [V103]", async () => {
  const routed = defineGraph({ name: "routed", state: defineState({ log: channel.list(z.string()) }), context: Desk })
    .nodes({ read: () => ({ log: ["read"] }), more: (_state, { context }) => ({ log: [`more ${context.user}`] }) })
    .edges({
      [START]: "read",
      read: route(["more", END], (_state, { user }) => (user === "ann" ? "more" : END)),
      more: END,
    });
  const host = engine({ store: memoryStore(), graphs: [routed], context: ({ owner }) => ({ user: owner ?? "" }) });
  const service = createServices({ engine: host }).forCaller(ann, "native");
  const { run } = await service.startRun("t", { graph: "routed" });
  await service.waitForRun(run.id, never);
  const state = await service.updateState("t", { changes: { log: ["by hand"] }, as: "read" });
  expect(state.next).toEqual(["more"]);
});

test("a new run gets the context of the engine for a row of its tenant and caller [V103]", async () => {
  const host = engine({
    store: memoryStore(),
    graphs: [desk],
    context: ({ tenant, owner, thread }) => ({ user: `${owner} ${tenant} ${thread}` }),
  });
  const service = createServices({ engine: host }).forCaller(ann, "native");
  const { run } = await service.startRun("t", { graph: "desk" });
  await service.waitForRun(run.id, never);
  expect((await service.getState("t")).values["log"]).toEqual(["first ann acme t.acme.t"]);
});
