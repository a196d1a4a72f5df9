import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineTool, isStatewrightError, type Tool, ToolError, type ToolErrorKind } from "../../../src/index.ts";
import {
  call,
  createRawCall,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const anything = z.object({});

/** Creates a tool without arguments with the body `run`. */
function createTool(run: () => unknown, name = "act"): DeskTool {
  return defineTool({ name, description: "Does what the test says.", input: anything, effect: "pure", run });
}

function createFailingTool(name: string, kind: ToolErrorKind, message: string): DeskTool {
  return createTool(() => {
    throw new ToolError(kind, message);
  }, name);
}

/** Checks that a failure reaches the model as an error with this text, and the program with its kind. */
async function expectDistinctAnswers(
  failures: Readonly<Record<string, readonly [error: ToolError, text: string]>>,
): Promise<void> {
  const names = Object.keys(failures);
  const texts = Object.values(failures).map(([, text]) => text);
  const done = await runToolLoop({
    tools: Object.entries(failures).map(([name, [error]]) => createTool(() => Promise.reject(error), name)),
    turns: [names.map((name) => call(name)), ["sorry"]],
  });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(texts);
  expect(listResults(done).map(({ error }) => error?.kind)).toEqual(names);
  for (const text of texts) expect(done.wires[1]).toContain(`"text":"${text}"}],"isError":true`);
}

describe("error text for the model", () => {
  test("failed and not_found tool errors are distinct and reach the model with their text [S0.17, S0.18, S2.17, S2.18]", async () => {
    await expectDistinctAnswers({
      failed: [ToolError.failed("Cannot do it"), "Cannot do it"],
      not_found: [ToolError.notFound("No such city"), "No such city"],
    });
  });

  test("invalid_args and cancelled tool errors are distinct and reach the model with their text [S0.19, S0.20, S2.19, S2.20]", async () => {
    await expectDistinctAnswers({
      invalid_args: [ToolError.invalidArgs("A city has a name"), "A city has a name"],
      cancelled: [ToolError.cancelled(), "Cancelled"],
    });
  });

  test("a tool error becomes an answer under the id of its call and the run continues [S0.21, S2.21]", async () => {
    const done = await runToolLoop({
      tools: [createFailingTool("act", "failed", "broken")],
      turns: [[call("act", {}, "c7")], ["I see"]],
    });
    expect(done.result.status).toBe("done");
    const shown = done.requests[1]?.messages.find((message) => message.role === "tool");
    expect(shown).toMatchObject({
      role: "tool",
      callId: "c7",
      isError: true,
      content: [{ type: "text", text: "broken" }],
    });
  });

  test("a model recovers from a tool error by other arguments, another tool, or an explanation [S0.22, S2.22]", async () => {
    const weather = defineTool({
      name: "weather",
      description: "Weather of a city.",
      input: z.object({ city: z.string() }),
      effect: "pure",
      run: ({ city }) => (city === "Oslo" ? "rain" : Promise.reject(ToolError.notFound(`no ${city}`))),
    });
    const almanac = createTool(() => "always rain", "almanac");
    const scripts = [
      [[call("weather", { city: "Osla" }, "a")], [call("weather", { city: "Oslo" }, "b")], ["It rains"]],
      [[call("weather", { city: "Osla" }, "a")], [call("almanac", {}, "b")], ["It rains"]],
      [[call("weather", { city: "Osla" }, "a")], ["I do not know that city"]],
    ];
    for (const turns of scripts) {
      const done = await runToolLoop({ tools: [weather, almanac], turns });
      expect(done.result.status).toBe("done");
      for (const wire of done.wires.slice(1))
        expect(wire).toContain(
          '"callId":"a","name":"weather","content":[{"type":"text","text":"no Osla"}],"isError":true',
        );
    }
  });

  test("a returned text that starts with Error is not an error, and a throw is an error [S0.23, S2.23]", async () => {
    const done = await runToolLoop({
      tools: [
        createTool(() => "Error: the log says so", "log"),
        createTool(() => Promise.reject(new Error("boom")), "bad"),
      ],
      turns: [[call("log"), call("bad")], ["ok"]],
    });
    expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([false, true]);
    expect(listResults(done).map(({ isError, error }) => [isError, error?.kind])).toEqual([
      [false, undefined],
      [true, "failed"],
    ]);
  });

  test("an error returned as a value reaches the model as an error with exactly its text [S3.9]", async () => {
    const done = await runToolLoop({
      tools: [
        createTool(() => ({ content: "city not found: X", isError: true }), "value"),
        createFailingTool("thrown", "failed", "city not found: X"),
      ],
      turns: [[call("value"), call("thrown")], ["ok"]],
    });
    for (const answer of listToolAnswers(done))
      expect([getAnswerText(answer), answer.isError]).toEqual(["city not found: X", true]);
    for (const { isError, error } of listResults(done))
      expect([isError, error?.kind, error?.message]).toEqual([true, "failed", "city not found: X"]);
  });

  test("the model gets the text of an error without its stack [S4.23]", async () => {
    const done = await runToolLoop({
      tools: [createTool(() => Promise.reject(new Error("Operation failed: disk")))],
      turns: [[call("act")], ["ok"]],
    });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["Operation failed: disk"]);
    expect(done.wires[1]).not.toMatch(/ at |\.ts/);
    const [observed] = done.world.lines.filter(({ message }) => message.includes("failed"));
    expect(observed).toMatchObject({ level: "warn", message: 'the tool "act" failed' });
    expect(JSON.stringify(observed)).toContain("Operation failed: disk");
  });

  test("a tool error may have separate texts for the model and for people", async () => {
    const error = new ToolError("failed", "inner", {
      modelMessage: "Try later.",
      userMessage: "The bank is closed.",
      details: { code: 7 },
    });
    const done = await runToolLoop({
      tools: [createTool(() => Promise.reject(error))],
      turns: [[call("act")], ["ok"]],
    });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["Try later."]);
    expect(listResults(done)[0]).toMatchObject({ details: { code: 7 }, error: { message: "The bank is closed." } });
    expect(done.wires.join()).not.toContain("bank is closed");
  });
});

describe("values thrown by a tool", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const thrown: readonly [string, unknown][] = [
    ["an Error", new Error("bad")],
    ["an Error without a message", new RangeError()],
    ["null", null],
    ["undefined", undefined],
    ["a string", "just text"],
    ["a number", 7],
    ["a symbol", Symbol("s")],
    ["a circular object", circular],
    ["an error with a circular cause", Object.assign(new Error("round"), { cause: circular })],
    ["a tool error with details that cannot be saved", new ToolError("failed", "odd", { details: circular })],
    ["a function", () => undefined],
  ];

  test("a throw, a rejection and a thrown non-Error become answers and the run continues [S3.51]", async () => {
    for (const [what, value] of thrown) {
      for (const raise of [
        () => {
          throw value;
        },
        () => Promise.reject(value),
      ]) {
        const done = await runToolLoop({ tools: [createTool(raise)], turns: [[call("act")], ["ok"]] });
        const [answer] = listToolAnswers(done);
        expect([what, done.result.status, answer?.isError]).toEqual([what, "done", true]);
        expect(getAnswerText(answer)).toMatch(/\S/);
      }
    }
  });

  test("a failure of a graph run inside a tool is a tool failure and does not fail the outer run", async () => {
    const inner = createToolLoop({
      tools: [createTool(() => "x")],
      turns: [
        () => {
          throw new Error("the inner model broke");
        },
      ],
      store: "none",
    });
    const done = await runToolLoop({ tools: [createTool(() => inner.start().result)], turns: [[call("act")], ["ok"]] });
    expect(listToolAnswers(done)[0]).toMatchObject({ isError: true });
    expect(getAnswerText(listToolAnswers(done)[0])).toContain("the inner model broke");
  });
});

describe("refused tool calls", () => {
  const input = z.object({ cents: z.int(), note: z.string().optional() });

  function createCountingTool(): { readonly tool: DeskTool; readonly ran: unknown[] } {
    const ran: unknown[] = [];
    const tool = defineTool({ name: "pay", description: "Pay.", input, run: (args) => void ran.push(args) });
    return { tool, ran };
  }

  test("a tool call with a missing argument is answered with its name and does not run [S0.24, S2.24]", async () => {
    const { tool, ran } = createCountingTool();
    const done = await runToolLoop({ tools: [tool], turns: [[call("pay", { note: "x" })], ["ok"]] });
    expect(ran).toEqual([]);
    expect(listResults(done)[0]?.error?.kind).toBe("invalid_args");
    expect(getAnswerText(listToolAnswers(done)[0])).toContain("cents");
  });

  test("invalid arguments are refused before the tool is called [S1.5]", async () => {
    const { tool, ran } = createCountingTool();
    const wrong = [{}, { cents: "5" }, { cents: 1.5 }, { cents: 1, extra: true }, [1], "text", 7, null];
    const done = await runToolLoop({
      tools: [tool],
      turns: [wrong.map((args, index) => call("pay", args as never, `c${index}`)), ["ok"]],
    });
    expect(ran).toEqual([]);
    expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual(wrong.map(() => true));
    expect(listEvents(done, "tool.rejected").map(({ reason }) => reason)).toEqual(wrong.map(() => "invalid_args"));
    expect(listEvents(done, "tool.started")).toEqual([]);
  });

  test("the answer to invalid arguments names field and type and does not quote the value [S1.58, T19]", async () => {
    const { tool } = createCountingTool();
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("pay", { cents: "SENTINEL-1", note: { SENTINEL2: 1 } })], ["ok"]],
    });
    const text = getAnswerText(listToolAnswers(done)[0]);
    expect(text).toMatch(/cents: .*expected (number|int)/);
    expect(text).toMatch(/note: .*expected string/);
    expect(text).not.toContain("SENTINEL");
    expect(JSON.stringify(listResults(done))).not.toContain("SENTINEL");
    expect(JSON.stringify(listEvents(done, "tool.rejected", "tool.failed"))).not.toContain("SENTINEL");
    expect(JSON.stringify(done.world.lines)).not.toContain("SENTINEL");
  });

  test("the weather tool has its schema, its text, and its own message for a missing city [S0.28, S2.28]", async () => {
    let ran = 0;
    const weather = defineTool({
      name: "get_weather",
      label: "Weather",
      description: "Get current weather for a city.",
      input: z.object({ city: z.string("missing city").describe("City name") }),
      effect: "pure",
      run: ({ city }) => {
        ran += 1;
        return `Weather in ${city}: 72°F, sunny`;
      },
    });
    const done = await runToolLoop({
      tools: [weather],
      turns: [[call("get_weather", { city: "Paris" }, "a"), call("get_weather", {}, "b")], ["ok"]],
    });
    expect(JSON.parse(done.wires[0] ?? "").tools).toEqual([
      {
        name: "get_weather",
        description: "Get current weather for a city.",
        inputSchema: {
          type: "object",
          properties: { city: { type: "string", description: "City name" } },
          required: ["city"],
        },
      },
    ]);
    const [good, bad] = listToolAnswers(done);
    expect(getAnswerText(good)).toBe("Weather in Paris: 72°F, sunny");
    expect(listResults(done).find(({ callId }) => callId === "a")).not.toHaveProperty("details");
    expect(getAnswerText(bad)).toContain("missing city");
    expect(listResults(done).find(({ callId }) => callId === "b")?.error?.kind).toBe("invalid_args");
    expect(ran).toBe(1);
  });

  test("a call of an unknown tool is answered with the existing names and does not run [S1.60]", async () => {
    const { tool, ran } = createCountingTool();
    const done = await runToolLoop({
      tools: [tool],
      turns: [
        [
          call("pays", { cents: 1 }, "a"),
          call("pay", { cents: 1 }, "b"),
          call("__proto__", {}, "c"),
          call("constructor", {}, "d"),
        ],
        ["ok"],
      ],
    });
    expect(listToolAnswers(done).map(({ callId, isError }) => [callId, isError])).toEqual([
      ["a", true],
      ["b", false],
      ["c", true],
      ["d", true],
    ]);
    expect(getAnswerText(listToolAnswers(done)[0])).toContain('"pay"');
    expect(ran).toEqual([{ cents: 1 }]);
    expect(listEvents(done, "tool.started").map(({ callId }) => callId)).toEqual(["b"]);
    expect(
      listEvents(done, "tool.failed")
        .map(({ callId }) => callId)
        .sort(),
    ).toEqual(["a", "c", "d"]);
  });

  test("malformed JSON arguments never become {}, and empty arguments become {} only for a tool without required arguments [S1.61, T11, T12]", async () => {
    const ran: string[] = [];
    const bare = defineTool({
      name: "bare",
      description: "No arguments.",
      input: z.object({}),
      run: () => void ran.push("bare"),
    });
    const optional = defineTool({
      name: "optional",
      description: "Optional arguments.",
      input: z.object({ path: z.string().optional() }),
      run: () => void ran.push("optional"),
    });
    const done = await runToolLoop({
      tools: [bare, optional],
      turns: [
        [
          createRawCall("bare", '{"a":', "a"),
          createRawCall("optional", '{"path": "/', "b"),
          createRawCall("optional", "", "c"),
          createRawCall("bare", " ", "d"),
          createRawCall("bare", "[]", "e"),
          createRawCall("bare", "null", "f"),
        ],
        ["ok"],
      ],
    });
    expect(listToolAnswers(done).map(({ callId, isError }) => [callId, isError])).toEqual([
      ["a", true],
      ["b", true],
      ["c", true],
      ["d", false],
      ["e", true],
      ["f", true],
    ]);
    expect(ran).toEqual(["bare"]);
  });

  test("tool calls of a message truncated at the length limit are answered and do not run [T13]", async () => {
    const { tool, ran } = createCountingTool();
    const done = await runToolLoop({
      tools: [tool],
      finish: "length",
      turns: [[call("pay", { cents: 1 }, "a"), call("pay", { cents: 2 }, "b")], ["ok"]],
    });
    expect(ran).toEqual([]);
    expect(listToolAnswers(done).map(({ callId, isError }) => [callId, isError])).toEqual([
      ["a", true],
      ["b", true],
    ]);
    expect(getAnswerText(listToolAnswers(done)[0])).toContain("cut off");
    expect(listEvents(done, "tool.rejected").map(({ reason }) => reason)).toEqual(["cut_off", "cut_off"]);
  });

  test("arguments named __proto__ and constructor are refused and change no prototype", async () => {
    const { tool, ran } = createCountingTool();
    const loose: unknown[] = [];
    const open = defineTool({
      name: "open",
      description: "Takes anything.",
      input: z.looseObject({}),
      run: (args) => void loose.push(args),
    });
    const parseHostileArgs = (more: string): never => JSON.parse(`{"cents":1,${more}}`) as never;
    const done = await runToolLoop({
      tools: [tool, open],
      turns: [
        [
          call("pay", parseHostileArgs('"__proto__":{"polluted":true}'), "a"),
          call("pay", parseHostileArgs('"constructor":{"prototype":{"polluted":true}}'), "b"),
          call("open", parseHostileArgs('"__proto__":{"polluted":true}'), "c"),
        ],
        ["ok"],
      ],
    });
    expect(
      listToolAnswers(done)
        .slice(0, 2)
        .map(({ isError }) => isError),
    ).toEqual([true, true]);
    expect(ran).toEqual([]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    for (const args of loose) expect((args as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test("onInvalidCall fail makes an invalid call fail the run with a typed error after its siblings complete", async () => {
    const world = createVirtualWorld();
    let finished = false;
    const slow = createTool(
      () =>
        new Promise<string>((resolve) =>
          world.schedule.after(50, () => {
            finished = true;
            resolve("slow");
          }),
        ),
      "slow",
    );
    const loop = createToolLoop({
      tools: [slow],
      onInvalidCall: "fail",
      world,
      turns: [[call("nothing"), call("slow")], ["ok"]],
    });
    const failure = loop.start().result.catch((error: unknown) => error);
    await world.advance(50);
    expect(isStatewrightError(await failure, "tool_failed")).toBe(true);
    expect(finished).toBe(true);
    expect(loop.saved()).toContain('"key":"id_slow","kind":"tool","name":"slow","effect":"pure","state":"ok"');
  });
});

describe("values returned by a tool", () => {
  test("a tool result that is not data is answered with an error that says so, and the run continues", async () => {
    class Client {
      readonly key = "SENTINEL";
    }
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    const returned: readonly unknown[] = [
      () => "x",
      Symbol("s"),
      10n,
      { content: [{ type: "text" }] },
      { content: [{ type: "video", url: "x" }] },
      { content: [{ type: "image", data: "x" }] },
      { content: [{ type: "json", value: new Client() }] },
      { content: [{ type: "json", value: circular }] },
    ];
    for (const value of returned) {
      for (const effect of ["pure", "once"] as const) {
        const tool = defineTool({ name: "act", description: "Returns it.", input: anything, effect, run: () => value });
        const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
        expect(done.result.status).toBe("done");
        expect(listResults(done).map(({ error }) => error?.kind)).toEqual(["invalid_output"]);
        expect(done.saved()).not.toContain("SENTINEL");
      }
    }
  });

  test("plain data returned by a tool becomes JSON for the model and a value for programs", async () => {
    const done = await runToolLoop({
      tools: [createTool(() => ({ at: new Date(0), list: [1, null], gone: undefined }))],
      turns: [[call("act")], ["ok"]],
    });
    expect(listToolAnswers(done)[0]?.content).toEqual([
      { type: "json", value: { at: "1970-01-01T00:00:00.000Z", list: [1, null] } },
    ]);
    expect(listResults(done)[0]?.value).toEqual({ at: new Date(0), list: [1, null], gone: undefined });
  });

  test("a tool may keep mutating the object that it returned", async () => {
    const cache = { hits: 0, log: ["start"] };
    const tool = createTool(() => {
      cache.hits += 1;
      cache.log.push(`hit ${cache.hits}`);
      return cache;
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("act", {}, "a")], [call("act", {}, "b")], ["ok"]] });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual([
      '{"hits":1,"log":["start","hit 1"]}',
      '{"hits":2,"log":["start","hit 1","hit 2"]}',
    ]);
    expect(listResults(done)[0]?.value).toEqual({ hits: 1, log: ["start", "hit 1"] });
  });

  test("a value that the output schema refuses is an invalid_output error [S1.20]", async () => {
    const typed = (name: string, value: unknown): Tool =>
      defineTool({
        name,
        description: "Typed.",
        input: anything,
        output: z.object({ n: z.number() }),
        effect: "pure",
        run: () => value as { n: number },
      });
    const done = await runToolLoop({
      tools: [
        typed("good", { content: "one", value: { n: 1 } }),
        typed("plain", { n: 2 }),
        typed("bad", { n: "SENTINEL" }),
        typed("none", "text only"),
      ],
      turns: [[call("good"), call("plain"), call("bad"), call("none")], ["ok"]],
    });
    const kinds = Object.fromEntries(listResults(done).map(({ name, error }) => [name, error?.kind]));
    expect(kinds).toEqual({ good: undefined, plain: undefined, bad: "invalid_output", none: "invalid_output" });
    expect(getAnswerText(listToolAnswers(done)[2])).toMatch(/n: .*expected number/);
    expect(getAnswerText(listToolAnswers(done)[2])).not.toContain("SENTINEL");
  });

  test("a large tool result within its limits reaches the model complete", async () => {
    const big = "x".repeat(1_000_000);
    const limits = { artifactBytes: 1_000_000, resultBytes: 1_000_000 };
    const done = await runToolLoop({ tools: [createTool(() => big)], limits, turns: [[call("act")], ["ok"]] });
    expect(getAnswerText(listToolAnswers(done)[0])).toBe(big);
  });
});
