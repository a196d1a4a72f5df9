/** Migrations to a newer graph version: state, names and pending work, in memory and in a file. */
import { virtualClock } from "@statewright/testing";
import {
  approval,
  channel,
  checkRuns,
  commandTargets,
  decide,
  defineGraph,
  defineMiddleware,
  defineMigration,
  defineState,
  defineTool,
  END,
  engine,
  fork,
  getState,
  goto,
  graphTool,
  listInterrupts,
  type Model,
  recover,
  resume,
  run,
  START,
  type Store,
  subgraph,
  toolNode,
} from "statewright";
import { exportThread, importThread, listRuns } from "statewright/inspect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { crashAt, getFailure, ignoreResult, type Place, places } from "../../support/both-stores.ts";

const hour = 3_600_000;

/** First version: amounts in cents. */
const first = defineGraph({
  name: "payment",
  version: 1,
  state: defineState({ cents: z.number().default(900), log: channel.list(z.string()) }),
  interrupts: { approve: { answer: z.object({ ok: z.boolean() }), expiresMs: hour, onExpire: { ok: false } } },
})
  .nodes({
    approve: async ({ cents }, { interrupt }) => ({
      log: [`${cents} cents: ${(await interrupt("approve", { payload: cents })).ok}`],
    }),
    pay: () => ({ log: ["paid"] }),
  })
  .edges({ [START]: "approve", approve: "pay", pay: END });

/** Second version: amounts in euros, a renamed node and interrupt, and a new channel. */
const second = defineGraph({
  name: "payment",
  version: 2,
  state: defineState({ euros: z.number(), log: channel.list(z.string()), by: z.string().default("nobody") }),
  interrupts: { sign: { answer: z.object({ ok: z.boolean() }), expiresMs: hour, onExpire: { ok: false } } },
})
  .nodes({
    confirm: async ({ euros, by }, { interrupt }) => ({
      log: [`${euros} euros by ${by}: ${(await interrupt("sign", { payload: euros * 100 })).ok}`],
    }),
    pay: () => ({ log: ["paid"] }),
  })
  .edges({ [START]: "confirm", confirm: "pay", pay: END });

const third = defineGraph({
  name: "payment",
  version: 3,
  state: defineState({ price: z.object({ amount: z.number(), currency: z.string() }), log: channel.list(z.string()) }),
  interrupts: { sign: { answer: z.object({ ok: z.boolean() }) } },
})
  .nodes({
    decide: async ({ price }, { interrupt }) => ({
      log: [`${price.amount} ${price.currency}: ${(await interrupt("sign", { payload: 900 })).ok}`],
    }),
    pay: () => ({ log: ["paid"] }),
  })
  .edges({ [START]: "decide", decide: "pay", pay: END });

const toSecond = defineMigration({
  from: first,
  to: second,
  nodes: { approve: "confirm" },
  interrupts: { approve: "sign" },
  state: (old) => ({ euros: old.cents / 100 }),
});

const toThird = defineMigration({
  from: second,
  to: third,
  nodes: { confirm: "decide" },
  state: ({ euros }) => ({ price: { amount: euros, currency: "EUR" } }),
});

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let store: Store;
  beforeEach(() => {
    place = open();
    store = place.store;
  });
  afterEach(() => place.close());

  const sources = async (branch = "main") =>
    (await store.history("t", { branch, limit: 50 })).map(({ source }) => source);

  test("a migration of state, node and interrupt: an answer under the new key reaches its node", async () => {
    await run(first, { store, thread: "t" }).result;
    const waitingRun = await resume(second, { store, thread: "t", migrations: [toSecond] }).result;
    expect(waitingRun).toMatchObject({ status: "waiting", state: { euros: 9, by: "nobody" } });
    expect(await listInterrupts(store)).toMatchObject([{ thread: "t", node: "confirm", key: "sign" }]);
    const failure = await getFailure(
      resume(second, { store, thread: "t", answers: { "0:0:approve": { ok: true } } }).result,
      "already_answered",
    );
    expect(failure.details).toMatchObject({ answer: { migrated: "0:0:sign" } });
    expect(failure.message).toContain('the interrupt "approve" (0:0:approve) was replaced by a migration');
    expect(failure.message).toContain("Answer the interrupt 0:0:sign instead.");
    const done = await resume(second, { store, thread: "t", answers: { sign: { ok: true } } }).result;
    expect(done.state).toEqual({ euros: 9, by: "nobody", log: ["9 euros by nobody: true", "paid"] });
    expect(await sources()).toEqual(["step", "step", "migration", "input"]);
  });

  test("a migration that leaves a refused payload parks the run, and the error names the migration and the schema", async () => {
    const payload = z.object({ euros: z.number() });
    const strict = defineGraph({
      name: "payment",
      version: 2,
      state: defineState({ euros: z.number(), log: channel.list(z.string()) }),
      interrupts: { sign: { payload, answer: z.object({ ok: z.boolean() }) } },
    })
      .nodes({ confirm: async ({ euros }, { interrupt }) => void (await interrupt("sign", { payload: { euros } })) })
      .edges({ [START]: "confirm", confirm: END });
    const toStrict = defineMigration({
      from: first,
      to: strict,
      nodes: { approve: "confirm" },
      interrupts: { approve: "sign" },
      state: (old) => ({ euros: old.cents / 100 }),
    });
    const migrations = [toStrict];
    await run(first, { store, thread: "t" }).result;
    const failure = await getFailure(resume(strict, { store, thread: "t", migrations }).result, "needs_migration");
    expect(failure.message).toContain("incompatible with version 2 after its migration");
    expect(failure.message).toContain(
      'Correct the migration of "payment" from version 1 to 2, or let the schema of the interrupt accept the saved payload.',
    );
  });

  test("an answer given before a migration and not yet consumed reaches the renamed node", async () => {
    await run(first, { store, thread: "t" }).result;
    const dying = crashAt(store, (commit) => commit.checkpoint?.row.source === "step", "before");
    ignoreResult(resume(first, { store: dying.store, thread: "t", answers: { approve: { ok: true } } }).result);
    await dying.dead;
    store = place.crash();
    const done = await resume(second, { store, thread: "t", migrations: [toSecond] }).result;
    expect(done.state).toMatchObject({ log: ["9 euros by nobody: true", "paid"] });
  });

  test("a migrated thread is exported and imported like any other", async () => {
    await run(first, { store, thread: "t" }).result;
    await resume(second, { store, thread: "t", migrations: [toSecond] }).result;
    await importThread(store, await exportThread(store, "t"), { as: "copy" });
    const done = await resume(second, { store, thread: "copy", answers: { sign: { ok: true } } }).result;
    expect(done).toMatchObject({ status: "done", state: { euros: 9 } });
  });

  test("a migration across several versions runs in order and writes one checkpoint", async () => {
    await run(first, { store, thread: "t" }).result;
    const done = await resume(third, {
      store,
      thread: "t",
      answers: { sign: { ok: true } },
      migrations: [toThird, toSecond],
    }).result;
    expect(done.state).toEqual({ price: { amount: 9, currency: "EUR" }, log: ["9 EUR: true", "paid"] });
    expect(await sources()).toEqual(["step", "step", "migration", "input"]);
  });

  test("a finished thread of an older version continues with its next input", async () => {
    await run(first, { store, thread: "t" }).result;
    await resume(first, { store, thread: "t", answers: { approve: { ok: true } } }).result;
    const refused = run(second, { store, thread: "t", input: { euros: 1 } });
    expect((await refused.result).state).toMatchObject({ euros: 1 });
    await resume(second, { store, thread: "t", answers: { sign: { ok: true } } }).result;
    await run(first, { store, thread: "u", input: { cents: 500 } }).result;
    await resume(first, { store, thread: "u", answers: { approve: { ok: false } } }).result;
    const next = await run(second, { store, thread: "u", input: { by: "Ann" } as never, migrations: [toSecond] })
      .result;
    expect(next.state).toMatchObject({ euros: 5, by: "Ann", log: ["500 cents: false", "paid"] });
  });

  test("a new input for a waiting thread is refused and migrates nothing", async () => {
    await run(first, { store, thread: "t" }).result;
    const before = await store.exportThread("t");
    await getFailure(
      run(second, { store, thread: "t", input: { euros: 1 }, migrations: [toSecond] }).result,
      "thread_busy",
    );
    const { epoch: _, ...after } = { epoch: 0, ...(await store.exportThread("t")) };
    expect(after).toMatchObject({ namespaces: before.namespaces, runs: before.runs });
  });

  test("a migration that throws or returns incompatible values changes nothing and is named in the error", async () => {
    await run(first, { store, thread: "t" }).result;
    const before = await store.exportThread("t");
    const bad = [
      {
        state: () => {
          throw new Error("no rate");
        },
        says: "its state threw: no rate",
      },
      { state: () => ({ euros: "nine" }) as never, says: 'for the channel "euros" that does not match its schema' },
      { state: () => ({ euros: 1, cent: 2 }) as never, says: '"cent", which is no channel' },
      { state: () => "nothing" as never, says: "which is not an object of channels" },
      { state: (() => Promise.resolve({})) as never, says: "which is not an object of channels" },
    ];
    for (const { state, says } of bad) {
      const migrations = [
        defineMigration({
          from: first,
          to: second,
          nodes: { approve: "confirm" },
          interrupts: { approve: "sign" },
          state,
        }),
      ];
      const failure = await getFailure(resume(second, { store, thread: "t", migrations }).result, "migration_failed");
      expect(failure.message).toContain('the migration of "payment" from version 1 to 2 failed');
      expect(failure.message).toContain(says);
      expect((await checkRuns(store, [second], { migrations }))[0]).toMatchObject({
        verdict: "parks",
        reason: expect.stringContaining(says),
      });
    }
    expect(await store.exportThread("t")).toMatchObject({
      namespaces: before.namespaces,
      runs: before.runs,
      events: before.events,
    });
    expect((await listRuns(store, { thread: "t" }))[0]?.status).toBe("waiting");
  });

  test("a migration that leaves an incompatibility parks the run and writes only its row", async () => {
    await run(first, { store, thread: "t" }).result;
    const migrations = [defineMigration({ from: first, to: second, state: ({ cents }) => ({ euros: cents }) })];
    const failure = await getFailure(resume(second, { store, thread: "t", migrations }).result, "needs_migration");
    expect(failure.message).toContain('the node "approve" is pending');
    expect(await sources()).toEqual(["input"]);
    const done = await resume(second, { store, thread: "t", migrations: [toSecond], answers: { sign: { ok: true } } })
      .result;
    expect(done.status).toBe("done");
  });

  test("an effect in flight keeps its idempotency key across a migration, and a recorded step is not repeated", async () => {
    const keys: string[] = [];
    const shape = (version: number, node: "work" | "labour", fails: boolean) =>
      defineGraph({ name: "works", version, state: defineState({ log: channel.list(z.string()) }) })
        .nodes({
          beside: async (_state, { step }) => {
            const done = await step("count", ({ idempotencyKey }) => keys.push(`${idempotencyKey} ${version}`));
            return { log: [`beside ${done}`] };
          },
          [node]: async (
            _state: unknown,
            {
              step,
            }: {
              step: (
                key: string,
                work: (at: { idempotencyKey: string }) => unknown,
                options?: object,
              ) => Promise<unknown>;
            },
          ) => {
            await step("once", ({ idempotencyKey }) => keys.push(`${idempotencyKey} ${version}`), { effect: "once" });
            await step("charge", ({ idempotencyKey }) => {
              keys.push(`${idempotencyKey} ${version}`);
              if (fails) throw new Error("broken");
            });
            return { log: ["worked"] };
          },
        })
        .edges({ [START]: ["beside", node], beside: END, [node]: END } as never);
    await getFailure(run(shape(1, "work", true), { store, thread: "t" }).result, "node_failed");
    const [old, now] = [shape(1, "work", true), shape(2, "labour", false)];
    const migrations = [defineMigration({ from: old, to: now, nodes: { work: "labour" } as never })];
    const done = await resume(now, { store, thread: "t", migrations }).result;
    expect(done.state).toEqual({ log: ["beside 1", "worked"] });
    expect(keys.map((key) => key.replace(/^t\/[0-9a-z]{12}\//, "t/"))).toEqual([
      "t/main/0:0/count 1",
      "t/main/0:1/once 1",
      "t/main/0:1/charge 1",
      "t/main/0:1/charge 2",
    ]);
  });

  test("a once node that died under its old name is in doubt under its new name and does not run again", async () => {
    const calls: number[] = [];
    const shape = (version: number, node: string) =>
      defineGraph({ name: "once", version, state: defineState({ log: channel.list(z.string()) }) })
        .nodes({ [node]: { effect: "once", run: () => ({ log: [`paid ${calls.push(version)}`] }) } } as never)
        .edges({ [START]: node, [node]: END } as never);
    const [old, now] = [shape(1, "pay"), shape(2, "charge")];
    const dying = crashAt(store, (commit) => commit.checkpoint?.row.source === "step", "before");
    ignoreResult(run(old, { store: dying.store, thread: "t" }).result);
    await dying.dead;
    store = place.crash();
    const migrations = [defineMigration({ from: old, to: now, nodes: { pay: "charge" } as never })];
    const asks = await resume(now, { store, thread: "t", migrations }).result;
    expect(asks).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt", node: "charge" }] });
    const done = await resume(now, {
      store,
      thread: "t",
      answers: { in_doubt: { happened: true, update: { log: ["said"] } } } as never,
    }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["said"] } });
    expect(calls).toEqual([1]);
  });

  test("the recorded result of a task leads to the renamed node", async () => {
    const log: string[] = [];
    const shape = (version: number, next: "next" | "then", fails: boolean) =>
      defineGraph({ name: "leads", version, state: defineState({ log: channel.list(z.string()) }) })
        .nodes({
          left: () => {
            log.push(`left by ${version}`);
            return goto(next);
          },
          right: () => {
            if (fails) throw new Error("broken");
            return {};
          },
          [next]: () => ({ log: [next] }),
        } as never)
        .edges({ [START]: ["left", "right"], left: commandTargets(next), right: END, [next]: END } as never);
    const [old, now] = [shape(1, "next", true), shape(2, "then", false)];
    await getFailure(run(old, { store, thread: "t" }).result, "node_failed");
    const failure = await getFailure(resume(now, { store, thread: "t" }).result, "needs_migration");
    expect(failure.message).toContain('the recorded result of the node "left" routes to "next", which is not a node');
    const migrations = [defineMigration({ from: old, to: now, nodes: { next: "then" } as never })];
    const done = await resume(now, { store, thread: "t", migrations }).result;
    expect(done.state).toEqual({ log: ["then"] });
    expect(log).toEqual(["left by 1"]);
  });

  test("recorded effects of a subgraph move with its renamed namespace", async () => {
    const keys: string[] = [];
    const works = defineGraph({
      name: "works",
      state: defineState({ log: channel.list(z.string()) }),
      interrupts: { q: z.string() },
    })
      .nodes({
        work: async (_state, { step, interrupt }) => {
          await step("charge", ({ idempotencyKey }) => keys.push(idempotencyKey), { effect: "once" });
          return { log: [await interrupt("q")] };
        },
      })
      .edges({ [START]: "work", work: END });
    const createOuterGraph = (version: number, node: string) =>
      defineGraph({ name: "around", version, state: defineState({ log: channel.list(z.string()) }) })
        .nodes({
          [node]: subgraph(works, { input: () => ({}), output: ({ log }) => ({ log }), persistence: "per-thread" }),
        } as never)
        .edges({ [START]: node, [node]: END } as never);
    const [old, now] = [createOuterGraph(1, "research"), createOuterGraph(2, "study")];
    await run(old, { store, thread: "t" }).result;
    const migrations = [defineMigration({ from: old, to: now, nodes: { research: "study" } as never })];
    const done = await resume(now, { store, thread: "t", answers: { "study.q": "yes" } as never, migrations }).result;
    expect(done.state).toEqual({ log: ["yes"] });
    expect(keys).toEqual([expect.stringMatching(/^t\/[0-9a-z]{12}\/main\/research\/0:0\/charge$/)]);
    const [row] = (await store.effects("t", "main/study")).filter(({ kind }) => kind === "step");
    expect(row).toMatchObject({ idempotencyKey: keys[0], state: "ok" });
  });

  test("an interrupt keeps its expiry under its renamed key", async () => {
    const clock = virtualClock();
    await run(first, { store, thread: "t", world: clock }).result;
    const due = (await store.timers({}))[0]?.dueAt;
    expect(due).toBe(clock.clock.now() + hour);
    await resume(second, { store, thread: "t", migrations: [toSecond], world: clock }).result;
    expect(await store.timers({})).toMatchObject([{ id: "0:0:sign", about: "sign", dueAt: due }]);
    await clock.advance(hour);
    const done = await resume(second, { store, thread: "t", world: clock }).result;
    expect(done.state).toMatchObject({ log: ["9 euros by nobody: false", "paid"] });
    expect(await store.timers({})).toEqual([]);
  });

  test("the timer of a renamed interrupt is committed with the migration", async () => {
    const clock = virtualClock();
    await run(first, { store, thread: "t", world: clock }).result;
    const dying = crashAt(store, ({ checkpoint }) => checkpoint?.row.source === "migration", "after");
    ignoreResult(resume(second, { store: dying.store, thread: "t", migrations: [toSecond], world: clock }).result);
    await dying.dead;
    store = place.crash();
    expect(await store.timers({})).toMatchObject([{ id: "0:0:sign", about: "sign" }]);
    expect((await checkRuns(store, [second]))[0]?.verdict).toBe("continues");
  });

  test.each(["the result of a task", "the answer of a model"])(
    "a call of a renamed tool inside %s, recorded and not yet folded, runs under the new name",
    async (where) => {
      let asked = 0;
      const model: Model = {
        id: "scripted",
        respond: () => {
          asked += 1;
          return Promise.resolve({ content: [{ type: "call", id: "c", name: "send", args: {} }], finish: "calls" });
        },
      };
      const agent = (version: number, name: string) =>
        defineGraph({
          name: "agent",
          version,
          state: defineState({ messages: channel.messages() }),
          interrupts: { ok: z.boolean() },
        })
          .nodes({
            model: async (_state, runtime) => {
              const message = await runtime.model({ model, request: { messages: [], tools: [] } });
              if (where === "the answer of a model") await runtime.interrupt("ok");
              return { messages: [message] };
            },
            beside: async (_state, { interrupt }) => {
              if (where === "the result of a task") await interrupt("ok");
              return {};
            },
            tools: toolNode({
              tools: [defineTool({ name, description: "Sends.", input: z.object({}), run: () => "sent" })],
            }),
          })
          .edges({ [START]: ["model", "beside"], model: "tools", beside: END, tools: END });
      const [old, now] = [agent(1, "send"), agent(2, "mail")];
      await run(old, { store, thread: "t" }).result;
      const migrations = [defineMigration({ from: old, to: now, tools: { send: "mail" } })];
      const { status, state } = await resume(now, { store, thread: "t", answers: { ok: true }, migrations }).result;
      expect([status, asked]).toEqual(["done", 1]);
      expect(state.messages.at(-1)).toMatchObject({ role: "tool", name: "mail", content: [{ text: "sent" }] });
    },
  );

  test.each(["the journal of the calls", "the result of the tool node"])(
    "a call that was answered before its tool was renamed has the new name, in the call and in its answer: answer in %s [FX74]",
    async (place) => {
      const calls = ["send", "ask"].map((name) => ({ type: "call", id: `c_${name}`, name, args: {} }) as const);
      const content = place === "the journal of the calls" ? calls : calls.slice(0, 1);
      const asking = { role: "assistant", id: "a", content, finish: "calls" } as const;
      const asks = defineMiddleware({
        name: "asks",
        beforeTool: ({ call }) => (call.name === "ask" ? decide.interrupt(call, "a letter") : undefined),
      });
      const requests: string[] = [];
      const model: Model = {
        id: "scripted",
        respond: ({ messages }) => {
          requests.push(
            ...messages.flatMap((message): string[] => {
              if (message.role === "tool") return [`answer ${message.callId} ${message.name}`];
              if (message.role !== "assistant") return [];
              return message.content.flatMap((block) =>
                block.type === "call" ? [`call ${block.id} ${block.name}`] : [],
              );
            }),
          );
          return Promise.resolve({ content: [{ type: "text", text: "ok" }], finish: "stop" });
        },
      };
      const agent = (version: number, name: string) => {
        const tool = (toolName: string) =>
          defineTool({ name: toolName, description: "Acts.", input: z.object({}), run: () => "done" });
        return defineGraph({
          name: "agent",
          version,
          state: defineState({ messages: channel.messages() }),
          interrupts: { approve: approval, ok: z.boolean() },
        })
          .nodes({
            begin: () => ({ messages: [asking] }),
            beside: async (_state, { interrupt }) => {
              if (place !== "the journal of the calls") await interrupt("ok");
              return {};
            },
            tools: toolNode({ tools: [tool(name), tool("ask")], middleware: [asks] }),
            model: async ({ messages }, runtime) => ({
              messages: [await runtime.model({ model, request: { messages, tools: [] } })],
            }),
          })
          .edges({ [START]: "begin", begin: ["tools", "beside"], beside: END, tools: "model", model: END });
      };
      const [old, now] = [agent(1, "send"), agent(2, "mail")];
      await run(old, { store, thread: "t" }).result;
      const migrations = [defineMigration({ from: old, to: now, tools: { send: "mail" } })];
      const answers = place === "the journal of the calls" ? { approve: true } : { ok: true };
      const done = await resume(now, { store, thread: "t", answers, migrations } as never).result;
      expect(done.status).toBe("done");
      expect(requests.filter((line) => line.includes("c_send"))).toEqual(["call c_send mail", "answer c_send mail"]);
      expect(requests).toHaveLength(content.length * 2);
    },
  );

  test("an interrupt inside a renamed graph tool is answered under the new name", async () => {
    const asking = {
      role: "assistant",
      id: "a",
      content: [{ type: "call", id: "c", name: "look", args: {} }],
      finish: "calls",
    } as const;
    let read = 0;
    const library = defineGraph({
      name: "library",
      state: defineState({ log: channel.list(z.string()) }),
      interrupts: { which: z.string() },
    })
      .nodes({
        read: () => ({ log: [`read ${++read}`] }),
        look: async (_state, { interrupt }) => ({ log: [await interrupt("which")] }),
      })
      .edges({ [START]: "read", read: "look", look: END });
    const agent = (version: number, name: string) =>
      defineGraph({ name: "agent", version, state: defineState({ messages: channel.messages() }) })
        .nodes({
          tools: toolNode({
            tools: [
              graphTool(library, {
                name,
                description: "Looks.",
                input: z.object({}),
                toInput: () => ({}),
                toResult: ({ log }) => log.join(", "),
              }),
            ],
          }),
        })
        .edges({ [START]: "tools", tools: END });
    const [old, now] = [agent(1, "look"), agent(2, "search")];
    await run(old, { store, thread: "t", input: { messages: [asking] } }).result;
    const migrations = [defineMigration({ from: old, to: now, tools: { look: "search" } })];
    const asked = await resume(now, { store, thread: "t", migrations }).result;
    expect(asked).toMatchObject({ status: "waiting", interrupts: [{ key: "search.which", node: "search.look" }] });
    const done = await resume(now, { store, thread: "t", answers: { "search.which": "bees" } as never }).result;
    expect(done.state.messages.at(-1)).toMatchObject({ role: "tool", content: [{ text: "read 1, bees" }] });
  });

  test("a pending call of a renamed tool continues, and its approval is requested again", async () => {
    const ran: string[] = [];
    const asks = defineMiddleware({ name: "asks", beforeTool: ({ call }) => decide.interrupt(call, "a letter") });
    const asking = {
      role: "assistant",
      id: "a",
      content: [{ type: "call", id: "c", name: "send", args: { to: "Ann" } }],
      finish: "calls",
    } as const;
    const agent = (version: number, name: string) =>
      defineGraph({
        name: "agent",
        version,
        state: defineState({ messages: channel.messages() }),
        interrupts: { approve: approval },
      })
        .nodes({
          model: ({ messages }) => (messages.length > 1 ? {} : { messages: [asking] }),
          tools: toolNode({
            tools: [
              defineTool({
                name,
                description: "Sends.",
                input: z.object({ to: z.string() }),
                run: ({ to }) => {
                  ran.push(`${name} ${to}`);
                  return "sent";
                },
              }),
            ],
            middleware: [asks],
          }),
        })
        .edges({ [START]: "model", model: "tools", tools: END });
    const [old, now] = [agent(1, "send"), agent(2, "post")];
    await run(old, { store, thread: "t" }).result;
    const migrations = [defineMigration({ from: old, to: now, tools: { send: "post" } })];
    const again = await resume(now, { store, thread: "t", answers: { approve: true }, migrations }).result;
    expect(again).toMatchObject({ status: "waiting", interrupts: [{ payload: { tool: "post" } }] });
    expect(ran).toEqual([]);
    const done = await resume(now, { store, thread: "t", answers: { approve: true } }).result;
    expect(done.state.messages.at(-1)).toMatchObject({ role: "tool", name: "post", isError: false });
    expect(ran).toEqual(["post Ann"]);
  });

  describe("subgraphs", () => {
    const inner = (version: number, node: string, key: "cents" | "euros") =>
      defineGraph({
        name: "inner",
        version,
        state: defineState({ [key]: z.number().default(100), log: channel.list(z.string()) } as never),
        interrupts: { q: z.string() },
      })
        .nodes({
          [node]: async (
            state: Record<string, unknown>,
            { interrupt }: { interrupt: (key: string) => Promise<string> },
          ) => ({
            [key]: Number(state[key]) * 2,
            log: [`${await interrupt("q")} ${state[key]} ${key}`],
          }),
        } as never)
        .edges({ [START]: node, [node]: END } as never);
    const outer = (
      version: number,
      node: string,
      graph: ReturnType<typeof inner>,
      persistence: "per-thread" | "per-call",
    ) =>
      defineGraph({
        name: "outer",
        version,
        state: defineState({ log: channel.list(z.string()), calls: z.number().default(0) }),
      })
        .nodes({
          [node]: subgraph(graph, {
            input: () => ({}) as never,
            output: (output: unknown) => ({ log: (output as { log: readonly string[] }).log }),
            persistence,
          }),
        } as never)
        .edges({ [START]: node, [node]: END } as never);
    const [innerOld, innerNow] = [inner(1, "scope", "cents"), inner(2, "frame", "euros")];
    const within = defineMigration({
      from: innerOld,
      to: innerNow,
      nodes: { scope: "frame" } as never,
      state: (({ cents }: { cents: number }) => ({ euros: cents / 100 })) as never,
    });

    test.each(["per-thread", "per-call"] as const)(
      "an active subgraph call (%s) continues in the renamed node of the renamed graph",
      async (persistence) => {
        const [old, now] = [outer(1, "research", innerOld, persistence), outer(2, "study", innerNow, persistence)];
        const migrations = [
          defineMigration({
            from: old,
            to: now,
            nodes: { research: "study" } as never,
            inner: { research: within } as never,
          }),
        ];
        await run(old, { store, thread: "t" }).result;
        expect(await listInterrupts(store)).toMatchObject([{ node: "research.scope", key: "research.q" }]);
        await getFailure(resume(now, { store, thread: "t" }).result, "needs_migration");
        const done = await resume(now, { store, thread: "t", answers: { "study.q": "yes" } as never, migrations })
          .result;
        expect(done.state).toMatchObject({ log: ["yes 1 euros"] });
        if (persistence === "per-call") return;
        await run(now, { store, thread: "t" }).result;
        const next = await resume(now, { store, thread: "t", answers: { "study.q": "again" } as never }).result;
        expect(next.state).toMatchObject({ log: ["yes 1 euros", "yes 1 euros", "again 2 euros"] });
      },
    );

    test("persistent subgraph state is migrated with the thread, also on an earlier fork", async () => {
      const [old, now] = [outer(1, "research", innerOld, "per-thread"), outer(2, "study", innerNow, "per-thread")];
      const migrations = [
        defineMigration({
          from: old,
          to: now,
          nodes: { research: "study" } as never,
          inner: { research: within } as never,
        }),
      ];
      await run(old, { store, thread: "t" }).result;
      await resume(old, { store, thread: "t", answers: { "research.q": "yes" } as never }).result;
      const head = await store.head("t");
      await fork(old, { store, thread: "t", at: head?.id ?? 0, name: "side" });
      for (const branch of ["main", "side"]) {
        await run(now, { store, thread: "t", branch, migrations }).result;
        const next = await resume(now, { store, thread: "t", branch, answers: { "study.q": branch } as never }).result;
        expect(next.state).toMatchObject({ log: expect.arrayContaining([`${branch} 2 euros`]) });
      }
    });

    test("a subgraph that no longer has parallel regions continues at its node", async () => {
      const graph = (isParallel: boolean) =>
        defineGraph({
          name: "inner",
          state: defineState({ log: channel.list(z.string()) }),
          interrupts: { q: z.string() },
        })
          .nodes({
            ask: async (_state, { interrupt }) => ({ log: [await interrupt("q")] }),
            left: () => ({ log: ["left"] }),
            right: () => ({ log: ["right"] }),
          })
          .edges({
            [START]: "ask",
            ask: isParallel ? ["left", "right"] : "left",
            left: isParallel ? END : "right",
            right: END,
          });
      const createOuterGraph = (version: number, node: string, isParallel: boolean) =>
        defineGraph({ name: "around", version, state: defineState({ log: channel.list(z.string()) }) })
          .nodes({
            [node]: subgraph(graph(isParallel), { input: () => ({}), output: ({ log }) => ({ log }) }),
          } as never)
          .edges({ [START]: node, [node]: END } as never);
      const [old, now] = [createOuterGraph(1, "research", true), createOuterGraph(2, "research", false)];
      await run(old, { store, thread: "t" }).result;
      const migrations = [defineMigration({ from: old, to: now })];
      const done = await resume(now, { store, thread: "t", answers: { "research.q": "yes" } as never, migrations })
        .result;
      expect(done.state).toEqual({ log: ["yes", "left", "right"] });
    });

    test("a migration interrupted between two namespaces runs once on each", async () => {
      const [old, now] = [outer(1, "research", innerOld, "per-thread"), outer(2, "study", innerNow, "per-thread")];
      const migrations = [
        defineMigration({
          from: old,
          to: now,
          nodes: { research: "study" } as never,
          inner: { research: within } as never,
        }),
      ];
      await run(old, { store, thread: "t" }).result;
      const dying = crashAt(
        store,
        ({ checkpoint, branch }) => checkpoint?.row.source === "migration" && branch === "main/study",
        "after",
      );
      ignoreResult(resume(now, { store: dying.store, thread: "t", migrations }).result);
      await dying.dead;
      store = place.crash();
      expect((await checkRuns(store, [now], { migrations }))[0]?.verdict).toBe("migrates");
      const done = await resume(now, { store, thread: "t", answers: { "study.q": "yes" } as never, migrations }).result;
      expect(done.state).toMatchObject({ log: ["yes 1 euros"] });
    });

    test("a crash at any commit of a migrated run leads to the same end", async () => {
      const [old, now] = [outer(1, "research", innerOld, "per-thread"), outer(2, "study", innerNow, "per-thread")];
      const migrations = [
        defineMigration({
          from: old,
          to: now,
          nodes: { research: "study" } as never,
          inner: { research: within } as never,
        }),
      ];
      const answers = { "study.q": "yes" } as never;
      for (const when of ["before", "after"] as const) {
        let deaths = 0;
        for (let nth = 1, died = true; died; nth++) {
          const fresh = open();
          try {
            await run(old, { store: fresh.store, thread: "t" }).result;
            let commits = 0;
            const dying = crashAt(fresh.store, () => ++commits === nth, when);
            const end = resume(now, { store: dying.store, thread: "t", answers, migrations }).result;
            ignoreResult(end);
            died = await Promise.race([dying.dead.then(() => true), end.then(() => false)]);
            if (died) deaths += 1;
            const after = died ? fresh.crash() : fresh.store;
            const [open] = await checkRuns(after, [now], { migrations });
            expect(open?.verdict).not.toBe("parks");
            const isAnswered = (await after.interrupts("t", "main")).some(
              ({ answer, key }) => answer !== undefined && key === "study.q",
            );
            const going = resume(now, { store: after, thread: "t", migrations, ...(isAnswered ? {} : { answers }) });
            expect((await going.result).state, `${when} commit ${nth}`).toMatchObject({ log: ["yes 1 euros"] });
            const page = await after.history("t", { branch: "main/study", limit: 50 });
            expect(page.filter(({ source }) => source === "migration")).toHaveLength(1);
          } finally {
            await fresh.close();
          }
        }
        expect(deaths).toBeGreaterThan(4);
      }
    });
  });

  test("an engine continues each run under its version, and runs parked by an earlier engine [E50]", async () => {
    const clock = virtualClock();
    await run(first, { store, thread: "waits", world: clock }).result;
    await run(first, { store, thread: "parked", world: clock }).result;
    await getFailure(resume(second, { store, thread: "parked", world: clock }).result, "needs_migration");
    const lonely = await recover({ store, graphs: [second], world: clock });
    expect(lonely).toHaveLength(1);
    await getFailure((lonely[0] as (typeof lonely)[number]).result, "needs_migration");
    const host = engine({ store, graphs: [first, second], migrations: [], world: clock });
    await host.start();
    await clock.waitUntilIdle?.();
    for (let turn = 0; turn < 50 && (await listRuns(store, { status: "waiting" })).length < 2; turn++)
      await clock.advance(10);
    expect(await listRuns(store, { status: "waiting" })).toHaveLength(2);
    const done = await host.resume(second, { thread: "parked", answers: { approve: { ok: true } } as never }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["900 cents: true", "paid"] } });
    await host.stop();
  });

  test("checkRuns reads every open run page by page and writes nothing [E50]", async () => {
    for (let n = 0; n < 130; n++) await run(first, { store, thread: `t${n}` }).result;
    await run(first, { store, thread: "done" }).result;
    await resume(first, { store, thread: "done", answers: { approve: { ok: true } } }).result;
    await run(first, { store, thread: "t0", input: { cents: 1 }, onBusy: "enqueue" }).result;
    const before = await store.exportThread("t0");
    const verdicts = async (...given: Parameters<typeof checkRuns> extends [Store, ...infer Rest] ? Rest : never) => {
      const checks = await checkRuns(store, ...given);
      const counted: Record<string, number> = {};
      for (const { verdict } of checks) counted[verdict] = (counted[verdict] ?? 0) + 1;
      return counted;
    };
    expect(await verdicts([first])).toEqual({ continues: 131 });
    expect(await verdicts([second])).toEqual({ parks: 131 });
    expect(await verdicts([second, first])).toEqual({ continues: 130, parks: 1 });
    expect(await verdicts([second], { migrations: [toSecond] })).toEqual({ migrates: 130, parks: 1 });
    expect(await verdicts([])).toEqual({ parks: 131 });
    const checks = await checkRuns(store, [second]);
    expect(new Set(checks.map(({ run: { thread } }) => thread)).size).toBe(130);
    expect(await store.exportThread("t0")).toEqual(before);
  });

  test("a fork from before a migration is migrated separately, and getState shows its saved state", async () => {
    await run(first, { store, thread: "t" }).result;
    const [input] = await store.history("t", { limit: 1 });
    await resume(second, { store, thread: "t", answers: { sign: { ok: true } }, migrations: [toSecond] }).result;
    await fork(first, { store, thread: "t", at: input?.id ?? 0, name: "side", update: { cents: 100 } });
    await resume(second, { store, thread: "t", branch: "side", migrations: [toSecond] }).result;
    const done = await resume(second, { store, thread: "t", branch: "side", answers: { sign: { ok: true } } }).result;
    expect(done.state).toMatchObject({ euros: 1 });
    expect((await getState(second, { store, thread: "t" })).state).toMatchObject({ euros: 9 });
  });
});

test("an invalid migration is refused at definition", () => {
  const expectRefusal = (define: () => unknown, says: string) => expect(define).toThrow(says);
  const state = () => ({ euros: 1 });
  expectRefusal(
    () => defineMigration({ from: first, to: second, state, nodes: { gone: "confirm" } as never }),
    '`nodes` must be names of nodes of the old graph, got "gone"',
  );
  expectRefusal(
    () => defineMigration({ from: first, to: second, state, nodes: { approve: "gone" } as never }),
    '`nodes.approve` must be one of the nodes of the new graph, got "gone"',
  );
  expectRefusal(
    () => defineMigration({ from: first, to: second, state, interrupts: { approve: "gone" } as never }),
    '`interrupts.approve` must be one of the interrupts of the new graph, got "gone"',
  );
  expectRefusal(
    () => defineMigration({ from: first, to: second, state, tools: { send: "post" } }),
    '`tools` must be names of tools of the old graph, got "send"',
  );
  expectRefusal(
    () => defineMigration({ from: first, to: first }),
    "`to` must be another version of the graph, got the same graph",
  );
  expectRefusal(
    () => defineMigration({ from: first, to: { ...second, name: "other" }, state }),
    'expected two versions of one graph, got "payment" and "other"',
  );
  expectRefusal(
    () => defineMigration({ from: first, to: {} as never } as never),
    "`to` must be a graph, got an object. Pass a result of defineGraph(…)",
  );
  expectRefusal(
    () => defineMigration({ from: first, to: second, state: 5 as never }),
    "from version 1 to 2: `state` must be a function of the old state, got 5",
  );
  expectRefusal(() => defineMigration({ from: first, to: second, state, node: {} } as never), "node");
  expectRefusal(
    () => defineMigration({ from: first, to: second, state, inner: { approve: toThird } }),
    "must be a migration of the graph of node",
  );
});
