import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  graphTool,
  type Message,
  run,
  START,
  toolNode,
} from "../../../src/index.ts";
import { call } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const input = z.object({});
const Chat = defineState({ messages: channel.messages() });

interface Limits {
  readonly graph?: number;
  readonly node?: number;
}

/** Runs three tools that never end, and returns the answer of each with the time of its end. */
async function answerHungCalls({ graph, node }: Limits) {
  const world = createVirtualWorld();
  const aborted: string[] = [];
  const hang = (name: string, timeoutMs?: number) =>
    defineTool({
      name,
      description: "Hangs.",
      input,
      graceMs: 0,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      run: (_args, { signal }) =>
        new Promise<string>(() =>
          signal.addEventListener("abort", () => aborted.push(`${name} ${world.clock.monotonic()}`)),
        ),
    });
  const inner = defineGraph({ name: "inner", state: defineState({ log: channel.list(z.string()) }) })
    .nodes({
      wait: (_state, { signal }) =>
        new Promise<undefined>((resolve) => {
          signal.addEventListener("abort", () => {
            aborted.push(`inner ${world.clock.monotonic()}`);
            resolve(undefined);
          });
        }),
    })
    .edges({ [START]: "wait", wait: END });
  const nested = graphTool(inner, {
    name: "inner",
    description: "Waits.",
    input,
    toInput: () => ({}),
    toResult: () => "x",
  });
  const tools = [hang("plain"), hang("own", 70), hang("endless", Number.POSITIVE_INFINITY), nested];
  const content = tools.map(({ spec }) => call(spec.name, {}, spec.name));
  const asking: Message = { role: "assistant", id: "a", content, finish: "calls" };
  const definition = defineGraph({
    name: "desk",
    state: Chat,
    ...(graph === undefined ? {} : { defaults: { tools: { timeoutMs: graph } } }),
  })
    .nodes({ tools: toolNode({ tools, ...(node === undefined ? {} : { timeoutMs: node }) }) })
    .edges({ [START]: "tools", tools: END });
  const handle = run(definition, { input: { messages: [asking] }, world });
  await world.advance(1_000);
  handle.cancel();
  await handle.result;
  return aborted;
}

test("defaults.tools.timeoutMs limits each tool of a graph and fires its signal; a limit of the tool wins [FX88]", async () => {
  expect(await answerHungCalls({ graph: 50 })).toEqual(["plain 50", "inner 50", "own 70", "endless 1000"]);
});

test("timeoutMs of a tool node wins over the defaults of the graph [FX88]", async () => {
  expect(await answerHungCalls({ graph: 50, node: 60 })).toEqual(["plain 60", "inner 60", "own 70", "endless 1000"]);
  expect(await answerHungCalls({})).toEqual(["own 70", "plain 1000", "endless 1000", "inner 1000"]);
});

test("an invalid default time limit is refused where the graph or the tool node is defined [FX88]", async () => {
  await expect(answerHungCalls({ graph: 0 })).rejects.toThrow("defaults.tools.timeoutMs");
  await expect(answerHungCalls({ node: -1 })).rejects.toThrow("timeoutMs");
});
