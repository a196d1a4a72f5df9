/** Model hooks and agent hooks of a process that crashes at each of its commits: each write of a hook occurs once. */
import { call, rejectInvalidTranscripts, say, scriptedModel } from "@statewright/testing";
import {
  channel,
  createAgent,
  defineMiddleware,
  defineTool,
  type Message,
  type Middleware,
  type Store,
} from "statewright";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { crashAtNth, ignoreResult, places } from "../../support/both-stores.ts";

const sum = channel.reduce(z.number().default(0), (total, more: number) => total + more);
const work = defineTool({
  name: "work",
  description: "Works.",
  input: z.object({}),
  effect: "pure",
  run: () => "worked",
});

interface ProcessState {
  readonly asked: string[];
  readonly hooks: Record<string, number>;
}

/** Turns the event loop between the hooks, so that their surroundings are written by a separate commit. */
const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function hooked({ hooks }: ProcessState): Middleware {
  const called = (hook: string): void => {
    hooks[hook] = (hooks[hook] ?? 0) + 1;
  };
  return defineMiddleware({
    name: "counts",
    channels: { begun: sum, sent: sum, said: sum, ended: sum },
    interrupts: { sure: z.boolean() },
    beforeAgent: async ({ write }) => {
      called("beforeAgent");
      await pause();
      write({ begun: 1 });
    },
    beforeModel: async (_, { write, interrupt, state }) => {
      const { messages } = state as { readonly messages: readonly Message[] };
      if (messages.at(-1)?.role === "user") await interrupt("sure");
      called("beforeModel");
      await pause();
      write({ sent: 1 });
      return undefined;
    },
    afterModel: async (_, { write }) => {
      called("afterModel");
      await pause();
      write({ said: 1 });
      return undefined;
    },
    afterAgent: async (_, { write }) => {
      called("afterAgent");
      await pause();
      write({ ended: 1 });
    },
  });
}

function createHookAgent(life: ProcessState, store: Store) {
  return createAgent({
    name: "hooked",
    model: rejectInvalidTranscripts(
      scriptedModel([
        ({ messages }) => {
          life.asked.push(`after ${messages.length}`);
          return call("work", {});
        },
        ({ messages }) => {
          life.asked.push(`after ${messages.length}`);
          return say("done");
        },
      ]),
    ),
    tools: [work],
    middleware: [hooked(life)],
    store,
  });
}

const createLife = (): ProcessState => ({ asked: [], hooks: {} });

/** Runs the thread to its end in a later process. */
async function finish(life: ProcessState, store: Store) {
  const agent = createHookAgent(life, store);
  const known = await store.head("t", "main");
  let result =
    known === undefined
      ? await agent.run({ thread: "t", input: "go" }).result
      : await agent.resume({ thread: "t" }).result;
  if (result.status === "waiting") result = await agent.resume({ thread: "t", answers: { sure: true } }).result;
  return result;
}

describe.each(places)("%s", (_, open) => {
  test("recorded hooks are not called again after a crash and write the same values once", async () => {
    const place = open();
    const counted = crashAtNth(place.store, 0, "before");
    const whole = createLife();
    const end = await finish(whole, counted.store);
    const commits = counted.commits();
    expect(end).toMatchObject({ status: "done", state: { begun: 1, sent: 2, said: 2, ended: 1 } });
    expect(whole.hooks).toEqual({ beforeAgent: 1, beforeModel: 2, afterModel: 2, afterAgent: 1 });
    await place.close();
    expect(commits).toBeGreaterThan(8);
    for (let nth = 1; nth <= commits; nth++)
      for (const when of ["before", "after"] as const) {
        const there = open();
        const dying = crashAtNth(there.store, nth, when);
        const first = createLife();
        ignoreResult(finish(first, dying.store));
        await dying.dead;
        const second = createLife();
        const result = await finish(second, there.crash());
        expect([nth, when, result]).toMatchObject([
          nth,
          when,
          { status: "done", state: { begun: 1, sent: 2, said: 2, ended: 1 } },
        ]);
        expect(result.state.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
        // A journaled hook does not run again; at most the hook active at the crash runs again.
        for (const [hook, times] of Object.entries({ beforeAgent: 1, beforeModel: 2, afterModel: 2, afterAgent: 1 }))
          expect([nth, when, hook, (first.hooks[hook] ?? 0) + (second.hooks[hook] ?? 0) - times <= 1]).toEqual([
            nth,
            when,
            hook,
            true,
          ]);
        await there.close();
      }
  });
});
