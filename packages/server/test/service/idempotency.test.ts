/** Idempotency keys: the same request again is the same run, another request under the key is refused. */
import { isStatewrightError, memoryStore } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { describe, expect, test } from "vitest";
import type { StartRequest } from "../../src/index.ts";
import { createTestServices, never, startWaiting } from "../support/create-test-services.ts";
import { openTestStore, storeKinds } from "../support/test-store.ts";

const request: StartRequest = { graph: "poem", input: { topic: "quick" }, key: "k1", metadata: { n: 1 } };
const getCode = (error: unknown): string => (isStatewrightError(error) ? error.code : String(error));

describe.each(storeKinds)("in a store of kind %s", (kind) => {
  test("a repeated start under a key finds the run of the first, before and after its end [V15]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const first = await service.startRun("t", request);
    const during = await service.startRun("t", request);
    await service.waitForRun(first.run.id, never);
    const after = await service.startRun("t", request);
    expect(first.isNew).toBe(true);
    expect([during, after].map(({ run, isNew, after }) => [run.id, isNew, after])).toEqual([
      [first.run.id, false, first.after],
      [first.run.id, false, first.after],
    ]);
    expect((await service.listRuns("t", {})).data).toHaveLength(1);
  });

  test("another graph, input, metadata or answer under a used key is refused and changes nothing [V15]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run } = await service.startRun("t", request);
    await service.waitForRun(run.id, never);
    const others: readonly Partial<StartRequest>[] = [
      { input: { topic: "other" } },
      { metadata: { n: 2 } },
      { graph: "review", input: { draft: "x" } },
    ];
    for (const other of others)
      expect(await service.startRun("t", { ...request, ...other }).catch(getCode)).toMatch(/key_reused|graph_changed/);
    const { interrupt } = await startWaiting(service, "w");
    const answers = { [interrupt]: { approved: true } };
    await service.answer("w", { answers, key: "a1" });
    expect(await service.answer("w", { answers: { [interrupt]: { approved: false } }, key: "a1" }).catch(getCode)).toBe(
      "key_reused",
    );
    expect(await service.startRun("w", { ...request, key: "a1" }).catch(getCode)).toBe("key_reused");
    expect(await service.answer("t", { answers, key: "k1" }).catch(getCode)).toBe("key_reused");
    expect((await service.listRuns("t", {})).data).toHaveLength(1);
  });

  test("the same answers under one key are taken once, while the run works and after its end [V15]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run, interrupt } = await startWaiting(service, "t");
    const answer = { answers: { [interrupt]: { approved: true } }, key: "a1" };
    const taken = await Promise.all([1, 2, 3].map(() => service.answer("t", answer)));
    expect(new Set(taken.map((each) => each.run.id))).toEqual(new Set([run]));
    expect(taken.filter(({ isNew }) => isNew)).toHaveLength(1);
    expect((await service.waitForRun(run, never)).status).toBe("done");
    expect((await service.answer("t", answer)).isNew).toBe(false);
    expect((await service.getState("t")).values["notes"]).toEqual(["wrote about boats", "approved"]);
  });

  test("100 concurrent starts under one key start one run, whose first caller alone is told that it is new [V15]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const started = await Promise.all(Array.from({ length: 100 }, () => service.startRun("t", request)));
    expect(new Set(started.map(({ run }) => run.id)).size).toBe(1);
    expect(started.filter(({ isNew }) => isNew)).toHaveLength(1);
    expect((await service.listRuns("t", {})).data).toHaveLength(1);
  });
});

test("a start that was saved before its process died is found under its key, and continued by the next process [V15]", async () => {
  const store = memoryStore();
  const first = await createTestServices(store, { dies: true }).service.startRun("t", request);
  const peer = store.peer();
  store.crash();
  const { service, host } = createTestServices(peer);
  const again = await service.startRun("t", request);
  expect([again.run.id, again.isNew]).toEqual([first.run.id, false]);
  await host.start();
  expect((await service.waitForRun(first.run.id, never)).status).toBe("done");
  expect((await service.listRuns("t", {})).data).toHaveLength(1);
});

test("a start whose save fails leaves nothing, and the same request again starts the run [V118]", async () => {
  const store = memoryStore();
  const { service } = createTestServices(store, { dies: true });
  const peer = store.peer();
  const starting = service.startRun("t", request);
  store.crash();
  expect(await starting.catch(getCode)).toBe("store_closed");
  expect(await peer.thread("t.acme.t")).toBeUndefined();
  const again = await createTestServices(peer).service.startRun("t", request);
  expect(again.isNew).toBe(true);
});
