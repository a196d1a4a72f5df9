/** Ids of messages and interrupts over the branches of a thread: an id names one content. */
import { call, say, scriptedModel } from "@statewright/testing";
import fc from "fast-check";
import {
  agentTool,
  createAgent,
  defineTool,
  durableMachine,
  editMessage,
  fork,
  getState,
  isStatewrightError,
  listInterrupts,
  type Message,
  resume,
  run,
  type Store,
  streamEvents,
  updateState,
  userMessage,
} from "statewright";
import { confirmTools } from "statewright/middleware";
import { expect, test } from "vitest";
import { setup } from "xstate";
import * as z from "zod";
import { places } from "../../support/both-stores.ts";

const thread = "t";

/** Agent whose replies and results are all different, with a tool that asks a person and a sub-agent. */
function createClerk() {
  let count = 0;
  const helper = createAgent({
    name: "helper",
    model: scriptedModel(() => say(`help ${++count}`), { key: "transcript" }),
  });
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    input: z.object({ amount: z.number() }),
    effect: "once",
    safety: { confirm: "always" },
    run: ({ amount }) => `paid ${amount}, receipt ${++count}`,
  });
  const model = scriptedModel(({ messages }) => {
    count += 1;
    if (messages.at(-1)?.role !== "user") return say(`answer ${count}`);
    return [call("pay", { amount: count }), call("ask_helper", { task: `task ${count}` })];
  });
  return createAgent({
    name: "clerk",
    model,
    tools: [pay, agentTool(helper, { name: "ask_helper", description: "Helps." })],
    middleware: [confirmTools()],
  });
}

/** Names that contain the separators of ids. */
const oddNames = ["b", "b.1", "0:0", "b.1:0:pay", "1.b", "b:2"];

type Step = readonly [kind: number, place: number, choice: number];

/** Performs one random operation on a random branch. Returns false for a refused operation. */
async function perform(clerk: ReturnType<typeof createClerk>, store: Store, nth: number, step: Step): Promise<boolean> {
  const [kind, place, choice] = step;
  const branches = await store.branches(thread);
  const branch = branches[place % branches.length]?.name ?? "main";
  const at = { store, thread, branch };
  try {
    if (kind < 3) await run(clerk, { ...at, input: { messages: [userMessage(`input ${nth}`)] } }).result;
    else if (kind < 6) {
      const open = (await listInterrupts(store, { thread })).filter((row) => row.branch === branch);
      const answers = Object.fromEntries(open.map(({ id }, index) => [id, { approved: (choice + index) % 3 > 0 }]));
      await resume(clerk, { ...at, answers: answers as never }).result;
    } else if (kind < 9) {
      const history = await store.history(thread, { branch, limit: 100 });
      const from = history[choice % history.length]?.id ?? 0;
      await fork(clerk, { store, thread, at: from, name: `${oddNames[choice % oddNames.length]}${nth}` });
    } else if (kind < 10) {
      const { state } = await getState(clerk, at);
      const own = state.messages.filter(({ role }) => role === "user");
      const { id = "" } = own[choice % own.length] ?? {};
      const message = { ...userMessage(`edited ${nth}`), id } as Message;
      await (await editMessage(clerk, { ...at, message, name: `${oddNames[choice % oddNames.length]}${nth}` })).result;
    } else await updateState(clerk, { ...at, values: { messages: [userMessage(`note ${nth}`)] } } as never);
    return true;
  } catch (error) {
    if (isStatewrightError(error)) return false;
    throw error;
  }
}

/** Lists all messages that the thread ever saved, by call of the sub-agent and id. */
async function listMessages(store: Store): Promise<readonly (readonly [string, string])[]> {
  const found: [string, string][] = [];
  for await (const event of streamEvents({ store, thread })) {
    if (event.type !== "step.committed") continue;
    const delta = event.changes["messages"];
    const values =
      delta?.kind === "append" ? delta.items : delta?.kind === "patch" ? delta.patches.map(({ value }) => value) : [];
    for (const value of values) {
      if (value === undefined) continue;
      const message = value as Message;
      found.push([`${event.withinId ?? ""} ${message.id}`, JSON.stringify(message)]);
    }
  }
  return found;
}

/** Expects that no id has two contents. */
function expectOneContent(entries: readonly (readonly [string, string])[]): void {
  const known = new Map<string, string>();
  for (const [id, content] of entries) expect([id, known.get(id) ?? content]).toEqual([id, content]);
  for (const [id, content] of entries) known.set(id, content);
  for (const [id, content] of entries) expect([id, known.get(id)]).toEqual([id, content]);
}

for (const [name, open] of places)
  test(`over random forks, edits, updates and answers ${name} no message and no interrupt shares its id with another content [SE1, FX16]`, async () => {
    const seen = { branches: 0, refused: 0, interrupts: 0, messages: 0 };
    const steps = fc.array(fc.tuple(fc.nat(11), fc.nat(20), fc.nat(100)), { minLength: 8, maxLength: 16 });
    await fc.assert(
      fc.asyncProperty(steps, async (chosen) => {
        const place = open();
        const clerk = createClerk();
        try {
          await run(clerk, { store: place.store, thread, input: { messages: [userMessage("begin")] } }).result;
          for (const [nth, step] of chosen.entries())
            if (!(await perform(clerk, place.store, nth, step))) seen.refused += 1;
          const messages = await listMessages(place.store);
          expectOneContent(messages);
          const branches = await place.store.branches(thread);
          const rows = await Promise.all(branches.map((branch) => place.store.interrupts(thread, branch.name)));
          expectOneContent(rows.flat().map((row) => [row.id, JSON.stringify(row)]));
          seen.branches += branches.length;
          seen.interrupts += rows.flat().length;
          seen.messages += messages.length;
        } finally {
          await place.close();
        }
      }),
      { numRuns: name === "in memory" ? 60 : 10, seed: 16 },
    );
    expect(Math.min(seen.branches, seen.interrupts, seen.messages)).toBeGreaterThan(30);
  });

test("ids made on main have no branch, and ids made on a branch begin with it, also in a sub-agent [SE1]", async () => {
  const place = places[0]?.[1]();
  if (place === undefined) throw new Error("no store");
  const { store } = place;
  const clerk = createClerk();
  await run(clerk, { store, thread, input: { messages: [userMessage("begin")] } }).result;
  const [first] = (await store.history(thread, { branch: "main", limit: 10 })).toReversed();
  for (const name of ["b2", "b.3"]) {
    await fork(clerk, { store, thread, at: first?.id ?? 0, name });
    await resume(clerk, { store, thread, branch: name }).result;
  }
  const rows = await Promise.all(["main", "b2", "b.3"].map((branch) => store.interrupts(thread, branch)));
  const ids = rows.flat().map(({ id }) => id);
  expect(ids.map((id) => id.replace(/[^:]*$/, ""))).toEqual(["1:0:", "b2.1:0:", "b..3.1:0:"]);
  for (const { branch, id } of rows.flat())
    await resume(clerk, { store, thread, branch, answers: { [id]: { approved: true } } as never }).result;
  const messages = (await listMessages(store)).map(([id]) => id.trim());
  for (const id of ["0:0:model", "b2.0:0:model", "b..3.0:0:model", "1:0:1 0:0:model", "1:0:1 b2.0:0:model"])
    expect(messages).toContain(id);
  await place.close();
});

test("an answer to an interrupt of one branch never reaches the same interrupt of another branch [SE1]", async () => {
  for (const [, open] of places) {
    const place = open();
    const { store } = place;
    const door = durableMachine(
      setup({}).createMachine({
        id: "door",
        initial: "shut",
        states: { shut: { on: { OPEN: "open" } }, open: { type: "final" } },
      }),
      { version: 1 },
    );
    await run(door, { store, thread }).result;
    const head = await store.head(thread);
    await fork(door, { store, thread, at: head?.id ?? 0, name: "b2" });
    await resume(door, { store, thread, branch: "b2" }).result;
    const open2 = await listInterrupts(store, { thread });
    expect(open2.map(({ branch, id }) => [branch, id]).sort()).toEqual([
      ["b2", "b2.0:OPEN"],
      ["main", "0:OPEN"],
    ]);
    await resume(door, { store, thread, branch: "b2", answers: { "b2.0:OPEN": {} } as never }).result;
    expect((await listInterrupts(store, { thread })).map(({ id }) => id)).toEqual(["0:OPEN"]);
    await place.close();
  }
});

test("a fork keeps the answers given before it, under the ids of its branch, and asks no second time [SE1]", async () => {
  for (const [, open] of places) {
    const place = open();
    const { store } = place;
    const clerk = createClerk();
    await run(clerk, { store, thread, input: { messages: [userMessage("begin")] } }).result;
    const [asked] = await store.interrupts(thread, "main");
    const head = await store.head(thread, "main");
    const killed = resume(clerk, { store, thread, answers: { [asked?.id ?? ""]: { approved: false } } as never });
    await killed.result;
    await fork(clerk, { store, thread, at: head?.id ?? 0, name: "b2" });
    const again = await resume(clerk, { store, thread, branch: "b2" }).result;
    expect(again.status).toBe("waiting");
    expect((await store.interrupts(thread, "b2")).map(({ id }) => id)).toEqual([`b2.${asked?.id}`]);
    await place.close();
  }
});
