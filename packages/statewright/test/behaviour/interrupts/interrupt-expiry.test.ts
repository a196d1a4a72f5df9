/** Interrupts with an expiry, in memory and in a file. */
import { call, say, scriptedModel, type VirtualClock, virtualClock } from "@statewright/testing";
import {
  channel,
  createAgent,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  fork,
  getState,
  listInterrupts,
  resume,
  run,
  START,
  subgraph,
  updateState,
} from "statewright";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { crashAt, getFailure, ignoreResult, type Place, places } from "../../support/both-stores.ts";

const hour = 3_600_000;
const start = 1_000_000;
const Log = defineState({ log: channel.list(z.string()) });

/** Raises an interrupt with a declared answer for its expiry, next to one without expiry. */
const offer = defineGraph({
  name: "offer",
  state: Log,
  interrupts: {
    accept: {
      answer: z.object({ ok: z.boolean(), note: z.string().default("none") }),
      expiresMs: hour,
      onExpire: { ok: false },
    },
    sign: z.string(),
  },
})
  .nodes({
    ask: async (_state, { interrupt }) => {
      const { ok, note } = await interrupt("accept", { payload: { price: 7 } });
      return { log: [`accepted ${ok}, ${note}`] };
    },
    sign: async (_state, { interrupt }) => ({ log: [`signed ${await interrupt("sign")}`] }),
  })
  .edges({ [START]: "ask", ask: "sign", sign: END });

/** Raises an interrupt without a declared answer, and handles the expiry error as given. */
function strict(does: "catch" | "handle" | "fail") {
  const graph = defineGraph({
    name: "strict",
    state: Log,
    interrupts: { go: { answer: z.string(), expiresMs: hour } },
  });
  const ask = async (_state: unknown, { interrupt }: { interrupt: (key: "go") => Promise<string> }) => {
    try {
      return { log: [await interrupt("go")] };
    } catch (error) {
      if (does !== "catch") throw error;
      return { log: [`caught ${(error as { code: string }).code}`] };
    }
  };
  const handled = {
    run: ask,
    onError: (_: unknown, { error }: { error: { code: string } }) => ({ log: [error.code] }),
  };
  return graph.nodes({ ask: does === "handle" ? handled : ask }).edges({ [START]: "ask", ask: END });
}

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let world: VirtualClock;

  beforeEach(() => {
    place = open();
    world = virtualClock({ now: start });
  });
  afterEach(() => place.close());

  const timers = async () =>
    (await place.store.timers()).map(({ branch, id, kind, dueAt, about }) => [branch, id, kind, dueAt, about]);

  async function runToInterrupt(thread = "t"): Promise<void> {
    const { store } = place;
    expect(await run(offer, { store, thread, world }).result).toMatchObject({
      status: "waiting",
      interrupts: [{ id: "0:0:accept", key: "accept", expiresAt: start + hour }],
    });
  }

  test("an open interrupt has a timer, and its declared answer is used when the timer expires [E63]", async () => {
    const { store } = place;
    await runToInterrupt();
    expect(await timers()).toEqual([["main", "0:0:accept", "expiry", start + hour, "accept"]]);
    await world.advance(hour - 1);
    expect(await resume(offer, { store, thread: "t", world }).result).toMatchObject({
      status: "waiting",
      interrupts: [{ id: "0:0:accept", expiresAt: start + hour }],
    });
    expect(await store.timers({ dueBy: world.clock.now() })).toEqual([]);
    await world.advance(1);
    expect((await store.timers({ dueBy: world.clock.now() })).map(({ thread }) => thread)).toEqual(["t"]);
    const next = await resume(offer, { store, thread: "t", world }).result;
    expect(next).toMatchObject({
      status: "waiting",
      state: { log: ["accepted false, none"] },
      interrupts: [{ key: "sign" }],
    });
    expect(next.status === "waiting" && next.interrupts[0]?.expiresAt).toBeUndefined();
    expect(await timers()).toEqual([]);
  });

  test("an answer before the expiry counts and removes the timer [E63]", async () => {
    const { store } = place;
    await runToInterrupt();
    await world.advance(hour - 1);
    const answers = { accept: { ok: true, note: "fine" } };
    const next = await resume(offer, { store, thread: "t", world, answers, by: "ann" }).result;
    expect(next.state.log).toEqual(["accepted true, fine"]);
    expect(await timers()).toEqual([]);
    await world.advance(hour);
    expect((await resume(offer, { store, thread: "t", world }).result).state.log).toEqual(["accepted true, fine"]);
  });

  test("an answer after the expiry fails with the used answer and changes nothing, and a plain resume continues [E63]", async () => {
    const { store } = place;
    await runToInterrupt();
    await world.advance(hour);
    const answers = { accept: { ok: true } };
    const late = await getFailure(resume(offer, { store, thread: "t", world, answers }).result, "already_answered");
    expect(late.details).toEqual({
      interrupt: "0:0:accept",
      answer: { ok: false, note: "none" },
      answeredAt: start + hour,
      expiredAt: start + hour,
    });
    expect(await getState(offer, { store, thread: "t" })).toMatchObject({ status: "waiting", answered: [] });
    expect(await timers()).toHaveLength(1);
    await world.advance(5);
    await resume(offer, { store, thread: "t", world }).result;
    const after = await getFailure(resume(offer, { store, thread: "t", world, answers }).result, "already_answered");
    expect(after.details).toMatchObject({ answer: { ok: false }, expiredAt: start + hour + 5 });
  });

  test("an expired interrupt without a declared answer throws a typed error that the node can catch [E63]", async () => {
    const { store } = place;
    const graph = strict("catch");
    await run(graph, { store, thread: "t", world }).result;
    await world.advance(hour);
    const late = resume(graph, { store, thread: "t", world, answers: { go: "yes" } }).result;
    expect((await getFailure(late, "interrupt_expired")).details).toEqual({
      id: "0:0:go",
      key: "go",
      raisedAt: start,
      expiresAt: start + hour,
      expiredAt: start + hour,
    });
    const { status, state } = await resume(graph, { store, thread: "t", world }).result;
    expect([status, state.log]).toEqual(["done", ["caught interrupt_expired"]]);
    expect(await timers()).toEqual([]);
    const after = resume(graph, { store, thread: "t", world, answers: { go: "yes" } }).result;
    expect((await getFailure(after, "interrupt_expired")).details).toMatchObject({ expiredAt: start + hour });
  });

  test("an interrupt expiry error goes to the error handler of the node [E63]", async () => {
    const { store } = place;
    const graph = strict("handle");
    await run(graph, { store, thread: "t", world }).result;
    await world.advance(hour);
    expect((await resume(graph, { store, thread: "t", world }).result).state.log).toEqual(["interrupt_expired"]);
  });

  test("an unhandled interrupt expiry fails the run, and a fork from before asks again with a new expiry [E63]", async () => {
    const { store } = place;
    const graph = strict("fail");
    await run(graph, { store, thread: "t", world }).result;
    const { checkpointId: at } = await getState(graph, { store, thread: "t" });
    await world.advance(hour);
    for (let nth = 0; nth < 2; nth++) {
      const error = await getFailure(resume(graph, { store, thread: "t", world }).result, "interrupt_expired");
      expect(error.place).toMatchObject({ node: "ask", thread: "t" });
    }
    expect(await getState(graph, { store, thread: "t" })).toMatchObject({
      status: "failed",
      interrupts: [],
      answered: [{ key: "go", expiredAt: start + hour }],
    });
    const branch = await fork(graph, { store, thread: "t", at, name: "again", world });
    expect(await resume(graph, { store, thread: "t", branch, world }).result).toMatchObject({
      status: "waiting",
      interrupts: [{ id: "again.0:0:go", expiresAt: start + 2 * hour }],
    });
    const { state } = await resume(graph, { store, thread: "t", branch, world, answers: { go: "yes" } }).result;
    expect(state.log).toEqual(["yes"]);
  });

  test("of two processes that handle an expired interrupt one closes it, and both see the same result [E63]", async () => {
    await runToInterrupt();
    await world.advance(hour);
    const stores = [place.store, place.peer()];
    const both = await Promise.allSettled(stores.map((store) => resume(offer, { store, thread: "t", world }).result));
    expect(both.map(({ status }) => status)).toContain("fulfilled");
    for (const end of both)
      if (end.status === "rejected") expect(end.reason).toMatchObject({ code: "thread_busy" });
      else expect(end.value.state.log).toEqual(["accepted false, none"]);
    const again = await resume(offer, { store: place.peer(), thread: "t", world }).result;
    expect([again.status, again.state.log]).toEqual(["waiting", ["accepted false, none"]]);
  });

  test.each(["before", "after"] as const)(
    "a process that dies %s the commit of an expiry leaves it to the next process, once [E63]",
    async (when) => {
      await runToInterrupt();
      await world.advance(hour);
      const dying = crashAt(place.store, ({ interrupts = [] }) => interrupts.length > 0, when);
      ignoreResult(resume(offer, { store: dying.store, thread: "t", world }).result);
      await dying.dead;
      const next = place.crash();
      await world.advance(9);
      expect((await resume(offer, { store: next, thread: "t", world }).result).state.log).toEqual([
        "accepted false, none",
      ]);
      const { answered } = await getState(offer, { store: next, thread: "t", at: 1 });
      const expiredAt = start + hour + (when === "before" ? 9 : 0);
      expect(answered).toMatchObject([{ key: "accept", answer: { ok: false }, expiredAt }]);
      expect(await next.timers()).toEqual([]);
    },
  );

  test("an expired interrupt is no longer listed, and its thread is found by the timer", async () => {
    const { store } = place;
    await runToInterrupt("t");
    await world.advance(5);
    await run(offer, { store, thread: "u", world }).result;
    expect((await listInterrupts(store, { world })).map(({ thread }) => thread)).toEqual(["u", "t"]);
    await world.advance(hour - 5);
    expect((await listInterrupts(store, { world })).map(({ thread }) => thread)).toEqual(["u"]);
    for (const { thread, branch } of await store.timers({ dueBy: world.clock.now() }))
      await resume(offer, { store, thread, branch, world }).result;
    expect((await listInterrupts(store, { world })).map(({ thread, key }) => [thread, key])).toEqual([
      ["t", "sign"],
      ["u", "accept"],
    ]);
  });

  test("a failed or cancelled run, an update, and a superstep that drops the interrupt remove its timer", async () => {
    const { store } = place;
    let failing = true;
    const two = defineGraph({
      name: "two",
      state: Log,
      interrupts: { slow: { answer: z.string(), expiresMs: hour }, go: z.string() },
    })
      .nodes({
        slow: async (_state, { interrupt }) => {
          if (failing) await interrupt("slow");
        },
        go: async (_state, { interrupt, signal }) => {
          const said = await interrupt("go");
          if (said === "fail" && failing) throw new Error("as told");
          if (said === "hang") await new Promise((resolve) => signal.addEventListener("abort", resolve));
        },
      })
      .edges({ [START]: ["slow", "go"], slow: END, go: END });
    for (const thread of ["fails", "cancelled", "updated"]) await run(two, { store, thread, world }).result;
    expect(await timers()).toHaveLength(3);
    await updateState(two, { store, thread: "updated", as: "slow", world });
    expect(await timers()).toHaveLength(2);
    await getFailure(resume(two, { store, thread: "fails", world, answers: { go: "fail" } }).result, "node_failed");
    const hanging = resume(two, { store, thread: "cancelled", world, answers: { go: "hang" } });
    await world.waitUntilIdle();
    hanging.cancel();
    expect((await hanging.result).status).toBe("cancelled");
    expect(await timers()).toEqual([]);
    await run(two, { store, thread: "kept", world }).result;
    expect((await timers()).map(([, id]) => id)).toEqual(["0:0:slow"]);
    failing = false;
    expect((await resume(two, { store, thread: "kept", world, answers: { go: "on" } }).result).status).toBe("done");
    expect(await timers()).toEqual([]);
  });

  test("an interrupt of a subgraph has its timer on the branch, and its declared answer or error reaches its node [E63]", async () => {
    const { store } = place;
    const researcher = defineGraph({
      name: "researcher",
      state: Log,
      interrupts: {
        scope: { answer: z.string(), expiresMs: hour, onExpire: "narrow" },
        depth: { answer: z.string(), expiresMs: 2 * hour },
      },
    })
      .nodes({
        ask: async (_state, { interrupt }) => {
          const scope = await interrupt("scope");
          const depth = await interrupt("depth").catch((error: { code: string }) => error.code);
          return { log: [`${scope} ${depth}`] };
        },
      })
      .edges({ [START]: "ask", ask: END });
    const report = defineGraph({ name: "report", state: Log })
      .nodes({ research: subgraph(researcher, { input: () => ({}), output: ({ log }) => ({ log: [...log] }) }) })
      .edges({ [START]: "research", research: END });
    await run(report, { store, thread: "t", world }).result;
    expect(await timers()).toEqual([["main", "0:0/0:0:scope", "expiry", start + hour, "research.scope"]]);
    expect(await listInterrupts(store, { world, key: "research.scope" })).toMatchObject([
      { id: "0:0/0:0:scope", node: "research.ask", branch: "main", expiresAt: start + hour },
    ]);
    await world.advance(hour);
    expect(await resume(report, { store, thread: "t", world }).result).toMatchObject({
      status: "waiting",
      interrupts: [{ id: "0:0/0:0:depth", expiresAt: start + 3 * hour }],
    });
    await world.advance(2 * hour);
    const { status, state } = await resume(report, { store, thread: "t", world }).result;
    expect([status, state.log]).toEqual(["done", ["narrow interrupt_expired"]]);
    expect(await timers()).toEqual([]);
  });

  test.each([
    ["deny", undefined, "This call was denied: no answer in time", []],
    ["deny", "deny", "This call was denied: no answer in time", []],
    ["allow", "allow", "paid 5", [5]],
  ] as const)(
    "an approval that expired resolves to %s when the hook declares %s [E63]",
    async (_, onExpire, said, paid) => {
      const { store } = place;
      const cents: number[] = [];
      const pay = defineTool({
        name: "pay",
        description: "Pay.",
        input: z.object({ cents: z.int() }),
        run: (args) => {
          cents.push(args.cents);
          return `paid ${args.cents}`;
        },
      });
      const ask = defineMiddleware({
        name: "ask",
        beforeTool: ({ call: made }) =>
          decide.interrupt(made, "it spends", { expiresMs: hour, ...(onExpire === undefined ? {} : { onExpire }) }),
      });
      const agent = createAgent({
        name: "agent",
        model: scriptedModel([call("pay", { cents: 5 }), say("ok")]),
        tools: [pay],
        middleware: [ask],
      });
      const first = await agent.run({ store, thread: "t", world, input: "go" }).result;
      expect(first).toMatchObject({ status: "waiting", interrupts: [{ key: "approve", expiresAt: start + hour }] });
      await world.advance(hour);
      const { status, state } = await agent.resume({ store, thread: "t", world }).result;
      const answer = state.messages.find((message) => message.role === "tool");
      expect([status, JSON.stringify(answer?.content).includes(said), cents]).toEqual(["done", true, paid]);
    },
  );
});
