import { expect, test } from "vitest";
import * as z from "zod";
import {
  defineMiddleware,
  defineTool,
  inject,
  type Middleware,
  memoryStore,
  run,
  type ToolRuntime,
} from "../../../../src/index.ts";
import { createCodec } from "../../../../src/store.ts";
import { collectEvents, getFailure } from "../../../support/failure.ts";
import {
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  type LoopOptions,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
  user,
} from "../../../support/tool-loop.ts";
import { createVirtualWorld } from "../../../support/virtual-world.ts";

class Receipt {
  readonly total = 3;
  readonly items = [{ name: "pen", print: () => "pen" }];
  readonly #secret = "hidden";

  get secret(): string {
    return this.#secret;
  }
}

function createCyclic(): Record<string, unknown> {
  const cyclic: Record<string, unknown> = { name: "loop" };
  return Object.assign(cyclic, { self: cyclic, items: [cyclic, 1] });
}

function createTool(run: (runtime: ToolRuntime) => unknown, output?: z.ZodType): DeskTool {
  return defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({}),
    effect: "once",
    ...(output === undefined ? {} : { output }),
    run: (_args, runtime) => run(runtime as ToolRuntime),
  });
}

const turns: LoopOptions["turns"] = [[call("pay")], ["done"]];

/** Details or values of a finished call, and the data that its result keeps. */
const cases: readonly (readonly [what: string, given: () => unknown, kept: unknown])[] = [
  ["the environment of the process", () => process.env, { ...process.env }],
  ["an instance of a class", () => new Receipt(), { total: 3, items: [{ name: "pen" }] }],
  ["a function", () => ({ name: "f", run: () => 1 }), { name: "f" }],
  ["a symbol", () => ({ name: "s", mark: Symbol("x"), list: [Symbol("y"), 1] }), { name: "s", list: [null, 1] }],
  ["a cycle", createCyclic, { name: "loop", items: [null, 1] }],
  ["headers", () => new Headers({ "X-Request": "7" }), { "x-request": "7" }],
  [
    "an address and a date",
    () => ({ at: new URL("https://a.example/"), on: new Date(0) }),
    { at: new URL("https://a.example/"), on: new Date(0) },
  ],
  [
    "a map with a function",
    () =>
      new Map<string, unknown>([
        ["a", 1],
        ["b", () => 1],
      ]),
    new Map([["a", 1]]),
  ],
  [
    "a getter that throws",
    () => ({
      name: "g",
      get bad(): never {
        throw new Error("no");
      },
    }),
    { name: "g" },
  ],
];

test.each(cases)(
  "details with %s are flattened, the call of a once tool succeeds and a resume does not ask [FX70, FX86]",
  async (_what, create, kept) => {
    let count = 0;
    const given = create();
    const tool = createTool(() => {
      count++;
      return { content: "paid", details: given };
    });
    const done = await runToolLoop({ tools: [tool], turns });
    expect(done.result.status).toBe("done");
    expect(getAnswerText(listToolAnswers(done)[0])).toBe("paid");
    expect(listResults(done).map(({ isError, details }) => ({ isError, details }))).toEqual([
      { isError: false, details: kept },
    ]);
    expect(count).toBe(1);
    if (given instanceof Map) expect(given.set("c", 2).size).toBe(3);
  },
);

test.each(cases)(
  "a value with %s is flattened if the tool has no output schema, and the content stands [FX86]",
  async (_what, create, kept) => {
    const done = await runToolLoop({ tools: [createTool(() => ({ content: "paid", value: create() }))], turns });
    expect(listResults(done).map(({ isError, value }) => ({ isError, value }))).toEqual([
      { isError: false, value: kept },
    ]);
    expect(getAnswerText(listToolAnswers(done)[0])).toBe("paid");
  },
);

test("a value that cannot be saved is refused if the tool has an output schema [FX86, E48]", async () => {
  const tool = createTool(() => ({ content: "paid", value: new Receipt() }), z.instanceof(Receipt));
  const done = await runToolLoop({ tools: [tool], turns });
  expect(listResults(done).map(({ error }) => error?.kind)).toEqual(["invalid_output"]);
  expect(getAnswerText(listToolAnswers(done)[0])).toContain('"value"');
});

test("dropped parts of details are logged with their paths, once for each call [FX86]", async () => {
  const world = createVirtualWorld();
  const tool = createTool(() => ({
    content: "paid",
    details: { client: { send: () => 1 }, list: [Symbol("x")], loop: createCyclic(), pending: Promise.resolve(1) },
  }));
  await runToolLoop({ tools: [tool], turns, world });
  expect(world.lines.map(({ message, fields }) => [message, fields])).toEqual([
    [
      'the result of the tool "pay" has no copy of parts that are not data',
      {
        callId: "id_pay",
        dropped: [
          "details.client.send: a function",
          "details.list.0: a symbol",
          "details.loop.self: a cycle",
          "details.loop.items.0: a cycle",
          "details.pending: a promise",
        ],
      },
    ],
  ]);
});

test("secrets in class instances of details are redacted [FX86]", async () => {
  class Session {
    readonly token = "tok-123456789-SENTINEL";
  }
  const tool = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({}),
    inject: { token: inject.secret("TOKEN") },
    run: () => ({ content: "paid", details: new Session() }),
  });
  const done = await runToolLoop({ tools: [tool], turns, secrets: { get: () => "tok-123456789-SENTINEL" } });
  expect(listResults(done)).toHaveLength(1);
  expect(JSON.stringify(listResults(done))).not.toContain("SENTINEL");
});

test("an update keeps and drops the same values as a result, and a withheld update is counted in an event [FX86]", async () => {
  const details = (): unknown => ({
    at: new URL("https://a.example/"),
    headers: new Headers({ a: "b" }),
    run: () => 1,
    receipt: new Receipt(),
  });
  const tool = createTool(({ update }) => {
    update?.({ content: "half", details: details() });
    for (let index = 0; index < 2; index++) update?.({ content: [{ type: "video" }] } as never);
    return { content: "paid", details: details() };
  });
  const done = await runToolLoop({ tools: [tool], turns });
  const kept = {
    at: new URL("https://a.example/"),
    headers: { a: "b" },
    receipt: { total: 3, items: [{ name: "pen" }] },
  };
  expect(listEvents(done, "tool.update").map(({ partial }) => partial.details)).toEqual([kept]);
  expect(listResults(done).map((result) => result.details)).toEqual([kept]);
  expect(listEvents(done, "tool.update_withheld").map(({ count }) => count)).toEqual([1, 2]);
});

test("a once call whose result a hook makes unusable fails as a call and is not in doubt [FX70]", async () => {
  let count = 0;
  const tool = createTool(() => {
    count++;
    return "paid";
  });
  const unfreezable = new Proxy({ type: "json", value: 1 }, { preventExtensions: () => false });
  const hook = defineMiddleware({
    name: "spoil",
    afterTool: ({ result }) => ({ ...result, content: [unfreezable as { type: "json"; value: 1 }] }),
  });
  const done = await runToolLoop({ tools: [tool], turns, middleware: [hook] });
  expect(done.result.status).toBe("done");
  expect([count, listResults(done).map(({ error }) => error?.kind)]).toEqual([1, ["invalid_output"]]);
});

test.each(["afterTool", "aroundTool"])(
  "a once call whose required %s fails after the body is answered as withheld on a resume, without a question [FX70]",
  async (name) => {
    let count = 0;
    const tool = createTool(() => {
      count++;
      return "paid";
    });
    const fail = (): never => {
      throw new Error("the audit log is full");
    };
    const hook = defineMiddleware({
      name: "audit",
      required: true,
      ...(name === "afterTool"
        ? { afterTool: fail }
        : { aroundTool: async (_call, next) => next(_call.call).then(fail) }),
    } satisfies Middleware);
    const loop = createToolLoop({ tools: [tool], turns, middleware: [hook] });
    expect((await getFailure(loop.start().result)).message).toContain("the audit log is full");
    const result = await loop.again().result;
    expect(result.status).toBe("done");
    expect(count).toBe(1);
    const [answer] = listToolAnswers(result);
    expect(answer?.isError).toBe(true);
    expect(getAnswerText(answer)).toContain('The tool "pay" ran, but its result is withheld');
  },
);

test("instances of registered classes keep their class in details [FX86]", async () => {
  const codec = createCodec([
    {
      tag: "receipt",
      matches: (value) => value instanceof Receipt,
      encode: () => null,
      decode: () => new Receipt(),
    },
  ]);
  const tool = createTool(() => ({ content: "paid", details: { receipt: new Receipt(), run: () => 1 } }));
  const loop = createToolLoop({ tools: [tool], turns });
  const input = { messages: [user("go")] };
  const handle = run(loop.graph, { input, context: {}, store: memoryStore(), thread: "t", codec });
  const events = collectEvents(handle);
  await handle.result;
  const details = listResults({ events })[0]?.details as Readonly<Record<string, unknown>>;
  expect(Object.keys(details)).toEqual(["receipt"]);
  expect(details["receipt"]).toBeInstanceOf(Receipt);
});
