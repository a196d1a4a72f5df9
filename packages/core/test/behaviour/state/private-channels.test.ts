/** Input, output and private channels of a graph. */
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { channel, defineGraph, defineState, END, memoryStore, resume, run, START } from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";

const State = defineState({
  question: z.string(),
  limit: z.number().default(3),
  scratch: channel.list(z.string()),
  answer: z.string().default(""),
});

function graph(answer = "42") {
  return defineGraph({
    name: "answers",
    state: State,
    private: ["scratch"],
    input: z.object({ question: z.string().trim().min(1) }),
    output: z.object({ answer: z.string().min(1) }),
  })
    .nodes({
      think: () => ({ scratch: ["a thought"] }),
      say: (state) => ({ answer: state.scratch.length > 0 ? answer : "nothing was thought" }),
    })
    .edges({ [START]: "think", think: "say", say: END });
}

test("a private channel passes between nodes and is absent from the result of a graph with input and output schemas [E9]", async () => {
  const store = memoryStore();
  const { result } = run(graph(), { store, thread: "t", input: { question: "  why?  " } });
  const ended = await result;
  expectTypeOf<keyof typeof ended.state>().toEqualTypeOf<"question" | "limit" | "answer">();
  expect(ended.state).toEqual({ question: "why?", limit: 3, answer: "42" });
  if (ended.status !== "done") throw new Error("it is done");
  expectTypeOf(ended.output).toEqualTypeOf<{ answer: string }>();
  expect(ended.output).toEqual({ answer: "42" });
  // A private channel is saved: the next input reads it.
  expect(
    (await store.state("t", (await store.head("t"))?.id ?? 0)).map(({ channel: oneChannel }) => oneChannel),
  ).toContain("scratch");
});

test("the output of a graph without an output schema is the state without private channels [E9]", async () => {
  const plain = defineGraph({ name: "plain", state: State, private: ["scratch", "limit"] })
    .nodes({ think: () => ({ scratch: ["x"], answer: "yes" }) })
    .edges({ [START]: "think", think: END });
  const ended = await run(plain, { input: { question: "q" } }).result;
  expect(ended).toMatchObject({ status: "done", output: { question: "q", answer: "yes" } });
  expect(ended.state).toEqual({ question: "q", answer: "yes" });
});

test("an input with a private channel, or refused by the input schema, is refused before a write to the store [E9]", async () => {
  const store = memoryStore();
  const start = (input: { question: string }) => run(graph(), { store, thread: "t", input }).result;
  const blank = await getFailure(start({ question: " " }), "invalid_input");
  expect(blank.message).toContain("question");
  const forged = { question: "q", scratch: ["x"] };
  const refused = await getFailure(start(forged), "invalid_input");
  expect(refused.place).toMatchObject({ graph: "answers", channel: "scratch" });
  expect(await store.thread("t")).toBeUndefined();
  const types = (): void => {
    // @ts-expect-error the input has a question only
    run(graph(), { input: { question: "q", limit: 4 } });
    // @ts-expect-error no channel of this name
    defineGraph({ name: "x", state: State, private: ["scrtch"] });
    // @ts-expect-error the input schema gives what no channel takes
    defineGraph({ name: "x", state: State, input: z.object({ question: z.number() }) });
  };
  expect(types).toBeTypeOf("function");
});

test("a private channel that the input requires, or that does not exist, is a definition error [E9]", async () => {
  const failure = await getFailure(
    () =>
      defineGraph({ name: "x", state: State, private: ["question"] })
        .nodes({ think: () => undefined })
        .edges({ [START]: "think", think: END }),
    "invalid_graph",
  );
  expect(failure.details).toMatchObject([{ code: "private_input" }]);
});

test("a final state that the output schema refuses fails the step, applies nothing of it, and a resume continues [E8]", async () => {
  const store = memoryStore();
  const failure = await getFailure(
    run(graph(""), { store, thread: "t", input: { question: "q" } }).result,
    "invalid_output",
  );
  expect(failure.place).toMatchObject({ graph: "answers", thread: "t" });
  expect(failure.message).toContain("answer");
  expect((await store.thread("t"))?.status).toBe("failed");
  const resumed = await resume(graph("better"), { store, thread: "t" }).result;
  expect(resumed).toMatchObject({ status: "done", output: { answer: "better" } });
});

test("restored state is parsed by the schemas of a changed graph: the error names channel and path, and nothing changes [E8]", async () => {
  const version = (items: z.ZodType<string | number>) =>
    defineGraph({
      name: "v",
      state: defineState({ items: channel.list(items), mode: z.string().default("a") }),
      interrupts: { ok: z.boolean() },
    })
      .nodes({
        add: () => ({ items: ["one"] }),
        wait: async (_state, { interrupt }) => void (await interrupt("ok")),
      })
      .edges({ [START]: "add", add: "wait", wait: END });
  const store = memoryStore();
  await run(version(z.string()), { store, thread: "t" }).result;
  const before = await store.head("t");
  const strict = resume(version(z.string().max(2)), { store, thread: "t", answers: { ok: true } });
  const failure = await getFailure(strict.result, "needs_migration");
  expect(failure.place).toMatchObject({ graph: "v", thread: "t", channel: "items", path: "0" });
  expect(await store.head("t")).toEqual(before);
  const wider = resume(version(z.union([z.string(), z.number()])), { store, thread: "t", answers: { ok: true } });
  expect((await wider.result).status).toBe("done");
});
