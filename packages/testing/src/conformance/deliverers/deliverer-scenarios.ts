/** Scenarios of the deliverer suite. Each one opens a deliverer of its own. */
import { cancelRun, steer } from "@statewright/core";
import type { Delivery, DeliveryResult } from "@statewright/core/adapter";
import { assertEqual, assertTrue } from "../assert.ts";
import { askExpiresMs, createDelivererGraphs, hasEffectAtMost } from "./deliverer-graphs.ts";
import { type DelivererTest, type DelivererUnderTest, defineDelivererTest } from "./deliverer-test.ts";
import { holdEffect, listEffects, waitUntil } from "./external-effects.ts";

const day = 86_400_000;

function createRun(thread: string, graph: string, key = `run-${thread}`): Delivery {
  return { thread, key, run: { graph, input: { log: [] } } };
}

/** Log of a run with the status `done`. */
function getLog({ status, output, error }: DeliveryResult): unknown {
  if (status !== "done") throw new Error(`expected a run that is done, got ${status}: ${JSON.stringify(error)}`);
  return (output as { readonly log?: unknown }).log;
}

async function waitForEffects({ folder }: DelivererUnderTest, name: string, count: number): Promise<void> {
  await waitUntil(`${count} effects "${name}"`, () => listEffects(folder, name).length >= count);
}

/** Holds two effects of the graph `calls`, and delivers a run up to them. */
async function deliverHeldCalls(deliverer: DelivererUnderTest, thread: string) {
  const releases = ["send", "pay"].map((name) => holdEffect(deliverer.folder, name));
  const result = deliverer.deliver(createRun(thread, "calls"));
  // A rejection is awaited later.
  result.catch(() => undefined);
  await waitForEffects(deliverer, "pay", 1);
  await waitForEffects(deliverer, "send", 1);
  await waitUntil("the recorded outcome of the effect that is done", async () =>
    (await deliverer.store.effects(thread, "main")).some(({ key, state }) => key === "done" && state === "ok"),
  );
  return { result, release: () => releases.map((release) => release()) };
}

/** Checks the run of `calls` whose worker ended in mid-call, and answers about its call in doubt. */
async function checkInterruptedCalls(
  deliverer: DelivererUnderTest,
  thread: string,
  result: DeliveryResult,
): Promise<void> {
  const { folder } = deliverer;
  assertEqual(
    [result.status, result.interrupts.map(({ key }) => key)],
    ["waiting", ["in_doubt"]],
    "the interrupted run",
  );
  const answers = { in_doubt: { happened: true, value: "pay done" } };
  const done = await deliverer.deliver({ thread, key: `answer-${thread}`, answers });
  assertEqual(getLog(done), ["model done", "done done", "send done", "pay done"], "the log of the interrupted run");
  assertEqual(
    ["model", "done", "pay"].map((name) => listEffects(folder, name).length),
    [1, 1, 1],
    "the number of effects that must not repeat",
  );
  const sent = listEffects(folder, "send");
  assertEqual(
    [sent.length, new Set(sent.map(({ key }) => key)).size],
    [2, 1],
    "the repeats and keys of the idempotent effect",
  );
}

export const delivererScenarios: readonly DelivererTest[] = [
  defineDelivererTest(
    "a run continues when its worker is killed in mid-call [PK16, PA1]",
    ["kill"],
    async (deliverer) => {
      const { result, release } = await deliverHeldCalls(deliverer, "a");
      await deliverer.kill();
      release();
      await checkInterruptedCalls(deliverer, "a", await result);
    },
  ),

  defineDelivererTest(
    "a run in mid-call ends as if undisturbed when the server of the orchestrator is killed [PK16, PA2]",
    ["server"],
    async (deliverer) => {
      const { result, release } = await deliverHeldCalls(deliverer, "a");
      await deliverer.server();
      release();
      const done = await result;
      assertEqual(getLog(done), ["model done", "done done", "send done", "pay done"], "the log of the run");
      assertTrue(hasEffectAtMost(deliverer.folder, "pay", 1), "expected one start of the once effect");
    },
  ),

  defineDelivererTest(
    "a stopped worker is displaced, and its call that has not happened yet is in doubt [PK16, PA4]",
    ["stop"],
    async (deliverer) => {
      const release = holdEffect(deliverer.folder, "pay");
      const result = deliverer.deliver(createRun("a", "transfer"));
      result.catch(() => undefined);
      await waitForEffects(deliverer, "pay", 1);
      const resume = await deliverer.stop();
      const { status, interrupts } = await result;
      assertEqual(
        [status, interrupts.map(({ key }) => key)],
        ["waiting", ["in_doubt"]],
        "the run of the stopped worker",
      );
      release();
      await resume();
      const answers = { in_doubt: { happened: true, value: "pay done" } };
      const done = await deliverer.deliver({ thread: "a", key: "answer-a", answers });
      assertEqual(getLog(done), ["pay done"], "the log of the run after its displaced worker woke");
      assertEqual(listEffects(deliverer.folder, "pay").length, 1, "the number of once effects after the worker woke");
    },
  ),

  defineDelivererTest(
    "runs that wait continue on new and on old code after a deploy and a rollback [PK16, PA5]",
    ["workers"],
    async (deliverer) => {
      for (const thread of ["a", "b"]) await deliverer.deliver(createRun(thread, "desk"));
      await deliverer.workers({ version: 2 });
      const first = await deliverer.deliver({ thread: "a", key: "answer-a", answers: { confirm: "yes" } });
      assertEqual(getLog(first), ["first done", "yes", "last done", "version 2"], "the run after the deploy");
      await deliverer.workers({ version: 1 });
      const second = await deliverer.deliver({ thread: "b", key: "answer-b", answers: { confirm: "yes" } });
      assertEqual(getLog(second), ["first done", "yes", "last done", "version 1"], "the run after the rollback");
    },
  ),

  defineDelivererTest(
    "an interrupt expires by the clock of the orchestrator, whatever the clocks of the workers are [PK16, PA6]",
    ["workers", "advance"],
    async (deliverer) => {
      for (const [nth, clockOffsetMs] of [askExpiresMs, -askExpiresMs].entries()) {
        const thread = `t${nth}`;
        await deliverer.workers({ clockOffsetMs });
        const waiting = await deliverer.deliver(createRun(thread, "desk"));
        assertTrue(waiting.next !== undefined, "expected the due time of the interrupt");
        await deliverer.advance(askExpiresMs - 60_000);
        const early = await deliverer.deliver({ thread, timers: true });
        assertEqual([early.status, early.next], ["waiting", waiting.next], "the run before the expiry");
        await deliverer.workers({ clockOffsetMs: -clockOffsetMs });
        await deliverer.advance(61_000);
        const done = await deliverer.deliver({ thread, timers: true });
        assertEqual(getLog(done), ["first done", "expired", "last done", "version 1"], "the run after the expiry");
      }
    },
  ),

  defineDelivererTest(
    "a delivery has one run and one answer, however often its key is delivered, concurrently and late [PK16, PA11]",
    [],
    async (deliverer) => {
      const deliverMany = (count: number) =>
        Promise.all(Array.from({ length: count }, () => deliverer.deliver(createRun("a", "pass"))));
      const [first, ...others] = [...(await deliverMany(500)), ...(await deliverMany(500))];
      for (const other of others) assertEqual(other, first, "a repeated delivery");
      assertEqual((await deliverer.store.runs({ thread: "a" })).length, 1, "the number of runs");
      assertTrue(hasEffectAtMost(deliverer.folder, "pass", 1), "expected one effect under its key");
      assertEqual(listEffects(deliverer.folder, "pass").length, 1, "the number of effects");
    },
  ),

  defineDelivererTest(
    "a run that waits for 60 days without a worker continues on the current code, and its timer fires once [PK16, PA12]",
    ["workers", "advance"],
    async (deliverer) => {
      await deliverer.deliver(createRun("a", "desk"));
      await deliverer.workers({ version: 2 });
      await deliverer.advance(60 * day);
      const results = await Promise.all([1, 2, 3].map(() => deliverer.deliver({ thread: "a", timers: true })));
      for (const result of results)
        assertEqual(getLog(result), ["first done", "expired", "last done", "version 2"], "the run after 60 days");
      assertEqual(listEffects(deliverer.folder, "last").length, 1, "the number of effects after the timer");
    },
  ),

  defineDelivererTest(
    "a run that kills its worker each time is parked, and the others end [PK16, PA15]",
    ["kill"],
    async (deliverer) => {
      const release = holdEffect(deliverer.folder, "first");
      const poisoned = deliverer.deliver(createRun("poison", "desk"));
      poisoned.catch(() => undefined);
      for (let deaths = 1; deaths <= 5; deaths++) {
        await waitForEffects(deliverer, "first", deaths);
        await deliverer.kill();
      }
      await waitUntil(
        "a parked run",
        async () => (await deliverer.store.runs({ thread: "poison", status: "parked" })).length > 0,
      );
      release();
      assertEqual((await poisoned).status, "parked", "the status of the run that kills its workers");
      assertEqual((await deliverer.deliver(createRun("other", "pass"))).status, "done", "the status of another run");
    },
  ),

  defineDelivererTest(
    "a stale attempt that wakes is fenced, and the run ends once [PK16, PA16]",
    ["stop"],
    async (deliverer) => {
      const release = holdEffect(deliverer.folder, "pass");
      const result = deliverer.deliver(createRun("a", "pass"));
      await waitForEffects(deliverer, "pass", 1);
      const resume = await deliverer.stop();
      await waitForEffects(deliverer, "pass", 2);
      await resume();
      release();
      assertEqual(getLog(await result), ["pass done"], "the log of the run");
      assertEqual((await deliverer.store.runs({ thread: "a", status: "done" })).length, 1, "the number of runs");
      assertTrue(
        new Set(listEffects(deliverer.folder).map(({ key }) => key)).size === 1,
        "expected one key of the effect",
      );
    },
  ),

  defineDelivererTest(
    "a message for a run in a long call is taken once at its next boundary [PK16, PA18]",
    [],
    async (deliverer) => {
      const release = holdEffect(deliverer.folder, "first");
      const waiting = deliverer.deliver(createRun("a", "desk"));
      await waitForEffects(deliverer, "first", 1);
      const message = { thread: "a", key: "m", message: { kind: "steer", messages: "hurry" } } as const;
      await Promise.all([deliverer.deliver(message), deliverer.deliver(message)]);
      release();
      await waiting;
      await deliverer.deliver(message);
      const done = await deliverer.deliver({ thread: "a", key: "answer", answers: { confirm: "yes" } });
      const { messages } = done.output as { readonly messages: readonly unknown[] };
      assertEqual(messages.length, 1, "the number of messages in the conversation");
    },
  ),

  defineDelivererTest(
    "a follow-up and a cancel of another process, sent during a call, are taken once after it [PK16, PA18]",
    [],
    async (deliverer) => {
      const { folder, store } = deliverer;
      const release = holdEffect(folder, "reply");
      const talking = deliverer.deliver(createRun("a", "chat"));
      await waitForEffects(deliverer, "reply", 1);
      const chat = createDelivererGraphs(folder).find(({ name }) => name === "chat");
      if (chat === undefined) throw new Error("expected the graph chat");
      await steer(chat, { store, thread: "a", kind: "followUp", input: "and a receipt" });
      release();
      assertEqual(getLog(await talking), ["reply done", "reply done"], "the log of the run with a follow-up");
      assertEqual(listEffects(folder, "reply").length, 2, "the number of effects of the run with a follow-up");

      const releaseModel = holdEffect(folder, "model");
      const running = deliverer.deliver(createRun("b", "calls"));
      await waitForEffects(deliverer, "model", 1);
      const { status } = await cancelRun(store, { thread: "b", reason: "the customer left" });
      assertEqual(status, "requested", "the status of the cancel of another process");
      releaseModel();
      assertEqual((await running).status, "cancelled", "the status of the cancelled run");
      assertEqual(listEffects(folder, "pay").length, 0, "the number of effects after the cancel");
      const later = await deliverer.deliver(createRun("b", "calls", "later"));
      assertEqual(later.status, "done", "the status of a later run");
    },
  ),

  defineDelivererTest(
    "a cancel ends a run in a long call once, and no later run [PK16, PA18]",
    [],
    async (deliverer) => {
      const release = holdEffect(deliverer.folder, "pass");
      const running = deliverer.deliver(createRun("a", "pass"));
      await waitForEffects(deliverer, "pass", 1);
      const cancel = { thread: "a", key: "c", cancel: "the customer left" } as const;
      await Promise.all([deliverer.deliver(cancel), deliverer.deliver(cancel)]);
      release();
      assertEqual((await running).status, "cancelled", "the status of the cancelled run");
      const later = await deliverer.deliver(createRun("a", "pass", "later"));
      assertEqual((await deliverer.deliver(cancel)).status, "cancelled", "the result of a late cancel");
      assertEqual(later.status, "done", "the status of a later run");
    },
  ),

  defineDelivererTest(
    "the runs of a thread begin in the order of their deliveries [PK16, PK1]",
    [],
    async (deliverer) => {
      const release = holdEffect(deliverer.folder, "pass");
      const keys = Array.from({ length: 6 }, (_, nth) => `k${nth}`);
      const results = keys.map((key) => deliverer.deliver(createRun("a", "pass", key)));
      await waitForEffects(deliverer, "pass", 1);
      release();
      for (const result of results) assertEqual((await result).status, "done", "the status of a run");
      const started = await deliverer.store.runs({ thread: "a", order: "oldest" });
      assertEqual(
        started.map(({ key }) => key),
        keys,
        "the keys of the runs in their order",
      );
    },
  ),
];
