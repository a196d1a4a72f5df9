/** A thread with a row of every kind, and all that a store tells of a thread. */
import type { CheckpointRow, Claim, Store } from "@statewright/core";
import { artifact, checkpoint, delta, effect, interrupt, letter, request, run, tell, timer } from "./store-rows.ts";

/**
 * A thread that waits: seven checkpoints on its branch and two calls of inner graphs, one of them kept; a fork; a journal
 * with every class of effect; an open and an answered question; timers; a finished, a waiting and a queued run; letters; facts;
 * three calls that gave two artifacts.
 */
export async function fill(store: Store, thread: string): Promise<Claim> {
  const claim = await store.claim(request(thread));
  const { epoch, branch } = claim;
  let seq = claim.nextSeq;
  const commit = (write: Partial<Parameters<typeof tell>[1]>): Promise<void> =>
    tell(store, { thread, branch, epoch, seq: seq++, ...write });
  const step = (
    id: number,
    parent: number | undefined,
    more: Partial<CheckpointRow> = {},
    deltas: Parameters<typeof checkpoint>[3] = [],
  ): Promise<void> => {
    const line = more.branch ?? branch;
    const row = { step: id, branch: line, seq, control: JSON.stringify({ control: `${thread} ${id}` }), ...more };
    return commit({ branch: line, checkpoint: checkpoint(id, parent, row, deltas) });
  };
  const first = { ...run("r1"), thread, branch };
  await commit({ run: { ...first, key: "first", metadata: { kind: "test", deep: { n: 1 } } } });
  await step(1, undefined, { source: "input" }, [delta("list", "append", '["a"]'), delta("last", "replace", '"one"')]);
  await commit({
    effects: [
      effect({ step: 1, key: "pay", kind: "tool", effect: "once", outcome: `"paid ${thread}"`, args: "args" }),
      effect({ step: 1, key: "model", outcome: '"model said"' }),
    ],
    interrupts: [interrupt({ id: "1:0", step: 1, answer: '"yes"', answeredAt: 130, answeredBy: "ada" })],
  });
  await step(2, 1, {}, [
    delta("list", "append", '["b"]'),
    delta("map", "patch", '[{"op":"add","path":["x"],"value":1}]'),
  ]);
  await step(3, undefined, { branch: `${branch}/2:0`, step: 1 }, [delta("inner", "replace", '"call"')]);
  await step(4, undefined, { branch: `${branch}/memory`, step: 1 }, [delta("kept", "append", '["m1"]')]);
  await step(5, 2, { step: 3 }, [delta("last", "replace", '"two"')]);
  await step(6, 4, { branch: `${branch}/memory`, step: 2 }, [delta("kept", "append", '["m2"]')]);
  await step(7, 5, { step: 4 }, [delta("map", "patch", '[{"op":"add","path":["y"],"value":2}]')]);
  await commit({
    run: { ...first, key: "first", status: "done", endedAt: 140, metadata: { kind: "test", deep: { n: 1 } } },
  });
  const second = { ...run("r2"), thread, branch, startedAt: 150 };
  await commit({ run: second });
  await step(8, 7, { source: "input", step: 5, run: "r2" }, [delta("list", "append", '["c"]')]);
  await step(9, 8, { step: 6, run: "r2" }, [delta("last", "replace", '"three"')]);
  await commit({
    run: { ...second, status: "waiting" },
    effects: [effect({ step: 6, task: "6:0", key: "step", kind: "step", effect: "idempotent", outcome: "7" })],
    artifacts: [
      await artifact(`text of ${thread}`, { run: "r2", call: "c1" }),
      await artifact(`text of ${thread}`, { run: "r2", call: "c2", name: "again.txt" }),
      await artifact(new Uint8Array([0, 255, 128]), { run: "r2", call: "c3", mimeType: "image/png", text: false }),
    ],
    interrupts: [
      interrupt({
        id: "6:0",
        step: 6,
        task: "6:0",
        schema: { type: "boolean" },
        payload: `{"ask":"${thread}"}`,
        expiresAt: 900,
      }),
    ],
    timers: [{ arm: timer({ id: "tick", generation: 6 }) }],
    events: [{ seq: seq, branch, at: 160, text: JSON.stringify({ type: "run.waiting", of: thread }) }],
    release: true,
  });
  await store.branch({
    thread,
    branch: "b",
    from: 2,
    checkpoint: checkpoint(0, 2, { branch: "b", source: "fork", step: 2 }, [delta("last", "replace", '"forked"')]),
    interrupts: [interrupt({ id: "1:0", branch: "b", step: 2, answer: '"yes"', answeredAt: 130 })],
  });
  const queued = {
    ...run("r3"),
    status: "queued",
    input: '"next"',
    queuedAt: 170,
    startedAt: 170,
    key: "third",
  } as const;
  await store.enqueue({ thread, run: queued, stops: "interrupt" });
  await store.post({ thread, ...letter({ id: "l1", messages: `["of ${thread}"]` }) });
  await store.post({ thread, branch: "b", ...letter({ id: "l1", kind: "followUp" }) });
  return claim;
}

/** The lines that `fill` makes. */
export const filledLines = ["main", "main/2:0", "main/memory", "b"] as const;

/** Everything that a store tells of a thread, but its id. */
export async function portrait(store: Store, thread: string): Promise<object> {
  const lines = await Promise.all(filledLines.map((line) => linePortrait(store, thread, line)));
  const { id: _, ...row } = (await store.thread(thread)) ?? { id: undefined };
  return {
    row,
    branches: await store.branches(thread),
    runs: (await store.runs({ thread })).map(({ thread: _of, ...each }) => each),
    lines,
    states: Object.fromEntries(
      await Promise.all(
        [...new Set(lines.flatMap(({ history }) => history.map(({ id }) => id)))].map(
          async (id) => [id, (await store.state(thread, id)).toSorted(byChannel)] as const,
        ),
      ),
    ),
    questions: (await store.questions({ thread })).map(({ thread: _of, place: _place, ...each }) => each),
    timers: (await store.timers({ thread })).map(({ thread: _of, ...each }) => each),
    events: await store.events(thread, { after: 0, limit: 1_000 }),
    artifacts: await artifactsPortrait(store, thread),
  };
}

async function artifactsPortrait(store: Store, thread: string): Promise<readonly object[]> {
  const rows = await store.artifacts.list(thread);
  return Promise.all(
    rows.map(async (row) => ({ row, body: [...((await store.artifacts.read(thread, row.key)) ?? [])] })),
  );
}

/** The order of channels is a store's own. */
function byChannel(one: { readonly channel: string }, other: { readonly channel: string }): number {
  return one.channel < other.channel ? -1 : 1;
}

async function linePortrait(store: Store, thread: string, line: string) {
  return {
    line,
    head: await store.head(thread, line),
    history: await store.history(thread, { branch: line, limit: 1_000 }),
    effects: await store.effects(thread, line),
    interrupts: await store.interrupts(thread, line),
    inbox: await store.inbox(thread, line),
  };
}
