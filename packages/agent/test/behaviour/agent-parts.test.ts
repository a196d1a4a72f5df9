/** An agent is an ordinary graph: outlined, explored, and assembled by hand from the same parts. */
import {
  approval,
  channel,
  checkGraph,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  type Graph,
  type GraphTypes,
  getMessageText,
  type Message,
  memoryStore,
  outputSchema,
  resume,
  route,
  run,
  START,
  type Store,
  subgraph,
  toolNode,
  toolRegistry,
} from "@statewright/core";
import { finalCall } from "@statewright/core/adapter";
import { toMermaid } from "@statewright/core/inspect";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { agentRoutes, createAgent, modelNode, turnCountIs } from "../../src/index.ts";

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  input: z.object({ cents: z.int() }),
  effect: "idempotent",
  run: ({ cents }) => `paid ${cents}`,
});
const askFirst = defineMiddleware({
  name: "ask first",
  beforeTool: ({ call: made }) => decide.interrupt(made, "it pays"),
});
const middleware = [askFirst];
const script = () => scriptedModel([call("pay", { cents: 7 }), say("It is paid.")]);
const Basket = { paid: z.boolean().default(false) };

/** Agent created by `createAgent`. */
function createPlainAgent() {
  return createAgent({
    name: "clerk",
    model: script(),
    instructions: "Pay.",
    tools: [pay],
    middleware,
    state: defineState(Basket),
  });
}

const whole = createPlainAgent();

/** The same agent, assembled by hand. */
function buildByHand() {
  const tools = toolRegistry([pay]);
  return defineGraph({
    name: "clerk",
    state: defineState({ ...Basket, messages: channel.messages() }),
    interrupts: { approve: approval },
  })
    .nodes({
      model: modelNode({ model: script(), instructions: "Pay.", tools, middleware }),
      tools: toolNode({ tools, middleware }),
    })
    .edges({
      [START]: "model",
      model: route(["tools", "model", END], agentRoutes.afterModel),
      tools: route(["model", END], agentRoutes.afterTools()),
    });
}

async function runConversation(
  graph: Graph<GraphTypes & { readonly state: { readonly messages: readonly Message[] } }>,
  store: Store,
) {
  const input = { messages: whole.toInput("Pay 7 cents.").messages };
  const first = await run(graph as Graph, { store, thread: "t", input }).result;
  const { status, state } = await resume(graph as Graph, { store, thread: "t", answers: { approve: true } }).result;
  const said = (state as { readonly messages: readonly Message[] }).messages;
  return [first.status, status, said.map((message) => `${message.role}: ${getMessageText(message)}`)];
}

describe("the graph of an agent", () => {
  test("a graph assembled from agent parts equals createAgent in its diagram, its states and its runs", async () => {
    const own = buildByHand();
    expect(toMermaid(own)).toBe(toMermaid(whole));
    expect(Object.keys(own.machine.states ?? {})).toEqual(Object.keys(whole.machine.states ?? {}));
    expect(checkGraph(own).violations).toEqual([]);
    expect(checkGraph(whole).violations).toEqual([]);
    const observed = await runConversation(own as never, memoryStore());
    expect(observed).toEqual(await runConversation(whole as never, memoryStore()));
    expect(observed).toEqual([
      "waiting",
      "done",
      ["user: Pay 7 cents.", "assistant: ", "tool: paid 7", "assistant: It is paid."],
    ]);
  });

  test("createAgent resumes a thread that a hand-assembled agent graph started", async () => {
    const store = memoryStore();
    const input = { messages: whole.toInput("Pay 7 cents.").messages };
    await run(buildByHand(), { store, thread: "t", input }).result;
    const { status, state } = await createPlainAgent().resume({ thread: "t", store, answers: { approve: true } })
      .result;
    expect(status).toBe("done");
    expect(state.messages.map(getMessageText)).toContain("paid 7");
  });

  test("a custom node may be placed between the parts of an agent graph", async () => {
    const tools = toolRegistry([pay]);
    const graph = defineGraph({ name: "checked", state: defineState({ ...Basket, messages: channel.messages() }) })
      .nodes({
        model: modelNode({ model: script(), tools }),
        tools: toolNode({ tools }),
        note: (state) => ({ paid: state.messages.some((message) => getMessageText(message).startsWith("paid")) }),
      })
      .edges({
        [START]: "model",
        model: route(["tools", "model", "note"], (state) => {
          const next = agentRoutes.afterModel(state);
          return next === END ? "note" : next;
        }),
        tools: route(["model", END], agentRoutes.afterTools()),
        note: END,
      });
    const { state } = await run(graph, { input: { messages: whole.toInput("Pay.").messages } }).result;
    expect(state.paid).toBe(true);
  });

  test("a hand-assembled agent graph counts turns and returns an output", async () => {
    const output = z.object({ paid: z.int() });
    const tools = toolRegistry([pay]);
    const make = (model: ReturnType<typeof scriptedModel>) =>
      defineGraph({
        name: "counted",
        state: defineState({ ...agentRoutes.agentTurns, messages: channel.messages() }),
        input: agentRoutes.agentTurnsInput,
        private: ["agentTurns"],
      })
        .nodes({
          model: modelNode({ model, tools, output }),
          tools: toolNode({ tools, final: finalCall(outputSchema(output)) }),
        })
        .edges({
          [START]: "model",
          model: route(["tools", "model", END], agentRoutes.afterModel),
          tools: route(["model", END], agentRoutes.afterTools(turnCountIs(2))),
        });
    const input = { messages: whole.toInput("Pay.").messages } as never;
    const ended = make(scriptedModel([call("pay", { cents: 1 }), call("final_answer", { paid: 1 })]));
    const first = await run(ended, { input }).result;
    expect(first.state.messages.at(-1)).toMatchObject({ name: "final_answer", terminate: true });
    const stopped = scriptedModel([call("pay", { cents: 1 }), call("pay", { cents: 2 }), say("never")]);
    await run(make(stopped), { input }).result;
    expect(stopped.requests).toHaveLength(2);
  });

  test("an agent is a node of another graph and part of its diagram", async () => {
    const outer = defineGraph({ name: "desk", state: defineState({ said: z.string().default("") }) })
      .nodes({
        clerk: subgraph(createPlainAgent(), {
          input: () => whole.toInput("Pay 7 cents."),
          output: ({ messages: all }) => ({ said: getMessageText(all.at(-1) as Message) }),
        }),
      })
      .edges({ [START]: "clerk", clerk: END });
    expect(toMermaid(outer)).toContain("clerk");
    const store = memoryStore();
    await run(outer, { store, thread: "t" }).result;
    const { state } = await resume(outer, { store, thread: "t", answers: { "clerk.approve": true } }).result;
    expect(state.said).toBe("It is paid.");
  });

  test("modelNode refuses an invalid model, an unknown option and an unknown tool", () => {
    expect(() => modelNode({ model: 7 as never })).toThrow(/modelNode: `model` must be a model.+got 7/);
    expect(() => modelNode({ model: script(), tool: [] } as never)).toThrow(/"tool"/);
    expect(() => modelNode({ model: script(), allowedTools: ["sell"] })).toThrow(/unknown tool "sell"/);
  });
});
