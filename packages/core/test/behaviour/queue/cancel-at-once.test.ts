/** `onBusy: "cancel"`: the active run ends at once, as with `handle.cancel()`. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fanOut,
  getMessageText,
  getState,
  inputNode,
  type Message,
  memoryStore,
  run,
  START,
  subgraph,
  toolNode,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { collectEvents, createDeferred } from "../../support/failure.ts";
import { call, checkTranscript, user } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ word: z.string().default(""), log: channel.list(z.string()) });

describe("onBusy cancel", () => {
  test("an active run ends at once: its signals fire, finished tasks are kept, and the new input starts [FX9, E27]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const aborts: string[] = [];
    const started: string[] = [];
    const graph = defineGraph({ name: "fan", state: Log })
      .nodes({
        plan: () => undefined,
        quick: ({ word }) => ({ log: [`${word} quick`] }),
        slow: async ({ word }, { signal }) => {
          started.push(word);
          if (word === "new") return { log: ["new slow"] };
          signal.addEventListener("abort", () => aborts.push(String(signal.reason.message)));
          return await new Promise<never>(() => undefined);
        },
        last: ({ word }) => ({ log: [`${word} last`] }),
      })
      .edges({ [START]: "plan", plan: ["quick", "slow"], quick: END, slow: "last", last: END });
    const at = { store, world, thread: "t" } as const;
    const first = run(graph, { ...at, input: { word: "old" } });
    const events = collectEvents(first);
    await world.waitUntilIdle();
    const second = run(graph, { ...at, input: { word: "new" }, onBusy: "cancel" });
    expect(await first.result).toMatchObject({ status: "cancelled", reason: "interrupted by a new input" });
    expect(await second.result).toMatchObject({ status: "done", run: second.id });
    expect(aborts).toEqual(["interrupted by a new input"]);
    expect(started).toEqual(["old", "new"]);
    expect(events.at(-1)).toMatchObject({ type: "run.cancelled", reason: "interrupted by a new input" });
    expect((await getState(graph, { store, thread: "t" })).state.log).toEqual([
      "old quick",
      "new quick",
      "new slow",
      "new last",
    ]);
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["done", "cancelled"]);
    expect(world.timers).toBe(0);
  });

  test("a new input aborts active tool calls: finished calls keep their results, open calls are answered as cancelled, and no call is open [FX9, E27]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const aborted = createDeferred<string>();
    const Chat = defineState({ messages: channel.messages() });
    const look = defineTool({ name: "look", description: "look", input: z.object({}), run: () => "seen" });
    const wait = defineTool({
      name: "wait",
      description: "wait",
      input: z.object({}),
      run: async (_args, { signal }) => {
        signal.addEventListener("abort", () => aborted.resolve("aborted"));
        return await new Promise<never>((_, reject) =>
          signal.addEventListener("abort", () => reject(new Error("stopped"))),
        );
      },
    });
    const graph = defineGraph({ name: "chat", state: Chat })
      .nodes({
        model: ({ messages: all }) => {
          checkTranscript(all);
          const content = all.length === 1 ? [call("look"), call("wait")] : [{ type: "text" as const, text: "done" }];
          return {
            messages: [{ role: "assistant" as const, id: `a${all.length}`, content, finish: "calls" as const }],
          };
        },
        tools: toolNode({ tools: [look, wait] }),
        end: () => undefined,
      })
      .edges({ [START]: "model", model: "tools", tools: "end", end: END });
    const at = { store, world, thread: "t" } as const;
    const first = run(graph, { ...at, input: { messages: [user("go")] } });
    await world.waitUntilIdle();
    const second = run(graph, { ...at, input: { messages: [user("stop", "u2")] }, onBusy: "cancel" });
    expect(await aborted.promise).toBe("aborted");
    expect((await first.result).status).toBe("cancelled");
    const { state } = await second.result;
    const lines = state.messages.map((message: Message) =>
      message.role === "tool" ? [message.callId, getMessageText(message), message.isError] : [message.role, message.id],
    );
    expect(lines.slice(0, 5)).toEqual([
      ["user", "u1"],
      ["assistant", "a1"],
      ["id_look", "seen", false],
      ["id_wait", "stopped", true],
      ["user", "u2"],
    ]);
  });

  test("a new input aborts the tasks of subgraphs and of sends at once [FX9, E27]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const aborts: string[] = [];
    const hang = (name: string, signal: AbortSignal): Promise<never> => {
      signal.addEventListener("abort", () => aborts.push(name));
      return new Promise<never>(() => undefined);
    };
    const inner = defineGraph({ name: "inner", state: defineState({ word: z.string().default("") }) })
      .nodes({ deep: ({ word }, { signal }) => (word === "new" ? undefined : hang("deep", signal)) })
      .edges({ [START]: "deep", deep: END });
    const graph = defineGraph({ name: "outer", state: Log })
      .nodes({
        plan: () => undefined,
        more: () => undefined,
        sub: subgraph(inner, { input: ({ word }) => ({ word }), output: () => ({ log: ["sub"] }) }),
        each: inputNode(z.string(), ({ word }, { signal, input }) =>
          word === "new" ? { log: [input] } : hang(input, signal),
        ),
      })
      .edges({ [START]: ["plan", "more"], plan: "sub", more: fanOut("each", () => ["each"]), sub: END, each: END });
    const at = { store, world, thread: "t" } as const;
    const first = run(graph, { ...at, input: { word: "old" } });
    await world.waitUntilIdle();
    const second = run(graph, { ...at, input: { word: "new" }, onBusy: "cancel" });
    expect((await first.result).status).toBe("cancelled");
    expect((await second.result).status).toBe("done");
    expect(aborts.toSorted()).toEqual(["deep", "each"]);
  });
});
