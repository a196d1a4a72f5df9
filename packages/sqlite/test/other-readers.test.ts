/** The file during a run, as read by a process without Statewright. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  edit,
  getHistory,
  getState,
  run,
  type Schema,
  START,
  toolNode,
} from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";
import { sqliteStore } from "@statewright/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { createFolder } from "./support/stores.ts";

const reader = fileURLToPath(new URL("./support/processes/reading-process.ts", import.meta.url));
const createAnySchema = <Value>(): Schema<Value, Value> => ({
  "~standard": { version: 1, vendor: "test", validate: (given) => ({ value: given as Value }) },
});

test("after each superstep another process reads the state, deltas and calls that the API reports [K6]", async () => {
  const home = createFolder();
  onTestFinished(() => home.remove());
  const file = join(home.path, "agent.db");
  const [store, peer] = [sqliteStore(file), sqliteStore(file)];
  onTestFinished(async () => {
    await store.close();
    await peer.close();
  });

  const seen: string[] = [];
  /** Compares both readings of the thread while the run is inside a body. */
  async function look(place: string): Promise<void> {
    const { stdout } = await promisify(execFile)(process.execPath, [reader, file, "t"]);
    const read = JSON.parse(stdout);
    const entries: (readonly [number, string, string, unknown])[] = [];
    const checkpoints: unknown[] = [];
    for await (const { checkpointId, step, nodes, changes } of getHistory(graph, { store: peer, thread: "t" })) {
      checkpoints.unshift({ id: checkpointId, step, nodes: JSON.stringify(nodes) });
      for (const [oneChannel, { kind, ...change }] of Object.entries(changes))
        entries.push([checkpointId, oneChannel, kind, Object.values(change)[0]]);
    }
    const rows = await peer.effects("t", "main");
    expect(read.checkpoints, place).toEqual(checkpoints);
    expect(read.deltas, place).toEqual(
      entries.sort(([id, oneChannel], [other, next]) => id - other || (oneChannel < next ? -1 : 1)),
    );
    expect(read.state, place).toEqual((await getState(graph, { store: peer, thread: "t" })).state);
    expect(read.effects, place).toEqual(
      rows.map(({ step, task, key, kind, name, effect, state, attempts, idempotencyKey, outcome = null }) => ({
        ...{ step, task, key, kind, name, effect, state, attempts, idempotencyKey, outcome },
      })),
    );
    seen.push(
      `${place}: ${read.checkpoints.length} checkpoints, ${JSON.stringify(read.state.cart)}, ${rows.map(({ name, state }) => `${name} ${state}`).join()}`,
    );
  }

  const buy = defineTool({
    name: "buy",
    description: "Buy a thing.",
    input: jsonSchemaInput<{ readonly what: string }>({ type: "object", properties: { what: { type: "string" } } }),
    effect: "once",
    run: async ({ what }) => {
      await look("in the tool");
      return { content: `bought ${what}`, command: { update: { log: [what] } } };
    },
  });
  const graph = defineGraph({
    name: "shop",
    state: defineState({
      messages: channel.messages(),
      cart: createAnySchema<Record<string, readonly string[]>>(),
      log: channel.list(createAnySchema<string>()),
    }),
  })
    .nodes({
      fill: () => ({
        cart: { fruit: ["fig"], tools: [] },
        log: ["filled"],
        messages: [
          {
            role: "assistant" as const,
            id: "a1",
            finish: "calls" as const,
            content: [{ type: "call" as const, id: "c1", name: "buy", args: { what: "lamp" } }],
          },
        ],
      }),
      tools: toolNode({ tools: [buy] }),
      mend: async () => {
        await look("after the tool");
        return edit((draft: { cart: Record<string, string[]> }) => {
          draft.cart["fruit"]?.push("pear");
        });
      },
      end: async () => {
        await look("after a patch");
        return { log: ["ended"] };
      },
    })
    .edges({ [START]: "fill", fill: "tools", tools: "mend", mend: "end", end: END });

  await run(graph, { store, thread: "t", input: { cart: { fruit: ["fig"] } } }).result;
  await look("at the end");
  expect(seen).toEqual([
    'in the tool: 2 checkpoints, {"fruit":["fig"],"tools":[]}, buy started',
    'after the tool: 3 checkpoints, {"fruit":["fig"],"tools":[]}, buy ok',
    'after a patch: 4 checkpoints, {"fruit":["fig","pear"],"tools":[]}, buy ok',
    'at the end: 5 checkpoints, {"fruit":["fig","pear"],"tools":[]}, buy ok',
  ]);
});
