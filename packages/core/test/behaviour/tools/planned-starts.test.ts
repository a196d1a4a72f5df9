/** Starts of once tool calls that are part of the commit of the superstep that decided the calls. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineTool, memoryStore, type Store } from "../../../src/index.ts";
import { suspendRun } from "../../../src/run/launch.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import {
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  type LoopOptions,
  listEvents,
  listToolAnswers,
} from "../../support/tool-loop.ts";

type Commit = Parameters<Store["commit"]>[0];

/** Nodes of the checkpoint of a commit, and the calls whose starts the commit contains. */
function describeCommit({ checkpoint, effects = [] }: Commit): string {
  const starts = effects.filter(
    ({ kind, state, endedAt }) => kind === "tool" && state === "started" && endedAt === undefined,
  );
  return [checkpoint?.row.nodes.join(" "), ...starts.map(({ key }) => `start ${key}`)].filter(Boolean).join(", ");
}

/** Store that lists its commits; `onDurable` is called when a commit is durable, before and after its report. */
function watch(
  inner: Store,
  onDurable: (commit: Commit, when: "before report" | "after report") => void = () => undefined,
): { readonly store: Store; readonly commits: string[] } {
  const commits: string[] = [];
  const commit: Store["commit"] = (write, onCommitted) => {
    commits.push(describeCommit(write));
    inner.commit(write, (failure, queued) => {
      onDurable(write, "before report");
      onCommitted(failure, queued);
      onDurable(write, "after report");
    });
  };
  return { store: { ...inner, commit }, commits };
}

/** Tool that runs once and lists the calls of its body. */
function createSend(ran: string[], spec: Partial<DeskTool["spec"]> = {}): DeskTool {
  const tool = defineTool({
    name: "send",
    description: "Send a mail.",
    input: z.object({ to: z.string() }),
    run: (_args, { callId }) => {
      ran.push(callId);
      return `sent ${callId}`;
    },
  });
  return { ...tool, spec: { ...tool.spec, ...spec } };
}

const calls = ["c0", "c1", "c2"].map((id) => call("send", { to: "ada" }, id));

test("a run with a once tool makes two commits a turn: the start of a call is part of the commit of its model call [C8]", async () => {
  const ran: string[] = [];
  const { store, commits } = watch(memoryStore());
  const turns = [[calls[0] ?? ""], [calls[1] ?? ""], [calls[2] ?? ""], ["done"]];
  const loop = createToolLoop({ tools: [createSend(ran)], turns, store });
  const result = await loop.start().result;
  expect(listToolAnswers(result).map(getAnswerText)).toEqual(["sent c0", "sent c1", "sent c2"]);
  expect(ran).toEqual(["c0", "c1", "c2"]);
  const turn = (id: string): readonly string[] => [`model, start ${id}`, "tools"];
  expect(commits.slice(1)).toEqual([...turn("c0"), ...turn("c1"), ...turn("c2"), "model"]);
});

test("no turn of the event loop is between the commit that holds a start and the body of its call [C8]", async () => {
  const order: string[] = [];
  const inner = memoryStore();
  // Commits in a later turn, as a store on a disk.
  const commit: Store["commit"] = (write, onCommitted) => void setImmediate(() => inner.commit(write, onCommitted));
  const { store } = watch({ ...inner, commit }, ({ effects = [] }, when) => {
    if (when === "before report" && effects.length > 0) setImmediate(() => order.push("next turn"));
  });
  const loop = createToolLoop({ tools: [createSend(order)], turns: [calls, ["done"]], store });
  await loop.start().result;
  expect(order.slice(0, 4)).toEqual(["c0", "c1", "c2", "next turn"]);
});

test("events of a call whose start was committed with its model call keep their order", async () => {
  const { store } = watch(memoryStore());
  const loop = createToolLoop({ tools: [createSend([])], turns: [[calls[0] ?? ""], ["done"]], store });
  await loop.start().result;
  const types = loop.events.map(({ type }) => type);
  const selected = ["step.committed", "tool.started", "tool.body_started", "tool.completed"];
  expect(types.filter((type) => selected.includes(type)).slice(1, 7)).toEqual([
    "step.committed",
    "tool.started",
    "tool.body_started",
    "tool.completed",
    "step.committed",
    "step.committed",
  ]);
});

/** Calls that may wait before they begin, with the calls whose starts the commit of the model call contains. */
const waiting: readonly (readonly [string, Partial<LoopOptions>, readonly string[]])[] = [
  ["a hook before calls", { middleware: [{ name: "allow", beforeTool: async () => undefined }] }, []],
  ["a lock", { tools: [createSend([], { execution: { lock: async () => ["mail"] } })] }, []],
  ["an approval", { tools: [createSend([], { execution: { needsApproval: () => undefined } })] }, []],
  ["prepared arguments", { tools: [{ ...createSend([]), prepareArguments: (args) => args }] }, []],
  ["a sequential strategy", { strategy: "sequential" }, ["c0"]],
  ["batches of two", { strategy: { batch: 2 } }, ["c0", "c1"]],
  ["at most two concurrent calls", { maxConcurrency: 2 }, ["c0", "c1"]],
  ["a sequential tool", { tools: [createSend([], { execution: { mode: "sequential" } })] }, ["c0"]],
  ["more calls than allowed", { maxCalls: 2 }, []],
  ["an idempotent tool", { tools: [createSend([], { effect: "idempotent" })] }, []],
  ["a parallel strategy", {}, ["c0", "c1", "c2"]],
];

test.each(waiting)(
  "calls with %s: only calls that begin at once are started by the commit of the model call [C8]",
  async (_name, options, expected) => {
    const { store, commits } = watch(memoryStore());
    const loop = createToolLoop({ tools: [createSend([])], turns: [calls, ["done"]], store, ...options });
    const result = await loop.start().result;
    expect(result.status).toBe("done");
    expect(commits.find((text) => text.startsWith("model"))).toBe(
      ["model", ...expected.map((id) => `start ${id}`)].join(", "),
    );
  },
);

test("a call with invalid arguments is not started by the commit of its model call, and its sibling is [C8]", async () => {
  const ran: string[] = [];
  const { store, commits } = watch(memoryStore());
  const turns = [
    [call("send", { to: 1 }, "bad"), call("send", { to: "ada" }, "good"), call("none", {}, "unknown")],
    ["done"],
  ];
  const loop = createToolLoop({ tools: [createSend(ran)], turns, store });
  const result = await loop.start().result;
  expect(commits).toContain("model, start good");
  expect(ran).toEqual(["good"]);
  expect(listToolAnswers(result).map(({ isError }) => isError)).toEqual([true, false, true]);
});

test("a run that reaches its limit of supersteps has not started the calls of its last model call [C8]", async () => {
  const ran: string[] = [];
  const { store, commits } = watch(memoryStore());
  const loop = createToolLoop({ tools: [createSend(ran)], turns: [calls, ["done"]], store, maxSteps: 1 });
  await expect(loop.start().result).rejects.toMatchObject({ code: "step_limit" });
  expect(commits).toContain("model");
  expect(ran).toEqual([]);
});

type Handle = ReturnType<ReturnType<typeof createToolLoop>["start"]>;

/** Ends of a run, at moments between the commit that holds the starts and the calls. */
const moments = ["before report", "after report", "task.started", "tool.started"] as const;

/** Runs a loop whose run is stopped at a moment. */
async function stopAt(moment: (typeof moments)[number], stop: (handle: Handle) => void) {
  const ran: string[] = [];
  const inner = memoryStore();
  let stopNow = (): void => undefined;
  const { store } = watch(inner, ({ checkpoint }, when) => {
    if (checkpoint?.row.nodes.includes("model") === true && when === moment) stopNow();
  });
  const loop = createToolLoop({ tools: [createSend(ran)], turns: [calls, ["done"]], store });
  const handle = loop.start();
  stopNow = () => {
    stopNow = () => undefined;
    stop(handle);
  };
  handle.on((event) => {
    if (event.type === moment && event.node === "tools") stopNow();
  });
  const result = await handle.result;
  const rows = (await inner.effects("t", "main", 1)).filter(({ kind }) => kind === "tool");
  return { loop, ran, result, rows };
}

describe.each(moments)("a run that stops at %s, between the commit of a start and the call", (moment) => {
  test("pause: no call is in doubt, and a resume runs each call once without a question [C8]", async () => {
    const { loop, ran, result, rows } = await stopAt(moment, (handle) => suspendRun(handle, "the process stops"));
    expect(result.status).toBe("paused");
    expect(ran).toEqual([]);
    expect(rows.filter(isInFlight)).toEqual([]);
    expect((await loop.again().result).status).toBe("done");
    expect(ran).toEqual(["c0", "c1", "c2"]);
  });

  test("cancel: each call is answered as cancelled and never runs, and no call is in doubt [C8]", async () => {
    const { ran, result, rows } = await stopAt(moment, (handle) => handle.cancel("enough"));
    expect(result.status).toBe("cancelled");
    expect(listToolAnswers(result).map(({ isError }) => isError)).toEqual([true, true, true]);
    expect(ran).toEqual([]);
    expect(rows.filter(isInFlight)).toEqual([]);
  });
});

test.each(["before report", "after report"] as const)(
  "a run that is drained %s of the commit of a start has cancelled the start, and a resume runs the call [C8]",
  async (moment) => {
    const { loop, ran, result, rows } = await stopAt(moment, (handle) => void handle.drain("deploy"));
    expect(result.status).toBe("paused");
    expect(ran).toEqual([]);
    expect(rows.map(({ key, state, endedAt }) => [key, state, endedAt !== undefined])).toEqual(
      calls.map(({ id }) => [id, "started", true]),
    );
    expect((await loop.again().result).status).toBe("done");
    expect(ran).toEqual(["c0", "c1", "c2"]);
  },
);

function isInFlight({ state, endedAt }: Awaited<ReturnType<Store["effects"]>>[number]): boolean {
  return state === "started" && endedAt === undefined;
}

test("a process that dies after the commit of a start and before its report leaves the calls in doubt, and they do not run again by themselves [C8]", async () => {
  const ran: string[] = [];
  const owner = memoryStore();
  // Commits: the input, then the model call with its starts.
  const { store, dead } = createCrashingStore(owner, 2, "after");
  const loop = createToolLoop({ tools: [createSend(ran)], turns: [calls, ["done"]], store });
  void Promise.allSettled([loop.start().result]);
  await dead;
  const waitingRun = await loop.again({}, { store: owner.peer() }).result;
  expect(waitingRun.status).toBe("waiting");
  expect(ran).toEqual([]);
  expect(loop.requests).toHaveLength(1);
});

test("a refused commit of a model call leaves no start in a later commit [C8]", async () => {
  const ran: string[] = [];
  const inner = memoryStore();
  let refusals = 0;
  const { store, commits } = watch({
    ...inner,
    commit: (write, onCommitted) => {
      if (write.checkpoint?.row.nodes.includes("model") !== true || refusals > 0)
        return inner.commit(write, onCommitted);
      refusals += 1;
      inner.commit({ ...write, epoch: write.epoch + 1 }, onCommitted);
    },
  });
  const loop = createToolLoop({ tools: [createSend(ran)], turns: [calls, ["done"]], store });
  await expect(loop.start().result).rejects.toMatchObject({ code: "fenced" });
  expect(ran).toEqual([]);
  expect(commits.slice(2).join()).not.toContain("start");
  expect(listEvents(loop, "tool.started")).toEqual([]);
});
