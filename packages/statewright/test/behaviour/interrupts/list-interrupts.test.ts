/** Open interrupts of all threads, recorded answers and refused answers, in memory and in a file. */
import { call, say, scriptedModel, type VirtualClock, virtualClock } from "@statewright/testing";
import {
  channel,
  createAgent,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  durableMachine,
  END,
  getState,
  listInterrupts,
  resume,
  run,
  START,
  subgraph,
} from "statewright";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { setup } from "xstate";
import * as z from "zod";
import { crashAt, getFailure, ignoreResult, type Place, places } from "../../support/both-stores.ts";

const Log = defineState({ log: channel.list(z.string()) });
const answer = z.object({ ok: z.boolean() });

/** Graph with two parallel interrupts and one after them. */
const team = defineGraph({ name: "team", state: Log, interrupts: { vote: answer, sign: z.string() } })
  .nodes({
    ann: async (_state, { interrupt }) => ({ log: [`ann ${(await interrupt("vote", { payload: "ann?" })).ok}`] }),
    bob: async (_state, { interrupt }) => ({ log: [`bob ${(await interrupt("vote", { payload: "bob?" })).ok}`] }),
    sign: async (_state, { interrupt }) => ({ log: [`signed ${await interrupt("sign")}`] }),
  })
  .edges({ [START]: ["ann", "bob"], ann: "sign", bob: "sign", sign: END });
const [annAsks, bobAsks] = ["0:0:vote", "0:1:vote"];

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let world: VirtualClock;

  beforeEach(() => {
    place = open();
    world = virtualClock({ now: 1_000_000 });
  });
  afterEach(() => place.close());

  const begin = (thread: string) => run(team, { store: place.store, thread, world }).result;
  const give = (thread: string, answers: object, by?: string) =>
    resume(team, {
      store: place.store,
      thread,
      world,
      answers: answers as Record<string, never>,
      ...(by === undefined ? {} : { by }),
    }).result;

  test("listInterrupts lists every open interrupt of all threads with payload and schema, newest first, in pages", async () => {
    const { store } = place;
    await begin("t");
    await world.advance(10);
    await begin("u");
    const all = await listInterrupts(store);
    expect(all.map(({ thread, id }) => [thread, id])).toEqual([
      ["u", bobAsks],
      ["u", annAsks],
      ["t", bobAsks],
      ["t", annAsks],
    ]);
    const { run: id } = await getRun("u");
    expect(all[0]).toEqual({
      thread: "u",
      branch: "main",
      run: id,
      graph: "team",
      id: bobAsks,
      key: "vote",
      node: "bob",
      payload: "bob?",
      schema: expect.objectContaining({ type: "object", required: ["ok"] }),
      raisedAt: 1_000_010,
      position: all[0]?.position,
      cursor: all[0]?.cursor,
    });
    const first = await listInterrupts(store, { limit: 3 });
    const second = await listInterrupts(store, { limit: 3, before: first[2] });
    expect([...first, ...second]).toEqual(all);
    expect((await listInterrupts(store, { thread: "t", key: "vote" })).map(({ thread }) => thread)).toEqual(["t", "t"]);
    expect(await listInterrupts(store, { graph: "other" })).toEqual([]);
    await getFailure(listInterrupts(store, { status: "waiting" } as object), "invalid_option");
    await getFailure(listInterrupts(store, { limit: 0 }), "invalid_option");
  });

  async function getRun(thread: string): Promise<{ readonly run: string }> {
    const [newest] = await place.store.runs({ thread });
    return { run: newest?.id ?? "" };
  }

  test("listInterrupts omits answered interrupts and ended runs, and includes subgraphs and machines", async () => {
    const { store } = place;
    await begin("t");
    await give("t", { [annAsks]: { ok: true } });
    expect((await listInterrupts(store)).map(({ id }) => id)).toEqual([bobAsks]);
    await give("t", { vote: { ok: true } });
    expect((await listInterrupts(store)).map(({ key }) => key)).toEqual(["sign"]);
    const cancelled = resume(team, { store, thread: "t", world, answers: { sign: "me" } });
    cancelled.cancel();
    expect((await cancelled.result).status).toBe("cancelled");
    expect(await listInterrupts(store)).toEqual([]);

    const outer = defineGraph({ name: "outer", state: Log })
      .nodes({ inner: subgraph(team, { input: () => ({}), output: ({ log }) => ({ log: [...log] }) }) })
      .edges({ [START]: "inner", inner: END });
    await run(outer, { store, thread: "in", world }).result;
    const machine = setup({}).createMachine({
      id: "door",
      initial: "shut",
      states: { shut: { on: { OPEN: "open" } }, open: { type: "final" } },
    });
    await run(durableMachine(machine, { version: 1 }), { store, thread: "door", world }).result;
    expect((await listInterrupts(store)).map(({ thread, key, node }) => [thread, key, node])).toEqual([
      ["door", "OPEN", "shut"],
      ["in", "inner.vote", "inner.bob"],
      ["in", "inner.vote", "inner.ann"],
    ]);
  });

  test("a machine whose timer overtook a refused event waits for the events that its new state accepts", async () => {
    const { store } = place;
    const machine = setup({}).createMachine({
      id: "offer",
      initial: "open",
      states: {
        open: { on: { TAKE: "taken" }, after: { 100: "late" } },
        late: { on: { REOPEN: "open" } },
        taken: { type: "final" },
      },
    });
    const graph = durableMachine(machine, { version: 1 });
    await run(graph, { store, thread: "t", world }).result;
    expect((await listInterrupts(store)).map(({ key, node }) => [key, node])).toEqual([["TAKE", "open"]]);
    await world.advance(100);
    await getFailure(resume(graph, { store, thread: "t", world, answers: { TAKE: true } }).result, "event_refused");
    expect((await listInterrupts(store)).map(({ key, node }) => [key, node])).toEqual([["REOPEN", "late"]]);
    const { interrupts, status } = await getState(graph, { store, thread: "t" });
    expect([status, interrupts.map(({ key }) => key)]).toEqual(["waiting", ["REOPEN"]]);
  });

  test("the author of an answer is stored with the answer and reported to later answers of the same interrupt", async () => {
    const { store } = place;
    await begin("t");
    await give("t", { [annAsks]: { ok: true } }, "ann");
    const { answered, interrupts } = await getState(team, { store, thread: "t" });
    expect(answered).toMatchObject([
      { id: annAsks, key: "vote", node: "ann", answer: { ok: true }, answeredAt: 1_000_000, answeredBy: "ann" },
    ]);
    expect(interrupts.map(({ id }) => id)).toEqual([bobAsks]);
    const second = await getFailure(give("t", { [annAsks]: { ok: false } }, "eve"), "already_answered");
    expect(second.details).toEqual({
      interrupt: annAsks,
      answer: { ok: true },
      answeredAt: 1_000_000,
      answeredBy: "ann",
    });
    await give("t", { vote: { ok: false } }, "bob");
    const { answered: both } = await getState(team, { store, thread: "t", at: 1 });
    expect(both.map(({ answeredBy }) => answeredBy)).toEqual(["ann", "bob"]);
    await getFailure(begin2("x", ""), "invalid_option");
  });

  async function begin2(thread: string, by: string): Promise<void> {
    await begin(thread);
    await give(thread, { [annAsks]: { ok: true } }, by);
  }

  test("an answer is matched by key or id, not by position, and an invalid answer is refused and changes nothing [E29]", async () => {
    const { store } = place;
    await begin("t");
    const byKey = await getFailure(give("t", { vote: { ok: true } }), "ambiguous_answer");
    expect(byKey.details).toMatchObject([{ id: annAsks }, { id: bobAsks }]);
    await getFailure(resume(team, { store, thread: "t", answers: [{ ok: true }] as never }).result, "ambiguous_answer");
    await getFailure(give("t", { [annAsks]: { ok: true }, [bobAsks]: { ok: "yes" } }), "invalid_answer");
    await getFailure(give("t", { veto: true }), "unknown_interrupt");
    await getFailure(give("nobody", { vote: { ok: true } }), "unknown_thread");
    expect((await listInterrupts(store)).map(({ id }) => id)).toEqual([bobAsks, annAsks]);
    await give("t", { [bobAsks]: { ok: false }, [annAsks]: { ok: true } });
    const done = await give("t", { sign: "me" });
    expect([done.status, done.state.log]).toEqual(["done", ["ann true", "bob false", "signed me"]]);
    const late = await getFailure(give("t", { sign: "you" }), "already_answered");
    expect(late.details).toMatchObject({ answer: "me" });
    await getFailure(give("t", { veto: true }), "unknown_interrupt");
  });

  test("of two processes that answer an interrupt at the same moment exactly one wins, and the other gets an error [E30]", async () => {
    await begin("t");
    const stores = [place.store, place.peer()];
    const both = await Promise.allSettled(
      stores.map(
        (store, nth) =>
          resume(team, { store, thread: "t", world, answers: { [annAsks]: { ok: nth === 0 } }, by: `client ${nth}` })
            .result,
      ),
    );
    const won = both.findIndex(({ status }) => status === "fulfilled");
    expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const lost = both[1 - won];
    if (lost?.status !== "rejected") throw new Error("nobody lost");
    expect(["thread_busy", "already_answered"]).toContain(lost.reason.code);
    const { answered } = await getState(team, { store: place.store, thread: "t" });
    expect(answered).toMatchObject([{ answer: { ok: won === 0 }, answeredBy: `client ${won}` }]);
  });

  test.each(["before", "after"] as const)(
    "a process that dies %s its interrupt is recorded, and before it is shown, leaves it listed with the same id [C18]",
    async (when) => {
      const dying = crashAt(place.store, ({ run: row }) => row?.status === "waiting", when);
      ignoreResult(run(team, { store: dying.store, thread: "t", world }).result);
      await dying.dead;
      const next = place.crash();
      await world.advance(50);
      const listed = (await listInterrupts(next)).map(({ id }) => id);
      expect(listed).toEqual(when === "after" ? [bobAsks, annAsks] : []);
      const again = await resume(team, { store: next, thread: "t", world }).result;
      expect(again).toMatchObject({ status: "waiting", interrupts: [{ id: annAsks }, { id: bobAsks }] });
      const raised = (await listInterrupts(next)).map(({ id, raisedAt }) => [id, raisedAt]);
      const raisedAt = when === "after" ? 1_000_000 : 1_000_050;
      expect(raised).toEqual([
        [bobAsks, raisedAt],
        [annAsks, raisedAt],
      ]);
    },
  );

  test("a process that dies after recording an answer leaves it to the next process, and a second answer is refused [C19]", async () => {
    await begin("t");
    const dying = crashAt(place.store, ({ interrupts = [] }) => interrupts.length > 0, "after");
    const answers = { [annAsks]: { ok: true }, [bobAsks]: { ok: true } };
    ignoreResult(resume(team, { store: dying.store, thread: "t", world, answers, by: "ann" }).result);
    await dying.dead;
    const next = place.crash();
    const second = resume(team, { store: next, thread: "t", world, answers: { [annAsks]: { ok: false } } }).result;
    expect((await getFailure(second, "already_answered")).details).toMatchObject({
      answer: { ok: true },
      answeredBy: "ann",
    });
    const on = await resume(team, { store: next, thread: "t", world }).result;
    expect([on.status, on.state.log]).toEqual(["waiting", ["ann true", "bob true"]]);
  });

  test("an approval is valid for the shown call, and other arguments or another tool under the name request approval again [R12]", async () => {
    const { store } = place;
    const paid: number[] = [];
    const createAgentWith = (factor: number, description: string) =>
      createAgent({
        name: "agent",
        model: scriptedModel([call("pay", { cents: 5 }), say("ok")]),
        tools: [
          defineTool({
            name: "pay",
            description,
            input: z.object({ cents: z.int() }),
            run: ({ cents }) => void paid.push(cents),
          }),
        ],
        middleware: [
          defineMiddleware({
            name: "fees",
            beforeTool: ({ call: made }) => ({
              action: "modify",
              args: { cents: (made.args as { cents: number }).cents * factor },
            }),
          }),
          defineMiddleware({ name: "ask", beforeTool: ({ call: made }) => decide.interrupt(made, "it spends") }),
        ],
      });
    await createAgentWith(1, "Pay.").run({ store, thread: "t", world, input: "go" }).result;
    const approve = { answers: { approve: true } };
    for (const [factor, description] of [
      [2, "Pay."],
      [2, "Pay twice."],
    ] as const) {
      const agent = createAgentWith(factor, description);
      const again = await agent.resume({ store, thread: "t", world, ...approve }).result;
      expect(again).toMatchObject({ status: "waiting", interrupts: [{ payload: { args: { cents: 5 * factor } } }] });
      expect(paid).toEqual([]);
    }
    const { status } = await createAgentWith(2, "Pay twice.").resume({ store, thread: "t", world, ...approve }).result;
    expect([status, paid]).toEqual(["done", [10]]);
  });
});
