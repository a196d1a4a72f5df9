/** Sub-agents over a SQLite file: interrupts, and reads of their namespaces from another store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import {
  agentTool,
  createAgent,
  defineTool,
  getHistory,
  getMessageText,
  getState,
  handoff,
  sqliteStore,
  team,
} from "statewright";
import { pruneThread } from "statewright/inspect";
import { confirmTools } from "statewright/middleware";
import { afterAll, expect, test } from "vitest";
import * as z from "zod";

const home = mkdtempSync(join(tmpdir(), "statewright-sub-agents-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const paid: number[] = [];
const pay = defineTool({
  name: "pay",
  description: "Pay.",
  input: z.object({ cents: z.int() }),
  effect: "once",
  safety: { access: "write", confirm: "always" },
  run: ({ cents }) => {
    paid.push(cents);
    return `paid ${cents}`;
  },
});

function createDesk() {
  const clerk = createAgent({
    name: "clerk",
    model: scriptedModel((request) => {
      const last = request.messages.at(-1);
      return last?.role === "user"
        ? call("pay", { cents: Number(getMessageText(last)) })
        : say(getMessageText(last as never));
    }),
    tools: [pay],
    middleware: [confirmTools()],
  });
  const model = scriptedModel((request) =>
    request.messages.at(-1)?.role === "user"
      ? [call("clerk", { task: "7" }), call("clerk", { task: "8" })]
      : say("Done."),
  );
  const agent = createAgent({ name: "desk", model, tools: [agentTool(clerk, { description: "Pays." })] });
  return { agent, clerk, model };
}

test("interrupts of two sub-agents are answered after the file was reopened, and each sub-agent pays once", async () => {
  const path = join(home, "desk.db");
  const first = sqliteStore(path);
  const waits = await createDesk().agent.run({ store: first, thread: "t", input: "Pay both." }).result;
  expect(waits).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "clerk.approve" }, { key: "clerk.approve" }],
  });
  const ids = waits.status === "waiting" ? waits.interrupts.map(({ id }) => id) : [];
  await first.close();

  const store = sqliteStore(path);
  const { agent, clerk, model } = createDesk();
  const inside = await getState(clerk, { store, thread: "t", nesting: "clerk" });
  expect(inside.state.messages.map(getMessageText)).toEqual(["8", ""]);
  const answers = Object.fromEntries(ids.map((id) => [id, true])) as { readonly [id: `${string}:${string}`]: boolean };
  const end = await agent.resume({ store, thread: "t", answers }).result;
  expect(end.status).toBe("done");
  expect(paid.toSorted()).toEqual([7, 8]);
  // The first process requested the calls; this process requests only the final answer.
  expect(model.requests).toHaveLength(1);
  const lines = new Set<string>();
  for await (const { branch } of getHistory(clerk, { store, thread: "t", nesting: "clerk" })) lines.add(branch);
  expect([...lines]).toEqual(["main/1:0:1", "main/1:0:0"]);
  await pruneThread(store, { thread: "t", keepLast: 1 });
  expect((await getState(agent, { store, thread: "t" })).state).toEqual(end.state);
  await store.close();
});

test("a team continues with its active agent after the file was reopened", async () => {
  const path = join(home, "team.db");
  const createOffice = () => {
    const billing = scriptedModel([say("It is paid."), say("On Monday.")]);
    const agents = [
      createAgent({
        name: "triage",
        model: scriptedModel([call("transfer_to_billing", {})]),
        tools: [handoff("billing")],
      }),
      createAgent({ name: "billing", model: billing }),
    ] as const;
    return team({ name: "office", agents });
  };
  const first = sqliteStore(path);
  await createOffice().run({ store: first, thread: "t", input: "Is it paid?" }).result;
  await first.close();
  const store = sqliteStore(path);
  const { state } = await createOffice().run({ store, thread: "t", input: "When?" }).result;
  expect(state.messages.map(getMessageText).at(-1)).toBe("On Monday.");
  expect(state.activeAgent).toBe("billing");
  await store.close();
});
