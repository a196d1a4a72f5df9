/** What every store must do with questions: their rows, and the list of those that wait, over all threads. */
import type { InterruptRow, QuestionFilter, Store } from "@statewright/core";
import { refused, same } from "./assert.ts";
import { checkpoint, effect, fork, interrupt, run, type StartedThread, start } from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";

export const questionTests: readonly StoreTest[] = [
  sharedTest("a question comes back with its time, its end and who answered", async ({ store, peer }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    const rows = [
      interrupt({ id: "open", expiresAt: 2_000, onExpire: '{"ok":false}', about: "a1" }),
      interrupt({ id: "gone", expiresAt: 3_000, expiredAt: 3_500 }),
      interrupt({ id: "taken", expiresAt: 4_000, onExpire: "1", expiredAt: 4_001, answer: "1", answeredAt: 4_001 }),
      interrupt({ id: "given", answer: "2", answeredAt: 5_000, answeredBy: "ann ä'\"" }),
    ];
    await thread.commit({ interrupts: rows });
    same(await peer().interrupts("t", "main"), rows, "the questions");
  }),

  sharedTest(
    "what waits is one list over all threads, the question that was asked last first",
    async ({ store, crash }) => {
      const [one, two] = [await start(store, "t"), await start(store, "u", { graph: "h" })];
      await asks(
        one,
        [interrupt({ id: "a", raisedAt: 900 }), interrupt({ id: "b", key: "sign", expiresAt: 5_000 })],
        true,
      );
      await asks(two, [interrupt({ id: "a" })], true);
      const next = crash();
      const all = await next.questions();
      same(
        all.map(({ place: _, ...row }) => row),
        [
          { ...interrupt({ id: "a" }), thread: "u", run: "r1", graph: "g" },
          { ...interrupt({ id: "b", key: "sign", expiresAt: 5_000 }), thread: "t", run: "r1", graph: "g" },
          { ...interrupt({ id: "a", raisedAt: 900 }), thread: "t", run: "r1", graph: "g" },
        ],
        "the questions",
      );
      const places = (filter: QuestionFilter) => next.questions(filter).then((rows) => rows.map(({ place }) => place));
      const [last, middle, first] = all.map(({ place }) => place);
      same(await places({ thread: "t" }), [middle, first], "those of a thread");
      same(await places({ key: "sign" }), [middle], "those of a key");
      same(await places({ graph: "g" }), [last, middle, first], "those of a graph");
      same(await places({ graph: "none" }), [], "those of another graph");
      same(await places({ at: 4_999 }), [last, middle, first], "before a time is over");
      same(await places({ at: 5_000 }), [last, first], "when it is over");
      same(await places({ limit: 2 }), [last, middle], "a page");
      same(await places({ limit: 2, before: all[1] }), [first], "the page after it");
      same(await places({ thread: "t", before: all[1], limit: 5 }), [first], "the page after it, of a thread");
      same(await places({ thread: "none" }), [], "those of a thread that is not there");
    },
  ),

  storeTest("a question that is answered, or whose run does not wait any more, is not listed", async ({ store }) => {
    const thread = await start(store, "t");
    const [first, second] = [interrupt({ id: "first" }), interrupt({ id: "second" })];
    await asks(thread, [first, second], false);
    same(await ids(store), ["second", "first"], "both");
    await thread.commit({ interrupts: [{ ...first, answer: "1", answeredAt: 400 }] });
    same(await ids(store), ["second"], "after an answer");
    await thread.commit({ run: { ...run("r1"), status: "running" } });
    same(await ids(store), [], "while the run is at work");
    await asks(thread, [second], false);
    same(await ids(store), ["second"], "asked again");
    await thread.commit({ interrupts: [{ ...second, expiredAt: 500 }] });
    same(await ids(store), [], "after its time");
    await asks(thread, [interrupt({ id: "third" })], false);
    await thread.commit({ run: { ...run("r1"), status: "cancelled", endedAt: 600 } });
    await thread.commit({ run: { ...run("r2"), status: "waiting" } });
    same(await ids(store), [], "a question of a run that was cancelled, while the next one waits");
  }),

  storeTest(
    "what was asked beside a failure is kept with the failed run, and listed once it waits",
    async ({ store }) => {
      const thread = await start(store, "t");
      const asked = interrupt({ id: "beside", about: "a1", tool: "pay" });
      await thread.commit({ run: { ...run("r1"), status: "failed", endedAt: 500 }, interrupts: [asked] });
      same(await store.interrupts("t", "main"), [asked], "the questions of the branch");
      same(await ids(store), [], "while it has failed");
      await thread.commit({ run: { ...run("r1"), status: "running" } });
      await asks(thread, [asked], false);
      same(await ids(store), ["beside"], "when it waits");
    },
  ),

  storeTest("questions of a branch are its own", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    await asks(thread, [interrupt({ id: "q" })], true);
    const answered = { ...interrupt({ id: "q" }), answer: "1", answeredAt: 5 };
    await fork(store, "t", "b", 1, [], [answered]);
    same(await ids(store), ["q"], "beside a fork that took an answer over");
    const branch = await start(store, "t", { branch: "b", run: false });
    const waiting = { ...run("r2"), branch: "b", status: "waiting" } as const;
    await branch.commit({ run: waiting, interrupts: [interrupt({ id: "q", branch: "b" })], release: true });
    same(
      (await store.questions({ thread: "t" })).map(({ branch: name, run: id }) => [name, id]),
      [
        ["b", "r2"],
        ["main", "r1"],
      ],
      "the questions of both",
    );
  }),

  storeTest("a list of questions refuses what it does not know", async ({ store }) => {
    const unknown = { node: "approve" } as QuestionFilter;
    await refused(store.questions(unknown), "invalid_option", "an unknown filter");
    await refused(store.questions({ limit: 0 }), "invalid_option", "a limit of 0");
  }),

  storeTest("a checkpoint keeps the result of a once task beside those of once effects", async ({ store }) => {
    const thread = await start(store, "t");
    await thread.step(1);
    const [node, started] = [
      effectOf({ key: "", effect: "once", outcome: '{"writes":[]}' }),
      effectOf({ task: "1:1", key: "", effect: "once", state: "started" }),
    ];
    const pay = effectOf({ task: "1:2", key: "pay", kind: "tool", effect: "once", outcome: "1", args: "00ff" });
    await thread.commit({ effects: [node, started, pay, effectOf({ task: "1:3", key: "", outcome: "2" })] });
    await thread.step(2);
    same(await store.effects("t", "main", 1), [node, started, pay], "the folded step");
    const late = { ...node, step: 2, task: "2:0" };
    await thread.commit({ checkpoint: checkpoint(3, 2), effects: [late] });
    same(await store.effects("t", "main", 2), [late], "one that came with the checkpoint that folds it");
  }),
];

/** Let the run of a thread wait for questions. */
function asks(thread: StartedThread, interrupts: readonly InterruptRow[], release: boolean): Promise<void> {
  const { thread: id, branch } = { ...thread.request, branch: thread.claim.branch };
  return thread.commit({ run: { ...run("r1"), thread: id, branch, status: "waiting" }, interrupts, release });
}

async function ids(store: Store): Promise<readonly string[]> {
  return (await store.questions()).map(({ id }) => id);
}

function effectOf(more: Partial<Parameters<typeof effect>[0]>): ReturnType<typeof effect> {
  return effect({ step: 1, kind: "task", ...more });
}
