/** Server over an engine: requests of two tenants to the threads of a store. */
import { expect, test } from "vitest";
import { createTestServer } from "./support/create-test-server.ts";
import { echoProtocol } from "./support/echo-protocol.ts";
import { storeKinds } from "./support/test-store.ts";

test.each(storeKinds)(
  "a run starts, waits for approval, is answered and ends over HTTP, with a %s store [V1]",
  async (store) => {
    const { sendJson, send, transfers, clock } = await createTestServer({ store, protocols: [echoProtocol] });
    const started = await sendJson("/echo/threads/t/runs", { body: { graph: "assistant", text: "transfer" } });
    expect(started).toMatchObject({ status: 200, body: { status: "waiting", graph: "assistant", thread: "t" } });
    const state = await sendJson("/echo/threads/t");
    expect(state).toMatchObject({ status: 200, body: { interrupts: [{ key: "approve" }] } });
    expect(transfers).toEqual([]);
    const { interrupts } = state.body as { readonly interrupts: readonly { readonly id: string }[] };
    const answers = { [interrupts[0]?.id ?? ""]: { approved: true } };
    expect(await sendJson("/echo/threads/t/answers", { body: { answers } })).toMatchObject({
      status: 200,
      body: { status: "done" },
    });
    expect(transfers).toEqual([{ to: "ann", amount: 5 }]);
    const events = await clock.until((await send("/echo/threads/t/events?end=idle")).text());
    expect(events).toContain("event: run.waiting");
    expect(events).toContain("event: run.completed");

    // Another tenant has no such thread, and a colleague has.
    expect(await sendJson("/echo/threads/t", { as: "bob" })).toMatchObject({
      status: 404,
      body: { code: "unknown_thread" },
    });
    expect(await sendJson("/echo/threads", { as: "bob" })).toMatchObject({ status: 200, body: { data: [] } });
    expect(await sendJson("/echo/threads", { as: "amy" })).toMatchObject({ body: { data: [{ id: "t" }] } });
    expect(await sendJson("/echo/threads/t", { as: null })).toMatchObject({ status: 401 });
  },
);
