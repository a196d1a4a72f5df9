/** Start of a tool body on the event stream: after approval, once for all attempts, never without a body. */
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
  graphTool,
  type Message,
  memoryStore,
  type RunEvent,
  type RunHandle,
  resume,
  run,
  START,
  ToolError,
  toolNode,
} from "../../../src/index.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Chat = defineState({ messages: channel.messages() });

const toInput = (...names: readonly string[]) => ({
  messages: [
    {
      role: "assistant",
      id: "asks",
      finish: "calls",
      content: names.map((name) => ({ type: "call", id: name, name, args: { cents: 1 } })),
    } as Message,
  ],
});

/** Graph of tools; `called` lists the calls of bodies, with their cents. */
function createDesk() {
  const called: string[] = [];
  let failures = 2;
  const input = z.object({ cents: z.int() });
  const createTool = (name: string, work: (cents: number) => string = () => "done") =>
    defineTool({
      name,
      description: "Acts.",
      input,
      retry: { attempts: 3, on: ["unavailable"] },
      run: ({ cents }) => {
        called.push(`${name} ${cents}`);
        return work(cents);
      },
    });
  const pay = createTool("pay");
  const asks = defineMiddleware({
    name: "asks",
    interrupts: { approve: approval },
    beforeTool: ({ call }) => (call.name === "pay" ? decide.interrupt(call, "Money") : undefined),
  });
  const flaky = createTool("flaky", () => {
    if (failures-- > 0) throw new ToolError("unavailable", "Not now.");
    return "done";
  });
  const inner = defineGraph({ name: "inner", state: Chat, interrupts: { approve: approval } })
    .nodes({ tools: toolNode({ tools: [pay], middleware: [asks] }) })
    .edges({ [START]: "tools", tools: END });
  const sub = graphTool(inner, {
    name: "sub",
    description: "Pays by another.",
    input,
    toInput: () => toInput("pay"),
    toResult: () => "done",
  });
  const graph = defineGraph({ name: "outer", state: Chat, interrupts: { approve: approval } })
    .nodes({ tools: toolNode({ tools: [pay, createTool("fine"), flaky, sub], middleware: [asks] }) })
    .edges({ [START]: "tools", tools: END });
  return { graph, called };
}

/** Collects the events of calls of a handle, by path and call. */
function watch(handle: RunHandle<unknown>): {
  readonly list: (call: string) => readonly string[];
  readonly all: RunEvent[];
} {
  const all: RunEvent[] = [];
  handle.on((event) => all.push(event));
  return {
    all,
    list: (call) =>
      all.flatMap((event) =>
        "callId" in event && [event.within, event.callId].filter(Boolean).join("/") === call ? [event.type] : [],
      ),
  };
}

test("a tool body starts on the stream after its approval with the approved arguments, and never before the interrupt [SE13]", async () => {
  const store = memoryStore();
  const { graph, called } = createDesk();
  const first = run(graph, { store, thread: "t", input: toInput("pay", "fine", "sub") });
  const before = watch(first);
  const asked = await first.result;
  expect(before.list("pay")).toEqual(["tool.started"]);
  expect(before.list("fine")).toEqual(["tool.started", "tool.body_started", "tool.completed"]);
  expect(before.list("sub")).toEqual(["tool.started", "tool.body_started"]);
  expect(before.list("sub/pay")).toEqual(["tool.started"]);
  expect(called).toEqual(["fine 1"]);

  const [own, nested] = asked.status === "waiting" ? asked.interrupts.map(({ id }) => id) : [];
  const answers = { [own ?? ""]: { approved: true, args: { cents: 7 } }, [nested ?? ""]: { approved: true } };
  const second = resume(graph, { store, thread: "t", answers });
  const after = watch(second);
  await second.result;
  expect(after.list("pay").slice(-2)).toEqual(["tool.body_started", "tool.completed"]);
  expect(after.all).toContainEqual(
    expect.objectContaining({ type: "tool.body_started", callId: "pay", args: { cents: 7 } }),
  );
  expect(after.list("fine")).not.toContain("tool.body_started");
  expect(after.list("sub/pay").slice(-2)).toEqual(["tool.body_started", "tool.completed"]);
  expect(called).toEqual(["fine 1", "pay 7", "pay 1"]);
});

test("a tool body starts once on the stream for all attempts of a call, and not for denied, unknown and invalid calls [SE13]", async () => {
  const world = createVirtualWorld();
  const store = memoryStore();
  const { graph, called } = createDesk();
  const input = toInput("flaky", "pay", "nobody");
  const first = run(graph, { store, world, thread: "t", input });
  const events = watch(first);
  await world.advance(600_000);
  const asked = await first.result;
  expect(events.list("flaky")).toEqual([
    "tool.started",
    "tool.body_started",
    "tool.retried",
    "tool.retried",
    "tool.completed",
  ]);
  expect(called).toEqual(["flaky 1", "flaky 1", "flaky 1"]);
  const id = asked.status === "waiting" ? (asked.interrupts[0]?.id ?? "") : "";
  const second = resume(graph, { store, world, thread: "t", answers: { [id]: { approved: false } } });
  const after = watch(second);
  await world.advance(600_000);
  await second.result;
  expect(after.list("pay").at(-1)).toBe("tool.failed");
  for (const call of ["pay", "nobody"])
    for (const { list } of [events, after]) expect(list(call)).not.toContain("tool.body_started");
  expect(called).toHaveLength(3);
});
