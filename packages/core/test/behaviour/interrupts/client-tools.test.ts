/** Tools without a body: the client application answers their calls. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  clientAnswer,
  decide,
  defineMiddleware,
  defineTool,
  isStatewrightError,
  memoryStore,
  steer,
  toolNode,
} from "../../../src/index.ts";
import {
  type ChatResult,
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  type Loop,
  type LoopOptions,
  listEvents,
  listResults,
  listToolAnswers,
} from "../../support/tool-loop.ts";

const colour = z.enum(["red", "green"]);
const pickColour = defineTool({
  name: "pick_colour",
  description: "Let the user pick a colour.",
  input: z.object({ title: z.string() }),
  output: colour,
});

function createPickLoop(options: Partial<LoopOptions> = {}, tool: DeskTool = pickColour): Loop {
  return createToolLoop({
    tools: [tool],
    interrupts: { pick_colour: clientAnswer(tool.spec) },
    turns: [[call("pick_colour", { title: "Wall" }, "c1")], ["ok"]],
    ...options,
  });
}

function listQuestions(result: ChatResult) {
  if (result.status !== "waiting") throw new Error(`it is ${result.status}`);
  return result.interrupts;
}

test("a call of a tool without a body opens an interrupt with its arguments, and the answer is the result of the tool [E68]", async () => {
  const store = memoryStore();
  const loop = createPickLoop({ store });
  const [question] = listQuestions(await loop.start().result);
  expect(question).toMatchObject({
    key: "pick_colour",
    node: "tools",
    payload: { callId: "c1", tool: "pick_colour", args: { title: "Wall" } },
    schema: { anyOf: [{ enum: ["red", "green"] }, { required: ["isError", "content"] }] },
  });
  const end = await loop.again({ pick_colour: "green" }).result;
  expect([
    end.status,
    listToolAnswers(end).map((message) => [message.callId, getAnswerText(message), message.isError]),
  ]).toEqual(["done", [["c1", "green", false]]]);
  expect(listResults(loop)[0]).toMatchObject({ value: "green", isError: false });
  expect(loop.requests[0]?.tools.map(({ name }) => name)).toEqual(["pick_colour"]);
});

test("an answer that the output schema refuses leaves the interrupt open, and an error answer reaches the model as an error [E68]", async () => {
  const loop = createPickLoop();
  await loop.start().result;
  for (const wrong of ["blue", 5, null, { approved: true }, { isError: true }]) {
    const error = await loop.again({ pick_colour: wrong }).result.catch((thrown: unknown) => thrown);
    expect([wrong, isStatewrightError(error, "invalid_answer")]).toEqual([wrong, true]);
  }
  expect(listQuestions(await loop.again().result)).toHaveLength(1);
  const end = await loop.again({ pick_colour: { isError: true, content: "the window was closed" } }).result;
  expect(listToolAnswers(end).map((message) => [getAnswerText(message), message.isError])).toEqual([
    ["the window was closed", true],
  ]);
});

test("several client-side tool calls are answered by id in any order, and an answer by their shared key is refused with the ids", async () => {
  const turns: LoopOptions["turns"] = [
    [call("pick_colour", { title: "Wall" }, "a"), call("pick_colour", { title: "Door" }, "b")],
    ["ok"],
  ];
  const loop = createPickLoop({ turns });
  const [first, second] = listQuestions(await loop.start().result);
  const both = await loop.again({ pick_colour: "red" }).result.catch((thrown: unknown) => thrown);
  expect(isStatewrightError(both, "ambiguous_answer")).toBe(true);
  expect(String(both)).toContain(first?.id);
  expect(String(both)).toContain(second?.id);
  expect(listQuestions(await loop.again({ [second?.id ?? ""]: "red" }).result)).toHaveLength(1);
  const end = await loop.again({ pick_colour: "green" }).result;
  expect(listToolAnswers(end).map(getAnswerText)).toEqual(["green", "red"]);
});

test("hooks run before the interrupt of a client-side tool call and see its answer", async () => {
  const seen: unknown[] = [];
  const watching = defineMiddleware({
    name: "watching",
    beforeTool: ({ call: made }) => {
      const { title } = made.args as { readonly title: string };
      return title === "Wall" ? decide.interrupt(made, "may it ask?") : decide.deny("no doors");
    },
    aroundTool: async ({ call: made }, next) => {
      seen.push("around");
      return next(made);
    },
    afterTool: ({ result }) => void seen.push(result.value) as undefined,
  });
  const loop = createPickLoop({
    middleware: [watching],
    turns: [[call("pick_colour", { title: "Wall" }, "a"), call("pick_colour", { title: "Door" }, "b")], ["ok"]],
  });
  expect(listQuestions(await loop.start().result).map(({ key }) => key)).toEqual(["approve"]);
  expect(listQuestions(await loop.again({ approve: true }).result).map(({ key }) => key)).toEqual(["pick_colour"]);
  expect(seen).toEqual([undefined]);
  const end = await loop.again({ pick_colour: "red" }).result;
  expect([listToolAnswers(end).map(getAnswerText), seen]).toEqual([
    ["red", "no doors"],
    [undefined, "around", "red"],
  ]);
  expect(listEvents(loop, "tool.completed", "tool.failed").map(({ callId }) => callId)).toEqual(["b", "a"]);
});

test("the timeout of a client-side tool counts from the interrupt, and the model reads that no answer came in time", async () => {
  const hasty = defineTool({
    name: "pick_colour",
    description: "Let the user pick a colour.",
    input: z.object({ title: z.string() }),
    timeoutMs: 60_000,
  });
  const loop = createPickLoop({}, hasty);
  const [question] = listQuestions(await loop.start().result);
  expect(question?.expiresAt).toBe(1_060_000);
  await loop.world.advance(60_001);
  const end = await loop.again().result;
  expect([end.status, listResults(loop)[0]?.error?.kind]).toEqual(["done", "timeout"]);
});

test("an answer to a client-side tool call survives the crash of its process, and the call is not in doubt", async () => {
  const store = memoryStore();
  const loop = createPickLoop({ store });
  await loop.start().result;
  const hangs = defineMiddleware({ name: "hangs", aroundTool: () => new Promise(() => undefined) });
  const dying = createPickLoop({ store, middleware: [hangs] });
  void dying.again({ pick_colour: "red" }).result.catch(() => "died");
  await dying.world.waitUntilIdle();
  store.crash();
  const end = await createPickLoop({ store: store.peer() }).again().result;
  expect([end.status, listToolAnswers(end).map(getAnswerText)]).toEqual(["done", ["red"]]);
});

test("an answered client-side tool call is not skipped by a steering message", async () => {
  const store = memoryStore();
  const wait = defineTool({
    name: "wait",
    description: "Wait.",
    input: z.object({}),
    effect: "pure",
    run: () => "waited",
  });
  const loop = createPickLoop({
    store,
    tools: [wait, pickColour],
    strategy: "sequential",
    turns: [[call("wait"), call("pick_colour", { title: "Wall" }, "c1")], ["ok"]],
  });
  await loop.start().result;
  await steer(loop.graph, { store, thread: "t", input: "hurry", world: loop.world });
  const end = await loop.again({ pick_colour: "red" }).result;
  expect(listToolAnswers(end).map(getAnswerText)).toEqual(["waited", "red"]);
});

describe("definition of a client-side tool", () => {
  test("a tool without a body is refused with options that need a body, and under a name that is the key of another interrupt", () => {
    const parts = { description: "Ask.", input: z.object({}) };
    expect(() => defineTool({ ...parts, name: "ask_user", effect: "pure", retry: { attempts: 2 } })).toThrow(/retry/);
    expect(() => defineTool({ ...parts, name: "ask_user", reconcile: () => undefined })).toThrow(/reconcile/);
    for (const name of ["approve", "in_doubt"]) expect(() => defineTool({ ...parts, name })).toThrow(/invalid_tool/);
  });

  test("a tool without a body requires the graph to declare an interrupt under its name", () => {
    expect(toolNode({ tools: [pickColour] }).registry.names()).toEqual(["pick_colour"]);
    expect(() => createPickLoop({ interrupts: {} })).toThrow(/"pick_colour" has no body.*interrupts: \{ pick_colour/s);
  });
});
