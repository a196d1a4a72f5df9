/** All context middleware together on random conversations with tools: every request is valid for every provider. */
import process from "node:process";
import { createAgent } from "@statewright/agent";
import {
  clearToolResults,
  inputGuardrail,
  promptCache,
  recallMemories,
  redactPersonal,
  selectToolsByModel,
  summarise,
  trimMessages,
} from "@statewright/agent/middleware";
import {
  longTermStore,
  type Message,
  type Middleware,
  type ModelRequest,
  memoryStore,
  type Random,
} from "@statewright/core";
import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { createRecordingTool } from "../support/desk.ts";
import { checkRequest } from "../support/provider-rules.ts";

const rounds = process.env["STATEWRIGHT_WHOLE"] === "1" ? 100 : 25;

const names = ["alpha", "beta", "gamma", "delta"];

/** A random selection in the documented order, with small limits. */
function selectMiddleware({ next }: Random): readonly Middleware[] {
  const small = scriptedModel((request) =>
    request.tools.length > 0 ? call("pick_tools", { names: names.filter(() => next() < 0.6) }) : say("a summary"),
  );
  const drawUpTo = (limit: number): number => 1 + Math.floor(next() * limit);
  const all: readonly Middleware[] = [
    redactPersonal(),
    inputGuardrail({ check: ({ text }) => (text.includes("7") ? { refuse: "Not that." } : undefined) }),
    clearToolResults({ triggerTokens: drawUpTo(300), keep: drawUpTo(3) - 1, clearArgs: next() < 0.5 }),
    summarise({ model: small, triggerTokens: 100 + drawUpTo(900), keepTokens: drawUpTo(200) }),
    trimMessages({ maxTokens: 200 + drawUpTo(900), keepFirst: next() < 0.5 }),
    recallMemories({ namespace: () => ["all"] }),
    selectToolsByModel({ model: small, max: 2 }),
    promptCache(),
  ];
  return all.filter(() => next() < 0.75);
}

test("conversations with all context middleware: every request is accepted, every run ends, and no message is lost", async () => {
  const { random } = virtualClock({ seed: 21 });
  const store = memoryStore();
  await longTermStore(store).under("all").put("home", { text: "lives at 192.168.0.17" });
  let requests = 0;
  for (let round = 0; round < rounds; round++) {
    let whole: readonly Message[] = [];
    let said = "";
    const sent: ModelRequest[] = [];
    const model = scriptedModel((request) => {
      sent.push(request);
      checkRequest(request.messages, []);
      if (request.messages.find(({ role }) => role !== "system")?.role !== "user") throw new Error("no user begins it");
      if (!JSON.stringify(request.messages).includes(said)) throw new Error("what was said last is gone");
      const shown = request.tools.map(({ name }) => name);
      const calls = shown.filter(() => random.next() < 0.25);
      if (calls.length === 0 || sent.length % 9 === 0) return say(`answer ${sent.length} to ann@example.com`);
      return calls.map((name) =>
        call(name, { text: `${sent.length}` }, { id: `call_${round}_${sent.length}_${name}` }),
      );
    });
    const tools = names.map((name) =>
      createRecordingTool([], name, { gives: `${name} ${"found ".repeat(20)}bob@example.com` }),
    );
    const middleware = selectMiddleware(random);
    const agent = createAgent({ name: "a", model, instructions: "Help.", tools, middleware, store });
    const turns = 2 + Math.floor(random.next() * 4);
    for (let turn = 0; turn < turns; turn++) {
      const input = `turn ${turn} ${Math.floor(random.next() * 30)} ${"please ".repeat(20)}`;
      said = input;
      const { status, state } = await agent.run({ thread: `t${round}`, input }).result;
      expect(status).toBe("done");
      expect(state.messages.slice(0, whole.length)).toEqual(whole);
      whole = state.messages;
    }
    requests += sent.length;
    if (middleware.some(({ name }) => name === "redactPersonal"))
      expect(JSON.stringify(sent)).not.toMatch(/example\.com/);
  }
  expect(requests).toBeGreaterThan(rounds * 5);
}, 120_000);
