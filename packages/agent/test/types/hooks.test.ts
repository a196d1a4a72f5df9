/** Invalid hooks do not compile. Nothing here is called. */
import { defineMiddleware, type Model, type ModelRequest } from "@statewright/core";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { createAgent } from "../../src/index.ts";
import { budget } from "../../src/middleware.ts";

declare const model: Model;

test("hook interrupts are typed by their declared keys and answers, and are available only before the request is sent", () => {
  const program = () =>
    defineMiddleware({
      name: "typed",
      interrupts: { sure: z.boolean(), more: { answer: z.object({ by: z.number() }), payload: z.string() } },
      beforeAgent: async ({ interrupt }) => {
        expectTypeOf(await interrupt("sure")).toEqualTypeOf<boolean>();
        expectTypeOf(await interrupt("more", { payload: "text" })).toEqualTypeOf<{ readonly by: number }>();
        // @ts-expect-error a payload of another kind
        await interrupt("more", { payload: 3 });
        // @ts-expect-error a question that is not declared
        await interrupt("other");
      },
      afterModel: (_, runtime) => {
        // @ts-expect-error the request was sent
        runtime.interrupt("sure");
        return runtime.end("Enough.", { by: "me" });
      },
      aroundModel: (request, next, runtime) => {
        // @ts-expect-error what stands around a request does not end the agent
        runtime.end("Enough.", { by: "me" });
        return next(request);
      },
      afterAgent: (_, runtime) => {
        // @ts-expect-error the agent has ended
        runtime.end("Enough.", { by: "me" });
      },
      beforeModel: (request, { end }) => {
        expectTypeOf(request).toEqualTypeOf<ModelRequest>();
        // @ts-expect-error who ended it is not said
        return end("Enough.", {});
      },
    });
  const createInvalidHook = () =>
    // @ts-expect-error no list of messages
    defineMiddleware({ name: "other", afterAgent: () => ({ messages: "more" }) });
  expect([program, createInvalidHook]).toHaveLength(2);
});

test("middleware with interrupts and channels fits any agent, and its interrupts are answerable", () => {
  const program = async () => {
    const agent = createAgent({ name: "a", model, middleware: [budget({ turns: 3, onExceeded: "ask" })], maxTurns: 3 });
    await agent.resume({ thread: "t", answers: { budget: true } }).result;
    // @ts-expect-error no answer to a call
    await agent.resume({ thread: "t", answers: { approve: 3 } }).result;
    // @ts-expect-error a kind of limit that there is not
    budget({ steps: 3 });
    // @ts-expect-error a price without its output
    budget({ cost: 3, prices: { model: { input: 3 } } });
  };
  expect(program).toBeTypeOf("function");
});
