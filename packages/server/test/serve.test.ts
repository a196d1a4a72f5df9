/** Server over an engine: requests of two tenants to the threads of a store. */
import { expect, test } from "vitest";
import { createTestServer, testTokens } from "./support/create-test-server.ts";
import { echoProtocol } from "./support/echo-protocol.ts";
import { storeKinds } from "./support/test-store.ts";

test.each(storeKinds)(
  "a run starts, waits for approval, is answered and ends over HTTP, with a %s store [V1]",
  async (store) => {
    const { sendJson, send, transfers, clock } = await createTestServer({ store, protocols: [echoProtocol] });
    const started = await sendJson("/echo/threads/t/runs", { body: { graph: "assistant", texts: ["transfer"] } });
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

test("a request with more messages or answers than the limits is refused with 413, and saves nothing [V114]", async () => {
  const { sendJson, store } = await createTestServer({
    protocols: [echoProtocol],
    limits: { messages: 1, answers: 1 },
  });
  const many = { graph: "assistant", texts: ["one", "two"] };
  expect(await sendJson("/echo/threads/t/runs", { body: many })).toMatchObject({
    status: 413,
    body: { code: "body_too_large", detail: "Expected at most 1 messages in a request, got 2." },
  });
  expect(await store.thread("t.acme.t")).toBeUndefined();
  const answers = { one: true, two: true };
  expect(await sendJson("/echo/threads/t/answers", { body: { answers } })).toMatchObject({ status: 413 });
});

test("each change has one audit line with its caller, action, ids and result, and without content [V113]", async () => {
  const entries: unknown[] = [];
  const { sendJson } = await createTestServer({
    protocols: [echoProtocol],
    onAudit: (entry) => entries.push(entry),
  });
  await sendJson("/echo/threads/t/runs", { body: { graph: "assistant", texts: ["private words"] } });
  await sendJson("/echo/threads/t", { as: "amy" });
  await sendJson("/echo/threads/t/answers", { as: "amy", body: { answers: { unknown: "private answer" } } });
  const parts = { tenant: "acme", protocol: "echo", thread: "t", at: expect.any(Number) };
  expect(entries).toEqual([
    { ...parts, caller: "ann", action: "run.start", act: "startRun", run: expect.any(String), result: "done" },
    { ...parts, caller: "amy", action: "run.answer", act: "answer", result: expect.stringMatching(/^[a-z_]+$/) },
  ]);
  expect(JSON.stringify(entries)).not.toContain("private");
});

test("an open stream ends when its token expires, and when the host revokes its caller [V105]", async () => {
  const expired = new Set<string>();
  const { server, send, clock } = await createTestServer({
    protocols: [echoProtocol],
    access: {
      authenticate: ({ headers }) => {
        const id = headers.get("authorization") ?? "";
        return expired.has(id) ? undefined : { id: id.includes("ann") ? "ann" : "amy", tenant: "acme" };
      },
    },
  });
  await send("/echo/threads/t/runs", { body: { graph: "assistant", texts: ["hello"] } });
  const open = async (as: "ann" | "amy") => {
    const response = await send("/echo/threads/t/events", { as });
    let text = "";
    const ended = (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) text += decoder.decode(chunk);
      return text;
    })();
    return { ended, hasText: (part: string) => text.includes(part) };
  };
  const ann = await open("ann");
  const amy = await open("amy");
  await clock.advance(120_000);
  expect(ann.hasText("access_ended")).toBe(false);
  expired.add(`Bearer ${testTokens.ann}`);
  await clock.advance(60_000);
  expect(await ann.ended).toMatch(/: access_ended\n$/);
  expect(amy.hasText("access_ended")).toBe(false);
  expired.add(`Bearer ${testTokens.amy}`);
  await server.revoke({ id: "amy", tenant: "acme" });
  expect(await amy.ended).toMatch(/: access_ended\n$/);
});
