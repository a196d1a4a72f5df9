import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  inject,
  isStatewrightError,
  type RunEvent,
  START,
  type Tool,
  type ToolCall,
  type ToolOutput,
  type ToolRuntime,
  type ToolSpec,
  toolNode,
} from "../../../src/index.ts";
import {
  type ChatState,
  call,
  type DeskContext,
  getAnswerText,
  listEvents,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";

const Shop = defineContext({ customer: z.string() });
const Orders = defineState({ cart: z.array(z.string()).default([]), messages: channel.messages() });

describe("model arguments and injected values", () => {
  test("arguments exclude hidden names, injected values exclude arguments, and one name cannot be both [S1.89]", () => {
    const pay = defineTool({
      name: "pay",
      description: "Pay.",
      input: z.object({ cents: z.int(), note: z.string().optional() }),
      inject: {
        customer: Shop.from((shop) => shop.customer),
        cart: Orders.from((state) => state.cart),
        key: inject.secret("K"),
      },
      run: (args, { injected }) => {
        expectTypeOf<keyof typeof args>().toEqualTypeOf<"cents" | "note">();
        expectTypeOf<keyof typeof injected>().toEqualTypeOf<"customer" | "cart" | "key">();
        expectTypeOf(injected.cart).toEqualTypeOf<readonly string[]>();
        // @ts-expect-error a hidden value is not an argument
        args.customer;
        // @ts-expect-error an argument is not a hidden value
        injected.cents;
        return "paid";
      },
    });
    const defineBoth = (): unknown =>
      defineTool({
        name: "both",
        description: "Both.",
        input: z.object({ cents: z.int(), customer: z.string() }),
        // @ts-expect-error one name in both maps
        inject: { customer: Shop.from((shop) => shop.customer) },
        run: () => "no",
      });
    expect(defineBoth).toThrow(/invalid_tool: the tool "both" has "customer" both as an argument and as an injection/);
    const tools = toolNode({ tools: [pay] });
    const stateless = defineGraph({ name: "g", state: defineState({ messages: channel.messages() }), context: Shop });
    const bare = defineGraph({ name: "g", state: Orders });
    const other = defineGraph({ name: "g", state: Orders, context: defineContext({ customer: z.number() }) });
    // @ts-expect-error the graph lacks the state that the tool injects
    const noState = () => stateless.nodes({ tools });
    // @ts-expect-error the graph lacks the context that the tool injects
    const noContext = () => bare.nodes({ tools });
    // @ts-expect-error the graph's context has another type there
    const wrongContext = () => other.nodes({ tools });
    const fits = () =>
      defineGraph({ name: "g", state: Orders, context: Shop })
        .nodes({ tools })
        .edges({ [START]: "tools", tools: END });
    expect([noState, noContext, wrongContext, fits]).toHaveLength(4);
  });

  test("an input schema without properties, or with any, leaves every hidden name free", () => {
    for (const input of [z.object({}), z.looseObject({})] as const)
      expect(
        defineTool({
          name: "free",
          description: "Free.",
          input,
          inject: { customer: Shop.from((shop) => shop.customer) },
          run: () => "x",
        }).spec.inject,
      ).toEqual({ customer: "context" });
  });

  test("the arguments of a call are unknown until tool.is narrows them", () => {
    const pay = defineTool({ name: "pay", description: "Pay.", input: z.object({ cents: z.int() }), run: () => "x" });
    const made: ToolCall = { id: "a", name: "pay", args: { cents: 5 } };
    expectTypeOf(made.args).toBeUnknown();
    if (!pay.is(made)) throw new Error("it is");
    expectTypeOf(made.args).toEqualTypeOf<{ cents: number }>();
    expect(pay.is({ ...made, name: "other" })).toBe(false);
  });
});

describe("tool interface", () => {
  test("the run function of a tool may be async, gets parsed arguments and one context, and gives a result or an error [S0.5, S2.5, S0.33, S2.33]", async () => {
    const given: unknown[] = [];
    const tool = defineTool({
      name: "act",
      description: "Acts.",
      input: z.object({ n: z.number(), deep: z.object({ list: z.array(z.string()) }).default({ list: ["d"] }) }),
      run: async (...all) => {
        given.push(...all);
        const [{ n, deep }] = all;
        expectTypeOf(n).toBeNumber();
        expectTypeOf(deep).toEqualTypeOf<{ list: string[] }>();
        await Promise.resolve();
        if (n < 0) throw new Error("below zero");
        return `${n}`;
      },
    });
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("act", { n: 1 }, "a"), call("act", { n: -1 }, "b")], ["ok"]],
    });
    expect(given).toHaveLength(4);
    expect(given[0]).toEqual({ n: 1, deep: { list: ["d"] } });
    expect(typeof given[0]).toBe("object");
    expect(listToolAnswers(done).map((answer) => [getAnswerText(answer), answer.isError])).toEqual([
      ["1", false],
      ["below zero", true],
    ]);
  });

  test("a tool may ignore its context, and a tool written before a context field was added still compiles [S0.7, S2.7, S0.46, S2.46]", async () => {
    type OldRuntime = Pick<ToolRuntime, "signal" | "callId">;
    const old = async (args: { city: string }, runtime: OldRuntime): Promise<string> =>
      `${args.city} ${runtime.callId}`;
    const simple = (args: { city: string }): string => args.city;
    const input = z.object({ city: z.string() });
    expectTypeOf<ToolRuntime & { readonly added: number }>().toExtend<ToolRuntime>();
    const done = await runToolLoop({
      tools: [
        defineTool({ name: "old", description: "Old.", input, run: old }),
        defineTool({ name: "simple", description: "Simple.", input, run: simple }),
      ],
      turns: [[call("old", { city: "Oslo" }), call("simple", { city: "Bergen" })], ["ok"]],
    });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["Oslo id_old", "Bergen"]);
  });

  test("the type Tool has state and context parameters with defaults (types) [S1.14]", () => {
    type Cart = { readonly cart: readonly string[] };
    expectTypeOf<Tool<Cart>>().toEqualTypeOf<Tool<Cart, unknown>>();
    expectTypeOf<Tool>().toEqualTypeOf<Tool<unknown, unknown>>();
    expectTypeOf<Parameters<Tool<Cart, DeskContext>["call"]>[0]>().toEqualTypeOf<Cart>();
    expectTypeOf<Parameters<Tool<Cart, DeskContext>["call"]>[1]["context"]>().toEqualTypeOf<DeskContext>();
  });

  test("a tool spec is plain metadata, available without a run [S1.15, S1.17, S1.18, S1.19]", () => {
    const input = z.object({ city: z.string().describe("City name") });
    const { spec } = defineTool({ name: "get_weather", description: "Weather of a city.", input, run: () => "x" });
    expectTypeOf(spec).toEqualTypeOf<ToolSpec>();
    expect(spec).toMatchObject({
      name: "get_weather",
      label: "Get Weather",
      description: "Weather of a city.",
      input,
      effect: "once",
      inject: {},
      safety: { access: "unclassified" },
    });
    expect(Object.isFrozen(spec)).toBe(true);
  });

  test("the state passed to a tool is read-only in its type and at run time [S1.16]", async () => {
    const thrown: unknown[] = [];
    const spec = defineTool({ name: "meddle", description: "Meddles.", input: z.object({}), run: () => "x" }).spec;
    const meddle: Tool<ChatState, DeskContext> = {
      spec,
      call: (state) => {
        const writes = [
          () => {
            // @ts-expect-error the state is read-only
            state.cart = [];
          },
          () => {
            // @ts-expect-error its parts are, too
            state.cart.push("x");
          },
          () => {
            // @ts-expect-error and so are messages
            state.messages[0].role = "assistant";
          },
        ];
        for (const write of writes) {
          try {
            write();
          } catch (error) {
            thrown.push(error);
          }
        }
        return "tried";
      },
    };
    const done = await runToolLoop({ tools: [meddle], turns: [[call("meddle")], ["ok"]] });
    expect(thrown.map((error) => error instanceof TypeError)).toEqual([true, true, true]);
    expect(done.result.state.cart).toEqual([]);
  });

  test("a class that implements Tool works next to defined tools", async () => {
    class Shelf implements Tool<ChatState, DeskContext> {
      readonly spec: ToolSpec = defineTool({
        name: "shelf",
        description: "Shelf.",
        input: z.object({ n: z.int() }),
        run: () => "",
      }).spec;
      readonly #prefix = "shelf";
      call(state: ChatState, runtime: ToolRuntime<DeskContext>, made: ToolCall): string {
        return `${this.#prefix} ${state.cart.length} ${runtime.context.customer} ${JSON.stringify(made.args)}`;
      }
    }
    const other = defineTool({ name: "other", description: "Other.", input: z.object({}), run: () => "other" });
    const done = await runToolLoop({
      tools: [new Shelf(), other],
      context: { customer: "c1" },
      turns: [[call("shelf", { n: 1 }), call("other")], ["ok"]],
    });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(['shelf 0 c1 {"n":1}', "other"]);
  });

  test("a tool uses context, event emitter and abort signal of its run [S1.26, S1.28, S1.29]", async () => {
    let aborted: boolean | undefined;
    const tool: Tool<ChatState, DeskContext> = {
      spec: defineTool({ name: "use", description: "Uses.", input: z.object({}), run: () => "" }).spec,
      call: (_state, { context, emit, signal }) => {
        aborted = signal.aborted;
        signal.throwIfAborted();
        emit("used", { customer: context.customer });
        return context.customer;
      },
    };
    const done = await runToolLoop({ tools: [tool], context: { customer: "c1" }, turns: [[call("use")], ["ok"]] });
    expect(listEvents(done, "custom").map(({ name, payload }) => [name, payload])).toEqual([
      ["used", { customer: "c1" }],
    ]);
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["c1"]);
    expect(aborted).toBe(false);
  });
});

describe("types of updates and progress", () => {
  test("a partial result has the shape of a result, and progress is one string (types) [S0.40, S2.40, S0.44, S2.44, S2.64]", () => {
    type Update = NonNullable<ToolRuntime["update"]>;
    expectTypeOf<Parameters<Update>>().toEqualTypeOf<[partial: ToolOutput]>();
    expectTypeOf<Extract<RunEvent, { type: "tool.update" }>["partial"]>().toEqualTypeOf<ToolOutput>();
    expectTypeOf<Parameters<ToolRuntime["progress"]>>().toEqualTypeOf<[text: string]>();
    expectTypeOf<Extract<RunEvent, { type: "tool.progress" }>["text"]>().toBeString();
    expectTypeOf<ReturnType<Update>>().toBeVoid();
  });

  test("a single event stream carries tool start, update, progress and end with name, partial, text and error flag (types) [S0.47, S2.47]", () => {
    type ToolEvent = Extract<
      RunEvent,
      { type: "tool.started" | "tool.update" | "tool.progress" | "tool.completed" | "tool.failed" }
    >;
    const show = (event: ToolEvent): string => {
      switch (event.type) {
        case "tool.started":
          return `${event.tool} ${JSON.stringify(event.args)}`;
        case "tool.update":
          return `${event.tool} ${event.partial.content}`;
        case "tool.progress":
          return `${event.tool} ${event.text}`;
        case "tool.completed":
        case "tool.failed":
          return `${event.tool} ${event.result.isError}`;
        default:
          return event satisfies never;
      }
    };
    expectTypeOf(show).returns.toBeString();
  });
});

describe("defineTool refusals", () => {
  const fine = { name: "fine", description: "Fine.", input: z.object({}), run: () => "x" } as const;

  test("defineTool refuses a retry that its effect forbids, an invalid timeout and an invalid retry", () => {
    const refused: readonly [string, () => unknown][] = [
      ["once with a retry for timeouts", () => defineTool({ ...fine, retry: { attempts: 2, on: ["timeout"] } })],
      ["once with a retry for all", () => defineTool({ ...fine, retry: { attempts: 2 } })],
      ["once with a retry by function", () => defineTool({ ...fine, retry: { attempts: 2, on: () => true } })],
      ["no time", () => defineTool({ ...fine, timeoutMs: 0 })],
      ["negative time", () => defineTool({ ...fine, timeoutMs: -1 })],
      ["not a number", () => defineTool({ ...fine, timeoutMs: Number.NaN })],
      ["no attempt", () => defineTool({ ...fine, effect: "pure", retry: { attempts: 0 } })],
      ["half an attempt", () => defineTool({ ...fine, effect: "pure", retry: { attempts: 1.5 } })],
    ];
    for (const [what, define] of refused) {
      let error: unknown;
      try {
        define();
      } catch (thrown) {
        error = thrown;
      }
      expect([what, isStatewrightError(error) && error.kind]).toEqual([what, "definition"]);
    }
    expect(defineTool({ ...fine, retry: { attempts: 2, on: ["unavailable"] } }).spec.retry?.attempts).toBe(2);
  });
});
