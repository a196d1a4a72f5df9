import { expect, test } from "vitest";
import * as z from "zod";
import { defineTool, type ToolRuntime } from "../../../src/index.ts";
import { thrownThings } from "../../support/thrown-values.ts";
import {
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  listEvents,
  listResults,
  listToolAnswers,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const megabyte = 2 ** 20;

test("a tool that throws, never settles, answers twice, emits late, returns 256 MB or an invalid output harms only its own call", async () => {
  const world = createVirtualWorld();
  const after: (() => void)[] = [];
  const bodies: Readonly<Record<string, (runtime: ToolRuntime) => unknown>> = {
    ...Object.fromEntries(
      Object.entries(thrownThings).map(([what, make]) => [
        `throws ${what}`,
        () => {
          throw make();
        },
      ]),
    ),
    "never returns": () => new Promise(() => undefined),
    "answers twice": () =>
      new Promise((resolve, reject) => {
        resolve("first");
        resolve("second");
        reject(new Error("third"));
      }),
    "speaks after its end": ({ update, progress, emit }) => {
      after.push(
        () => update?.({ content: "SENTINEL" }),
        () => progress("SENTINEL"),
        () => emit("late", "SENTINEL"),
      );
      return "done";
    },
    "returns 256 MB of text": () => "x".repeat(256 * megabyte),
    "returns 256 MB of data": () => Array.from({ length: 256 }, () => "x".repeat(megabyte)),
    "returns 256 MB of details": () => ({
      content: "x",
      details: Array.from({ length: 256 }, () => "x".repeat(megabyte)),
    }),
    "returns 256 MB of bytes": () => new Uint8Array(256 * megabyte),
    "shows 256 MB": ({ update, progress }) => {
      update?.({ content: "SENTINEL", details: Array.from({ length: 256 }, () => "x".repeat(megabyte)) });
      progress("working");
      return "done";
    },
    "returns a value that its schema refuses": () => ({ content: "x", value: "no number" }),
    "returns a circle": () => {
      const round: Record<string, unknown> = {};
      return Object.assign(round, { round });
    },
  };
  const tools: DeskTool[] = Object.values(bodies).map((body, index) =>
    defineTool({
      name: `tool_${index}`,
      description: "Does what the test says.",
      input: z.object({}),
      output: z.unknown().refine((value) => value !== "no number", "expected a number"),
      effect: "pure",
      timeoutMs: 100,
      graceMs: 10,
      run: (_args, runtime) => body(runtime as ToolRuntime),
    }),
  );
  const sound = defineTool({
    name: "sound",
    description: "Sound.",
    input: z.object({}),
    effect: "pure",
    run: () => "all is well",
  });
  const turns = [
    [...tools.map(({ spec }, index) => call(spec.name, {}, `c${index}`)), call("sound", {}, "sound")],
    ["I see"],
  ];
  const loop = createToolLoop({ tools: [...tools, sound], world, turns });
  const end = loop.start().result;
  await world.advance(1_000);
  expect((await end).status).toBe("done");
  const answers = listToolAnswers(await end);
  expect(answers).toHaveLength(tools.length + 1);
  const said = Object.fromEntries(Object.keys(bodies).map((what, index) => [what, answers[index]]));
  const fine = ["answers twice", "speaks after its end", "shows 256 MB"];
  for (const [what, answer] of Object.entries(said)) {
    expect([what, answer?.isError]).toEqual([what, !fine.includes(what)]);
    expect(getAnswerText(answer).length, what).toBeLessThan(5_000);
  }
  expect(getAnswerText(said["answers twice"])).toBe("first");
  expect(getAnswerText(said["returns a value that its schema refuses"])).toContain("expected a number");
  expect(getAnswerText(answers.at(-1))).toBe("all is well");
  expect(listResults(loop)).toHaveLength(answers.length);
  for (const speak of after) speak();
  await world.waitUntilIdle();
  expect(JSON.stringify(listEvents(loop, "tool.update", "tool.progress", "custom"))).not.toContain("SENTINEL");
  expect(world.timers).toBe(0);
});
