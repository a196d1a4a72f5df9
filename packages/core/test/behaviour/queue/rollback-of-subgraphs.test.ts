/** Persistent subgraph state after a new input or a cancel has ended the calling run. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  approval,
  channel,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  getState,
  type Message,
  memoryStore,
  recover,
  run,
  START,
  streamEvents,
  subgraph,
  toolNode,
} from "../../../src/index.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { ignoreResult } from "../../support/failure.ts";
import { call, checkTranscript, getAnswerText, user } from "../../support/tool-loop.ts";

/** Persistent counter graph inside a persistent graph; the outer graph raises an interrupt after the count. */
function counting() {
  const Total = defineState({ by: z.number(), total: z.number().default(0), seen: channel.list(z.number()) });
  const counter = defineGraph({ name: "counter", state: Total })
    .nodes({ add: ({ total, by }) => ({ total: total + by, seen: [by] }) })
    .edges({ [START]: "add", add: END });
  const middle = defineGraph({ name: "middle", state: defineState({ by: z.number(), sums: channel.list(z.number()) }) })
    .nodes({
      count: subgraph(counter, {
        persistence: "per-thread",
        input: ({ by }) => ({ by }),
        output: ({ total }) => ({ sums: [total] }),
      }),
    })
    .edges({ [START]: "count", count: END });
  const Outer = defineState({
    by: z.number(),
    ask: z.boolean().default(false),
    sums: channel.list(z.array(z.number())),
  });
  return defineGraph({ name: "outer", state: Outer, interrupts: { ok: z.boolean() } })
    .nodes({
      middle: subgraph(middle, {
        persistence: "per-thread",
        input: ({ by }) => ({ by }),
        output: ({ sums }) => ({ sums: [sums] }),
      }),
      look: async ({ ask }, { interrupt }) => {
        if (ask) await interrupt("ok");
      },
    })
    .edges({ [START]: "middle", middle: "look", look: END });
}

test("a rollback reverts the writes of the run in persistent subgraphs at every depth [E27]", async () => {
  const graph = counting();
  const store = memoryStore();
  const given = { store, thread: "t" } as const;
  expect((await run(graph, { ...given, input: { by: 1 } }).result).state.sums).toEqual([[1]]);
  const waiting = await run(graph, { ...given, input: { by: 10, ask: true } }).result;
  expect(waiting).toMatchObject({ status: "waiting", state: { sums: [[1], [1, 11]] } });
  const last = run(graph, { ...given, input: { by: 100, ask: false }, onBusy: "rollback" });
  expect((await last.result).state.sums).toEqual([[1], [1, 101]]);
});

test("a rollback of a first run leaves persistent subgraphs without state [E27]", async () => {
  const graph = counting();
  const store = memoryStore();
  const given = { store, thread: "t" } as const;
  expect((await run(graph, { ...given, input: { by: 10, ask: true } }).result).status).toBe("waiting");
  const last = run(graph, { ...given, input: { by: 100, ask: false }, onBusy: "rollback" });
  expect((await last.result).state.sums).toEqual([[100]]);
});

/** Persistent assistant inside another graph; its tool raises an interrupt. */
function assistant({ slow = false } = {}) {
  const pay = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({}),
    run: () => (slow ? new Promise<string>(() => undefined) : "paid"),
  });
  const ask = defineMiddleware({
    name: "ask",
    beforeTool: ({ call: made }) =>
      made.name === "pay" && !slow ? decide.interrupt(made, "large") : { action: "allow" as const },
  });
  const look = defineTool({ name: "look", description: "Look.", input: z.object({}), run: () => "seen" });
  const Chat = defineState({ messages: channel.messages(), notes: channel.list(z.string()) });
  const inner = defineGraph({ name: "assistant", state: Chat, interrupts: { approve: approval } })
    .nodes({
      model: ({ messages: all }) => {
        checkTranscript(all);
        const asked = all.filter(({ role }) => role === "user").length === 1;
        const content = asked ? [call("look"), call("pay")] : [{ type: "text" as const, text: "done" }];
        const finish = asked ? ("calls" as const) : ("stop" as const);
        return { messages: [{ role: "assistant" as const, id: `a${all.length}`, content, finish }] };
      },
      tools: toolNode({ tools: [look, pay], middleware: [ask] }),
      beside: () => ({ notes: ["beside"] }),
      end: () => undefined,
    })
    .edges({ [START]: "model", model: ["tools", "beside"], tools: "end", beside: END, end: END });
  const Outer = defineState({
    said: z.string(),
    answers: channel.list(z.array(z.string())),
    notes: channel.list(z.array(z.string())),
  });
  return defineGraph({ name: "desk", state: Outer })
    .nodes({
      talk: subgraph(inner, {
        persistence: "per-thread",
        input: ({ said }) => ({ messages: [user(said, said)] }),
        output: (result) => ({
          answers: [result.messages.map((each: Message) => (each.role === "tool" ? getAnswerText(each) : each.role))],
          notes: [result.notes],
        }),
      }),
    })
    .edges({ [START]: "talk", talk: END });
}

test("onBusy interrupt closes pending tool calls in a persistent subgraph and keeps its completed results [E27]", async () => {
  const graph = assistant();
  const store = memoryStore();
  const given = { store, thread: "t" } as const;
  expect((await run(graph, { ...given, input: { said: "go" } }).result).status).toBe("waiting");
  const next = run(graph, { ...given, input: { said: "never mind" }, onBusy: "cancel" });
  const { state } = await next.result;
  expect(state.answers).toEqual([
    ["user", "assistant", "seen", "Not executed: interrupted by a new input.", "user", "assistant"],
  ]);
  expect(state.notes).toEqual([["beside", "beside"]]);
});

test("checkpoints written to persistent subgraphs at the end of a run are emitted when saved, without a gap in numbers [E27, E58]", async () => {
  const graph = counting();
  const store = memoryStore();
  const given = { store, thread: "t" } as const;
  await run(graph, { ...given, input: { by: 10, ask: true } }).result;
  const next = run(graph, { ...given, input: { by: 100, ask: false }, onBusy: "rollback" });
  await next.result;
  const seen: string[] = [];
  for await (const event of streamEvents({ store, thread: "t" }))
    if (event.type === "step.committed") seen.push(`${event.seq} ${event.within ?? ""}`);
    else seen.push(`${event.seq}`);
  expect(seen.map((each) => Number(each.split(" ")[0]))).toEqual(seen.map((_, index) => index + 1));
  expect(seen.filter((each) => each.endsWith(" middle.count"))).toHaveLength(5);
});

test("a cancel leaves a complete conversation in a persistent subgraph, and the thread stays usable [E37]", async () => {
  const graph = assistant({ slow: true });
  const store = memoryStore();
  const given = { store, thread: "t" } as const;
  const handle = run(graph, { ...given, input: { said: "go" } });
  for await (const event of handle.events()) {
    if (event.type === "tool.started" && event.callId === "id_pay") handle.cancel("enough");
  }
  expect((await handle.result).status).toBe("cancelled");
  const { state } = await run(graph, { ...given, input: { said: "again" } }).result;
  expect(state.answers).toEqual([["user", "assistant", "Cancelled", "Cancelled", "user", "assistant"]]);
});

test("a crash at any commit of a rollback or an interrupt gives the same result as an uninterrupted process [E27]", async () => {
  const graph = counting();
  for (const onBusy of ["rollback", "cancel"] as const) {
    const sums = onBusy === "rollback" ? [[1], [1, 101]] : [[1], [1, 11], [1, 11, 111]];
    let deaths = 0;
    for (let nth = 1; nth < 30; nth++) {
      for (const when of ["before", "after"] as const) {
        const store = memoryStore();
        await run(graph, { store, thread: "t", input: { by: 1 } }).result;
        await run(graph, { store, thread: "t", input: { by: 10, ask: true } }).result;
        const dying = createCrashingStore(store.peer(), nth, when);
        const last = run(graph, { store: dying.store, thread: "t", input: { by: 100, ask: false }, onBusy });
        ignoreResult(last.result);
        if ((await Promise.race([last.result, dying.dead])) === "dead") deaths += 1;
        const again = await recover({ store, graphs: [graph] });
        await Promise.all(again.map(({ result }) => result));
        expect([onBusy, nth, when, (await getState(graph, { store, thread: "t" })).state.sums]).toEqual([
          ...[onBusy, nth, when],
          sums,
        ]);
      }
    }
    expect(deaths).toBeGreaterThan(12);
  }
});
