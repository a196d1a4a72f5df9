import { otelTracer, schemaUrl } from "@statewright/otel";
import { call, say, scriptedModel } from "@statewright/testing";
import { todo } from "@statewright/tools";
import { createAgent } from "statewright";
import { genAiConventions, traceRun } from "statewright/inspect";
import { expect, test } from "vitest";
import { answered } from "./opentelemetry.ts";

const script = [call("todo", { items: [{ text: "dig", status: "open" }] }), say("done")];
const gardener = () => createAgent({ name: "gardener", model: scriptedModel(script), tools: [todo()] });

test("the traced run of the OpenTelemetry page completes, also without a registered provider", async () => {
  expect((await answered(gardener(), "Dig")).status).toBe("done");
  expect(schemaUrl.endsWith(`/${genAiConventions}`)).toBe(true);
});

test("a run becomes OpenTelemetry spans, each started once inside its agent span and ended once", async () => {
  const tracer = otelTracer();
  const began: string[] = [];
  const ended: string[] = [];
  await traceRun(gardener().run({ input: "Dig" }), {
    startSpan: (start: Parameters<typeof tracer.startSpan>[0]) => {
      began.push(`${start.parent === undefined ? "" : "in it "}${start.name}`);
      const span = tracer.startSpan(start);
      return {
        ...span,
        end: (at: number) => {
          ended.push(start.name);
          span.end(at);
        },
      };
    },
  }).result;
  expect(began).toEqual([
    "invoke_agent gardener",
    "in it chat scripted",
    "in it execute_tool todo",
    "in it chat scripted",
  ]);
  expect(ended.toSorted()).toEqual(began.map((name) => name.replace("in it ", "")).toSorted());
});
