import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import type { World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import * as fc from "fast-check";
import {
  approval,
  channel,
  decide,
  defineContext,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  inject,
  type JsonObject,
  type Message,
  type Model,
  type ModelRequest,
  type RunEvent,
  resume,
  route,
  run,
  START,
  sqliteStore,
  toolNode,
} from "statewright";
import { toModelTool } from "statewright/adapter";
import { expect, test } from "vitest";
import * as z from "zod";

const Held = defineState({ messages: channel.messages(), note: z.string().default("SENTINEL-state") });
const Given = defineContext({ customer: z.string(), client: z.custom<object>() });

/** The eight kinds of hidden value, each under a unique name. */
const kinds = {
  zq_context: Given.from(({ customer }) => customer),
  zq_client: Given.from(({ client }) => client),
  zq_state: Held.from(({ note }) => note),
  zq_ids: inject.run(),
  zq_store: inject.store("zq"),
  zq_secret: inject.secret("ZQ_KEY"),
  zq_emitter: inject.custom(({ emit }) => emit),
  zq_writer: inject.custom(({ progress }) => progress),
  zq_cancel: inject.custom(({ signal }) => signal),
  zq_made: inject.custom(async ({ secrets }) => ({ token: `made of ${await secrets.get("ZQ_KEY")}` })),
} as const;
type HiddenName = keyof typeof kinds;
const hiddenNames = Object.keys(kinds) as HiddenName[];

const types = {
  text: z.string().describe("Some text"),
  whole: z.int().min(0),
  flag: z.boolean().default(false),
  choice: z.enum(["red", "green"]),
  list: z.array(z.object({ word: z.string() })).max(3),
} as const;
const fitting: Readonly<Record<keyof typeof types, JsonObject[string]>> = {
  text: "hello",
  whole: 3,
  flag: true,
  choice: "red",
  list: [{ word: "a" }],
};

interface Described {
  readonly args: readonly (keyof typeof types)[];
  readonly hidden: readonly HiddenName[];
  readonly does: "returns" | "throws" | "returns what is refused" | "shows and tells";
  readonly asks: boolean;
  readonly calls: readonly ("fits" | "misfits" | "forges" | "forges and misfits" | "is unknown")[];
}

const described: fc.Arbitrary<Described> = fc.record({
  args: fc.uniqueArray(fc.constantFrom(...(Object.keys(types) as (keyof typeof types)[])), { maxLength: 5 }),
  hidden: fc.uniqueArray(fc.constantFrom(...hiddenNames), { minLength: 1 }),
  does: fc.constantFrom("returns", "throws", "returns what is refused", "shows and tells"),
  asks: fc.boolean(),
  calls: fc.array(fc.constantFrom("fits", "misfits", "forges", "forges and misfits", "is unknown"), {
    minLength: 1,
    maxLength: 4,
  }),
});

interface RunRecord {
  readonly wires: ModelRequest[];
  readonly events: RunEvent[];
  readonly lines: unknown[];
  readonly got: Readonly<Record<string, unknown>>[];
  readonly state: { readonly messages: readonly Message[] };
  readonly bytes: string;
  readonly definition: string;
}

/** Runs one case; a waiting run is resumed by another process with another customer. */
async function live({ args, hidden, does, asks, calls }: Described): Promise<RunRecord> {
  const folder = mkdtempSync(join(tmpdir(), "hidden-"));
  const path = join(folder, "threads.db");
  const [wires, events, lines, got]: [ModelRequest[], RunEvent[], unknown[], Readonly<Record<string, unknown>>[]] = [
    [],
    [],
    [],
    [],
  ];
  const tool = defineTool({
    name: "act",
    description: "Acts as it was described.",
    input: z.object(Object.fromEntries(args.map((name) => [name, types[name]]))),
    output: z.unknown().refine((value) => value !== "refused"),
    inject: Object.fromEntries(hidden.map((name) => [name, kinds[name]])) as typeof kinds,
    effect: "idempotent",
    run: (_args, { injected, progress, update, emit }) => {
      got.push(injected);
      if (does === "throws") throw new Error("the bank is closed", { cause: new Error("for the night") });
      if (does === "shows and tells") {
        progress("at work");
        update?.({ content: "half", details: { done: 0.5 } });
        emit("at-work", { done: 0.5 });
      }
      return { content: "done", value: does === "returns what is refused" ? "refused" : "fine", details: { rows: 1 } };
    },
  });
  const given = Object.fromEntries(args.map((name) => [name, fitting[name]]));
  const forged = Object.fromEntries(hidden.map((name) => [name, "forged"]));
  const asked: Readonly<Record<Described["calls"][number], JsonObject>> = {
    fits: given,
    misfits: { ...given, extra: 1 },
    forges: { ...given, ...forged },
    "forges and misfits": { ...given, ...forged, extra: 1 },
    "is unknown": given,
  };
  const model: Model = {
    id: "scripted",
    respond: async (request) => {
      wires.push(structuredClone(request));
      if (request.messages.some(({ role }) => role === "tool"))
        return { content: [{ type: "text", text: "ok" }], finish: "stop" };
      const content = calls.map((how, index) => ({
        ...{ type: "call" as const, id: `call_${index}`, args: asked[how] },
        name: how === "is unknown" ? "nobody" : "act",
      }));
      return { content, finish: "calls" };
    },
  };
  const ask = defineMiddleware({
    name: "ask",
    beforeTool: ({ call }) => (asks ? decide.interrupt(call, "sure?") : undefined),
  });
  const node = toolNode({ tools: [tool], middleware: [ask] });
  const graph = defineGraph({ name: "hiding", state: Held, context: Given, interrupts: { approve: approval } })
    .nodes({
      model: async (state, runtime) => ({
        messages: [
          await runtime.model({ model, request: { messages: state.messages, tools: node.registry.forModel() } }),
        ],
      }),
      tools: node,
    })
    .edges({
      [START]: "model",
      model: route(["tools", END], ({ messages: all }) =>
        all.at(-1)?.role === "assistant" && wires.length === 1 ? "tools" : END,
      ),
      tools: "model",
    });
  const world: World = { ...systemWorld(), log: (...line) => void lines.push(line) };
  const common = (customer: string) => ({
    thread: "t1",
    world,
    context: { customer, client: { key: "SENTINEL-client" } },
    secrets: { get: (name: string) => (name === "ZQ_KEY" ? "SENTINEL-secret" : undefined) },
  });
  try {
    const store = sqliteStore(path, { durability: "normal" });
    const first = run(graph, {
      ...common("SENTINEL-one"),
      store,
      input: { messages: [{ role: "user", id: "u1", content: [{ type: "text", text: "go" }] }] },
    });
    first.on((event) => events.push(event));
    let end = await first.result;
    await store.close();
    if (end.status === "waiting") {
      const later = sqliteStore(path, { durability: "normal" });
      const answers = Object.fromEntries(end.interrupts.map(({ id }) => [id, true]));
      const second = resume(graph, { ...common("SENTINEL-two"), store: later, answers });
      second.on((event) => events.push(event));
      end = await second.result;
      await later.close();
    }
    expect(end.status).toBe("done");
    const bytes = readdirSync(folder)
      .map((name) => readFileSync(join(folder, name), "latin1"))
      .join("\n");
    return { wires, events, lines, got, state: end.state, bytes, definition: JSON.stringify(toModelTool(tool.spec)) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns a request without the parts that the model wrote. */
function removeCalls({ messages: all, ...rest }: ModelRequest): string {
  return JSON.stringify({ ...rest, messages: all.filter(({ role }) => role !== "assistant") });
}

test("hidden values occur in no request, message, file, event, log or error; forged ones are stripped; a resume resolves them again [S1.42, S1.47, S1.39, S1.46]", async () => {
  const seen = new Set<HiddenName>();
  const property = fc.asyncProperty(described, async (it) => {
    const liveRun = await live(it);
    const deep = { depth: 30, maxStringLength: null, maxArrayLength: null };
    const observed = inspect([liveRun.events, liveRun.lines], deep) + JSON.stringify([liveRun.events, liveRun.lines]);
    const transcript = JSON.stringify(liveRun.state.messages);
    // Values in the state are saved with the state, and still reach no model request.
    const secretive = /SENTINEL-(?!state)/;
    for (const bytes of [...liveRun.wires.map((wire) => JSON.stringify(wire)), transcript])
      expect(bytes).not.toContain("SENTINEL");
    for (const bytes of [observed, liveRun.bytes, liveRun.definition]) expect(bytes).not.toMatch(secretive);
    for (const bytes of [...liveRun.wires.map(removeCalls), liveRun.definition])
      expect(bytes).not.toMatch(/zq_|ZQ_KEY|forged/);
    for (const message of liveRun.state.messages)
      if (message.role === "tool") expect(JSON.stringify(message)).not.toMatch(/zq_|forged/);
    for (const event of liveRun.events) {
      if (event.type === "tool.started") expect(Object.keys(event.args as object).sort()).toEqual([...it.args].sort());
      if (event.type === "tool.completed" || event.type === "tool.failed")
        expect(JSON.stringify(event)).not.toMatch(/zq_|forged/);
    }
    const forging = it.calls.flatMap((how, index) => (how.startsWith("forges") ? [`call_${index}`] : []));
    const stripped = liveRun.events.flatMap((event) =>
      event.type === "tool.forged_arg_stripped" ? [event.callId] : [],
    );
    expect([...new Set(stripped)].sort()).toEqual(forging.sort());
    const runs = it.calls.filter((how) => how === "fits" || how === "forges").length;
    expect(liveRun.got).toHaveLength(runs);
    for (const injected of liveRun.got) {
      expect(Object.keys(injected).sort()).toEqual([...it.hidden].sort());
      for (const name of it.hidden) {
        seen.add(name);
        expect(injected[name], name).not.toBe("forged");
      }
      if (it.hidden.includes("zq_context"))
        expect(injected["zq_context"]).toBe(it.asks ? "SENTINEL-two" : "SENTINEL-one");
      if (it.hidden.includes("zq_state")) expect(injected["zq_state"]).toBe("SENTINEL-state");
      if (it.hidden.includes("zq_made")) expect(injected["zq_made"]).toEqual({ token: "made of SENTINEL-secret" });
      if (it.hidden.includes("zq_ids")) expect(injected["zq_ids"]).toMatchObject({ thread: "t1", node: "tools" });
      if (it.hidden.includes("zq_cancel")) expect(injected["zq_cancel"]).toBeInstanceOf(AbortSignal);
    }
  });
  await fc.assert(property, { numRuns: 40, seed: 7 });
  expect([...seen].sort()).toEqual([...hiddenNames].sort());
});
