import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineTool, memoryStore, run } from "../../../src/index.ts";
import { suspendRun } from "../../../src/run/launch.ts";
import {
  type ChatState,
  call,
  checkTranscript,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  listEvents,
  listToolAnswers,
  user,
} from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

function work(world: VirtualWorld, ran: string[]): DeskTool {
  return defineTool({
    name: "work",
    description: "Work.",
    input: z.object({ ms: z.number() }),
    effect: "idempotent",
    graceMs: 1,
    run: async ({ ms }, { callId }) => {
      ran.push(callId);
      await new Promise<void>((resolve) => world.schedule.after(ms, resolve));
      return callId;
    },
  });
}

const calls = [10, 30, 10, 10].map((ms, place) => call("work", { ms }, `c${place}`));

describe.each([["parallel"], ["sequential"], [{ batch: 2 }]] as const)("strategy %j", (strategy) => {
  test("cancelling a run in the middle of a batch answers every tool call in the stored transcript once and in call order [T1]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    const loop = createToolLoop({ tools: [work(world, ran)], world, store, strategy, turns: [calls, ["after"]] });
    const handle = loop.start();
    await world.advance(15);
    handle.cancel("enough");
    await world.advance(1_000);
    const result = await handle.result;
    expect(result.status).toBe("cancelled");
    expect(listToolAnswers(result).map(({ callId }) => callId)).toEqual(["c0", "c1", "c2", "c3"]);
    expect(getAnswerText(listToolAnswers(result)[0])).toBe("c0");
    expect(
      listEvents(loop, "tool.completed", "tool.failed")
        .map(({ callId }) => callId)
        .toSorted(),
    ).toEqual(["c0", "c1", "c2", "c3"]);
    expect(loop.requests).toHaveLength(1);
    const next = loop.start(user("go on", "u2"));
    await world.advance(1_000);
    checkTranscript((await next.result).state.messages);
    expect(loop.requests).toHaveLength(2);
  });

  test("a resume after a crash in mid-batch answers every tool call before the next model request and reruns no completed call [T1]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    const loop = createToolLoop({ tools: [work(world, ran)], world, store, strategy, turns: [calls, ["after"]] });
    const first = loop.start();
    void Promise.allSettled([first.result]);
    await world.advance(15);
    store.crash();
    const second = loop.again({}, { store: store.peer() });
    await world.advance(1_000);
    const result = await second.result;
    expect(result.status).toBe("done");
    expect(listToolAnswers(result).map(getAnswerText)).toEqual(["c0", "c1", "c2", "c3"]);
    expect(ran.filter((id) => id === "c0")).toEqual(["c0"]);
    expect(loop.requests).toHaveLength(2);
  });

  test("when a new input ends a run in mid-batch, every tool call is answered before the message of the new input [T1]", async () => {
    const world = createVirtualWorld();
    const ran: string[] = [];
    const loop = createToolLoop({ tools: [work(world, ran)], world, strategy, turns: [calls, ["after"]] });
    const first = loop.start();
    await world.advance(15);
    const next = run(loop.graph, {
      ...(loop.store && { store: loop.store }),
      world,
      thread: "t",
      context: {},
      onBusy: "cancel",
      input: { messages: [user("instead", "u2")] },
    });
    await world.advance(1_000);
    expect((await first.result).status).toBe("cancelled");
    const { state, status } = await next.result;
    expect(status).toBe("done");
    const { messages } = state as ChatState;
    checkTranscript(messages);
    expect(messages.at(-2)).toMatchObject({ role: "user", id: "u2" });
  });
});

test.each([1, 2])(
  "a process that stops in the middle of a batch of at most %i concurrent tool calls leaves the unfinished calls to the resume [T1]",
  async (maxConcurrency) => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    const waiting = defineTool({
      name: "work",
      description: "Work, and stop at once when the run stops.",
      input: z.object({ ms: z.number() }),
      effect: "idempotent",
      run: async ({ ms }, { callId, wait }) => {
        ran.push(callId);
        await wait(ms);
        return callId;
      },
    });
    const loop = createToolLoop({ tools: [waiting], world, store, maxConcurrency, turns: [calls, ["after"]] });
    const handle = loop.start();
    await world.advance(15);
    suspendRun(handle, "the process stops");
    await world.advance(1_000);
    expect((await handle.result).status).toBe("paused");
    expect(listEvents(loop, "tool.completed", "tool.failed").map(({ callId }) => callId)).not.toContain("c3");
    const resumed = loop.again();
    await world.advance(1_000);
    const result = await resumed.result;
    expect(result.status).toBe("done");
    expect(listToolAnswers(result).map(getAnswerText)).toEqual(["c0", "c1", "c2", "c3"]);
    expect(ran.filter((id) => id === "c0")).toHaveLength(1);
  },
);
