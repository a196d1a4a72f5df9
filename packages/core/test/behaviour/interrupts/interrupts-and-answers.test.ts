import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  checkGraph,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  fork,
  getState,
  goto,
  inputNode,
  join,
  listInterrupts,
  type MemoryStore,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  subgraph,
} from "../../../src/index.ts";
import { collectEvents, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { fromJavaScript } from "../../support/from-javascript.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Pay = defineState({ amount: z.number(), note: z.string().optional(), log: channel.list(z.string()) });
const payment = defineGraph({
  name: "payment",
  state: Pay,
  interrupts: {
    approve: {
      payload: z.object({ amount: z.number() }),
      answer: z.object({ ok: z.boolean(), note: z.string().optional() }),
    },
  },
})
  .nodes({
    approve: async (state, { interrupt }) => {
      const { ok, note } = await interrupt("approve", { payload: { amount: state.amount } });
      expectTypeOf(ok).toEqualTypeOf<boolean>();
      return ok ? goto("pay") : goto("decline", { note });
    },
    pay: () => ({ log: ["paid"] }),
    decline: () => ({ log: ["declined"] }),
  })
  .edges({ [START]: "approve", approve: commandTargets("pay", "decline"), pay: END, decline: END });

async function createWaitingThread(store: MemoryStore = memoryStore()): Promise<MemoryStore> {
  expect((await run(payment, { store, thread: "t", input: { amount: 5 } }).result).status).toBe("waiting");
  return store;
}

/** Creates a node that raises one interrupt per item, in a different order in each pass. */
function itemsInTurn(order: (pass: number) => readonly string[]) {
  let pass = 0;
  return defineGraph({
    name: "items",
    state: defineState({ log: channel.list(z.string()) }),
    interrupts: { ok: z.string() },
  })
    .nodes({
      a: async (_state, { interrupt }) => {
        const said: string[] = [];
        for (const item of order(pass++)) said.push(`${item}: ${await interrupt("ok", { payload: item })}`);
        return { log: said.sort() };
      },
    })
    .edges({ [START]: "a", a: END });
}

describe("raise an interrupt", () => {
  test("a waiting run lists its open interrupts with id, key, node, payload and the JSON Schema of the answer", async () => {
    const handle = run(payment, { store: memoryStore(), thread: "t", input: { amount: 5 } });
    const events = collectEvents(handle);
    const result = await handle.result;
    if (result.status !== "waiting") throw new Error(result.status);
    expect(result.interrupts).toEqual([
      {
        id: "0:0:approve",
        key: "approve",
        node: "approve",
        payload: { amount: 5 },
        schema: {
          type: "object",
          properties: { ok: { type: "boolean" }, note: { type: "string" } },
          required: ["ok"],
        },
      },
    ]);
    expect(events.slice(-2).map(({ type }) => type)).toEqual(["task.interrupted", "run.waiting"]);
    expect(getOnlyEvent(events, "run.waiting")[0]?.interrupts).toEqual(result.interrupts);
  });

  test("siblings of a waiting task complete and are saved", async () => {
    const ran: string[] = [];
    const graph = defineGraph({ name: "both", state: Pay, interrupts: { go: z.string() } })
      .nodes({
        ask: async (_state, { interrupt }) => ({ log: [await interrupt("go")] }),
        work: () => {
          ran.push("work");
          return { log: ["work"] };
        },
      })
      .edges({ [START]: ["ask", "work"], ask: END, work: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: { amount: 1 } }).result;
    const done = await resume(graph, { store: store.peer(), thread: "t", answers: { go: "answer" } }).result;
    expect(done.state.log).toEqual(["answer", "work"]);
    expect(ran).toEqual(["work"]);
  });

  test("an interrupt pauses its task while siblings complete, the run waits with the open interrupts, and answers are typed [E28]", async () => {
    const ran: string[] = [];
    const trip = defineGraph({
      name: "trip",
      state: Pay,
      interrupts: {
        seat: { payload: z.object({ free: z.array(z.string()) }), answer: z.object({ seat: z.string() }) },
        meal: z.enum(["fish", "nuts"]),
      },
    })
      .nodes({
        book: {
          interrupts: ["seat"],
          run: async (_state, { interrupt }) => {
            ran.push("book");
            const { seat } = await interrupt("seat", { payload: { free: ["1A", "2B"] } });
            return { log: [seat] };
          },
        },
        cook: { interrupts: ["meal"], run: async (_state, { interrupt }) => ({ log: [await interrupt("meal")] }) },
        pack: {
          interrupts: [],
          run: () => {
            ran.push("pack");
            return { log: ["packed"] };
          },
        },
        fly: { interrupts: [], run: () => ({ log: ["flown"] }) },
      })
      .edges({ [START]: ["book", "cook", "pack"], book: join("fly"), cook: join("fly"), pack: join("fly"), fly: END });
    expect(checkGraph(trip).violations).toEqual([]);
    const store = memoryStore();
    const first = await run(trip, { store, thread: "t", input: { amount: 1 } }).result;
    expect(first).toMatchObject({ status: "waiting", state: { log: [] } });
    expect(first.status === "waiting" && first.interrupts).toEqual([
      {
        id: "0:0:seat",
        key: "seat",
        node: "book",
        payload: { free: ["1A", "2B"] },
        schema: { type: "object", properties: { seat: { type: "string" } }, required: ["seat"] },
      },
      { id: "0:1:meal", key: "meal", node: "cook", payload: null, schema: { type: "string", enum: ["fish", "nuts"] } },
    ]);
    const types = (): void => {
      // @ts-expect-error no such meal
      resume(trip, { store, thread: "t", answers: { meal: "meat" } });
      // @ts-expect-error a seat is an object
      resume(trip, { store, thread: "t", answers: { seat: "1A" } });
      defineGraph({ name: "x", state: Pay, interrupts: { seat: { payload: z.number(), answer: z.string() } } }).nodes({
        // @ts-expect-error the payload is a number
        a: async (_state, { interrupt }) => void (await interrupt("seat", { payload: "1" })),
      });
    };
    expect(types).toBeTypeOf("function");
    const peer = store.peer();
    const second = await resume(trip, { store: peer, thread: "t", answers: { seat: { seat: "2B" } } }).result;
    expect(second).toMatchObject({ status: "waiting", interrupts: [{ key: "meal" }], state: { log: [] } });
    const done = await resume(trip, { store: peer, thread: "t", answers: { meal: "fish" } }).result;
    expect(done.state.log).toEqual(["2B", "fish", "packed", "flown"]);
    expect(ran).toEqual(["book", "pack", "book"]);
  });

  test("an undeclared or invalid payload, answer or interrupt key is refused, and checkGraph lists the nodes that ask [E28]", async () => {
    const graph = (asks: readonly ("go" | "stop")[], answer: z.ZodType<boolean> = z.boolean()) =>
      defineGraph({ name: "asks", state: Pay, interrupts: { go: { payload: z.number(), answer }, stop: z.boolean() } })
        .nodes({
          a: { interrupts: asks, run: async (_state, { interrupt }) => void (await interrupt("go", { payload: 1 })) },
          b: { interrupts: ["stop"], run: () => undefined },
        })
        .edges({ [START]: "a", a: "b", b: END });
    const store = memoryStore();
    const input = { amount: 1 };
    const refused = await getFailure(run(graph(["stop"]), { store, thread: "u", input }).result, "unknown_interrupt");
    expect(refused.message).toContain(
      'the node "a" in graph "asks" raised the interrupt "go", which its interrupts do not list',
    );
    expect(refused.place).toMatchObject({ node: "a", graph: "asks" });
    await run(graph(["go"]), { store, thread: "t", input }).result;
    const unfit = { store, thread: "t", answers: { go: "yes" as never } };
    await getFailure(resume(graph(["go"]), unfit).result, "invalid_answer");
    expect(checkGraph(graph(["stop"])).violations).toMatchObject([{ rule: "unused_interrupt", path: ["start"] }]);
    expect(checkGraph(graph(["go"], z.never())).violations).toMatchObject([
      { rule: "unanswerable_interrupt", path: ["start", "a", '(a asks "go")'] },
    ]);
  });

  test("an interrupt cannot be swallowed: its promise never settles, the body is abandoned and its signal aborts [E31]", async () => {
    const world = createVirtualWorld();
    const seen: string[] = [];
    const graph = defineGraph({ name: "swallow", state: Pay, interrupts: { go: z.string() } })
      .nodes({
        a: async (_state, { interrupt, signal, step }) => {
          signal.addEventListener("abort", () => seen.push("signal"));
          const other = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())).then(() =>
            step("after", () => seen.push("a step of the abandoned body")),
          );
          try {
            const answer = await Promise.race([interrupt("go"), other]);
            return { log: [String(answer)] };
          } catch {
            seen.push("caught");
            return { log: ["swallowed"] };
          } finally {
            seen.push("finally");
          }
        },
      })
      .edges({ [START]: "a", a: END });
    const store = memoryStore();
    const first = await run(graph, { world, store, thread: "t", input: { amount: 1 } }).result;
    await world.waitUntilIdle();
    expect(first).toMatchObject({ status: "waiting", state: { log: [] } });
    expect(seen.filter((each) => each !== "caught" && each !== "finally")).toEqual(["signal"]);
    const done = await resume(graph, { world, store, thread: "t", answers: { go: "answer" } }).result;
    expect(done.state.log).toEqual(["answer"]);
  });

  test("catch and finally blocks around a waiting interrupt do not run [E31]", async () => {
    const seen: string[] = [];
    const graph = defineGraph({ name: "swallow", state: Pay, interrupts: { go: z.string() } })
      .nodes({
        a: async (_state, { interrupt }) => {
          try {
            return { log: [await interrupt("go")] };
          } catch {
            seen.push("caught");
            return undefined;
          } finally {
            seen.push("finally");
          }
        },
      })
      .edges({ [START]: "a", a: END });
    const world = createVirtualWorld();
    const { status } = await run(graph, { world, store: memoryStore(), thread: "t", input: { amount: 1 } }).result;
    await world.waitUntilIdle();
    expect([status, seen]).toEqual(["waiting", []]);
  });

  test("a body that raises an interrupt without awaiting it still waits for the answer [E31]", async () => {
    const graph = defineGraph({ name: "careless", state: Pay, interrupts: { go: z.string() } })
      .nodes({
        a: (_state, { interrupt }) => {
          void interrupt("go");
          return { log: ["did not wait"] };
        },
      })
      .edges({ [START]: "a", a: END });
    expect(await run(graph, { store: memoryStore(), thread: "t", input: { amount: 1 } }).result).toMatchObject({
      status: "waiting",
      state: { log: [] },
    });
  });

  test("an interrupt without a store fails at once with a hint [E34]", async () => {
    const error = await getFailure(run(payment, { input: { amount: 5 } }).result, "missing_store");
    expect(error.message).toContain("memoryStore()");
    expect(error.place).toMatchObject({ node: "approve", graph: "payment" });
  });

  test("an invalid interrupt fails its node also inside try/catch, and no later code of the body runs unanswered", async () => {
    let paid = 0;
    const hasty = (key: string, payload: unknown) =>
      defineGraph({
        name: "hasty",
        state: defineState({ log: channel.list(z.string()) }),
        interrupts: { approve: z.boolean() },
      })
        .nodes({
          pay: async (_state, { interrupt }) => {
            try {
              await interrupt(fromJavaScript<"approve">(key), { payload });
            } catch {
              // The route is taken as if no interrupt existed.
            }
            paid++;
            return { log: ["paid"] };
          },
        })
        .edges({ [START]: "pay", pay: END });
    const store = memoryStore();
    await getFailure(run(hasty("approve", 1), {}).result, "missing_store");
    await getFailure(run(hasty("approved", 1), { store, thread: "a" }).result, "unknown_interrupt");
    await getFailure(
      run(
        hasty("approve", () => 1),
        { store, thread: "b" },
      ).result,
      "unencodable_value",
    );
    expect(paid).toBe(0);
  });

  test("an undeclared interrupt key, or an invalid interrupt payload, is an error of the node", async () => {
    const graph = (ask: "typo" | "payload") =>
      defineGraph({ name: "wrong", state: Pay, interrupts: { go: { answer: z.string(), payload: z.number() } } })
        .nodes({
          a: async (_state, { interrupt }) => {
            if (ask === "typo") await interrupt("toString" as "go", { payload: 7 });
            else await interrupt("go", { payload: "seven" as never });
          },
        })
        .edges({ [START]: "a", a: END });
    const options = { store: memoryStore(), input: { amount: 1 } };
    expect((await getFailure(run(graph("typo"), options).result, "unknown_interrupt")).place.node).toBe("a");
    expect((await getFailure(run(graph("payload"), options).result, "invalid_update")).place.node).toBe("a");
  });
});

describe("answer an interrupt", () => {
  test("an answer is matched by key or by id [E29]", async () => {
    for (const name of ["approve", "0:0:approve"]) {
      const store = await createWaitingThread();
      const { state } = await resume(payment, { store, thread: "t", answers: { [name]: { ok: true } } }).result;
      expect(state.log).toEqual(["paid"]);
    }
  });

  test("an answer that the schema refuses is rejected and the interrupt stays open [E29]", async () => {
    const store = await createWaitingThread();
    const error = await getFailure(
      resume(payment, { store, thread: "t", answers: { approve: { ok: "yes" as never } } }).result,
      "invalid_answer",
    );
    expect(error.message).toContain("ok: ");
    expect(error.details).toMatchObject({ issues: [{ path: "ok" }], schema: { type: "object" } });
    expect((await store.interrupts("t", "main")).map(({ answer }) => answer)).toEqual([undefined]);
    const again = await resume(payment, { store, thread: "t" }).result;
    expect(again).toMatchObject({ status: "waiting", interrupts: [{ id: "0:0:approve" }] });
    expect(
      (await resume(payment, { store, thread: "t", answers: { approve: { ok: false } } }).result).state.log,
    ).toEqual(["declined"]);
  });

  const team = defineGraph({ name: "team", state: Pay, interrupts: { vote: z.string(), sign: z.string() } })
    .nodes({
      member: inputNode(z.string(), async (_state, { input, interrupt }) => ({
        log: [`${input}: ${await interrupt("vote", { payload: input })}`],
      })),
      boss: async (_state, { interrupt }) => ({ log: [await interrupt("sign")] }),
      fan: () => undefined,
    })
    .edges({ [START]: ["fan", "boss"], fan: fanOut("member", () => ["ann", "bob"]), member: END, boss: END });

  /** Graph that raises "sign" first and two "vote" interrupts in the next superstep. */
  async function createVoteThread(): Promise<MemoryStore> {
    const store = memoryStore();
    await run(team, { store, thread: "t", input: { amount: 1 } }).result;
    const { status } = await resume(team, { store, thread: "t", answers: { sign: "signed" } }).result;
    expect(status).toBe("waiting");
    return store;
  }

  test("a single answer by key for several open interrupts is refused with their list; answers by id go to their interrupts [E29]", async () => {
    const store = await createVoteThread();
    const byKey = await getFailure(
      resume(team, { store, thread: "t", answers: { vote: "yes" } }).result,
      "ambiguous_answer",
    );
    expect(byKey.details).toMatchObject([
      { id: "1:0:vote", payload: "ann" },
      { id: "1:1:vote", payload: "bob" },
    ]);
    const scalar = await getFailure(
      resume(team, { store, thread: "t", answers: "yes" as never }).result,
      "ambiguous_answer",
    );
    expect(scalar.details).toMatchObject([{ id: "1:0:vote" }, { id: "1:1:vote" }]);
    const second = await resume(team, { store, thread: "t", answers: { "1:1:vote": "no" } }).result;
    expect(second).toMatchObject({ status: "waiting", interrupts: [{ id: "1:0:vote", payload: "ann" }] });
    const done = await resume(team, { store, thread: "t", answers: { vote: "yes" } }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["signed", "ann: yes", "bob: no"] } });
  });

  test("a refused answer among several answers refuses all of them [E29]", async () => {
    const store = await createVoteThread();
    await getFailure(
      resume(team, { store, thread: "t", answers: { "1:0:vote": "yes", "1:1:vote": 5 } }).result,
      "invalid_answer",
    );
    expect(
      (await store.interrupts("t", "main")).filter(({ answer }) => answer !== undefined).map(({ key }) => key),
    ).toEqual(["sign"]);
  });

  test("a second answer fails with an error that carries the first, both during the wait and after the end of the run [E29]", async () => {
    const store = await createVoteThread();
    await resume(team, { store, thread: "t", answers: { "1:0:vote": "yes" } }).result;
    const earlier = await getFailure(
      resume(team, { store, thread: "t", answers: { sign: "again" } }).result,
      "already_answered",
    );
    expect(earlier.details).toMatchObject({ answer: "signed" });
    const same = await getFailure(
      resume(team, { store, thread: "t", answers: { "1:0:vote": "no" } }).result,
      "already_answered",
    );
    expect(same.details).toMatchObject({ answer: "yes" });
    await resume(team, { store, thread: "t", answers: { vote: "no" } }).result;
    const late = await getFailure(
      resume(team, { store, thread: "t", answers: { "1:1:vote": "yes" } }).result,
      "already_answered",
    );
    expect(late.details).toMatchObject({ answer: "no" });
  });

  test("an answer to an unknown interrupt, a finished thread or an unknown thread is a typed error [E29]", async () => {
    const store = await createWaitingThread();
    const open = await getFailure(
      resume(payment, { store, thread: "t", answers: fromJavaScript({ nothing: 1 }) }).result,
      "unknown_interrupt",
    );
    expect(open.message).toContain('"approve" (0:0:approve)');
    await resume(payment, { store, thread: "t", answers: { approve: { ok: true } } }).result;
    await getFailure(
      resume(payment, { store, thread: "t", answers: fromJavaScript({ nothing: 1 }) }).result,
      "unknown_interrupt",
    );
    await getFailure(
      resume(payment, { store, thread: "nobody", answers: { approve: { ok: true } } }).result,
      "unknown_thread",
    );
    expect((await resume(payment, { store, thread: "t" }).result).state.log).toEqual(["paid"]);
  });

  test("when two clients answer at the same moment, exactly one succeeds [E30]", async () => {
    for (const peers of [false, true]) {
      const store = await createWaitingThread();
      const other: Store = peers ? store.peer() : store;
      const answers = await Promise.allSettled([
        resume(payment, { store, thread: "t", answers: { approve: { ok: true } } }).result,
        resume(payment, { store: other, thread: "t", answers: { approve: { ok: false } } }).result,
      ]);
      expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
      expect(answers[1]).toMatchObject({ reason: { code: "thread_busy" } });
      expect((await resume(payment, { store, thread: "t" }).result).state.log).toEqual(["paid"]);
    }
  });

  test("a body may raise the same interrupt key again, and several at once", async () => {
    const graph = defineGraph({ name: "chat", state: Pay, interrupts: { say: z.string() } })
      .nodes({
        a: async (_state, { interrupt }) => {
          const first = await interrupt("say", { payload: 1 });
          const rest = await Promise.all([interrupt("say", { payload: 2 }), interrupt("say", { payload: 3 })]);
          return { log: [first, ...rest] };
        },
      })
      .edges({ [START]: "a", a: END });
    const store = memoryStore();
    expect(await run(graph, { store, thread: "t", input: { amount: 1 } }).result).toMatchObject({
      interrupts: [{ id: "0:0:say" }],
    });
    const second = await resume(graph, { store, thread: "t", answers: { say: "a" } }).result;
    expect(second).toMatchObject({
      interrupts: [
        { id: "0:0:say:2", payload: 2 },
        { id: "0:0:say:3", payload: 3 },
      ],
    });
    const done = await resume(graph, { store, thread: "t", answers: { "0:0:say:3": "c", "0:0:say:2": "b" } }).result;
    expect(done.state.log).toEqual(["a", "b", "c"]);
  });

  test("interrupts of one key get the answers given for their payloads, in whatever order the body raises them again", async () => {
    let pass = 0;
    const graph = defineGraph({
      name: "items",
      state: defineState({ log: channel.list(z.string()) }),
      interrupts: { ok: z.string() },
    })
      .nodes({
        a: async (_state, { interrupt }) => {
          const items = pass++ === 0 ? ["x", "y", "z"] : ["z", "y", "x"];
          const said = await Promise.all(items.map(async (item) => [item, await interrupt("ok", { payload: item })]));
          return { log: said.map(([item, answer]) => `${item}: ${answer}`).sort() };
        },
      })
      .edges({ [START]: "a", a: END });
    const store = memoryStore();
    const first = await run(graph, { store, thread: "t" }).result;
    if (first.status !== "waiting") throw new Error(first.status);
    const answers = Object.fromEntries(first.interrupts.map(({ id, payload }) => [id, `yes to ${payload}`]));
    const { state } = await resume(graph, { store, thread: "t", answers }).result;
    expect(state.log).toEqual(["x: yes to x", "y: yes to y", "z: yes to z"]);
  });

  test("an answer is never delivered to an interrupt of the same key with another payload, also when only one was raised before", async () => {
    const graph = itemsInTurn((pass) => (pass === 0 ? ["x", "y"] : ["y", "x"]));
    const store = memoryStore();
    const asked: unknown[] = [];
    let result = await run(graph, { store, thread: "t" }).result;
    while (result.status === "waiting") {
      const [question] = result.interrupts;
      asked.push(question?.payload);
      const answers = { [question?.id ?? ""]: `yes to ${question?.payload}` };
      result = await resume(graph, { store, thread: "t", answers }).result;
    }
    expect(asked).toEqual(["x", "y"]);
    expect(result.state.log).toEqual(["x: yes to x", "y: yes to y"]);
  });

  test("a body that raises interrupts in random order after each answer raises each once and gets its own answer", async () => {
    for (let seed = 1; seed <= 50; seed++) {
      const { random } = createVirtualWorld();
      const items = ["a", "b", "c", "d"];
      for (let skip = 0; skip < seed; skip++) random.next();
      const shuffleItems = () =>
        items.map((item) => ({ item, at: random.next() })).sort((one, other) => one.at - other.at);
      const graph = itemsInTurn(() => shuffleItems().map(({ item }) => item));
      const store = memoryStore();
      const asked: unknown[] = [];
      let result = await run(graph, { store, thread: "t" }).result;
      while (result.status === "waiting") {
        asked.push(...result.interrupts.map(({ payload }) => payload));
        const answers = Object.fromEntries(result.interrupts.map(({ id, payload }) => [id, `yes to ${payload}`]));
        result = await resume(graph, { store, thread: "t", answers }).result;
      }
      expect(asked.sort(), `seed ${seed}`).toEqual(items);
      expect(result.state.log, `seed ${seed}`).toEqual(items.map((item) => `${item}: yes to ${item}`));
    }
  });

  test("an answer by key goes to the interrupt of the waiting run, also when other branches have open interrupts", async () => {
    const graph = itemsInTurn((pass) => [`pay ${pass}`]);
    const store = memoryStore();
    await run(graph, { store, thread: "t" }).result;
    expect(await resume(graph, { store, thread: "t" }).result).toMatchObject({ interrupts: [{ payload: "pay 1" }] });
    const at = (await store.head("t"))?.id ?? 0;
    for (const branch of ["one", "two", "three"]) {
      await fork(graph, { store, thread: "t", at, name: branch });
      expect((await resume(graph, { store, thread: "t", branch }).result).status).toBe("waiting");
    }
    const third = await resume(graph, { store, thread: "t", answers: { ok: "yes" } }).result;
    expect(third).toMatchObject({ status: "waiting", interrupts: [{ payload: "pay 5" }] });
  });

  test("an answer does not count when the resumed body raises the interrupt with another payload", async () => {
    const graph = itemsInTurn((pass) => [pass === 0 ? "pay 5" : "pay 500"]);
    const store = memoryStore();
    await run(graph, { store, thread: "t" }).result;
    const second = await resume(graph, { store, thread: "t", answers: { ok: "yes" } }).result;
    expect(second).toMatchObject({ status: "waiting", interrupts: [{ id: "0:0:ok:2", payload: "pay 500" }] });
    const done = await resume(graph, { store, thread: "t", answers: { ok: "no" } }).result;
    expect(done.state.log).toEqual(["pay 500: no"]);
  });

  test("an obsolete interrupt can be answered by its id only", async () => {
    const graph = itemsInTurn((pass) => [["pay 5", "pay 500", "pay 5"][pass] ?? "pay 500"]);
    const store = memoryStore();
    await run(graph, { store, thread: "t" }).result;
    const second = await resume(graph, { store, thread: "t" }).result;
    expect(second).toMatchObject({ status: "waiting", interrupts: [{ id: "0:0:ok:2", payload: "pay 500" }] });
    await resume(graph, { store, thread: "t", answers: { ok: "to 500", "0:0:ok": "to 5" } }).result;
    expect((await getState(graph, { store, thread: "t" })).state.log).toEqual(["pay 5: to 5"]);
  });

  test("a body that raises another payload each time fails with an explanation after 16 unused answers", async () => {
    const graph = itemsInTurn((pass) => [`at ${pass}`]);
    const store = memoryStore();
    let result = await run(graph, { store, thread: "t" }).result;
    for (let asked = 1; asked < 16; asked++) {
      expect(result.status).toBe("waiting");
      result = await resume(graph, { store, thread: "t", answers: { ok: "yes" } }).result;
    }
    const failing = resume(graph, { store, thread: "t", answers: { ok: "yes" } }).result;
    expect(await getFailure(failing, "interrupt_changed")).toMatchObject({ place: { node: "a", thread: "t" } });
  });
});

describe("interrupt next to a failing sibling", () => {
  const failsOnce = (expiresMs?: number) => {
    let passes = 0;
    let shown = 0;
    return defineGraph({
      name: "beside",
      state: defineState({ log: channel.list(z.string()) }),
      interrupts: { ok: { answer: z.string(), ...(expiresMs === undefined ? {} : { expiresMs, onExpire: "nobody" }) } },
    })
      .nodes({
        asks: async (_state, { interrupt, step }) => {
          const item = await step("item", () => `item ${++shown}`);
          return { log: [`${item}: ${await interrupt("ok", { payload: item })}`] };
        },
        fails: () => {
          passes += 1;
          if (passes === 1) throw new Error("not yet");
          return { log: ["went well"] };
        },
      })
      .edges({ [START]: ["asks", "fails"], asks: END, fails: END });
  };

  test("an interrupt of a failed run is open, is listed, and accepts an answer with the resume of the run [FX5]", async () => {
    const graph = failsOnce();
    const store = memoryStore();
    await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    const seen = await getState(graph, { store, thread: "t" });
    expect(seen).toMatchObject({ status: "failed", interrupts: [{ id: "0:0:ok", key: "ok", payload: "item 1" }] });
    expect((await listInterrupts(store)).map(({ id }) => id)).toEqual(["0:0:ok"]);
    const done = await resume(graph, { store, thread: "t", answers: { ok: "yes" } }).result;
    expect(await listInterrupts(store)).toEqual([]);
    expect(done).toMatchObject({ status: "done", state: { log: ["item 1: yes", "went well"] } });
  });

  test("an interrupt of a failed run keeps its id when the run is resumed without an answer and waits", async () => {
    const graph = failsOnce();
    const store = memoryStore();
    await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    const [open] = (await getState(graph, { store, thread: "t" })).interrupts;
    const waits = await resume(graph, { store, thread: "t" }).result;
    expect(waits).toMatchObject({ status: "waiting", interrupts: [{ ...open }] });
    expect(await listInterrupts(store)).toMatchObject([{ id: "0:0:ok", thread: "t" }]);
  });

  test("the expiry of an interrupt starts when the run waits and not when a sibling has failed", async () => {
    const world = createVirtualWorld();
    const graph = failsOnce(1_000);
    const store = memoryStore();
    await getFailure(run(graph, { store, world, thread: "t" }).result, "node_failed");
    expect(await store.timers({})).toEqual([]);
    await world.advance(5_000);
    const waits = await resume(graph, { store, world, thread: "t" }).result;
    expect(waits.status).toBe("waiting");
    const dueAt = world.clock.now() + 1_000;
    expect(await store.timers({})).toMatchObject([{ id: "0:0:ok", dueAt }]);
    await world.advance(1_000);
    const done = await resume(graph, { store, world, thread: "t" }).result;
    expect(done.state.log).toEqual(["item 1: nobody", "went well"]);
  });

  test("an interrupt of an inner graph stays open with a failed run", async () => {
    const inner = failsOnce();
    const graph = defineGraph({ name: "outer", state: defineState({ log: channel.list(z.string()) }) })
      .nodes({ call: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }) }) })
      .edges({ [START]: "call", call: END });
    const store = memoryStore();
    await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    const { interrupts } = await getState(graph, { store, thread: "t" });
    expect(interrupts).toMatchObject([{ key: "call.ok", payload: "item 1" }]);
    const done = await resume(graph, { store, thread: "t", answers: { "call.ok": "yes" } }).result;
    expect(done.state.log).toEqual(["item 1: yes", "went well"]);
  });
});

test("listInterrupts returns the interrupts of runs with the requested metadata [FX42]", async () => {
  const graph = defineGraph({
    name: "ask",
    state: defineState({ log: channel.list(z.string()) }),
    interrupts: { ok: z.string() },
  })
    .nodes({ ask: async (_state, { interrupt }) => ({ log: [await interrupt("ok")] }) })
    .edges({ [START]: "ask", ask: END });
  const store = memoryStore();
  for (const [thread, tenant] of [
    ["a", "acme"],
    ["b", "other"],
    ["c", "acme"],
  ] as const)
    await run(graph, { store, thread, metadata: { tenant, seats: 3 } }).result;
  const listThreads = async (metadata: Readonly<Record<string, string | number>>) =>
    (await listInterrupts(store, { metadata })).map(({ thread }) => thread);
  expect(await listThreads({ tenant: "acme" })).toEqual(["c", "a"]);
  expect(await listThreads({ tenant: "acme", seats: 4 })).toEqual([]);
  await getFailure(listInterrupts(store, { metadata: { tenant: ["acme"] as never } }), "invalid_option");
});
