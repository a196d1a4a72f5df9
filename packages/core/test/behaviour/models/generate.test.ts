/** `generate`: asks a model in the body of a node, with typed output. */
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  type AssistantMessage,
  assistantMessage,
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  type Generate,
  type Middleware,
  type Model,
  type ModelReply,
  memoryStore,
  resume,
  run,
  START,
  userMessage,
} from "../../../src/index.ts";
import { answerWith, createActingModel, createReply, failWith } from "../../support/acting-model.ts";
import { collectEvents, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Review = z.object({ stars: z.number().int(), words: z.array(z.string()) });
const good = { stars: 4, words: ["warm"] };

/** Runs one node that asks models, and returns its result. */
function createGraph(ask: (generate: Generate) => Promise<unknown>, middleware: readonly Middleware[] = []) {
  return defineGraph({
    name: "asking",
    state: defineState({ answer: z.unknown(), messages: channel.messages() }),
    middleware,
  })
    .nodes({ ask: async (_state, { generate }) => ({ answer: await ask(generate) }) })
    .edges({ [START]: "ask", ask: END });
}

const runOnce = async (ask: (generate: Generate) => Promise<unknown>): Promise<unknown> =>
  (await run(createGraph(ask), { world: createVirtualWorld(), input: { answer: null } }).result).state.answer;

const answerByCall = (args: object): ModelReply => ({
  content: [
    { type: "reasoning", text: "Hm" },
    { type: "call", id: "c1", name: "final_answer", args: args as never },
  ],
  finish: "calls",
  usage: { inputTokens: 3, outputTokens: 2 },
});

describe("answers", () => {
  test("generate returns the text of the answer, its message and its usage [Y2]", async () => {
    const model = createActingModel("m", answerWith("Rain ", "in Oslo."));
    const answer = await runOnce(async (generate) => {
      const { text, object, message, usage } = await generate({ model, prompt: "Weather?", system: "Be brief." });
      expectTypeOf(text).toEqualTypeOf<string>();
      expectTypeOf(object).toEqualTypeOf<undefined>();
      expectTypeOf(message).toEqualTypeOf<AssistantMessage>();
      return { text, object: object ?? null, role: message.role, usage };
    });
    expect(answer).toEqual({
      text: "Rain in Oslo.",
      object: null,
      role: "assistant",
      usage: { inputTokens: 3, outputTokens: 2 },
    });
    expect(model.requests).toEqual([
      {
        instructions: "Be brief.",
        messages: [{ role: "user", id: "message:1", content: [{ type: "text", text: "Weather?" }] }],
        tools: [],
      },
    ]);
  });

  test("messages, images and settings are part of the request, and the prompt follows the messages [Y2]", async () => {
    const model = createActingModel("m", answerWith("A cat."));
    await runOnce(async (generate) => {
      const url = new URL("https://pictures.example/cat.png");
      const messages = [userMessage("Hi", { id: "u1" }), assistantMessage("Hello")];
      const prompt = { text: "What is this?", files: [url] };
      return (await generate({ model, messages, prompt, settings: { temperature: 0 } })).text;
    });
    expect(model.requests).toMatchObject([
      {
        temperature: 0,
        messages: [
          { role: "user", id: "u1" },
          { role: "assistant", id: "message:2" },
          {
            role: "user",
            content: [
              { type: "image", mimeType: "image/png" },
              { type: "text", text: "What is this?" },
            ],
          },
        ],
      },
    ]);
  });

  test("the object has the type of the output schema, by a call or enforced by the provider [Y2, FX40]", async () => {
    const calling = createActingModel("calling", () => answerByCall(good));
    const native: Model & { readonly requests: readonly object[] } = Object.assign(
      createActingModel("native", answerWith(JSON.stringify(good))),
      { structuredOutput: true },
    );
    const answer = await runOnce(async (generate) => {
      const { object, message } = await generate({ model: calling, prompt: "Review", output: Review });
      expectTypeOf(object).toEqualTypeOf<{ stars: number; words: string[] }>();
      const { object: list } = await generate({
        model: native,
        prompt: "Review",
        output: { schema: Review, name: "review", repairs: 0 },
      });
      expectTypeOf(list).toEqualTypeOf<{ stars: number; words: string[] }>();
      expect(message.content).toEqual([
        { type: "reasoning", text: "Hm" },
        { type: "text", text: JSON.stringify(good) },
      ]);
      expect(message.finish).toBe("stop");
      return [object, list];
    });
    expect(answer).toEqual([good, good]);
    expect(calling.requests).toMatchObject([
      { tools: [{ name: "final_answer" }], toolChoice: { tool: "final_answer" } },
    ]);
    expect(calling.requests[0]).not.toHaveProperty("output");
    expect(native.requests).toMatchObject([{ tools: [], output: { name: "review", schema: { type: "object" } } }]);
  });

  test("an output that is no object is wrapped for the model and unwrapped for the caller [Y2]", async () => {
    const model = createActingModel("m", () => answerByCall({ value: "billing" }));
    const answer = await runOnce(async (generate) => {
      const { object } = await generate({ model, prompt: "Which team?", output: z.enum(["billing", "support"]) });
      expectTypeOf(object).toEqualTypeOf<"billing" | "support">();
      return object;
    });
    expect(answer).toBe("billing");
  });
});

describe("repairs, retries and fallbacks", () => {
  test("an invalid output is repaired by the model within one recorded effect, and its cost is kept [Y2]", async () => {
    const model = createActingModel(
      "m",
      () => answerByCall({ stars: "many" }),
      answerWith("I do not know."),
      () => answerByCall(good),
    );
    const store = memoryStore();
    const graph = createGraph(async (generate) => {
      const { object, message } = await generate({ model, prompt: "Review", output: Review, key: "review" });
      return { object, failed: message.failedAttempts };
    });
    const handle = run(graph, { store, thread: "t", input: { answer: null } });
    const events = collectEvents(handle);
    const { state } = await handle.result;
    expect(state.answer).toMatchObject({
      object: good,
      failed: [
        { kind: "replaced", usage: { inputTokens: 3 } },
        { kind: "replaced", usage: { inputTokens: 3 } },
      ],
    });
    const last = model.requests.at(-1)?.messages ?? [];
    expect(last.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant", "user"]);
    expect(JSON.stringify(last)).toContain("Your answer does not fit its schema: stars");
    expect(getOnlyEvent(events, "model.started")).toHaveLength(1);
    expect(getOnlyEvent(events, "message.completed").map(({ message }) => message.id)).toEqual(["0:0:review"]);
  });

  test("an output that stays invalid fails with invalid_output, and a resume asks again [Y2]", async () => {
    const model = createActingModel("m", ...Array.from({ length: 2 }, () => answerWith("No JSON")), () =>
      answerByCall(good),
    );
    const store = memoryStore();
    const graph = createGraph(
      async (generate) => (await generate({ model, prompt: "Review", output: { schema: Review, repairs: 1 } })).object,
    );
    const error = await getFailure(
      run(graph, { store, thread: "t", input: { answer: null } }).result,
      "invalid_output",
    );
    expect(error.message).toContain(
      'generate in the node "ask": expected output that matches the schema, got an invalid output: it is not valid JSON',
    );
    expect(error.details).toMatchObject({ text: "No JSON" });
    expect(model.requests).toHaveLength(2);
    expect((await resume(graph, { store, thread: "t" }).result).state.answer).toEqual(good);
  });

  test("retryable failures are retried up to 3 attempts, and a list of models is a model with its fallbacks [Y2]", async () => {
    const broken = createActingModel("broken", failWith({ kind: "overloaded" }));
    const whole = createActingModel("whole", answerWith("Hi"));
    const world = createVirtualWorld();
    const graph = createGraph(async (generate) => (await generate({ model: [broken, whole], prompt: "Hi" })).message);
    const { result } = run(graph, { world, input: { answer: null } });
    await world.advance(1_000_000);
    expect((await result).state.answer).toMatchObject({ answeredBy: "whole" });
    expect([broken, whole].map(({ requests }) => requests.length)).toEqual([3, 1]);
  });
});

describe("durability", () => {
  test("finished answers are not requested again by a node that runs again, and equal questions are two answers [Y2]", async () => {
    let nth = 0;
    const model = createActingModel("m", () => createReply(`Answer ${++nth}`));
    let fails = true;
    const store = memoryStore();
    const graph = createGraph(async (generate) => {
      const answers = [
        (await generate({ model, prompt: "Same" })).text,
        (await generate({ model, prompt: "Same" })).text,
        (await generate({ model, prompt: "Other" })).text,
      ];
      if (fails) throw new Error("crash");
      return [...answers, (await generate({ model, prompt: "Last" })).text];
    });
    await expect(run(graph, { store, thread: "t", input: { answer: null } }).result).rejects.toThrow("crash");
    fails = false;
    const { state } = await resume(graph, { store, thread: "t" }).result;
    expect(state.answer).toEqual(["Answer 1", "Answer 2", "Answer 3", "Answer 4"]);
  });

  test("a changed question is asked again, and an own key keeps its recorded answer [Y2]", async () => {
    let nth = 0;
    const model = createActingModel("m", () => createReply(`Answer ${++nth}`));
    let attempt = 1;
    const store = memoryStore();
    const graph = createGraph(async (generate) => {
      const answers = [
        (await generate({ model, prompt: `Question ${attempt}` })).text,
        (await generate({ model, prompt: `Question ${attempt}`, key: "own" })).text,
      ];
      if (attempt === 1) throw new Error("crash");
      return answers;
    });
    await expect(run(graph, { store, thread: "t", input: { answer: null } }).result).rejects.toThrow("crash");
    attempt = 2;
    const { state } = await resume(graph, { store, thread: "t" }).result;
    expect(state.answer).toEqual(["Answer 3", "Answer 2"]);
  });

  test("the text of generate streams in text() of the run [Y2]", async () => {
    const model = createActingModel("m", answerWith("Rain ", "in ", "Oslo."));
    const handle = run(
      createGraph(async (generate) => (await generate({ model, prompt: "Weather?" })).text),
      {
        input: { answer: null },
      },
    );
    const pieces: string[] = [];
    for await (const piece of handle.text()) pieces.push(piece);
    expect(pieces).toEqual(["Rain ", "in ", "Oslo."]);
  });

  test("middleware of the graph wraps generate, and sees the final answer as text [Y2]", async () => {
    const replies: string[] = [];
    const watching = defineMiddleware({
      name: "watching",
      beforeModel: (request) => ({ ...request, instructions: `${request.instructions} Be kind.` }),
      afterModel: (reply) => {
        replies.push(JSON.stringify(reply.content));
        return undefined;
      },
    });
    const model = createActingModel(
      "m",
      () => answerByCall({}),
      () => answerByCall(good),
    );
    const graph = createGraph(
      async (generate) => (await generate({ model, prompt: "Review", system: "Judge.", output: Review })).object,
      [watching],
    );
    expect((await run(graph, { input: { answer: null } }).result).state.answer).toEqual(good);
    expect(model.requests.map(({ instructions }) => instructions)).toEqual(["Judge. Be kind.", "Judge. Be kind."]);
    expect(replies).toHaveLength(1);
    expect(replies[0]).toContain("stars");
  });
});

describe("invalid questions", () => {
  const model = createActingModel("m", answerWith("Hi"));
  test.each<[string, object, string]>([
    ["no model", { prompt: "Hi" }, "`model` must be a model, or a list of models, got undefined"],
    ["an empty list of models", { model: [], prompt: "Hi" }, "got an empty list"],
    ["a list of models with a fallback", { model: [model], fallback: [model], prompt: "Hi" }, "got both"],
    ["no question", { model }, "expected a prompt or messages, got neither"],
    ["an empty prompt", { model, prompt: " " }, "expected a prompt or messages, got an empty prompt"],
    ["messages that are none", { model, messages: [{ role: "user" }] }, "`messages[0]` must be a message"],
    ["an option of another framework", { model, prompt: "Hi", temperature: 1 }, "settings: { temperature } instead of"],
    ["an unknown setting", { model, prompt: "Hi", settings: { temprature: 1 } }, '"temprature"'],
    ["an output that is no schema", { model, prompt: "Hi", output: 7 }, "outputSchema: expected a schema"],
    ["an empty key", { model, prompt: "Hi", key: "" }, "`key` must be a non-empty text"],
  ])("generate refuses %s before any request [Y2]", async (_what, question, says) => {
    const error = await getFailure(
      runOnce((generate) => generate(question as never)),
      "invalid_option",
    );
    expect(error.message).toContain(says);
    expect(model.requests).toEqual([]);
  });

  test("an own key that a task uses twice is refused [Y2]", async () => {
    const asking = runOnce(async (generate) => {
      await generate({ model: createActingModel("m", answerWith("Hi")), prompt: "One", key: "same" });
      await generate({ model, prompt: "Two", key: "same" });
    });
    await getFailure(asking, "repeated_step");
  });

  test("a wrong question does not compile [Y2]", () => {
    const define = (generate: Generate) => [
      // @ts-expect-error a question needs a model
      () => generate({ prompt: "Hi" }),
      // @ts-expect-error temperature is a setting
      () => generate({ model, prompt: "Hi", temperature: 1 }),
      async () => {
        const { object } = await generate({ model, prompt: "Hi", output: Review });
        // @ts-expect-error the schema has no such field
        return object.star;
      },
    ];
    expect(define).toBeTypeOf("function");
  });
});
