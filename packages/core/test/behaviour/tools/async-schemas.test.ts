/** Async schemas are refused at definition, or fail the run that first uses them. */
import { expect, test } from "vitest";
import * as z from "zod";
import { z as z3 } from "zod/v3";
import { jsonSchemaInput } from "../../../src/adapter.ts";
import { parseWith } from "../../../src/base/schema.ts";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  inputNode,
  memoryStore,
  outputSchema,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { call, createToolLoop, getAnswerText, listToolAnswers } from "../../support/tool-loop.ts";
import { expectNothingUnhandled } from "../../support/unhandled-errors.ts";

expectNothingUnhandled();

const isFree = async (name: string): Promise<boolean> => name !== "taken";
/** Detected at definition: the refinement is an async function. */
const seen = z.string().refine(isFree);
/** Detected at use: the refinement returns a promise. */
const unseen = z.string().refine((name) => isFree(name));

test("an async refinement or transform is refused at definition with its path", async () => {
  const createNestedSchema = (schema: z.ZodType) => z.object({ user: z.object({ names: z.array(schema).optional() }) });
  const State = defineState({ name: z.string() });
  const tool = { name: "add", description: "Adds.", run: () => "added" };
  const graph = { name: "people", state: State };
  const places: Readonly<Record<string, () => unknown>> = {
    'the input of the tool "add" has an async refinement or transform at "user.names"': () =>
      defineTool({ ...tool, input: createNestedSchema(seen) }),
    'the output of the tool "add"': () =>
      defineTool({ ...tool, input: z.object({}), output: z.string().transform(isFree) }),
    "the output schema": () => outputSchema(z.object({ name: z.union([z.number(), seen]) })),
    'the channel "name"': () => defineState({ name: seen.default("x") }),
    'the channel "names"': () => defineState({ names: channel.list(z.string().check(async () => {})) }),
    'the context value "who"': () => defineContext({ who: z.tuple([z.preprocess(isFree, z.boolean())]) }),
    'the interrupt "pick"': () => defineGraph({ ...graph, interrupts: { pick: seen } }),
    'the payload of the interrupt "pick"': () =>
      defineGraph({ ...graph, interrupts: { pick: { answer: z.string(), payload: createNestedSchema(seen) } } }),
    "the input of the graph": () => defineGraph({ ...graph, input: createNestedSchema(seen) as never }),
    'the input of the input node "one"': () =>
      defineGraph(graph)
        .nodes({ one: inputNode(seen, () => ({})) })
        .edges({ [START]: END, one: END }),
  };
  for (const [place, define] of Object.entries(places))
    expect((await getFailure(define, "async_schema")).message).toContain(`async_schema: ${place}`);
});

test("a lazy or recursive schema is accepted", () => {
  const tree = z.object({
    name: z.string(),
    get parts() {
      return z.array(tree);
    },
  });
  expect(() => defineState({ tree: tree.optional(), lazy: z.lazy(() => unseen).optional() })).not.toThrow();
});

test("the check of a schema that creates its parts anew on each access is bounded", () => {
  let made = 0;
  const branch = (): z.ZodType => {
    made += 1;
    return z.object({
      get left() {
        return branch().optional();
      },
      get right() {
        return branch().optional();
      },
    });
  };
  expect(() => defineState({ tree: branch().optional() })).not.toThrow();
  expect(made).toBeLessThan(10_000);
});

test("an async schema of zod 3 is reported as a definition error, and a schema that throws is not", () => {
  expect(parseWith(z3.string().refine(isFree), "Ada")).toMatchObject({ isAsync: true });
  expect(parseWith(z3.object({ name: z3.string().transform(isFree) }), { name: "Ada" })).toMatchObject({
    isAsync: true,
  });
  const thrown = parseWith(
    z3.string().refine(() => {
      throw new Error("mine");
    }),
    "Ada",
  );
  expect(thrown).toMatchObject({ ok: false, issues: [{ message: "the value cannot be read: mine" }] });
  expect(thrown).not.toHaveProperty("isAsync");
});

test("an async schema of tool arguments fails the run and is not reported to the model; a resume with a fixed schema reads the arguments", async () => {
  const createTool = (name: z.ZodType<string>) =>
    defineTool({
      name: "add",
      description: "Adds a name.",
      input: z.object({ name }),
      effect: "pure",
      run: (args) => `added ${args.name}`,
    });
  const broken = createToolLoop({ tools: [createTool(unseen)], turns: [[call("add", { name: "Ada" })], ["done"]] });
  const error = await getFailure(broken.start().result, "async_schema");
  expect(error.message).toContain(
    'the input of the tool "add" has an asynchronous schema: its validation returned a promise',
  );
  expect(error.kind).toBe("definition");
  expect(broken.requests).toHaveLength(1);
  const store = broken.store ?? memoryStore();
  const fixedLoop = createToolLoop({ tools: [createTool(z.string())], turns: [[], ["done"]], store });
  const end = await fixedLoop.again().result;
  expect(listToolAnswers(end).map(getAnswerText)).toEqual(["added Ada"]);
});

test("an async validator of a JSON Schema accepts nothing and fails the run", async () => {
  // @ts-expect-error a validator gives issues
  const input = jsonSchemaInput({ type: "object" }, { validator: () => async () => Promise.reject(new Error("no")) });
  let called = 0;
  const add = defineTool({ name: "add", description: "Adds.", input, run: () => void called++ });
  const loop = createToolLoop({ tools: [add], turns: [[call("add")], ["done"]] });
  expect((await getFailure(loop.start().result, "async_schema")).message).toContain('the input of the tool "add"');
  expect(called).toBe(0);
  expect(() => outputSchema(input).read({})).toThrow("async_schema: the output schema");
});

test("a JSON Schema validator that returns no list of issues accepts nothing, and its run continues", async () => {
  for (const given of [undefined, true, false]) {
    // @ts-expect-error a validator gives issues
    const input = jsonSchemaInput({ type: "object" }, { validator: () => () => given });
    let called = 0;
    const add = defineTool({ name: "add", description: "Adds.", input, run: () => void called++ });
    const loop = createToolLoop({ tools: [add], turns: [[call("add")], ["done"]] });
    expect(listToolAnswers(await loop.start().result).map(getAnswerText)[0]).toContain(
      `the validator returned ${given}`,
    );
    expect(called).toBe(0);
    expect(outputSchema(input).read({})).toMatchObject({ ok: false });
  }
});

test("a tool result with an async output schema is recorded as an answer and fails the run, and the tool is not called again", async () => {
  let called = 0;
  const add = defineTool({
    name: "add",
    description: "Adds a name.",
    input: z.object({}),
    output: z.object({ name: z.string().transform((name): unknown => isFree(name)) }),
    run: () => {
      called += 1;
      return { content: "added", value: { name: "Ada" } };
    },
  });
  const loop = createToolLoop({ tools: [add], turns: [[call("add")], ["done"]] });
  const error = await getFailure(loop.start().result, "tool_failed");
  expect(error.message).toContain("the validation of its output schema is asynchronous");
  await loop.again().result;
  expect(called).toBe(1);
});

test("node writes, interrupt payloads, answers and inputs with an async schema fail with an error of the schema", async () => {
  const State = defineState({
    names: channel.list(unseen),
    byName: channel.record(z.object({ name: unseen })),
    wanted: z.string().default("names"),
  });
  const graph = defineGraph({
    name: "people",
    state: State,
    interrupts: { pick: unseen, show: { answer: z.string(), payload: z.object({ name: unseen }) } },
  })
    .nodes({
      act: async ({ wanted }, { interrupt }) => {
        if (wanted === "names") return { names: ["Ada"] };
        if (wanted === "byName") return { byName: { a: { name: "Ada" } } };
        if (wanted === "pick") await interrupt("pick");
        else await interrupt("show", { payload: { name: "Ada" } });
        return {};
      },
    })
    .edges({ [START]: "act", act: END });
  const store = memoryStore();
  const getRefusal = async (wanted: string): Promise<string> => {
    const error = await getFailure(run(graph, { store, thread: wanted, input: { wanted } }).result, "async_schema");
    return error.message;
  };
  expect(await getRefusal("names")).toContain('the channel "names"');
  expect(await getRefusal("byName")).toContain('the channel "byName"');
  expect(await getRefusal("show")).toContain('the payload of the interrupt "show"');
  expect((await run(graph, { store, thread: "t", input: { wanted: "pick" } }).result).status).toBe("waiting");
  const answered = resume(graph, { store, thread: "t", answers: { pick: "Ada" } }).result;
  expect((await getFailure(answered, "async_schema")).message).toContain('interrupt "pick"');
  const given = run(graph, { store, thread: "u", input: { names: ["Ada"] } }).result;
  expect((await getFailure(given, "async_schema")).message).toContain('the channel "names"');
});
