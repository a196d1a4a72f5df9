/** Streams of a served engine: their number per caller, and the form of a refusal. */
import { expect, test } from "vitest";
import { createTestServer } from "../support/create-test-server.ts";

test("the 33rd stream of a caller is refused over HTTP with 429 and a Retry-After header, until one is closed [V117]", async () => {
  const { send, store, clock } = await createTestServer();
  await send("/api/threads", { body: { id: "t" } });
  await send("/api/threads", { body: { id: "t" }, as: "bob" });
  const streams = [];
  for (let count = 0; count < 32; count++) streams.push(await send("/api/threads/t/events"));
  expect(streams.every(({ status }) => status === 200)).toBe(true);
  const refused = await send("/api/threads/t/events");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(await refused.json()).toMatchObject({ code: "too_many_streams", status: 429 });
  const other = await send("/api/threads/t/events", { as: "bob" });
  expect(other.status).toBe(200);
  await streams[0]?.body?.cancel();
  const next = await send("/api/threads/t/events");
  expect(next.status).toBe(200);
  await Promise.all([...streams.slice(1), other, next].map((response) => response.body?.cancel()));
  await clock.waitUntilIdle();
  expect(await store.threads()).toHaveLength(2);
});
