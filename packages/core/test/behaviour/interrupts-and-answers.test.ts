import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  checkGraph,
  defineGraph,
  defineState,
  END,
  goto,
  gotos,
  join,
  list,
  type MemoryStore,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  sends,
  task,
} from "../../src/index.ts";
import { eventsOf, failureOf, only } from "../support/failure.ts";
import { fromJavaScript } from "../support/from-javascript.ts";
import { virtualWorld } from "../support/virtual-world.ts";

const Pay = defineState({ amount: z.number(), note: z.string().optional(), log: list(z.string()) });
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
  .edges({ [START]: "approve", approve: gotos("pay", "decline"), pay: END, decline: END });

async function waiting(store: MemoryStore = memoryStore()): Promise<MemoryStore> {
  expect((await run(payment, { store, thread: "t", input: { amount: 5 } }).result).status).toBe("waiting");
  return store;
}

describe("asking", () => {
  test("the run waits and lists what is open: id, key, node, payload and the JSON Schema of the answer", async () => {
    const handle = run(payment, { store: memoryStore(), thread: "t", input: { amount: 5 } });
    const events = eventsOf(handle);
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
    expect(only(events, "run.waiting")[0]?.interrupts).toEqual(result.interrupts);
  });

  test("siblings of a task that asks finish and are saved", async () => {
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

  test("E28 a question pauses its task: siblings finish and are saved, the run waits with the list, answers are typed", async () => {
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
          asks: ["seat"],
          run: async (_state, { interrupt }) => {
            ran.push("book");
            const { seat } = await interrupt("seat", { payload: { free: ["1A", "2B"] } });
            return { log: [seat] };
          },
        },
        cook: { asks: ["meal"], run: async (_state, { interrupt }) => ({ log: [await interrupt("meal")] }) },
        pack: {
          asks: [],
          run: () => {
            ran.push("pack");
            return { log: ["packed"] };
          },
        },
        fly: { asks: [], run: () => ({ log: ["flown"] }) },
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

  test("E28 a payload, an answer and a key that the graph or the node does not declare are refused; checkGraph knows who asks", async () => {
    const graph = (asks: readonly ("go" | "stop")[], answer: z.ZodType<boolean> = z.boolean()) =>
      defineGraph({ name: "asks", state: Pay, interrupts: { go: { payload: z.number(), answer }, stop: z.boolean() } })
        .nodes({
          a: { asks, run: async (_state, { interrupt }) => void (await interrupt("go", { payload: 1 })) },
          b: { asks: ["stop"], run: () => undefined },
        })
        .edges({ [START]: "a", a: "b", b: END });
    const store = memoryStore();
    const input = { amount: 1 };
    const refused = await failureOf(run(graph(["stop"]), { store, thread: "u", input }).result, "unknown_interrupt");
    expect(refused.message).toContain('the node "a" in graph "asks" asked "go", which its asks do not list');
    expect(refused.place).toMatchObject({ node: "a", graph: "asks" });
    await run(graph(["go"]), { store, thread: "t", input }).result;
    const unfit = { store, thread: "t", answers: { go: "yes" as never } };
    await failureOf(resume(graph(["go"]), unfit).result, "invalid_answer");
    expect(checkGraph(graph(["stop"])).violations).toMatchObject([{ rule: "unasked_interrupt", path: ["start"] }]);
    expect(checkGraph(graph(["go"], z.never())).violations).toMatchObject([
      { rule: "unanswerable_interrupt", path: ["start", "a", '(a asks "go")'] },
    ]);
  });

  test("E31 an interrupt cannot be swallowed: the promise never settles, the body is abandoned, its signal aborts", async () => {
    const world = virtualWorld();
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
    await world.settle();
    expect(first).toMatchObject({ status: "waiting", state: { log: [] } });
    expect(seen.filter((each) => each !== "caught" && each !== "finally")).toEqual(["signal"]);
    const done = await resume(graph, { world, store, thread: "t", answers: { go: "answer" } }).result;
    expect(done.state.log).toEqual(["answer"]);
  });

  test("E31 neither try/catch nor finally around it runs when it waits", async () => {
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
    const world = virtualWorld();
    const { status } = await run(graph, { world, store: memoryStore(), thread: "t", input: { amount: 1 } }).result;
    await world.settle();
    expect([status, seen]).toEqual(["waiting", []]);
  });

  test("E31 a body that asks and returns without waiting has asked all the same", async () => {
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

  test("E34 asking without a store is an error at once, with a hint", async () => {
    const error = await failureOf(run(payment, { input: { amount: 5 } }).result, "missing_store");
    expect(error.message).toContain("memoryStore()");
    expect(error.place).toMatchObject({ node: "approve", graph: "payment" });
  });

  test("a question that cannot be asked fails the node, also inside try/catch: nothing after it runs unanswered", async () => {
    let paid = 0;
    const hasty = (key: string, payload: unknown) =>
      defineGraph({
        name: "hasty",
        state: defineState({ log: list(z.string()) }),
        interrupts: { approve: z.boolean() },
      })
        .nodes({
          pay: async (_state, { interrupt }) => {
            try {
              await interrupt(fromJavaScript<"approve">(key), { payload });
            } catch {
              // As if nobody had to be asked.
            }
            paid++;
            return { log: ["paid"] };
          },
        })
        .edges({ [START]: "pay", pay: END });
    const store = memoryStore();
    await failureOf(run(hasty("approve", 1), {}).result, "missing_store");
    await failureOf(run(hasty("approved", 1), { store, thread: "a" }).result, "unknown_interrupt");
    await failureOf(
      run(
        hasty("approve", () => 1),
        { store, thread: "b" },
      ).result,
      "unencodable_value",
    );
    expect(paid).toBe(0);
  });

  test("a key that the graph does not declare, and a payload that does not fit, are errors of the node", async () => {
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
    expect((await failureOf(run(graph("typo"), options).result, "unknown_interrupt")).place.node).toBe("a");
    expect((await failureOf(run(graph("payload"), options).result, "invalid_update")).place.node).toBe("a");
  });
});

describe("answering", () => {
  test("E29 an answer is matched by key or by id", async () => {
    for (const name of ["approve", "0:0:approve"]) {
      const store = await waiting();
      const { state } = await resume(payment, { store, thread: "t", answers: { [name]: { ok: true } } }).result;
      expect(state.log).toEqual(["paid"]);
    }
  });

  test("E29 an answer that fails the schema is refused and the question stays open", async () => {
    const store = await waiting();
    const error = await failureOf(
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
      member: task(z.string(), async (_state, { input, interrupt }) => ({
        log: [`${input}: ${await interrupt("vote", { payload: input })}`],
      })),
      boss: async (_state, { interrupt }) => ({ log: [await interrupt("sign")] }),
      fan: () => undefined,
    })
    .edges({ [START]: ["fan", "boss"], fan: sends("member", () => ["ann", "bob"]), member: END, boss: END });

  /** The run asks "sign" first, then two votes in the next superstep. */
  async function voting(): Promise<MemoryStore> {
    const store = memoryStore();
    await run(team, { store, thread: "t", input: { amount: 1 } }).result;
    const { status } = await resume(team, { store, thread: "t", answers: { sign: "signed" } }).result;
    expect(status).toBe("waiting");
    return store;
  }

  test("E29 one answer for several open questions is refused with the list; by id each gets its own", async () => {
    const store = await voting();
    const byKey = await failureOf(
      resume(team, { store, thread: "t", answers: { vote: "yes" } }).result,
      "ambiguous_answer",
    );
    expect(byKey.details).toMatchObject([
      { id: "1:0:vote", payload: "ann" },
      { id: "1:1:vote", payload: "bob" },
    ]);
    const scalar = await failureOf(
      resume(team, { store, thread: "t", answers: "yes" as never }).result,
      "ambiguous_answer",
    );
    expect(scalar.details).toMatchObject([{ id: "1:0:vote" }, { id: "1:1:vote" }]);
    const second = await resume(team, { store, thread: "t", answers: { "1:1:vote": "no" } }).result;
    expect(second).toMatchObject({ status: "waiting", interrupts: [{ id: "1:0:vote", payload: "ann" }] });
    const done = await resume(team, { store, thread: "t", answers: { vote: "yes" } }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["signed", "ann: yes", "bob: no"] } });
  });

  test("E29 one refused answer among several refuses all of them", async () => {
    const store = await voting();
    await failureOf(
      resume(team, { store, thread: "t", answers: { "1:0:vote": "yes", "1:1:vote": 5 } }).result,
      "invalid_answer",
    );
    expect(
      (await store.interrupts("t", "main")).filter(({ answer }) => answer !== undefined).map(({ key }) => key),
    ).toEqual(["sign"]);
  });

  test("E29 a second answer gets an error that carries the first, while the run waits on and when it has finished", async () => {
    const store = await voting();
    await resume(team, { store, thread: "t", answers: { "1:0:vote": "yes" } }).result;
    const earlier = await failureOf(
      resume(team, { store, thread: "t", answers: { sign: "again" } }).result,
      "already_answered",
    );
    expect(earlier.details).toMatchObject({ answer: "signed" });
    const same = await failureOf(
      resume(team, { store, thread: "t", answers: { "1:0:vote": "no" } }).result,
      "already_answered",
    );
    expect(same.details).toMatchObject({ answer: "yes" });
    await resume(team, { store, thread: "t", answers: { vote: "no" } }).result;
    const late = await failureOf(
      resume(team, { store, thread: "t", answers: { "1:1:vote": "yes" } }).result,
      "already_answered",
    );
    expect(late.details).toMatchObject({ answer: "no" });
  });

  test("E29 answering what was never asked, a finished thread or an unknown one is a typed error", async () => {
    const store = await waiting();
    const open = await failureOf(
      resume(payment, { store, thread: "t", answers: fromJavaScript({ nothing: 1 }) }).result,
      "unknown_interrupt",
    );
    expect(open.message).toContain('"approve" (0:0:approve)');
    await resume(payment, { store, thread: "t", answers: { approve: { ok: true } } }).result;
    await failureOf(
      resume(payment, { store, thread: "t", answers: fromJavaScript({ nothing: 1 }) }).result,
      "unknown_interrupt",
    );
    await failureOf(
      resume(payment, { store, thread: "nobody", answers: { approve: { ok: true } } }).result,
      "unknown_thread",
    );
    expect((await resume(payment, { store, thread: "t" }).result).state.log).toEqual(["paid"]);
  });

  test("E30 of two clients that answer at the same moment exactly one wins", async () => {
    for (const peers of [false, true]) {
      const store = await waiting();
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

  test("a body may ask the same key again, and several at once", async () => {
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

  test("of several questions of one key each answer goes to the question that showed the same, in whatever order they are asked again", async () => {
    let pass = 0;
    const graph = defineGraph({
      name: "items",
      state: defineState({ log: list(z.string()) }),
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
});
