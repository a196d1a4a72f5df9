/** Edges whose target a model chooses. */
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  checkGraph,
  defineContext,
  defineGraph,
  defineState,
  END,
  type Model,
  memoryStore,
  modelRoute,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { describeGraph } from "../../../src/inspect.ts";
import { answerWith, createActingModel, createModelFailure } from "../../support/acting-model.ts";
import { collectEvents, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const choose = (...names: readonly string[]) =>
  createActingModel("router", ...names.map((name) => answerWith(JSON.stringify({ value: name }))));
const Desk = defineContext({ language: z.string().default("English") });

function createDesk(model: Model, otherwise?: "support") {
  return defineGraph({
    name: "desk",
    state: defineState({ question: z.string(), log: channel.list(z.string()) }),
    context: Desk,
  })
    .nodes({
      read: () => ({ log: ["read"] }),
      billing: () => ({ log: ["billing"] }),
      support: () => ({ log: ["support"] }),
    })
    .edges({
      [START]: "read",
      read: modelRoute(["billing", "support", END], {
        model,
        system: "You sort letters.",
        prompt: ({ question }, { language }) => {
          expectTypeOf(question).toEqualTypeOf<string>();
          return `${language}: ${question}`;
        },
        describe: { billing: "invoices and refunds" },
        ...(otherwise === undefined ? {} : { otherwise }),
      }),
      billing: END,
      support: END,
    });
}

describe("model routes", () => {
  test("a model chooses the next node among the declared targets, by the state and the context [Y2]", async () => {
    const model = choose("billing", "end");
    const graph = createDesk(model);
    const input = { question: "Where is my refund?" };
    const { state } = await run(graph, { input, context: { language: "Norwegian" } }).result;
    expect(state.log).toEqual(["read", "billing"]);
    expect((await run(graph, { input, context: {} }).result).state.log).toEqual(["read"]);
    expect(model.requests[0]).toMatchObject({
      instructions:
        "You sort letters.\n\nChoose what happens next. Answer with one of these names:\n- billing: invoices and refunds\n- support\n- end: nothing is left to do",
      messages: [{ role: "user", content: [{ text: "Norwegian: Where is my refund?" }] }],
    });
  });

  test("a choice is recorded: a run that stops after it routes the same way without a second request [Y2]", async () => {
    const model = choose("support", "billing");
    const graph = createDesk(model);
    const store = memoryStore();
    const options = { store, thread: "t", context: {} };
    const handle = run(graph, { ...options, input: { question: "Help" }, breakpoints: { before: ["support"] } });
    const events = collectEvents(handle);
    expect((await handle.result).status).toBe("paused");
    expect(getOnlyEvent(events, "model.started")).toMatchObject([{ node: "read_route", model: "router" }]);
    expect((await resume(graph, options).result).state.log).toEqual(["read", "support"]);
    expect(model.requests).toHaveLength(1);
  });

  test("a choice outside of the targets is repaired, and then fails the run or takes otherwise [Y2]", async () => {
    const repaired = createDesk(choose("sales", "support"));
    const options = { input: { question: "Help" }, context: {} };
    expect((await run(repaired, options).result).state.log).toEqual(["read", "support"]);
    const error = await getFailure(run(createDesk(choose("sales")), options).result, "invalid_output");
    expect(error.message).toContain('expected one of "billing", "support", "end"');
    const { state } = await run(createDesk(choose("sales"), "support"), options).result;
    expect(state.log).toEqual(["read", "support"]);
    const broken = createActingModel("broken", () => {
      throw createModelFailure({ retryable: false });
    });
    expect((await run(createDesk(broken, "support"), options).result).state.log).toEqual(["read", "support"]);
    await getFailure(run(createDesk(broken), options).result, "model_failed");
  });

  test("a model route from START and a cancelled run end as every node does [Y2]", async () => {
    const waiting = createActingModel("waiting", () => new Promise(() => undefined));
    const createGraph = (model: Model) =>
      defineGraph({ name: "start", state: defineState({ log: channel.list(z.string()) }) })
        .nodes({ one: () => ({ log: ["one"] }), end: () => ({ log: ["end"] }) })
        .edges({
          [START]: modelRoute(["one", "end", END], { model, prompt: () => "Where to?", otherwise: "one" }),
          one: END,
          end: END,
        });
    expect((await run(createGraph(choose("END")), { input: {} }).result).state.log).toEqual([]);
    expect((await run(createGraph(choose("end")), { input: {} }).result).state.log).toEqual(["end"]);
    const world = createVirtualWorld();
    const handle = run(createGraph(waiting), { input: {}, world });
    handle.on((event) => {
      if (event.type === "model.started") handle.cancel("enough");
    });
    expect((await handle.result).status).toBe("cancelled");
  });

  test("outlines show the question as a node with its targets, and checkGraph explores every choice [Y2]", () => {
    const graph = createDesk(choose("end"));
    expect(checkGraph(graph).violations).toEqual([]);
    const { nodes, edges } = describeGraph(graph);
    expect(nodes.map(({ name }) => name)).toContain("read_route");
    expect(edges.filter(({ from }) => from === "read_route").map(({ kind }) => kind)).toEqual(["goto", "goto", "goto"]);
    expect(edges.filter(({ from }) => from === "read")).toMatchObject([{ to: "read_route", kind: "to" }]);
  });
});

describe("invalid model routes", () => {
  const model = choose("a");
  test.each<[string, readonly unknown[], object, string]>([
    ["one target", ["a"], { model, prompt: () => "?" }, "expected a list of at least two targets"],
    ["no model", ["a", "b"], { prompt: () => "?" }, "`model` must be a model"],
    ["no question", ["a", "b"], { model }, "expected a prompt or messages, got neither"],
    ["a text as prompt", ["a", "b"], { model, prompt: "?" }, "prompt"],
    ["a description of another node", ["a", "b"], { model, prompt: () => "?", describe: { c: "x" } }, '"c"'],
    ["another node as otherwise", ["a", "b"], { model, prompt: () => "?", otherwise: "c" }, "one of the targets"],
    ["an unknown option", ["a", "b"], { model, prompt: () => "?", instructions: "x" }, "system instead of"],
  ])("modelRoute refuses %s [Y2]", async (_what, targets, options, says) => {
    const error = await getFailure(() => modelRoute(targets as never, options as never), "invalid_option");
    expect(error.message).toContain(says);
  });

  test("a node with the name of a model route is refused when the graph is defined [Y2]", async () => {
    const define = () =>
      defineGraph({ name: "g", state: defineState({}) })
        .nodes({ a: () => undefined, a_route: () => undefined })
        .edges({ [START]: "a", a: modelRoute(["a_route", END], { model, prompt: () => "?" }), a_route: END });
    expect((await getFailure(define, "invalid_graph")).message).toContain(
      'the model route from "a" is the node "a_route", and another node has that name',
    );
  });
});
