/** What every store must do with child lines: the rows of inner graphs, under the thread of the graph around them. */
import type { CheckpointRow, Claim, ClaimRequest, Commit, DeltaRow, Store } from "@statewright/core";
import { refused, same } from "./assert.ts";
import { checkpoint, delta, effect, interrupt, request, run, stateOf, tell } from "./store-rows.ts";
import { type StoreTest, sharedTest, storeTest } from "./store-test.ts";

export const childLineTests: readonly StoreTest[] = [
  storeTest("a child line is made by its first checkpoint, and is read as a branch is", async ({ store }) => {
    const thread = await startLines(store, "t");
    await thread.step("main", [delta("list", "append", "[1]")]);
    const question = interrupt({ id: "i1", branch: "main/1:0", step: 1 });
    const first = checkpoint(2, undefined, { branch: "main/1:0", step: 1, source: "input" }, [
      delta("topic", "replace", '"x"'),
    ]);
    await thread.commit("main/1:0", {
      checkpoint: first,
      effects: [effect({ step: 1, outcome: "1" })],
      interrupts: [question],
    });
    same(await store.head("t", "main/1:0"), first.row, "the head of the line");
    same(await store.checkpoint("t", 2), first.row, "its checkpoint");
    same(
      await store.history("t", { branch: "main/1:0", limit: 9 }),
      [{ ...first.row, deltas: first.deltas }],
      "its history",
    );
    same(await stateOf(store, "t", 2), { topic: ['replace "x"'] }, "its state");
    same(await store.effects("t", "main/1:0"), [effect({ step: 1, outcome: "1" })], "its journal");
    same(await store.effects("t", "main/1:0", 1), [effect({ step: 1, outcome: "1" })], "one step of its journal");
    same(await store.interrupts("t", "main/1:0"), [question], "its questions");
    same((await store.head("t"))?.id, 1, "the head of the branch");
    same(await stateOf(store, "t", 1), { list: ["append [1]"] }, "the state of the branch");
    same(
      [await store.effects("t", "main"), await store.interrupts("t", "main")],
      [[], []],
      "the journal of the branch",
    );
  }),

  storeTest(
    "a child line that names a parent goes on from there, and sees nothing that came later",
    async ({ store }) => {
      const thread = await startLines(store, "t");
      await thread.step("main", [delta("outer", "replace", "1")]);
      await thread.step("main/notes", [delta("list", "append", "[1]", true), delta("x", "replace", "1")]);
      await thread.step("main/notes", [delta("list", "append", "[2]")]);
      await thread.step("main/notes", [delta("list", "append", "[3]"), delta("late", "replace", "3")]);
      await thread.step("main/1:0", [delta("list", "append", "[9]")], { parent: 3 });
      same(
        await stateOf(store, "t", 5),
        { list: ["append [1]", "append [2]", "append [9]"], x: ["replace 1"] },
        "the state",
      );
      same(await idsOf(store, "main/1:0"), [5, 3, 2], "the history");
      same((await store.history("t", { branch: "main/1:0", before: 5, limit: 1 }))[0]?.id, 3, "a page of the history");
      await thread.step("main/1:0", [delta("x", "clear", "")]);
      same(
        await stateOf(store, "t", 6),
        { list: ["append [1]", "append [2]", "append [9]"], x: ["clear "] },
        "the state a step later",
      );
      same(
        await stateOf(store, "t", 4),
        { late: ["replace 3"], list: ["append [1]", "append [2]", "append [3]"], x: ["replace 1"] },
        "the state of the line that it came from",
      );
      same(await idsOf(store, "main/notes"), [4, 3, 2], "the history of that line");
      await thread.step("main/1:0/own", [delta("y", "replace", "1")], { parent: 1 });
      same(
        await stateOf(store, "t", 7),
        { outer: ["replace 1"], y: ["replace 1"] },
        "a line that goes on from the branch",
      );
    },
  ),

  storeTest("a branch and its child lines are written in turns, each from its own head", async ({ store }) => {
    const thread = await startLines(store, "t");
    const lines = ["main", "main/1:0", "main/1:1", "main/1:1/0:0"];
    for (let round = 0; round < 3; round++)
      await Promise.all(lines.map((line) => thread.step(line, [delta("n", "append", `["${line} ${round}"]`)])));
    await thread.step("main/1:0", []);
    same(
      await Promise.all(lines.map((line) => idsOf(store, line))),
      [
        [9, 5, 1],
        [13, 10, 6, 2],
        [11, 7, 3],
        [12, 8, 4],
      ],
      "the histories",
    );
    same(
      await stateOf(store, "t", 12),
      { n: [0, 1, 2].map((round) => `append ["main/1:1/0:0 ${round}"]`) },
      "the state of the innermost line",
    );
    await refused(
      thread.commit("main/1:0", { checkpoint: checkpoint(14, 11, { branch: "main/1:0" }) }),
      "store_failed",
      "the head of a sibling as parent",
    );
    await refused(
      thread.commit("main/1:0", { checkpoint: checkpoint(13, 13, { branch: "main/1:0" }) }),
      "store_failed",
      "an id that was used",
    );
    await refused(
      thread.commit("main/1:1", { checkpoint: checkpoint(12, 11, { branch: "main/1:1" }) }),
      "store_failed",
      "an id that a sibling used",
    );
    await thread.commit("main/1:0", { release: true });
    const claim = await store.claim(request("t"));
    same([claim.nextCheckpoint, claim.head?.id, claim.branch], [14, 9, "main"], "the next claim");
    const seqs = await Promise.all(lines.map(async (line) => (await store.head("t", line))?.seq ?? 0));
    same(claim.nextSeq > Math.max(...seqs), true, "the next sequence number is after those of all lines");
  }),

  storeTest("a checkpoint of a child line folds the journal of its own line, and no other", async ({ store }) => {
    const thread = await startLines(store, "t");
    const lines = ["main", "main/1:0", "main/1:1"];
    const journal = [
      effect({ step: 1, key: "task", kind: "task", outcome: "1" }),
      effect({ step: 1, key: "model", outcome: "2" }),
      effect({ step: 1, key: "pay", kind: "tool", effect: "once", outcome: "3" }),
    ];
    for (const line of lines) {
      await thread.step(line);
      await thread.commit(line, { effects: journal });
    }
    await thread.step("main/1:0");
    const outcomes = async (line: string) =>
      (await store.effects("t", line)).map(({ key, outcome }) => `${key} ${outcome ?? "folded"}`);
    const kept = ["task 1", "model 2", "pay 3"];
    const folded = ["model folded", "pay 3"];
    same(await Promise.all(lines.map(outcomes)), [kept, folded, kept], "after a step of one child line");
    await thread.step("main");
    same(await Promise.all(lines.map(outcomes)), [folded, folded, kept], "after a step of the branch");
    await thread.step("main/2:0", [], { parent: 3 }, { effects: journal });
    same(await outcomes("main/2:0"), kept, "the rows that came with the first checkpoint of a line");
    same(await outcomes("main/1:1"), kept, "the rows of the line that it goes on from");
  }),

  storeTest("no list shows child lines, and they change neither head branch nor newest run", async ({ store }) => {
    const thread = await startLines(store, "t");
    await thread.commit("main", { run: run("r1") });
    await thread.step("main");
    await thread.step("main/1:0");
    await thread.step("main/1:0/0:0");
    await thread.commit("main/1:0", { release: true });
    same(await store.branches("t"), [{ name: "main", head: 1 }], "the branches");
    same(
      (await store.threads()).map(({ id, headBranch, status }) => [id, headBranch, status]),
      [["t", "main", "crashed"]],
      "the threads",
    );
    same(
      (await store.runs()).map(({ id, branch }) => [id, branch]),
      [["r1", "main"]],
      "the runs",
    );
    const claim = await store.claim(request("t"));
    same([claim.branch, claim.head?.id, claim.run?.id], ["main", 1, "r1"], "the next claim");
  }),

  storeTest(
    "a child line is not made without a checkpoint, without its parent line, or from nowhere",
    async ({ store }) => {
      const thread = await startLines(store, "t");
      const before = (await store.thread("t"))?.updatedAt;
      const rows = { effects: [effect({ step: 1, startedAt: 900 })], interrupts: [interrupt({})] };
      const from = (line: string, parent?: number) => ({
        checkpoint: checkpoint(1, parent, { branch: line }),
        ...rows,
      });
      await refused(thread.commit("main/1:0", rows), "unknown_branch", "a commit without a checkpoint");
      await refused(thread.commit("main/1:0", { release: true }), "unknown_branch", "a release");
      await refused(thread.commit("main/1:0", from("main/1:0", 7)), "store_failed", "a parent that is not there");
      await refused(
        thread.commit("main/1:0/0:0", from("main/1:0/0:0")),
        "unknown_branch",
        "a line whose parent is not there",
      );
      await refused(thread.commit("none/1:0", from("none/1:0")), "unknown_branch", "a child line of no branch");
      await refused(thread.commit("none", from("none")), "unknown_branch", "a branch that is not there");
      for (const line of ["main/1:0", "main/1:0/0:0", "none/1:0", "none"]) {
        same(
          [await store.head("t", line), await store.effects("t", line), await store.interrupts("t", line)],
          [null, [], []],
          line,
        );
      }
      same([await store.checkpoint("t", 1), (await store.thread("t"))?.updatedAt], [null, before], "what is kept");
      await thread.step("main/1:0");
      same((await store.head("t", "main/1:0"))?.id, 1, "the line after a right commit");
    },
  ),

  storeTest("R4 names of child lines outside the grammar are refused, not changed", async ({ store }) => {
    const thread = await startLines(store, "t");
    await thread.step("main");
    const bad = [
      "",
      "a b",
      "a\n",
      "ä",
      "\ud800",
      "a'b",
      "__proto__",
      "constructor",
      "x".repeat(129),
      "/",
      "a//b",
      "a/",
    ];
    for (const segment of bad) {
      const line = `main/${segment}`;
      const write = { checkpoint: checkpoint(2, undefined, { branch: line }), effects: [effect({ step: 1 })] };
      await refused(thread.commit(line, write), "invalid_id", JSON.stringify(line));
      same([await store.head("t", line), await store.effects("t", line)], [null, []], JSON.stringify(line));
    }
    await refused(
      thread.commit("/1:0", { checkpoint: checkpoint(2, undefined, { branch: "/1:0" }) }),
      "invalid_id",
      "a line without a branch",
    );
    same(await store.checkpoint("t", 2), undefined, "the checkpoint of a refused commit");
    await thread.step(`main/${"x".repeat(128)}`);
    await thread.commit("main", { release: true });
    await refused(store.claim(request("t", { branch: "main/1:0" })), "invalid_id", "a claim of a child line");
    for (const segment of bad)
      await refused(forkLines(store, "b", 1, { [`b/${segment}`]: 1 }), "invalid_id", JSON.stringify(segment));
    await refused(forkLines(store, "b/1:0", 1, {}), "invalid_id", "a fork that is a child line");
    same((await store.branches("t")).length, 1, "the branches");
  }),

  storeTest("journal rows of the lines around one are written with its commit, or not at all", async ({ store }) => {
    const thread = await startLines(store, "t");
    await thread.step("main");
    await thread.step("main/1:0");
    const entry = effect({ step: 1, task: "1:0/ledger", kind: "task", effect: "idempotent", outcome: "1" });
    const own = effect({ step: 2, outcome: "2" });
    const around = [{ line: "main", effects: [entry] }];
    const journals = async () => [await store.effects("t", "main"), await store.effects("t", "main/1:0")];
    await refused(thread.commit("main/1:0", { effects: [own], around, after: 99 }), "store_failed", "a gap");
    const nowhere = [{ line: "main/9:9", effects: [entry] }];
    await refused(thread.commit("main/1:0", { effects: [own], around: nowhere }), "unknown_branch", "a line around");
    same(await journals(), [[], []], "the journals");
    await thread.commit("main/1:0", { effects: [own], around });
    same(await journals(), [[entry], [own]], "the journals after a right commit");
    await thread.step(
      "main/1:0",
      [],
      { step: 3 },
      { around: [{ line: "main", effects: [{ ...entry, outcome: "3" }] }] },
    );
    same((await store.effects("t", "main"))[0]?.outcome, "3", "the row, written again beside a checkpoint");
    await thread.step("main", [], { step: 2 });
    same(await store.effects("t", "main"), [], "the journal of the line when its own step is folded");
  }),

  storeTest("a fork takes child lines along, each from its own checkpoint with an edit", async ({ store }) => {
    const thread = await startLines(store, "t");
    const claim = { version: 2, shape: "s2" };
    await thread.step("main", [delta("list", "append", "[1]")]);
    await thread.step("main/1:0", [delta("draft", "append", '["a"]')]);
    await thread.step("main/1:0/0:0", [delta("deep", "replace", "1")]);
    await thread.step("main/1:0", [delta("draft", "append", '["b"]')]);
    await thread.step("main", [delta("list", "append", "[2]")]);
    await thread.commit("main", { release: true });
    const lines = ["main", "main/1:0", "main/1:0/0:0"];
    const originals = async () => JSON.stringify(await Promise.all(lines.map((line) => everythingOf(store, line))));
    const before = await originals();
    const made = await forkLines(store, "b", 1, { "b/1:0": 2, "b/1:0/0:0": 3 });
    same([made.id, made.branch, made.parent], [6, "b", 1], "the first checkpoint of the branch");
    const inner = await store.head("t", "b/1:0");
    same(
      [inner?.id, inner?.branch, inner?.parent, inner?.seq],
      [7, "b/1:0", 2, made.seq + 1],
      "that of its child line",
    );
    same((await store.head("t", "b/1:0/0:0"))?.id, 8, "that of the line inside it");
    same(await stateOf(store, "t", 6), { edit: ['replace "b"'], list: ["append [1]"] }, "the state of the branch");
    same(
      await stateOf(store, "t", 7),
      { draft: ['append ["a"]'], edit: ['replace "b/1:0"'] },
      "the state of its child line",
    );
    same(
      await stateOf(store, "t", 8),
      { deep: ["replace 1"], edit: ['replace "b/1:0/0:0"'] },
      "the state of the line inside it",
    );
    same(await idsOf(store, "b/1:0"), [7, 2], "the history of the child line");
    same(await originals(), before, "the originals");
    same(
      await store.branches("t"),
      [
        { name: "main", head: 5 },
        { name: "b", from: 1, head: 6 },
      ],
      "the branches",
    );
    const next = await startLines(store, "t", { ...claim, branch: "b" });
    same(
      [next.claim.nextCheckpoint, next.claim.nextSeq, next.claim.writtenBy.shape],
      [9, made.seq + 3, "s1"],
      "the claim",
    );
    await next.step("b/1:0", [delta("draft", "append", '["c"]')], { parent: 7 });
    same(
      await stateOf(store, "t", 9),
      { draft: ['append ["a"]', 'append ["c"]'], edit: ['replace "b/1:0"'] },
      "the state of the child line a step later",
    );
    same(await originals(), before, "the originals after that");
  }),

  storeTest("a fork of which one line is refused makes nothing", async ({ store }) => {
    const thread = await startLines(store, "t");
    await thread.step("main");
    await thread.step("main/1:0");
    await thread.commit("main", { release: true });
    const before = await everythingOf(store, "main");
    await refused(forkLines(store, "b", 1, { "b/1:0": 2, "b/a b": 2 }), "invalid_id", "a bad name");
    await refused(forkLines(store, "b", 1, { "b/1:0": 2, "main/2:0": 2 }), "invalid_id", "a line of another branch");
    await refused(forkLines(store, "b", 1, { "b/1:0": 2, b: 2 }), "thread_exists", "the branch again");
    await refused(
      forkLines(store, "b", 1, { "b/1:0": 2, "b/1:1/0:0": 2 }),
      "unknown_branch",
      "a line without its parent",
    );
    await refused(forkLines(store, "b", 1, { "b/1:0": 3 }), "unknown_checkpoint", "a checkpoint to come");
    same(
      [await store.branches("t"), await everythingOf(store, "main")],
      [[{ name: "main", head: 1 }], before],
      "the thread",
    );
    same([await store.head("t", "b/1:0"), await store.checkpoint("t", 3)], [null, null], "what a refused fork made");
    same((await forkLines(store, "b", 1, { "b/1:0": 2 })).id, 3, "the first checkpoint of a right one");
  }),

  sharedTest("child lines go on under the owner that takes their thread over", async ({ store, crash }) => {
    const thread = await startLines(store, "t");
    await thread.step("main");
    await thread.step("main/1:0", [delta("n", "append", "[1]")]);
    await thread.commit("main/1:0", { effects: [effect({ step: 1, effect: "once", state: "started" })] });
    const next = crash();
    const after = await startLines(next, "t");
    same([after.claim.recovered, after.claim.nextCheckpoint, after.claim.head?.id], [true, 3, 1], "the claim");
    same((await next.effects("t", "main/1:0")).length, 1, "the journal of the child line");
    await after.step("main/1:0", [delta("n", "append", "[2]")], { parent: 2 });
    await after.step("main/1:1", [delta("n", "append", "[3]")]);
    same(await stateOf(next, "t", 3), { n: ["append [1]", "append [2]"] }, "the state of the child line");
    same(await idsOf(next, "main/1:0"), [3, 2], "its history");
    same(await idsOf(next, "main/1:1"), [4], "the history of a new one");
  }),

  sharedTest("a writer that is not the owner any more is refused on child lines too", async ({ store, peer }) => {
    const stale = await startLines(store, "t");
    await stale.step("main");
    await stale.step("main/1:0");
    await stale.commit("main", { release: true });
    const next = await startLines(peer(), "t");
    await next.step("main/1:0", [], { parent: 2 });
    for (const line of ["main/1:0", "main/1:1", "main/1:0/0:0"]) {
      const known = line === "main/1:0" ? 2 : undefined;
      const write = { checkpoint: checkpoint(4, known, { branch: line }), effects: [effect({ step: 5 })] };
      await refused(stale.commit(line, write), "fenced", line);
      await refused(stale.commit(line, { effects: [effect({ step: 5 })] }), "fenced", `${line}, without a checkpoint`);
      same(await store.effects("t", line), [], `the journal of ${line}`);
    }
    same([await idsOf(store, "main/1:0"), await idsOf(store, "main/1:1")], [[3, 2], []], "the histories");
  }),

  storeTest(
    "of commits that wait together a refused one leaves its neighbours on other lines alone",
    async ({ store }) => {
      const thread = await startLines(store, "t");
      await thread.step("main");
      const settled = await Promise.allSettled([
        thread.commit("main/1:0", { checkpoint: checkpoint(2, undefined, { branch: "main/1:0" }) }),
        thread.commit("main/1:1", { checkpoint: checkpoint(3, 9, { branch: "main/1:1" }) }),
        thread.commit("main/1:0", { checkpoint: checkpoint(3, 2, { branch: "main/1:0" }) }),
        thread.commit("main/1:1", { checkpoint: checkpoint(4, undefined, { branch: "main/1:1" }) }),
        thread.commit("main/1:1", { effects: [effect({ step: 4 })] }),
        thread.commit("main/1:0", { checkpoint: checkpoint(4, 3, { branch: "main/1:0" }) }),
        thread.commit("main", { checkpoint: checkpoint(5, 1) }),
      ]);
      same(
        settled.map(({ status }) => status === "fulfilled"),
        [true, false, true, true, true, false, true],
        "what was taken",
      );
      same(
        await Promise.all(["main", "main/1:0", "main/1:1"].map((line) => idsOf(store, line))),
        [[5, 1], [3, 2], [4]],
        "the histories",
      );
      same((await store.effects("t", "main/1:1")).length, 1, "the journal");
    },
  ),
];

/** A claimed thread whose lines are written in turns. */
async function startLines(store: Store, thread: string, options: Partial<ClaimRequest> = {}) {
  const claim: Claim = await store.claim(request(thread, options));
  let { nextSeq: seq, nextCheckpoint: id } = claim;
  const heads = new Map([[claim.branch, claim.head?.id]]);
  const commit = (line: string, write: Partial<Commit>): Promise<void> =>
    tell(store, { thread, branch: line, epoch: claim.epoch, seq: seq++, ...write });
  return {
    claim,
    commit,
    /** Write the next checkpoint of a line. */
    step: (
      line: string,
      deltas: readonly DeltaRow[] = [],
      more: Partial<CheckpointRow> = {},
      rows: Partial<Commit> = {},
    ): Promise<void> => {
      const row = { branch: line, step: heads.has(line) ? id : 1, seq, ...more };
      const write = checkpoint(id++, heads.get(line), row, deltas);
      heads.set(line, write.row.id);
      return commit(line, { checkpoint: write, ...rows });
    },
  };
}

/** A fork of the thread `t` with child lines, each from its checkpoint; every line has its name as an edit. */
function forkLines(
  store: Store,
  branch: string,
  from: number,
  inner: Readonly<Record<string, number>>,
): Promise<CheckpointRow> {
  const first = (line: string, parent: number) =>
    checkpoint(0, parent, { branch: line, source: "fork" }, [delta("edit", "replace", JSON.stringify(line))]);
  return store.branch({
    thread: "t",
    branch,
    from,
    checkpoint: first(branch, from),
    interrupts: [],
    inner: Object.entries(inner).map(([line, at]) => ({ line, from: at, checkpoint: first(line, at) })),
  });
}

async function idsOf(store: Store, line: string): Promise<readonly number[]> {
  return (await store.history("t", { branch: line, limit: 99 })).map(({ id }) => id);
}

/** All that a store tells of a line of the thread `t`. */
async function everythingOf(store: Store, line: string): Promise<unknown> {
  const history = await store.history("t", { branch: line, limit: 99 });
  return [
    history,
    await Promise.all(history.map(({ id }) => store.state("t", id))),
    await store.effects("t", line),
    await store.interrupts("t", line),
  ];
}
