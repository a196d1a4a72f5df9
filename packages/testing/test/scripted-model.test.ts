import { getMessageText, type Message, type ModelDelta, type ModelRequest } from "@statewright/core";
import {
  call,
  failWith,
  rejectInvalidTranscripts,
  type ScriptedModel,
  say,
  scriptedModel,
  stall,
  think,
  virtualClock,
} from "@statewright/testing";
import { describe, expect, expectTypeOf, test } from "vitest";

const quiet = { signal: new AbortController().signal };

function user(text: string): Message {
  return { role: "user", id: `u:${text}`, content: [{ type: "text", text }] };
}

function createCallMessage(...ids: string[]): Message {
  return {
    role: "assistant",
    id: "a1",
    finish: "calls",
    content: ids.map((id) => ({ type: "call", id, name: "look", args: {} })),
  };
}

function createToolAnswer(callId: string, text = "found"): Message {
  return { role: "tool", id: `t:${callId}`, callId, name: "look", content: [{ type: "text", text }], isError: false };
}

function request(...messages: Message[]): ModelRequest {
  return { messages, tools: [] };
}

describe("scriptedModel", () => {
  test("a scripted model answers in the order of its script, with ids counted in the conversation", async () => {
    const model = scriptedModel([
      [say("I look."), call("look", { at: 1 }), call("look", { at: 2 })],
      call("look", {}),
      say("Done"),
    ]);
    const first = await model.respond(request(user("hi")), quiet);
    expect(first.content).toEqual([
      { type: "text", text: "I look." },
      { type: "call", id: "call_1", name: "look", args: { at: 1 } },
      { type: "call", id: "call_2", name: "look", args: { at: 2 } },
    ]);
    expect(first.finish).toBe("calls");
    const two = [
      user("hi"),
      { role: "assistant" as const, id: "a1", ...first },
      createToolAnswer("call_1"),
      createToolAnswer("call_2"),
    ];
    const second = await model.respond(request(...two), quiet);
    expect(second.content).toEqual([{ type: "call", id: "call_3", name: "look", args: {} }]);
    const third = await model.respond(
      request(...two, { role: "assistant", id: "a2", ...second }, createToolAnswer("call_3")),
      quiet,
    );
    expect(third).toMatchObject({ finish: "stop", content: [{ type: "text", text: "Done" }] });
    expect(model.requests).toHaveLength(3);
  });

  test("a scripted model streams given chunks, reasoning first, and reports the given usage", async () => {
    const deltas: ModelDelta[] = [];
    const usage = { inputTokens: 5, outputTokens: 1, cachedTokens: 4 };
    const model = scriptedModel([[think("Hm, so."), say(["It ra", "ins."], { usage })]]);
    const reply = await model.respond(request(user("hi")), { ...quiet, delta: (delta) => void deltas.push(delta) });
    expect(deltas).toEqual([
      { type: "reasoning", text: "Hm, " },
      { type: "reasoning", text: "so." },
      { type: "text", text: "It ra" },
      { type: "text", text: "ins." },
    ]);
    expect(reply).toEqual({
      content: [
        { type: "reasoning", text: "Hm, so." },
        { type: "text", text: "It rains." },
      ],
      finish: "stop",
      usage,
    });
  });

  test("a scripted model may fail inside its stream and continues with the next reply", async () => {
    const deltas: ModelDelta[] = [];
    const recordingOptions = { ...quiet, delta: (delta: ModelDelta) => void deltas.push(delta) };
    const model = scriptedModel([failWith(new Error("cut"), { after: say(["It ", "ra"]) }), say("Done")]);
    await expect(model.respond(request(user("hi")), recordingOptions)).rejects.toThrow("cut");
    expect(deltas.map((delta) => ("text" in delta ? delta.text : ""))).toEqual(["It ", "ra"]);
    expect(await model.respond(request(user("hi")), quiet)).toMatchObject({ content: [{ text: "Done" }] });
  });

  test("a scripted model may stall until it is aborted", async () => {
    const controller = new AbortController();
    const deltas: ModelDelta[] = [];
    const model = scriptedModel([stall({ after: say("It ra") }), say("Done")]);
    const asking = model.respond(request(user("hi")), {
      signal: controller.signal,
      delta: (delta) => void deltas.push(delta),
    });
    await virtualClock().waitUntilIdle();
    expect(deltas).toHaveLength(2);
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(asking).rejects.toBe(reason);
    expect(await model.respond(request(user("hi")), quiet)).toMatchObject({ content: [{ text: "Done" }] });
  });

  test("a scripted model streams at a pace on a virtual clock, and an abort ends its waits", async () => {
    const world = virtualClock();
    const at: number[] = [];
    const model = scriptedModel([say("One two three"), say("Four")], { pace: { world, firstMs: 500, chunkMs: 100 } });
    const start = world.clock.now();
    const asking = model.respond(request(user("hi")), {
      ...quiet,
      delta: () => void at.push(world.clock.now() - start),
    });
    await world.runAll();
    await asking;
    expect(at).toEqual([500, 600, 700]);
    const controller = new AbortController();
    const cut = model.respond(request(user("hi")), { signal: controller.signal });
    await world.waitUntilIdle();
    controller.abort(new Error("enough"));
    await expect(cut).rejects.toThrow("enough");
    expect(world.timers).toBe(0);
  });

  test("a scripted model with a pace and without a clock waits on the clock of the system", async () => {
    const model = scriptedModel([say("One two")], { pace: { chunkMs: 1 } });
    const texts: string[] = [];
    const delta = (part: ModelDelta) => void texts.push(part.type === "text" ? part.text : part.type);
    expect(await model.respond(request(user("hi")), { ...quiet, delta })).toMatchObject({
      content: [{ text: "One two" }],
    });
    expect(texts).toEqual(["One ", "two"]);
  });

  test("a scripted model gives the replies of its script in order, also to equal requests [FX42]", async () => {
    const model = scriptedModel([say("one"), say("two")]);
    for (const text of ["one", "two"])
      expect(await model.respond(request(user("hi")), quiet)).toMatchObject({ content: [{ text }] });
  });

  test.each(["transcript", ({ messages }: ModelRequest) => JSON.stringify(messages)] as const)(
    "a scripted model with the key %s gives a request with a known key the reply of the first one [FX42]",
    async (key) => {
      const model = scriptedModel([say("one"), say("two")], { key });
      const texts: string[] = [];
      for (const asked of ["hi", "hi", "other", "hi"])
        texts.push(
          getMessageText({ role: "assistant", id: "a", ...(await model.respond(request(user(asked)), quiet)) }),
        );
      expect(texts).toEqual(["one", "one", "two", "one"]);
    },
  );

  test.each<readonly [what: string, script: unknown, place: string]>([
    ["an object of another shape", [say("one"), { name: "look", args: {} }], "`script[1]`"],
    ["a text", ["one"], "`script[0]`"],
    ["a list with a text", [[say("one"), "two"]], "`script[0]`"],
    ["null", [null], "`script[0]`"],
    ["no list", "one", "`script`"],
  ])("a script with %s is refused when the model is created [FX34]", (_what, script, place) => {
    expect(() => scriptedModel(script as never)).toThrow(`invalid_option: scriptedModel: ${place} must be `);
  });

  test("a function that replies with a text is refused with what to write", async () => {
    const model = scriptedModel((() => "one") as never);
    await expect(model.respond(request(user("hi")), quiet)).rejects.toThrow(
      /scriptedModel: `the reply of a function` must be made with say.+Use say\(text\)/,
    );
  });

  test("a scripted call sets the usage of its reply [FX42]", async () => {
    const model = scriptedModel([call("look", {}, { usage: { inputTokens: 7, outputTokens: 2 } })]);
    expect(await model.respond(request(user("hi")), quiet)).toMatchObject({
      finish: "calls",
      usage: { inputTokens: 7, outputTokens: 2 },
    });
  });

  test("a recreated scripted model continues at the position of the transcript, also after its function entries", async () => {
    const script = [
      failWith(new Error("busy")),
      call("look", {}),
      (seen: ModelRequest) => say(`I saw ${seen.messages.length} messages`),
      say("last"),
    ] as const;
    const before: Message[] = [user("hi"), createCallMessage("call_1"), createToolAnswer("call_1")];
    expect(await scriptedModel(script).respond(request(...before), quiet)).toMatchObject({
      content: [{ text: "I saw 3 messages" }],
    });
    const said: Message = {
      role: "assistant",
      id: "a2",
      finish: "stop",
      content: [{ type: "text", text: "I saw 3 messages" }],
    };
    expect(await scriptedModel(script).respond(request(...before, said, user("and?")), quiet)).toMatchObject({
      content: [{ text: "last" }],
    });
  });

  test("a recreated scripted model finds its position among replies of other team members", async () => {
    const createToolCalls = (id: string, name: string): readonly Message[] => [
      { role: "assistant", id: `m${id}`, finish: "calls", content: [{ type: "call", id, name, args: {} }] },
      { role: "tool", id: `t${id}`, callId: id, name, content: [{ type: "text", text: "ok" }], isError: false },
    ];
    const team = [
      user("pay"),
      ...createToolCalls("1", "to_billing"),
      ...createToolCalls("2", "look"),
      ...createToolCalls("3", "to_triage"),
    ];
    const billing = [call("look", {}), call("to_triage", {}), say("paid")];
    const again = [...team, ...createToolCalls("4", "to_billing")];
    expect(await scriptedModel(billing).respond(request(...again), quiet)).toMatchObject({
      content: [{ text: "paid" }],
    });
    const triage = [call("to_billing", {}), say("back")];
    expect(await scriptedModel(triage).respond(request(...team), quiet)).toMatchObject({ content: [{ text: "back" }] });
    // An earlier message may have been answered by another script.
    expect(await scriptedModel(billing).respond(request(...again, user("and?")), quiet)).toMatchObject({
      content: [{ name: "look" }],
    });
  });

  test("a scripted model starts at its first entry in a conversation started by others", async () => {
    const old: Message = { role: "assistant", id: "a0", finish: "stop", content: [{ type: "text", text: "older" }] };
    expect(await scriptedModel([say("new")]).respond(request(user("hi"), old, user("more")), quiet)).toMatchObject({
      content: [{ text: "new" }],
    });
  });

  test("a scripted model function receives the actual tool results", async () => {
    const model = scriptedModel((seen) => {
      const last = seen.messages.at(-1);
      return last?.role === "tool" ? say(last.isError ? "It failed" : "It worked") : call("look", {});
    });
    expect((await model.respond(request(user("hi")), quiet)).finish).toBe("calls");
    expect(
      await model.respond(request(user("hi"), createCallMessage("c"), createToolAnswer("c")), quiet),
    ).toMatchObject({
      content: [{ text: "It worked" }],
    });
  });

  test("a scripted model streams text word by word and its calls, and counts tokens", async () => {
    const deltas: ModelDelta[] = [];
    const model = scriptedModel([[say("It  is raining.\n"), call("look", { at: 1 })]]);
    const reply = await model.respond(request(user("hi")), { ...quiet, delta: (delta) => deltas.push(delta) });
    expect(deltas.map((delta) => (delta.type === "call" ? delta.argsText : delta.text))).toEqual([
      "It  ",
      "is ",
      "raining.\n",
      '{"at":1}',
    ]);
    expect(reply.usage?.inputTokens).toBeGreaterThan(0);
    expect(reply.usage?.outputTokens).toBeGreaterThan(0);
  });

  test("a scripted model stops when its request is cancelled", async () => {
    const abort = new AbortController();
    const answer = scriptedModel([say("one two three")]).respond(request(user("hi")), {
      signal: abort.signal,
      delta: () => abort.abort(new Error("enough")),
    });
    await expect(answer).rejects.toThrow("enough");
  });

  test("a scripted model fails where its script says so and continues with the next request", async () => {
    const model = scriptedModel([failWith(new Error("busy")), say("here")]);
    await expect(model.respond(request(user("hi")), quiet)).rejects.toThrow("busy");
    expect(await model.respond(request(user("hi")), quiet)).toMatchObject({ content: [{ text: "here" }] });
  });

  test("a scripted model at the end of its script fails with that fact", async () => {
    await expect(scriptedModel([]).respond(request(user("hi")), quiet)).rejects.toMatchObject({ code: "model_failed" });
  });

  test("a scripted model keeps a copy of each request", async () => {
    const messages = [user("hi")];
    const model = scriptedModel([say("x")]);
    await model.respond({ messages, tools: [] }, quiet);
    messages.push(user("later"));
    expect(model.requests[0]?.messages).toHaveLength(1);
  });

  test("a scripted model carries its known calls in its type (types)", () => {
    const model = scriptedModel([
      call("refund", { orderId: "7", cents: 900 }),
      [say("x"), call("look", {})],
      () => call("decided", { why: "x" }),
    ]);
    type Calls = NonNullable<(typeof model)["script"]>;
    expectTypeOf<Calls["name"]>().toEqualTypeOf<"refund" | "look" | "decided">();
    expectTypeOf(model).toExtend<
      ScriptedModel<
        | { name: "refund"; args: { orderId: string; cents: number } }
        | { name: "look"; args: object }
        | { name: "decided"; args: { why: string } }
      >
    >();
    expectTypeOf(model).not.toExtend<ScriptedModel<{ name: "refund"; args: { orderId: number } }>>();
  });
});

describe("strict transcripts", () => {
  const cases: readonly [string, readonly Message[], boolean][] = [
    [
      "every call is answered in order",
      [user("hi"), createCallMessage("a", "b"), createToolAnswer("a"), createToolAnswer("b"), user("and?")],
      true,
    ],
    [
      "two calls with one id are answered twice",
      [createCallMessage("a", "a"), createToolAnswer("a"), createToolAnswer("a")],
      true,
    ],
    ["a call without an answer at the end", [user("hi"), createCallMessage("a")], false],
    [
      "a call without an answer before a user message",
      [createCallMessage("a", "b"), createToolAnswer("a"), user("hi"), createToolAnswer("b")],
      false,
    ],
    ["a call answered twice", [createCallMessage("a"), createToolAnswer("a"), createToolAnswer("a")], false],
    ["answers out of order", [createCallMessage("a", "b"), createToolAnswer("b"), createToolAnswer("a")], false],
    ["an answer without a call", [user("hi"), createToolAnswer("a")], false],
    ["an answer before its call", [createToolAnswer("a"), createCallMessage("a")], false],
  ];
  test("a transcript is refused unless each call is answered once, in order and at once [T56]", async () => {
    for (const [name, messages, sound] of cases)
      for (const model of [scriptedModel([say("ok")]), rejectInvalidTranscripts(permissive())]) {
        const reply = model.respond(request(...messages), quiet);
        if (sound) expect((await reply).content, name).toHaveLength(1);
        else await expect(reply, name).rejects.toMatchObject({ code: "invalid_transcript" });
      }
  });
});

function permissive() {
  return {
    id: "permissive",
    respond: async () => ({ content: [{ type: "text" as const, text: "ok" }], finish: "stop" as const }),
  };
}
