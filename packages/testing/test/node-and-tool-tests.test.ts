import {
  channel,
  commandTargets,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  fanOut,
  goto,
  inject,
  inputNode,
  route,
  START,
  type Tool,
  type ToolCall,
  ToolError,
  type ToolRuntime,
} from "@statewright/core";
import { toolSpec } from "@statewright/core/adapter";
import { nodeTest, testRun, toolTest } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const review = defineGraph({
  name: "review",
  context: defineContext({ strict: z.boolean() }),
  state: defineState({
    files: z.array(z.string()).default([]),
    found: channel.list(z.string()),
    verdict: z.string().default(""),
  }),
  interrupts: { ok: z.boolean() },
})
  .nodes({
    collect: () => ({ files: ["a", "b"] }),
    inspect: inputNode(z.string(), (_state, { input }) => ({ found: [`${input} is fine`] })),
    judge: (state, { context }) => ({ verdict: context.strict || state.found.length > 1 ? "fix" : "ship" }),
    ask: async (_state, { interrupt }) => ((await interrupt("ok")) ? goto("judge") : goto("collect")),
  })
  .edges({
    [START]: "collect",
    collect: fanOut("inspect", (state) => state.files, { otherwise: "ask" }),
    inspect: "ask",
    ask: commandTargets("judge", "collect"),
    judge: route(["collect", END], (state) => (state.verdict === "fix" ? "collect" : END)),
  });
const context = { strict: false };

describe("nodeTest", () => {
  test("nodeTest runs a node from a given state and returns its writes and the next nodes", async () => {
    const shipped = await nodeTest(review, "judge", { context, state: { found: ["one"] } });
    expect(shipped).toMatchObject({
      state: { verdict: "ship", found: ["one"] },
      next: [END],
      changes: { verdict: { value: "ship" } },
    });
    const fixed = await nodeTest(review, "judge", { context: { strict: true } });
    expect(fixed).toMatchObject({ state: { verdict: "fix" }, next: ["collect"] });
    expect(fixed.trace).toHaveRunOnce("judge");
    expect(fixed.trace).toPassThrough(["judge"]);
  });

  test("nodeTest passes the input to an input node", async () => {
    const seen = await nodeTest(review, "inspect", { context, input: "a.ts" });
    expect(seen.state.found).toEqual(["a.ts is fine"]);
  });

  test("nodeTest returns the interrupt of a node and answers it", async () => {
    const asked = await nodeTest(review, "ask", { context });
    expect(asked).toMatchObject({ status: "waiting", interrupts: [{ key: "ok" }], next: [] });
    expect((await nodeTest(review, "ask", { context, answers: { ok: true } })).next).toEqual(["judge"]);
  });

  test("nodeTest refuses unknown nodes, channels and values", async () => {
    // @ts-expect-error a node that it does not have
    await expect(nodeTest(review, "juge", { context })).rejects.toThrow(
      'expected names of the graph "review", got the unknown node "juge"',
    );
    // @ts-expect-error a channel that it does not have
    await expect(nodeTest(review, "judge", { context, state: { fund: [] } })).rejects.toThrow(
      'got the unknown channel "fund"',
    );
    // @ts-expect-error a value that the channel does not take
    await expect(nodeTest(review, "judge", { context, state: { found: [7] } })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });

  test("nodeTest names the channel without a value at the start of a test", async () => {
    const bill = defineGraph({ name: "bill", state: defineState({ cents: z.number() }) })
      .nodes({ pay: () => undefined })
      .edges({ [START]: "pay", pay: END });
    await expect(nodeTest(bill, "pay", {})).rejects.toThrow(
      'invalid_input: startAt: expected a value of the channel "cents" of the graph "bill", which has no default, got none.',
    );
  });

  test("a test run may start at a node in the middle of its graph", async () => {
    const t = await testRun(review, { context, startAt: { node: "judge", state: { found: ["one"] } } });
    expect(t).toBeInState("judge.executing");
    await t.finish();
    expect(t.state).toMatchObject({ verdict: "ship", found: ["one"] });
    expect(t.trace).toNeverVisit("collect");
  });
});

const Shop = defineContext({ customerId: z.string() });
const Cart = defineState({ cart: z.array(z.string()) });
const order = (failures: number) => {
  let left = failures;
  return defineTool({
    name: "order",
    description: "Order what is in the cart.",
    input: z.object({ cents: z.int().positive() }),
    inject: {
      customer: Shop.from((shop) => shop.customerId),
      cart: Cart.from((state) => state.cart),
      key: inject.secret("KEY"),
    },
    effect: "idempotent",
    retry: { attempts: 3, initialMs: 60_000, maxMs: 120_000, jitter: 0 },
    run: ({ cents }, { injected, progress }) => {
      progress("ordering");
      if (left-- > 0) throw ToolError.unavailable("later");
      return `${injected.customer} pays ${cents} for ${injected.cart.join()} with a key of ${injected.key.reveal().length}`;
    },
  });
};
const given = { state: { cart: ["book"] }, context: { customerId: "c1" }, secrets: { KEY: "hush" } };

describe("toolTest", () => {
  test("toolTest calls a tool with hidden arguments given", async () => {
    const { text, result, progress } = await toolTest(order(0), { args: { cents: 900 }, ...given });
    expect(text).toBe("c1 pays 900 for book with a key of 4");
    expect(result.isError).toBe(false);
    expect(progress).toEqual(["ordering"]);
  });

  test("toolTest retries without real time passing", async () => {
    const { attempts, world, result } = await toolTest(order(2), { args: { cents: 900 }, ...given });
    expect([attempts, result.attempts]).toEqual([3, 3]);
    expect(world.clock.monotonic()).toBe(180_000);
  });

  test("toolTest answers invalid arguments without running the tool", async () => {
    const { result, attempts } = await toolTest(order(0), { args: { cents: -1 }, ...given });
    expect(result).toMatchObject({ isError: true, error: { kind: "invalid_args" } });
    expect(attempts).toBe(0);
  });

  test("toolTest accepts any tool, such as a class, and applies its argument repair", async () => {
    class Doubled implements Tool<{ readonly cart: readonly string[] }> {
      readonly spec = toolSpec({
        name: "doubled",
        description: "Twice a number.",
        input: z.object({ number: z.number() }),
        effect: "pure",
      });
      readonly factor = 2;
      prepareArguments(args: unknown): unknown {
        return { number: Number(z.object({ number: z.string() }).parse(args).number) };
      }
      call({ cart }: { readonly cart: readonly string[] }, _runtime: ToolRuntime, { args }: ToolCall): string {
        return `${z.object({ number: z.number() }).parse(args).number * this.factor} for ${cart.join()}`;
      }
    }
    const { text } = await toolTest(new Doubled(), { args: { number: "21" }, state: { cart: ["book"] } });
    expect(text).toBe("42 for book");
  });

  test("toolTest requires the values that a tool injects (types)", () => {
    const types = (): void => {
      // @ts-expect-error the context is missing
      toolTest(order(0), { args: { cents: 1 }, state: { cart: [] } });
      // @ts-expect-error the state is missing
      toolTest(order(0), { args: { cents: 1 }, context: { customerId: "c1" } });
      // @ts-expect-error arguments of another tool
      toolTest(order(0), { args: { euro: 1 }, ...given });
    };
    expect(types).toBeTypeOf("function");
  });
});
