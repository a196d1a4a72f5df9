import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  type MemoryStore,
  type Model,
  memoryStore,
  resume,
  route,
  run,
  START,
} from "../../../src/index.ts";
import { collectEvents, createDeferred, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { fromJavaScript } from "../../support/from-javascript.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

/** Starts a run whose process dies inside the node `pay`. */
async function runUntilDeath(world: VirtualWorld, store: MemoryStore, charges: string[], sibling = false) {
  const hold = createDeferred();
  let alive = true;
  const graph = defineGraph({ name: "shop", state: Log })
    .nodes({
      pay: {
        run: async () => {
          charges.push("charge");
          if (alive) await hold.promise;
          return { log: ["paid"] };
        },
        effect: "once",
      },
      beside: () => ({ log: ["beside"] }),
      after: () => ({ log: ["after"] }),
    })
    .edges({
      [START]: route(["pay", "beside"], () => (sibling ? ["pay", "beside"] : "pay"), { many: true }),
      pay: "after",
      beside: END,
      after: END,
    });
  ignoreResult(run(graph, { world, store, thread: "t" }).result);
  await world.waitUntilIdle();
  store.crash();
  alive = false;
  hold.resolve();
  await world.waitUntilIdle();
  return graph;
}

describe("once node", () => {
  test.each([
    ["alone", false],
    ["next to a sibling", true],
  ])(
    "a once node without a recorded result after a crash does not rerun and waits for a decision, %s [E61]",
    async (_name, sibling) => {
      const world = createVirtualWorld();
      const store = memoryStore();
      const charges: string[] = [];
      const graph = await runUntilDeath(world, store, charges, sibling);
      const peer = store.peer();
      for (let nth = 0; nth < 2; nth++) {
        const waiting = await resume(graph, { world, store: peer, thread: "t" }).result;
        expect(waiting).toMatchObject({
          status: "waiting",
          interrupts: [
            {
              key: "in_doubt",
              node: "pay",
              payload: { node: "pay", startedAt: 1_000_000 },
            },
          ],
        });
      }
      await getFailure(
        resume(graph, { world, store: peer, thread: "t", answers: { in_doubt: fromJavaScript<never>("yes") } }).result,
        "invalid_answer",
      );
      const answers = { in_doubt: { happened: true, update: { log: ["paid, says the bank"] } } };
      const { state } = await resume(graph, { world, store: peer, thread: "t", answers }).result;
      expect(state.log).toEqual(["paid, says the bank", ...(sibling ? ["beside"] : []), "after"]);
      expect(charges).toEqual(["charge"]);
    },
  );

  test("a once node reruns when a person answers that it did not happen, and is in doubt again after another crash [E61]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const charges: string[] = [];
    const graph = await runUntilDeath(world, store, charges);
    const second = store.peer();
    await resume(graph, { world, store: second, thread: "t" }).result;
    const no = { in_doubt: { happened: false } };
    const { state } = await resume(graph, { world, store: second, thread: "t", answers: no }).result;
    expect(state.log).toEqual(["paid", "after"]);
    expect(charges).toEqual(["charge", "charge"]);
  });

  test("each start of a once node opens its own interrupt: an answer for the first start does not count for the second", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    let charges = 0;
    const graph = defineGraph({ name: "shop", state: Log })
      .nodes({
        pay: {
          run: () => {
            charges++;
            return new Promise<undefined>(() => undefined);
          },
          effect: "once",
        },
      })
      .edges({ [START]: "pay", pay: END });
    let owner = store;
    ignoreResult(run(graph, { world, store: owner, thread: "t" }).result);
    const ids: string[] = [];
    for (let nth = 1; nth <= 3; nth++) {
      await world.waitUntilIdle();
      owner.crash();
      owner = owner.peer();
      const waiting = await resume(graph, { world, store: owner, thread: "t" }).result;
      if (waiting.status === "waiting") ids.push(...waiting.interrupts.map(({ id }) => id));
      expect(charges).toBe(nth);
      resume(graph, { world, store: owner, thread: "t", answers: { in_doubt: { happened: false } } }).result.catch(
        () => undefined,
      );
    }
    expect(new Set(ids).size).toBe(3);
  });

  test("a failed once node is not repeated by a resume, which opens an in-doubt interrupt", async () => {
    const store = memoryStore();
    let charges = 0;
    const graph = defineGraph({ name: "shop", state: Log })
      .nodes({
        pay: {
          run: () => {
            charges++;
            throw new Error("no answer from the bank");
          },
          effect: "once",
        },
        thanks: () => ({ log: ["thanks"] }),
      })
      .edges({ [START]: "pay", pay: commandTargets("thanks") as never, thanks: END });
    await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    expect((await resume(graph, { store, thread: "t" }).result).status).toBe("waiting");
    const answers = { in_doubt: { happened: true, goto: "thanks" } };
    expect((await resume(graph, { store, thread: "t", answers }).result).state.log).toEqual(["thanks"]);
    expect(charges).toBe(1);
  });

  test("the error handler of a once node gives the result of a failure, also after a crash in the handler", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const hold = createDeferred();
    const ran: string[] = [];
    const graph = defineGraph({ name: "shop", state: Log })
      .nodes({
        pay: {
          run: () => {
            ran.push("pay");
            throw new Error("declined");
          },
          effect: "once",
          onError: async (_state, { error }) => {
            ran.push("handler");
            await hold.promise;
            return { log: [String(error.cause)] };
          },
        },
      })
      .edges({ [START]: "pay", pay: END });
    ignoreResult(run(graph, { world, store, thread: "t" }).result);
    await world.waitUntilIdle();
    store.crash();
    hold.resolve();
    await world.waitUntilIdle();
    expect((await resume(graph, { world, store: store.peer(), thread: "t" }).result).state.log).toEqual([
      "Error: declined",
    ]);
    expect(ran).toEqual(["pay", "handler", "handler"]);
  });

  test("the start of a once node is committed before its body runs, and a run cancelled meanwhile does not run the body", async () => {
    const world = createVirtualWorld();
    const inner = memoryStore();
    let cancel: (() => void) | undefined;
    const ran: string[] = [];
    const store = {
      ...inner,
      commit: ((commit, onCommitted) => {
        const starts = commit.effects?.some((row) => row.kind === "task" && row.endedAt === undefined);
        if (starts === true) {
          ran.push("start saved");
          cancel?.();
        }
        inner.commit(commit, onCommitted);
      }) as MemoryStore["commit"],
    };
    const graph = defineGraph({ name: "shop", state: Log })
      .nodes({ pay: { run: () => void ran.push("body"), effect: "once" } })
      .edges({ [START]: "pay", pay: END });
    await run(graph, { world, store, thread: "t" }).result;
    expect(ran).toEqual(["start saved", "body"]);
    const handle = run(graph, { world, store, thread: "u" });
    cancel = () => handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
    await world.waitUntilIdle();
    expect(ran).toEqual(["start saved", "body", "start saved"]);
  });

  test("a once node cannot raise an interrupt, and needs no store", async () => {
    const graph = defineGraph({ name: "shop", state: Log, interrupts: { go: z.boolean() } })
      .nodes({ pay: { run: async (_state, { interrupt }) => void (await interrupt("go")), effect: "once" } })
      .edges({ [START]: "pay", pay: END });
    const error = await getFailure(run(graph, { store: memoryStore() }).result, "invalid_option");
    expect(error.message).toContain(
      'the node "pay", declared once: expected no interrupt, because its body would run again with the answer, got the interrupt "go"',
    );
    const alone = defineGraph({ name: "shop", state: Log })
      .nodes({ pay: { run: () => ({ log: ["paid"] }), effect: "once" } })
      .edges({ [START]: "pay", pay: END });
    expect((await run(alone, {}).result).state.log).toEqual(["paid"]);
  });

  test.each([
    ["alone", ["pay"]],
    ["next to a sibling", ["pay", "b"]],
  ] as const)("a completed once node records its result for other branches, %s", async (_name, first) => {
    const store = memoryStore();
    const graph = defineGraph({ name: "shop", state: Log })
      .nodes({ pay: { run: () => ({ log: ["paid"] }), effect: "once" }, b: () => undefined })
      .edges({ [START]: route(["pay", "b"], () => first, { many: true }), pay: END, b: END });
    await run(graph, { store, thread: "t" }).result;
    expect(await store.effects("t", "main")).toMatchObject([
      { kind: "task", name: "pay", effect: "once", state: "ok", outcome: expect.stringContaining("paid") },
    ]);
  });
});

describe("idempotent node", () => {
  const model: Model = {
    id: "m",
    respond: async () => ({ content: [{ type: "text", text: "hello" }], finish: "stop" }),
  };

  test("an interrupted idempotent node reruns from its start with the same input, and its steps and answers are replayed [E61]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const began: string[] = [];
    const worked: string[] = [];
    let dead = false;
    const graph = defineGraph({ name: "again", state: Log, interrupts: { go: z.string() } })
      .nodes({
        each: inputNode(
          z.object({ n: z.number() }),
          async (_state, { input, attempt, step, interrupt, model: ask }) => {
            began.push(`${input.n} in attempt ${attempt}`);
            const key = await step("pay", ({ idempotencyKey, signal }) => {
              worked.push(idempotencyKey);
              expect(signal).toBeInstanceOf(AbortSignal);
              return idempotencyKey;
            });
            const reply = await ask({ model, request: { messages: [], tools: [] } });
            if (attempt === 1 && began.length === 1) throw new Error("first attempt");
            const answer = await interrupt("go");
            if (!dead) await new Promise(() => undefined);
            return { log: [`${input.n} ${key} ${reply.id} ${answer}`] };
          },
          { retry: { attempts: 2, initialMs: 1 } },
        ),
      })
      .edges({ [START]: fanOut("each", () => [{ n: 7 }]), each: END });
    const handle = run(graph, { world, store, thread: "t" });
    await world.advance(100);
    expect((await handle.result).status).toBe("waiting");
    ignoreResult(resume(graph, { world, store, thread: "t", answers: { go: "yes" } }).result);
    await world.waitUntilIdle();
    store.crash();
    dead = true;
    const last = resume(graph, { world, store: store.peer(), thread: "t" });
    const events = collectEvents(last);
    expect((await last.result).state.log).toEqual([
      expect.stringMatching(/^7 t\/[0-9a-z]{12}\/main\/0:0\/pay 0:0:model yes$/),
    ]);
    expect(began).toEqual(["7 in attempt 1", "7 in attempt 2", "7 in attempt 1", "7 in attempt 1"]);
    expect(worked).toEqual([expect.stringMatching(/^t\/[0-9a-z]{12}\/main\/0:0\/pay$/)]);
    expect(getOnlyEvent(events, "effect.reused").map(({ key }) => key)).toEqual(["pay", "model"]);
  });
});
