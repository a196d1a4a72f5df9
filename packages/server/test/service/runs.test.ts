/** Runs of callers: start, wait, answer, continue, cancel. */

import { systemWorld } from "@statewright/core/adapter";
import { describe, expect, test } from "vitest";
import { createTestServices, never } from "../support/create-test-services.ts";
import { openTestStore, storeKinds } from "../support/test-store.ts";

describe.each(storeKinds)("in a store of kind %s", (kind) => {
  test("a run starts, waits for an answer, and ends with it", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const started = await service.startRun("t1", { graph: "poem", input: { topic: "boats" }, metadata: { n: 1 } });
    expect(started).toMatchObject({ isNew: true, after: 0 });
    expect(started.run).toMatchObject({ thread: "t1", graph: "poem", owner: "ann", metadata: { n: 1 } });
    const waiting = await service.waitForRun(started.run.id, never);
    expect(waiting.status).toBe("waiting");
    const state = await service.getState("t1");
    expect(state).toMatchObject({ thread: "t1", next: ["ask"], values: { notes: ["wrote about boats"] } });
    expect(Object.keys(state.values)).not.toContain("secretPlan");
    const [interrupt] = state.interrupts;
    const answered = await service.answer("t1", { answers: { [interrupt?.id ?? ""]: { approved: true } } });
    expect(answered.isNew).toBe(true);
    expect(answered.run.id).toBe(started.run.id);
    expect((await service.waitForRun(started.run.id, never)).status).toBe("done");
    expect((await service.getState("t1")).values["notes"]).toEqual(["wrote about boats", "approved"]);
    const events: string[] = [];
    for await (const frame of await service.streamEvents("t1", { end: "idle", signal: never })) events.push(frame.type);
    expect(events.filter((type) => type.startsWith("run."))).toEqual([
      "run.started",
      "run.waiting",
      "run.started",
      "run.completed",
    ]);
    const states = await service.listStates("t1", {});
    expect(states.data.map(({ step }) => step)).toEqual([2, 1, 0]);
  });
});
