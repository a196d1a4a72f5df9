/** Model call options with wrong names or values do not compile. */
import { createAgent } from "@statewright/agent";
import { modelFallback, modelRetry, modelTimeouts } from "@statewright/agent/middleware";
import type { FailedAttempt, ModelCall, ModelFailureKind, RunHandle } from "@statewright/core";
import { getModelFailureKind } from "@statewright/core/adapter";
import { say, scriptedModel } from "@statewright/testing";
import { expectTypeOf, test } from "vitest";

const model = scriptedModel([say("Hi")]);
declare const handle: RunHandle<unknown>;
declare const request: ModelCall["request"];

function right(): void {
  createAgent({
    name: "chat",
    model,
    timeouts: { firstTokenMs: 1, idleMs: 1, totalMs: 1 },
    retry: { attempts: 3, on: ["rate_limit", "overloaded"], maxRetryAfterMs: 1 },
    fallback: { models: [model], on: ["auth"] },
  });
  createAgent({ name: "chat", model, retry: { attempts: 3, on: (error, attempt) => attempt < 2 && error !== null } });
  createAgent({ name: "chat", model, fallback: [model], middleware: [modelRetry(), modelTimeouts({ idleMs: 1 })] });
  modelFallback([model], { on: ["quota"] });
  handle.text({ formatRetracted: (text) => text.toUpperCase() });
}

function defineInvalidCalls(): void {
  // @ts-expect-error a limit that there is not
  createAgent({ name: "chat", model, timeouts: { firstMs: 1 } });
  // @ts-expect-error a kind that there is not
  createAgent({ name: "chat", model, retry: { attempts: 3, on: ["sometimes"] } });
  // @ts-expect-error a retry without its attempts
  createAgent({ name: "chat", model, retry: { maxRetryAfterMs: 1 } });
  // @ts-expect-error a fallback that is no model
  createAgent({ name: "chat", model, fallback: [{ id: "b" }] });
  // @ts-expect-error a kind that there is not
  modelFallback([model], { on: ["never"] });
  // @ts-expect-error a limit that there is not
  modelTimeouts({ silenceMs: 1 });
  // @ts-expect-error what is given in place of void text is a text
  handle.text({ formatRetracted: () => 1 });
  // @ts-expect-error a part of a model call that there is not
  const call: ModelCall = { model, request, retries: 3 };
  return void call;
}

test("wrong uses of model call options do not compile (types)", () => {
  expectTypeOf(right).toBeFunction();
  expectTypeOf(defineInvalidCalls).toBeFunction();
  expectTypeOf(getModelFailureKind(null)).toEqualTypeOf<ModelFailureKind | undefined>();
  expectTypeOf<FailedAttempt["kind"]>().toEqualTypeOf<
    ModelFailureKind | "replaced" | "cancelled" | "unrecorded" | "auxiliary"
  >();
});
