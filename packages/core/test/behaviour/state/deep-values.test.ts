/** The depth limit of a value is the same in every place, whatever wraps the value when it is saved. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  defineTool,
  END,
  edit,
  goto,
  inputNode,
  memoryStore,
  resume,
  run,
  START,
  send,
  toolNode,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";

/** Creates a value with the given number of levels. */
function nested(levels: number): unknown {
  let value: unknown = "bottom";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { in: value };
  return value;
}

function listLevels(value: unknown): number {
  let levels = 0;
  for (let at = value; typeof at === "object" && at !== null; at = Object.values(at)[0]) levels += 1;
  return levels;
}

const State = defineState({
  value: z.unknown().optional(),
  held: z.object({ inside: z.unknown().optional() }).default({}),
  items: channel.list(z.unknown()),
  seen: z.number().default(0),
});
const ways = ["returned", "drafted", "appended", "sent", "asked", "given"] as const;

/** Creates a graph that receives the value from one source, with or without a waiting sibling. */
function deep(way: (typeof ways)[number], levels: number, isBeside: boolean) {
  return defineGraph({
    name: "deep",
    state: State,
    interrupts: { ok: z.boolean(), look: { payload: z.unknown(), answer: z.boolean() } },
  })
    .nodes({
      give: async (_, { interrupt }) => {
        if (way === "sent") return send("take", nested(levels));
        if (way === "returned") return goto(END, { value: nested(levels) });
        if (way === "appended") return goto(END, { items: [nested(levels - 1)] });
        if (way === "asked") await interrupt("look", { payload: nested(levels) });
        return goto(END);
      },
      draft: () =>
        way === "drafted"
          ? edit((draft: { held: { inside?: unknown } }) => {
              draft.held.inside = nested(levels - 1);
            })
          : {},
      ask: async (_, { interrupt }) => {
        if (isBeside) await interrupt("ok");
      },
      take: inputNode(z.unknown(), (_, { input }) => ({ seen: listLevels(input) })),
    })
    .edges({ [START]: ["give", "draft", "ask"], give: commandTargets("take", END), draft: END, ask: END, take: END });
}

test("a value of 500 levels is accepted from every source, also next to a waiting task, and a value of 501 levels is refused", async () => {
  for (const way of ways) {
    for (const isBeside of [false, true]) {
      const name = `${way}${isBeside ? " beside a question" : ""}`;
      const store = memoryStore();
      const start = (levels: number, more = {}) =>
        run(deep(way, levels, isBeside), {
          ...{ store, thread: "t", ...more },
          input: way === "given" ? { value: nested(levels) } : {},
        }).result;
      const answers = { ...(isBeside ? { ok: true } : {}), ...(way === "asked" ? { look: true } : {}) };
      const first = await start(500);
      expect(first.status, name).toBe(isBeside || way === "asked" ? "waiting" : "done");
      if (way === "given" && isBeside) expect((await start(500, { onBusy: "enqueue" })).status, name).toBe("queued");
      const { state } =
        first.status === "done"
          ? first
          : await resume(deep(way, 500, isBeside), { store: store.peer(), thread: "t", answers }).result;
      const found = { returned: state.value, given: state.value, drafted: state.held, appended: state.items };
      if (way === "sent") expect(state.seen, name).toBe(500);
      else if (way !== "asked") expect(listLevels(found[way]), name).toBe(500);
      const refusal = await getFailure(start(501, { thread: "u" }), "unencodable_value");
      expect(refusal.message, name).toContain("more than 500 levels");
    }
  }
});

test("a tool result too deep for the conversation is answered as unsavable and the run continues", async () => {
  const ended: string[] = [];
  for (let levels = 494; levels <= 502; levels++) {
    const dig = defineTool({
      name: "dig",
      description: "Digs.",
      input: z.object({}),
      run: () => nested(levels) as readonly never[],
    });
    const graph = defineGraph({ name: "digging", state: defineState({ messages: channel.messages() }) })
      .nodes({ tools: toolNode({ tools: [dig] }) })
      .edges({ [START]: "tools", tools: END });
    const asked = { role: "assistant", id: "a", finish: "calls", usage: {}, content: [createCall("dig")] } as const;
    const input = { messages: [asked as never] };
    const { status, state } = await run(graph, { store: memoryStore(), thread: "t", input }).result;
    const last = state.messages.at(-1);
    ended.push(`${status} ${last?.role === "tool" && last.isError ? "refused" : "kept"}`);
  }
  expect([...new Set(ended)]).toEqual(["done kept", "done refused"]);
});

function createCall(name: string) {
  return { type: "call", id: "c", name, args: {} } as const;
}
