import { beforeEach, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Graph,
  type MemoryStore,
  memoryStore,
  type RunResult,
  resume,
  run,
  START,
  type StepOptions,
} from "../../../src/index.ts";
import { resumeRun } from "../../../src/resume/resume.ts";
import { createDeferred, getFailure, ignoreResult } from "../../support/failure.ts";
import { type ChatResult, call, createToolLoop, getAnswerText, listToolAnswers } from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

let world: VirtualWorld;
let store: MemoryStore;

beforeEach(() => {
  world = createVirtualWorld();
  store = memoryStore();
});

/** Graph with one step that hangs in its first attempt. */
function createShop(options: StepOptions<string>) {
  const first = createDeferred<string>();
  const keys: string[] = [];
  const graph = defineGraph({ name: "shop", state: Log })
    .nodes({
      pay: async (_state, { step }) => {
        const charge = ({ idempotencyKey }: { readonly idempotencyKey: string }): string | Promise<string> => {
          keys.push(idempotencyKey);
          return keys.length === 1 ? first.promise : `receipt ${keys.length}`;
        };
        return { log: [await step("charge", charge, options)] };
      },
    })
    .edges({ [START]: "pay", pay: END });
  return { graph, keys, first };
}

/** Resumes the thread `t` in another process, which claims the thread by force. */
function resumeByForce(graph: unknown, answers?: Readonly<Record<string, unknown>>, owner: MemoryStore = store.peer()) {
  const options = { world, store: owner, thread: "t", context: {}, ...(answers === undefined ? {} : { answers }) };
  return resumeRun({ graph: graph as Graph, options, claim: "force" });
}

test("a run of a living owner continues as a crashed one after a forced claim, and its owner ends fenced [PK2, F10, F15]", async () => {
  const { graph, keys, first } = createShop({ effect: "idempotent" });
  const displaced = run(graph, { world, store, thread: "t", input: {} });
  await world.waitUntilIdle();
  const result = await resumeByForce(graph).result;
  expect(result).toMatchObject({ status: "done", state: { log: ["receipt 2"] } });
  expect(new Set(keys).size).toBe(1);
  first.resolve("late receipt");
  await getFailure(displaced.result, "fenced");
  expect((await store.runs({ thread: "t" })).map(({ status, attempt }) => [status, attempt])).toEqual([["done", 2]]);
});

test("a free resume of a run of a living owner is refused [F15]", async () => {
  const { graph } = createShop({ effect: "idempotent" });
  ignoreResult(run(graph, { world, store, thread: "t", input: {} }).result);
  await world.waitUntilIdle();
  const options = { world, store: store.peer(), thread: "t" };
  await getFailure(resume(graph, options).result, "thread_busy");
});

test("a step of a displaced owner that has not happened yet is in doubt, and a person decides [PK2]", async () => {
  const asked: string[] = [];
  const reconcile = ({ idempotencyKey }: { readonly idempotencyKey: string }): undefined => {
    asked.push(idempotencyKey);
  };
  const { graph, keys } = createShop({ effect: "once", reconcile });
  ignoreResult(run(graph, { world, store, thread: "t", input: {} }).result);
  await world.waitUntilIdle();
  const owner = store.peer();
  expect(await resumeByForce(graph, undefined, owner).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "in_doubt", payload: { step: "charge" } }],
  });
  expect([keys.length, asked]).toEqual([1, keys]);
  const [attempt] = (await store.effects("t", "main")).flatMap(({ attemptLog = [] }) => attemptLog);
  expect(attempt).toMatchObject({ error: "displaced" });
  const answered = await resumeByForce(graph, { in_doubt: { happened: false } }, owner).result;
  expect([answered.state, keys.length]).toEqual([{ log: ["receipt 2"] }, 2]);
});

test("a step of a displaced owner that has happened has the result of reconcile [PK2]", async () => {
  const { graph, keys } = createShop({ effect: "once", reconcile: () => "receipt of the bank" });
  ignoreResult(run(graph, { world, store, thread: "t", input: {} }).result);
  await world.waitUntilIdle();
  expect(await resumeByForce(graph).result).toMatchObject({ state: { log: ["receipt of the bank"] } });
  expect(keys).toHaveLength(1);
});

test("a step of a dead owner that has not happened runs again without a person [PK2]", async () => {
  const { graph, keys } = createShop({ effect: "once", reconcile: () => undefined });
  ignoreResult(run(graph, { world, store, thread: "t", input: {} }).result);
  await world.waitUntilIdle();
  store.crash();
  expect(await resumeByForce(graph).result).toMatchObject({ state: { log: ["receipt 2"] } });
  expect(keys).toHaveLength(2);
});

/** Returns the texts of the answers of all calls. */
function listAnswers(end: RunResult<unknown>): readonly string[] {
  return listToolAnswers(end as ChatResult).map(getAnswerText);
}

/** Tool loop whose once call hangs in its first run; `reconcile` answers for the other system. */
function createPayingLoop(reconcile: () => string | undefined) {
  const keys: string[] = [];
  const tool = defineTool({
    name: "act",
    description: "Act.",
    input: z.object({}),
    effect: "once",
    run: (_args, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return keys.length === 1 ? createDeferred<string>().promise : `run ${keys.length}`;
    },
    reconcile: reconcile as () => string,
  });
  const loop = createToolLoop({ tools: [tool], turns: [[call("act")], ["done"]], store, world });
  return { loop, keys };
}

test("a call of a displaced owner that has not happened yet is in doubt, and a person decides [PK2]", async () => {
  const { loop, keys } = createPayingLoop(() => undefined);
  ignoreResult(loop.start().result);
  await world.waitUntilIdle();
  const owner = store.peer();
  expect(await resumeByForce(loop.graph, undefined, owner).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "in_doubt", payload: { tool: "act" } }],
  });
  expect(keys).toHaveLength(1);
  const end = await resumeByForce(loop.graph, { in_doubt: { happened: false } }, owner).result;
  expect([listAnswers(end), keys.length]).toEqual([["run 2"], 2]);
});

test("a call of a displaced owner that has happened has the result of reconcile, once [PK2]", async () => {
  let asked = 0;
  const { loop, keys } = createPayingLoop(() => {
    asked += 1;
    return "paid";
  });
  ignoreResult(loop.start().result);
  await world.waitUntilIdle();
  const end = await resumeByForce(loop.graph).result;
  expect([listAnswers(end), keys.length, asked]).toEqual([["paid"], 1, 1]);
});
