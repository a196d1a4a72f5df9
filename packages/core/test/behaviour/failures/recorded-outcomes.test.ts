/** No recorded outcome may make each resume of its thread fail: outcomes of all kinds, chosen at random. */
import { describe, expect, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  durableMachine,
  END,
  type Graph,
  getState,
  memoryStore,
  overwrite,
  resume,
  run,
  START,
  type Store,
  subgraph,
  updateState,
} from "../../../src/index.ts";

const Office = defineState({
  notes: channel.list(z.string()),
  total: channel.reduce(z.number().default(0), (sum: number, next: number) => {
    if (sum + next > 5) throw new RangeError("above 5");
    return sum + next;
  }),
  mode: z.enum(["day", "night"]).default("day"),
});

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;

/** Values that a graph, a codec or a schema may refuse. */
const values: readonly unknown[] = [
  1,
  "text",
  null,
  undefined,
  cycle,
  () => 1,
  Symbol("s"),
  10n,
  "\ud83d",
  new Map([["a", 1]]),
  new Date(Number.NaN),
  new URL("https://a.example"),
  Promise.resolve(1),
  new WeakMap(),
  Object.defineProperty({}, "a", {
    enumerable: true,
    get: () => {
      throw new Error("no access");
    },
  }),
];

/** Updates that the graph accepts alone, and some that it refuses alone. */
const updates: readonly unknown[] = [
  { notes: ["fine"] },
  { total: 3 },
  { total: 5 },
  { mode: "night" },
  { notes: overwrite(["only"]) },
  { total: overwrite(4) },
  { total: 9 },
  { mode: "dusk" },
  { notes: [() => 1] },
  { unknown: 1 },
  "text",
];

function createPicker(seed: number): <Value>(list: readonly Value[]) => Value {
  let state = seed * 2_654_435_761 + 1;
  return (list) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return list[Math.floor((state / 2 ** 32) * list.length)] as never;
  };
}

interface Ending {
  readonly status: string;
  readonly error?: unknown;
}

const settle = (result: Promise<Ending>): Promise<Ending> =>
  result.catch((error: unknown) => ({ status: `failed: ${String(error)}`, error }));

/**
 * Resumes a failed run, and answers `in_doubt` as happened without a result. The first resume may meet a conflict
 * between outcomes whose superstep had another failure before.
 */
async function finish(graph: Graph, store: Store): Promise<Ending> {
  let end = await settle(resume(graph, { store, thread: "t" }).result as Promise<Ending>);
  for (let time = 0; time < 4 && end.status !== "done"; time++) {
    const { interrupts } = await getState(graph, { store, thread: "t" });
    const answers = Object.fromEntries(interrupts.map(({ id }) => [id, { happened: true }]));
    end = await settle(resume(graph, { store, thread: "t", answers } as never).result as Promise<Ending>);
  }
  return end;
}

describe("recorded outcomes of all kinds", () => {
  test("a thread continues after updates of parallel nodes that conflict only together, once a node is fixed [FX62]", async () => {
    let failures = 0;
    for (let seed = 1; seed <= 200; seed++) {
      const pick = createPicker(seed);
      let isFixed = false;
      const counts: number[] = [0, 0, 0];
      const createNode = (index: number) => {
        const wrong = pick(updates);
        const effect = pick(["idempotent", "idempotent", "once"] as const);
        const body = async (
          _state: unknown,
          { step }: { step: (key: string, work: () => number) => Promise<number> },
        ) => {
          await step("count", () => (counts[index] = (counts[index] ?? 0) + 1));
          return (isFixed ? { notes: [`fixed ${index}`] } : wrong) as { notes: string[] };
        };
        return { effect, run: body };
      };
      const graph = defineGraph({ name: "office", state: Office })
        .nodes({ a: createNode(0), b: createNode(1), c: createNode(2), last: () => ({ notes: ["last"] }) })
        .edges({ [START]: ["a", "b", "c"], a: "last", b: "last", c: "last", last: END });
      const store = memoryStore();
      const first = await settle(run(graph, { store, thread: "t" }).result as Promise<Ending>);
      if (!first.status.startsWith("failed")) continue;
      failures += 1;
      isFixed = true;
      const end = await finish(graph as Graph, store);
      expect(end, `seed ${seed}`).toMatchObject({ status: "done" });
      // Recorded steps of the bodies that ran again are not repeated.
      expect(counts, `seed ${seed}`).toEqual([1, 1, 1]);
    }
    expect(failures).toBeGreaterThan(50);
  });

  test("a resume keeps the outcomes of the tasks that do not conflict, and asks about a once node that does [FX62]", async () => {
    const ran: string[] = [];
    let isFixed = false;
    const graph = defineGraph({ name: "office", state: Office })
      .nodes({
        a: () => {
          ran.push("a");
          return { total: 3 };
        },
        b: () => {
          ran.push("b");
          return { total: isFixed ? 1 : 4 };
        },
        c: {
          effect: "once",
          run: () => {
            ran.push("c");
            return { total: 5 };
          },
        },
        d: () => {
          ran.push("d");
          return { notes: ["d"] };
        },
      })
      .edges({ [START]: ["a", "b", "c", "d"], a: END, b: END, c: END, d: END });
    const at = { store: memoryStore(), thread: "t" };
    expect((await settle(run(graph, at).result)).status).toMatch(/^failed/);
    isFixed = true;
    const asked = await resume(graph, at).result;
    expect(asked).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt", node: "c" }] });
    const answers = { in_doubt: { happened: true, update: { notes: ["happened"] } } };
    const end = await resume(graph, { ...at, answers }).result;
    expect([end.status, end.state.total, end.state.notes]).toEqual(["done", 4, ["happened", "d"]]);
    expect(ran).toEqual(["a", "b", "d", "c", "a", "b"]);
  });

  test("a thread continues after a result that only the output schema refuses, once the node is fixed [FX62]", async () => {
    let isFixed = false;
    const graph = defineGraph({
      name: "office",
      state: Office,
      output: z.object({ total: z.number().max(3) }),
    })
      .nodes({ a: () => ({ total: isFixed ? 1 : 4 }), b: () => ({ notes: ["b"] }) })
      .edges({ [START]: ["a", "b"], a: END, b: END });
    const at = { store: memoryStore(), thread: "t" };
    expect((await settle(run(graph, at).result)).status).toMatch(/^failed/);
    isFixed = true;
    expect(await resume(graph, at).result).toMatchObject({ status: "done", output: { total: 1 } });
  });

  test("a thread continues after step results of every kind, and an update decides a once step that failed [FX62]", async () => {
    for (const [index, value] of values.entries())
      for (const effect of ["idempotent", "once"] as const) {
        let isFixed = false;
        const graph = defineGraph({ name: "office", state: Office })
          .nodes({
            a: async (_state, { step }) => {
              await step("value", () => (isFixed ? 1 : value) as number, { effect });
              return { notes: ["a"] };
            },
            b: () => ({ notes: ["b"] }),
          })
          .edges({ [START]: ["a", "b"], a: END, b: END });
        const at = { store: memoryStore(), thread: "t" };
        const first = await settle(run(graph, at).result);
        if (first.status === "done") continue;
        isFixed = true;
        const second = await settle(resume(graph, at).result);
        const label = `value ${index} of a step that is ${effect}`;
        if (effect === "idempotent") expect(second, label).toMatchObject({ status: "done" });
        if (second.status === "done") continue;
        await updateState(graph, { ...at, as: "a", values: { notes: ["by an update"] } });
        expect((await resume(graph, at).result).state.notes, label).toEqual(["by an update", "b"]);
      }
  });

  test("a thread continues after outputs of subgraphs of every kind, once the mapping is fixed [FX62]", async () => {
    for (const [index, update] of [...updates, ...values].entries()) {
      let isFixed = false;
      const inner = defineGraph({ name: "inner", state: defineState({ done: z.boolean().default(false) }) })
        .nodes({ work: () => ({ done: true }) })
        .edges({ [START]: "work", work: END });
      const graph = defineGraph({ name: "office", state: Office })
        .nodes({
          a: subgraph(inner, {
            input: () => ({}),
            output: () => (isFixed ? { notes: ["fixed"] } : update) as { notes: string[] },
          }),
          b: () => ({ total: 3 }),
        })
        .edges({ [START]: ["a", "b"], a: END, b: END });
      const at = { store: memoryStore(), thread: "t" };
      const first = await settle(run(graph, at).result);
      if (first.status === "done") continue;
      isFixed = true;
      expect(await finish(graph as Graph, at.store), `output ${index}`).toMatchObject({ status: "done" });
    }
  });

  test("an answer that its schema turns into an unusable value is refused or fails its node, and another answer or a fixed node continues the thread [FX62]", async () => {
    for (const [index, value] of values.entries()) {
      let isFixed = false;
      const answer = z.string().transform((text) => (isFixed || text === "good" ? text : (value as string)));
      const graph = defineGraph({ name: "office", state: Office, interrupts: { ok: answer } })
        .nodes({
          ask: async (_state, { interrupt }) => {
            const given: unknown = await interrupt("ok");
            return { notes: isFixed ? ["fixed"] : [given as string] };
          },
          b: () => ({ notes: ["b"] }),
        })
        .edges({ [START]: ["ask", "b"], ask: END, b: END });
      const at = { store: memoryStore(), thread: "t" };
      expect((await run(graph, at).result).status).toBe("waiting");
      const first = await settle(resume(graph, { ...at, answers: { ok: "bad" } }).result);
      if (first.status === "done") continue;
      isFixed = true;
      const again = await settle(resume(graph, at).result);
      const end = again.status === "waiting" ? await resume(graph, { ...at, answers: { ok: "good" } }).result : again;
      expect(end, `answer ${index}`).toMatchObject({ status: "done" });
    }
  });

  test("a durable machine continues after promise outputs of every kind, once the promise or the machine is fixed [FX62]", async () => {
    for (const [index, value] of values.entries())
      for (const effect of ["idempotent", "once"] as const) {
        let isFixed = false;
        const machine = setup({
          types: { context: {} as { readonly kept: unknown } },
          actors: { work: fromPromise(async () => (isFixed ? 1 : value)) },
        }).createMachine({
          id: "machine",
          context: { kept: 0 },
          initial: "working",
          states: {
            working: {
              invoke: {
                src: "work",
                onDone: {
                  target: "end",
                  actions: assign({
                    kept: ({ event }) => {
                      if (!isFixed && index % 2 === 0) throw new Error("no");
                      return isFixed ? 1 : event.output;
                    },
                  }),
                },
                // The failure of a once promise is its outcome: the fixed machine handles it.
                onError: { guard: () => isFixed, target: "end" },
              },
            },
            end: { type: "final" },
          },
        });
        const graph = durableMachine(machine, { version: 1, effects: { work: effect } });
        const at = { store: memoryStore(), thread: "t" };
        const first = await settle(run(graph, at).result as Promise<Ending>);
        if (first.status === "done") continue;
        isFixed = true;
        let end = await settle(resume(graph, at).result as Promise<Ending>);
        if (end.status === "waiting") {
          const answers = { in_doubt: { happened: true, output: 1 } };
          end = await settle(resume(graph, { ...at, answers } as never).result as Promise<Ending>);
        }
        expect(end, `output ${index} of a promise that is ${effect}`).toMatchObject({ status: "done" });
      }
  });
});
