/** Random inputs, answers and cancels of two processes on one thread: no input is lost, repeated or reordered. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getState,
  isStatewrightError,
  memoryStore,
  type OnBusy,
  type RunHandle,
  recover,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ word: z.string(), log: channel.list(z.string()) });

test.each(Array.from({ length: 60 }, (_, seed) => seed + 1))(
  "two processes with random inputs, resumes and cancels on one thread complete each input at most once in queue order, seed %i [E27]",
  async (seed) => {
    let chance = seed * 7_919;
    const drawBelow = (limit: number): number => {
      chance = (chance * 48_271) % 2_147_483_647;
      return chance % limit;
    };
    const world = createVirtualWorld();
    const graph = defineGraph({ name: "random", state: Log, interrupts: { ok: z.boolean() } })
      .nodes({
        one: async ({ word }, { interrupt }) => {
          if (word.startsWith("ask")) await interrupt("ok");
          if (word.startsWith("slow")) await new Promise<void>((resolve) => world.schedule.after(3, resolve));
          return { log: [`${word} 1`] };
        },
        two: ({ word }) => ({ log: [`${word} 2`] }),
      })
      .edges({ [START]: "one", one: "two", two: END });
    const first = memoryStore();
    const stores = [first, first.peer()];
    const handles: RunHandle<unknown>[] = [];
    const refused: unknown[] = [];
    const watch = (handle: RunHandle<unknown>): void => {
      handles.push(handle);
      handle.result.catch((error: unknown) => {
        if (!isStatewrightError(error)) refused.push(error);
        else if (!["thread_busy", "already_answered", "unknown_interrupt", "unknown_thread"].includes(error.code))
          refused.push(error);
      });
    };
    const kinds: readonly OnBusy[] = ["enqueue", "enqueue", "cancel", "reject"];
    for (let nth = 0; nth < 12; nth++) {
      const store = stores[drawBelow(2)] ?? first;
      const word = `${["plain", "slow", "ask"][drawBelow(3)]} ${nth}`;
      const what = drawBelow(10);
      const onBusy = kinds[drawBelow(4)] ?? "enqueue";
      if (what < 6) watch(run(graph, { store, world, thread: "t", input: { word }, onBusy, metadata: { nth } }));
      else if (what < 9) watch(resume(graph, { store, world, thread: "t", answers: { ok: true } }));
      else handles[drawBelow(handles.length + 1)]?.cancel("at random");
      if (drawBelow(3) === 0) await world.advance(drawBelow(5));
      else for (let turn = drawBelow(4); turn > 0; turn--) await Promise.resolve();
    }
    for (let round = 0; round < 40; round++) {
      await world.advance(10);
      const open = await listRuns(first, { status: ["queued", "waiting", "running", "crashed"] });
      if (open.length === 0) break;
      for (const each of await recover({ store: first, graphs: [graph], world })) watch(each);
      if (open.some(({ status }) => status === "waiting"))
        watch(resume(graph, { store: first, world, thread: "t", answers: { ok: true } }));
    }
    expect(refused).toEqual([]);
    const rows = (await listRuns(first)).toReversed();
    expect(rows.map(({ status }) => status).filter((status) => status !== "done" && status !== "cancelled")).toEqual(
      [],
    );
    const { log } = rows.length === 0 ? { log: [] } : (await getState(graph, { store: first, thread: "t" })).state;
    expect(new Set(log).size).toBe(log.length);
    const words = log.filter((entry) => entry.endsWith(" 1")).map((entry) => entry.slice(0, -2));
    const numbers = words.map((word) => Number(word.split(" ")[1]));
    const ended = rows.filter(({ status }) => status === "done").length;
    expect(log.filter((entry) => entry.endsWith(" 2"))).toHaveLength(ended);
    expect(words.length).toBeGreaterThanOrEqual(ended);
    const queued = rows.flatMap(({ queuedAt, metadata }) => (queuedAt === undefined ? [] : [metadata?.["nth"]]));
    const startedNumbers = numbers.filter((number) => queued.includes(number));
    expect(startedNumbers).toEqual(queued.filter((nth) => numbers.some((number) => number === nth)));
  },
);
