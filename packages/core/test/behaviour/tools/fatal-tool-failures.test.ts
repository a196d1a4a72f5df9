import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  getState,
  isStatewrightError,
  memoryStore,
  resume,
  run,
  START,
  StatewrightError,
  type Store,
  subgraph,
  ToolError,
  type ToolErrorPolicy,
  toolNode,
} from "../../../src/index.ts";
import {
  call,
  checkTranscript,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  type Loop,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const anything = z.object({});

function createTool(run: () => unknown, onError?: ToolErrorPolicy, name = "act") {
  const policy = onError === undefined ? {} : { onError };
  return defineTool({ name, description: "Does what the test says.", input: anything, effect: "pure", ...policy, run });
}

/** Runs a loop that must fail; returns the error. */
async function failure(loop: Loop): Promise<unknown> {
  return loop.start().result.then(
    () => undefined,
    (error: unknown) => error,
  );
}

const fatal: Readonly<Record<string, () => DeskTool>> = {
  'a tool error with the disposition "fail"': () =>
    createTool(() => Promise.reject(new ToolError("failed", "the account is closed", { disposition: "fail" }))),
  'a failure of a tool with onError "fail"': () =>
    createTool(() => Promise.reject(new Error("the account is closed")), "fail"),
  'an error value of a tool with onError "fail"': () =>
    createTool(() => ({ content: "the account is closed", isError: true }), "fail"),
};

describe("dispositions of a tool failure", () => {
  test("disposition retry is handled by the engine, repair by the model, and fail ends the run [S1.11, D7]", async () => {
    const world = createVirtualWorld();
    let tries = 0;
    const tools = [
      defineTool({
        name: "busy",
        description: "Is not there at first.",
        input: anything,
        effect: "pure",
        retry: { attempts: 3, initialMs: 1 },
        run: () => (++tries < 3 ? Promise.reject(ToolError.unavailable("busy")) : "there"),
      }),
      createTool(
        () => Promise.reject(ToolError.notFound("no such order", { userMessage: "Order 7 is unknown." })),
        undefined,
        "find",
      ),
    ];
    const loop = createToolLoop({ tools, world, turns: [[call("busy"), call("find")], ["sorry"]] });
    const end = loop.start().result;
    await world.advance(1_000);
    expect((await end).status).toBe("done");
    expect([tries, listToolAnswers(await end).map(getAnswerText)]).toEqual([3, ["there", "no such order"]]);
    expect(listEvents(loop, "tool.retried")).toHaveLength(2);
    expect(listResults(loop).find(({ name }) => name === "find")?.error).toEqual({
      kind: "not_found",
      disposition: "repair",
      message: "Order 7 is unknown.",
    });
    for (const [what, make] of Object.entries(fatal)) {
      const failing = createToolLoop({ tools: [make()], turns: [[call("act", {}, "c1")], ["never asked"]] });
      const error = await failure(failing);
      expect([what, isStatewrightError(error, "tool_failed")]).toEqual([what, true]);
      expect(String(error)).toMatch(
        /the call "c1" of "act" failed the run: the account is closed.*node_modules\/statewright\/docs\/errors\.md#tool_failed/,
      );
      expect(failing.requests).toHaveLength(1);
    }
  });
});

describe("tool failure that fails the run", () => {
  const bad = [call("nobody", {}, "c1"), call("act", { extra: 1 }, "c1")];

  test("an invalid tool call under onInvalidCall fail fails the run with a typed error and is answered in the stored transcript [S1.59]", async () => {
    for (const wrong of bad) {
      const store = memoryStore();
      let ran = 0;
      const loop = createToolLoop({
        tools: [createTool(() => `run ${++ran}`)],
        store,
        onInvalidCall: "fail",
        turns: [[wrong, call("act", {}, "c2")], ["sorry"]],
      });
      const error = await failure(loop);
      expect(isStatewrightError(error, "tool_failed")).toBe(true);
      expect(listEvents(loop, "run.failed")).toHaveLength(1);
      expect((await store.thread("t"))?.status).toBe("failed");
      const { checkpoint } = loop.events.findLast((event) => event.type === "step.committed") as { checkpoint: number };
      const rows = await store.state("t", checkpoint);
      expect(JSON.stringify(rows)).toContain('callId\\":\\"c1');
      // After a resume the model continues from there: no call runs again.
      const end = await loop.again().result;
      expect([end.status, ran, loop.requests.length]).toEqual(["done", 1, 2]);
      expect(listToolAnswers(end).map(({ callId, isError }) => [callId, isError])).toEqual([
        ["c1", true],
        ["c2", false],
      ]);
    }
  });

  test("the transcript holds the answer of a tool that failed the run, and a resume lets the model read it [S1.59, D7]", async () => {
    for (const make of Object.values(fatal)) {
      const store = memoryStore();
      const loop = createToolLoop({ tools: [make()], store, turns: [[call("act", {}, "c1")], ["sorry"]] });
      await failure(loop);
      expect(listEvents(loop, "tool.failed").map(({ result }) => result.error?.disposition)).toEqual(["fail"]);
      expect(loop.events.at(-1)?.type).toBe("run.failed");
      const end = await loop.again().result;
      expect([end.status, listToolAnswers(end).map(getAnswerText)]).toEqual(["done", ["the account is closed"]]);
      expect((await store.thread("t"))?.status).toBe("done");
    }
  });

  test("a tool failure that fails the run in the last node leaves the run failed until a resume", async () => {
    const Chat = defineState({ messages: channel.messages() });
    const graph = defineGraph({ name: "last", state: Chat })
      .nodes({ tools: toolNode({ tools: [createTool(() => Promise.reject(new Error("no")), "fail")] }) })
      .edges({ [START]: "tools", tools: END });
    const asking = { role: "assistant", id: "a1", content: [call("act", {}, "c1")], finish: "calls" } as const;
    const store = memoryStore();
    const error = await run(graph, { store, thread: "t", input: { messages: [asking] } }).result.catch(
      (thrown: unknown) => thrown,
    );
    expect(isStatewrightError(error, "tool_failed")).toBe(true);
    expect((await store.thread("t"))?.status).toBe("failed");
    const state = await getState(graph, { store, thread: "t" });
    checkTranscript(state?.state.messages ?? []);
    // A write that the store refuses emits no end event.
    const failing: Store = {
      ...store,
      commit: (commit, onCommitted) => {
        if (commit.run?.status === "done")
          onCommitted(new StatewrightError("store_failed", { what: "no", next: "later" }));
        else store.commit(commit, onCommitted);
      },
    };
    const unsaved = resume(graph, { store: failing, thread: "t" });
    const events: string[] = [];
    unsaved.on(({ type }) => events.push(type));
    const refused = await unsaved.result.catch((thrown: unknown) => thrown);
    expect([isStatewrightError(refused, "store_failed"), events]).toEqual([true, ["run.failed"]]);
    expect((await store.thread("t"))?.status).toBe("failed");
    expect((await resume(graph, { store, thread: "t" }).result).status).toBe("done");
    expect((await store.thread("t"))?.status).toBe("done");
    expect((await resume(graph, { store, thread: "t" }).result).status).toBe("done");
  });

  test("a tool failure in an inner graph fails the run, and the resume continues inside after the answer", async () => {
    const Chat = defineState({ messages: channel.messages() });
    let asked = 0;
    const inner = defineGraph({ name: "inner", state: Chat })
      .nodes({
        tools: toolNode({ tools: [createTool(() => Promise.reject(new Error("no")), "fail")] }),
        after: (state) => {
          asked += 1;
          checkTranscript(state.messages);
        },
      })
      .edges({ [START]: "tools", tools: "after", after: END });
    const outer = defineGraph({ name: "outer", state: Chat })
      .nodes({ work: subgraph(inner, { input: ({ messages: all }) => ({ messages: all }), output: () => ({}) }) })
      .edges({ [START]: "work", work: END });
    const asking = { role: "assistant", id: "a1", content: [call("act", {}, "c1")], finish: "calls" } as const;
    const store = memoryStore();
    const error = await run(outer, { store, thread: "t", input: { messages: [asking] } }).result.catch(
      (thrown: unknown) => thrown,
    );
    expect([isStatewrightError(error, "tool_failed"), asked]).toEqual([true, 0]);
    expect((await resume(outer, { store, thread: "t" }).result).status).toBe("done");
    expect(asked).toBe(1);
  });

  test("a tool failure that fails a run without a store gives the same error, reported once", async () => {
    const loop = createToolLoop({
      tools: [createTool(() => Promise.reject(new Error("no")), "fail")],
      store: "none",
      turns: [[call("act")], ["x"]],
    });
    expect(isStatewrightError(await failure(loop), "tool_failed")).toBe(true);
    expect(listEvents(loop, "run.failed", "run.completed").map(({ type }) => type)).toEqual(["run.failed"]);
  });
});

test("onError with a message replaces the text of every tool failure for the model, and the log has the original", async () => {
  const tools = [
    createTool(
      () => Promise.reject(new Error("disk /dev/sda1 is full")),
      { message: "Storage is not available. Tell the person." },
      "save",
    ),
    createTool(
      () => ({ content: "disk /dev/sda1 is full", isError: true }),
      { message: "Storage is not available." },
      "load",
    ),
    createTool(() => "fine", { message: "never read" }, "look"),
  ];
  const done = await runToolLoop({ tools, turns: [[call("save"), call("load"), call("look")], ["ok"]] });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual([
    "Storage is not available. Tell the person.",
    "Storage is not available.",
    "fine",
  ]);
  expect(done.wires.join()).not.toContain("sda1");
  expect(listResults(done).map(({ error }) => error?.message)).toEqual([
    "disk /dev/sda1 is full",
    "disk /dev/sda1 is full",
    undefined,
  ]);
  expect(() => createTool(() => "x", { message: 7 } as never)).toThrow(/invalid_tool.*onError/s);
  expect(() => createTool(() => "x", "throw" as never)).toThrow(/invalid_tool.*onError/s);
});

test("a tool error is caught, becomes an error result and is sent, and the model retries or gives up with text [S4.19, S4.20, S4.21, S4.22]", async () => {
  let tries = 0;
  const act = createTool(() => {
    if (++tries === 1) throw new Error("Operation failed: no route");
    return "arrived";
  });
  const again = await runToolLoop({ tools: [act], turns: [[call("act", {}, "a")], [call("act", {}, "b")], ["done"]] });
  expect([again.result.status, listToolAnswers(again).map(({ isError }) => isError)]).toEqual(["done", [true, false]]);
  expect(again.wires[1]).toContain("Operation failed: no route");
  tries = 0;
  const gives = await runToolLoop({ tools: [act], turns: [[call("act", {}, "a")], ["I could not do it"]] });
  expect(gives.result.status).toBe("done");
  expect(listResults(gives).map(({ isError, error }) => [isError, error?.kind])).toEqual([[true, "failed"]]);
});
