/** Answers of callers: by id, once, checked, and recorded with their author. */
import { isStatewrightError, memoryStore } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { describe, expect, test } from "vitest";
import { RequestProblem } from "../../src/http/problem.ts";
import { ann, createTestServices, never, startWaiting } from "../support/create-test-services.ts";
import { openTestStore, storeKinds } from "../support/test-store.ts";

const getCode = (error: unknown): string => {
  if (error instanceof RequestProblem) return error.problem.code;
  return isStatewrightError(error) ? error.code : String(error);
};

describe.each(storeKinds)("in a store of kind %s", (kind) => {
  test("an interrupt is answered once, by its id, with a value that fits its schema [V30]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run, interrupt } = await startWaiting(service, "t");
    const refuse = (answers: Record<string, unknown>) => service.answer("t", { answers }).catch(getCode);
    expect(await refuse({})).toBe("invalid_request");
    expect(await refuse({ approve: { approved: true } })).toBe("unknown_interrupt");
    expect(await refuse({ [interrupt]: { approved: "yes" } })).toBe("invalid_answer");
    expect((await service.getRun(run)).status).toBe("waiting");
    const racing = await Promise.all(
      [true, false].map((approved) => service.answer("t", { answers: { [interrupt]: { approved } } }).catch(getCode)),
    );
    expect(racing.filter((outcome) => outcome === "already_answered")).toHaveLength(1);
    await service.waitForRun(run, never);
    expect(await refuse({ [interrupt]: { approved: false } })).toBe("already_answered");
    expect((await service.getState("t")).values["notes"]).toHaveLength(2);
  });

  test("the record of an answer names its caller, whatever the answer says [V106]", async () => {
    const store = openTestStore(kind, systemWorld());
    const { services, service } = createTestServices(store);
    const { run, interrupt } = await startWaiting(service, "t");
    const eve = services.forCaller({ ...ann, id: "eve" }, "native");
    await eve.answer("t", { answers: { [interrupt]: { approved: true, by: "ann", answeredBy: "ann" } } });
    await service.waitForRun(run, never);
    const [row] = await store.interrupts("t.acme.t", "main");
    expect(row).toMatchObject({ id: interrupt, answeredBy: "eve" });
  });

  test("an answer for another checkpoint than the head is refused and changes nothing [V23]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run, interrupt } = await startWaiting(service, "t");
    const { checkpoint } = await service.getState("t");
    const answers = { [interrupt]: { approved: true } };
    expect(await service.answer("t", { answers, ifCheckpoint: checkpoint - 1 }).catch(getCode)).toBe(
      "checkpoint_changed",
    );
    expect((await service.getRun(run)).status).toBe("waiting");
    await service.answer("t", { answers, ifCheckpoint: checkpoint });
    expect((await service.waitForRun(run, never)).status).toBe("done");
  });

  test("an answer to an interrupt of a branch that the head has left is refused, and taken with the name of the branch [V30]", async () => {
    const { service } = createTestServices(openTestStore(kind, systemWorld()));
    const { run, interrupt } = await startWaiting(service, "t");
    await service.fork("t", { at: 1, name: "other", moveHead: true });
    const answers = { [interrupt]: { approved: true } };
    expect(await service.answer("t", { answers }).catch(getCode)).toBe("checkpoint_changed");
    expect((await service.getRun(run)).status).toBe("waiting");
    await service.answer("t", { answers, branch: "main" });
    expect((await service.waitForRun(run, never)).status).toBe("done");
  });

  test("the right to answer is a right of its own [V106]", async () => {
    const store = openTestStore(kind, systemWorld());
    const { interrupt } = await startWaiting(createTestServices(store).service, "t");
    const { service } = createTestServices(store, { authorize: (_caller, { action }) => action !== "run.answer" });
    expect(await service.answer("t", { answers: { [interrupt]: { approved: true } } }).catch(getCode)).toBe(
      "forbidden",
    );
    const { run } = await service.startRun("u", { graph: "poem", input: { topic: "quick" } });
    expect((await service.waitForRun(run.id, never)).status).toBe("done");
  });
});

test("of two processes that answer one interrupt at the same time, one is told that it has an answer [V30]", async () => {
  const store = memoryStore();
  const one = createTestServices(store).service;
  const other = createTestServices(store.peer()).service;
  const { run, interrupt } = await startWaiting(one, "t");
  const answers = [true, false].map((approved) => ({ answers: { [interrupt]: { approved } } }));
  const outcomes = await Promise.all(
    [one, other].map((service, index) => service.answer("t", answers[index] ?? { answers: {} }).catch(getCode)),
  );
  expect(outcomes.filter((outcome) => outcome === "already_answered")).toHaveLength(1);
  expect((await one.waitForRun(run, never)).status).toBe("done");
  expect((await other.getState("t")).values["notes"]).toHaveLength(2);
});
