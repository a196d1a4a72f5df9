import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import { decide, defineTool, memoryStore, type RunEvent } from "../../../src/index.ts";
import { countHeldLocks } from "../../../src/run/tool-call/locks.ts";
import { call, checkTranscript, createToolLoop, type DeskTool, type LoopOptions } from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const input = z.object({ ms: z.number(), how: z.enum(["returns", "throws", "hangs"]), locks: z.array(z.string()) });

function tools(world: VirtualWorld): readonly DeskTool[] {
  const work = defineTool({
    name: "work",
    description: "Work.",
    input,
    effect: "idempotent",
    timeoutMs: 60,
    graceMs: 5,
    execution: { lock: ({ locks }) => locks },
    run: async ({ ms, how }, { callId, steered }) => {
      if (how === "hangs") return new Promise<string>(() => undefined);
      await new Promise<void>((resolve) => {
        world.schedule.after(ms, resolve);
        steered.addEventListener("abort", () => resolve(), { once: true });
      });
      if (how === "throws") throw new Error("broke");
      return callId;
    },
  });
  const alone: DeskTool = { ...work, spec: { ...work.spec, name: "alone", execution: { mode: "sequential" } } };
  const stays: DeskTool = { ...work, spec: { ...work.spec, name: "stays", execution: { onSteer: "run" } } };
  return [work, alone, stays];
}

const oneCall = fc.record({
  tool: fc.constantFrom("work", "work", "work", "alone", "stays", "unknown"),
  ms: fc.integer({ min: 0, max: 40 }),
  how: fc.constantFrom("returns", "returns", "throws", "hangs"),
  locks: fc.subarray(["x", "y", "z"]),
  hook: fc.constantFrom("allow", "allow", "allow", "deny", "ask"),
  id: fc.constantFrom("same", undefined, undefined, undefined),
});

const scenario = fc.record({
  sets: fc.array(fc.array(oneCall, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 }),
  strategy: fc.constantFrom<LoopOptions["strategy"]>(
    "parallel",
    "sequential",
    { batch: 1 },
    { batch: 2 },
    { batch: 3 },
  ),
  maxConcurrency: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  maxCalls: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  steering: fc.constantFrom("skip-remaining" as const, "finish-batch" as const),
  inbox: fc.constantFrom("one" as const, "all" as const),
  spoken: fc.array(fc.record({ after: fc.integer({ min: 0, max: 80 }), later: fc.boolean() }), { maxLength: 4 }),
  cancelAfter: fc.option(fc.integer({ min: 0, max: 120 }), { nil: undefined }),
  saved: fc.boolean(),
});

/** Checks that each started call ends once and that no event of a call follows its end. */
function checkEnds(events: readonly RunEvent[]): void {
  const ends = new Map<string, number>();
  const started = new Set<string>();
  for (const event of events) {
    if (!("callId" in event)) continue;
    const key = `${event.task} ${event.callId}`;
    if (event.type === "tool.started") started.add(key);
    if (event.type !== "tool.completed" && event.type !== "tool.failed") continue;
    ends.set(key, (ends.get(key) ?? 0) + 1);
  }
  for (const [key, count] of ends) expect([key, count]).toEqual([key, 1]);
  expect([...started].filter((key) => !ends.has(key))).toEqual([]);
}

test("random batches, strategies, locks, limits, messages, interrupts and cancels answer each call once, lose no message and hold no lock [I7]", async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (given) => {
      const { sets, strategy, maxConcurrency, maxCalls, steering, inbox, spoken, cancelAfter, saved } = given;
      const world = createVirtualWorld();
      const store = saved ? memoryStore() : undefined;
      const hooks = new Map<string, string>();
      const turns = sets.map((calls, set) =>
        calls.map(({ tool, ms, how, locks, hook, id }, place) => {
          const callId = id ?? `${set}.${place}`;
          hooks.set(`${callId} ${ms}`, hook === "ask" && !saved ? "allow" : hook);
          return call(tool, { ms, how, locks }, callId);
        }),
      );
      const loop = createToolLoop({
        tools: tools(world),
        world,
        store: store ?? "none",
        turns: [...turns, ...Array.from({ length: 12 }, () => ["said"])],
        steering,
        inbox,
        middleware: [
          {
            name: "guard",
            beforeTool: ({ call: made }) => {
              const { ms } = made.args as { readonly ms: number };
              const hook = [...hooks].find(
                ([key]) => made.id.startsWith(key.split(" ")[0] ?? "") && key.endsWith(` ${ms}`),
              );
              if (hook?.[1] === "deny") return { action: "deny", reason: "no" };
              return hook?.[1] === "ask" ? decide.interrupt(made, "may it?") : decide.allow();
            },
          },
        ],
        ...(strategy === undefined ? {} : { strategy }),
        ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
        ...(maxCalls === undefined ? {} : { maxCalls }),
      });
      let handle = loop.start();
      let past = 0;
      const sent: string[] = [];
      const moments = [
        ...spoken.map(({ after, later }, index) => ({
          at: after,
          act: async (): Promise<void> => {
            const text = `word ${index}`;
            const keeping = later ? handle.followUp(text) : handle.steer(text);
            await keeping.then(
              () => sent.push(text),
              () => undefined,
            );
          },
        })),
        ...(cancelAfter === undefined ? [] : [{ at: cancelAfter, act: async () => handle.cancel("enough") }]),
      ].sort((one, other) => one.at - other.at);
      for (const { at, act } of moments) {
        await world.advance(at - past);
        past = at;
        await act();
      }
      await world.advance(5_000);
      let result = await handle.result;
      for (let round = 0; result.status === "waiting" && round < 30; round++) {
        const [asked] = result.interrupts;
        handle = loop.again(asked === undefined ? {} : { [asked.id]: round % 2 === 0 });
        await world.advance(5_000);
        result = await handle.result;
      }
      expect(["done", "cancelled"]).toContain(result.status);
      checkTranscript(result.state.messages);
      checkEnds(loop.events);
      expect(countHeldLocks(world)).toBe(0);
      expect(world.timers).toBe(0);
      const modelTexts = result.state.messages.flatMap((message) =>
        message.role === "user" ? message.content.flatMap((block) => (block.type === "text" ? block.text : [])) : [],
      );
      const waits = store === undefined ? [] : await store.inbox("t", "main");
      for (const text of sent) {
        const times =
          modelTexts.filter((said) => said === text).length +
          waits.filter((row) => row.messages.includes(`"${text}"`)).length;
        // Without a store a cancelled run saves nothing, so undelivered inbox messages are lost.
        if (store === undefined && result.status === "cancelled") expect(times).toBeLessThanOrEqual(1);
        else expect([text, times]).toEqual([text, 1]);
      }
    }),
    { numRuns: 300, seed: 20_260_727 },
  );
}, 120_000);
