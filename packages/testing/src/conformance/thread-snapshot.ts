/** Fills a thread with a row of every kind, and reads all rows that a store returns for a thread. */

import type { Store } from "@statewright/core";
import type { CheckpointRow, Claim } from "@statewright/core/store";
import {
  commitWrite,
  createArtifact,
  createCheckpoint,
  createClaimRequest,
  createDelta,
  createEffect,
  createInboxMessage,
  createInterrupt,
  createRun,
  createTimer,
} from "./store-rows.ts";

/**
 * Creates a waiting thread with a title, metadata, a tenant and an owner, with seven checkpoints on its branch and two child namespaces, one of them of a persistent
 * subgraph; a fork; a journal with every effect class; an open and an answered interrupt; a timer; a finished, a
 * waiting and a queued run; inbox messages; a durable event; an outbox message; and three tool calls that share two artifacts.
 */
export async function fillThread(store: Store, thread: string): Promise<Claim> {
  await store.createThread({
    thread,
    at: 90,
    title: `Title of ${thread}`,
    metadata: { of: thread, nth: 1 },
    ...parties,
  });
  await store.outbox.subscribe({ consumer: "notify", topics: ["run.waiting"] });
  const claim = await store.claim(createClaimRequest(thread));
  const writer = createThreadWriter(store, thread, claim);
  await writeFinishedRun(writer);
  await writeWaitingRun(writer);
  await forkFilledThread(store, thread);
  await enqueueInputs(store, thread);
  return claim;
}

const parties = { tenant: "acme", owner: "ada" };

/** Writer of a claimed thread. */
interface ThreadWriter {
  readonly thread: string;
  readonly branch: string;
  /** Returns the sequence number of the next commit. */
  readonly getNextSeq: () => number;
  readonly commit: (write: Partial<Parameters<typeof commitWrite>[1]>) => Promise<void>;
  readonly writeStep: (
    id: number,
    parent: number | undefined,
    more?: Partial<CheckpointRow>,
    deltas?: Parameters<typeof createCheckpoint>[3],
  ) => Promise<void>;
}

function createThreadWriter(store: Store, thread: string, { epoch, branch, nextSeq }: Claim): ThreadWriter {
  let seq = nextSeq;
  const commit: ThreadWriter["commit"] = (write) => commitWrite(store, { thread, branch, epoch, seq: seq++, ...write });
  return {
    thread,
    branch,
    getNextSeq: () => seq,
    commit,
    writeStep: (id, parent, more = {}, deltas = []) => {
      const namespace = more.branch ?? branch;
      const row = {
        step: id,
        branch: namespace,
        seq,
        control: JSON.stringify({ control: `${thread} ${id}` }),
        ...more,
      };
      return commit({ branch: namespace, checkpoint: createCheckpoint(id, parent, row, deltas) });
    },
  };
}

/** Writes a finished run with child namespaces, a journal and an answered interrupt. */
async function writeFinishedRun(writer: ThreadWriter): Promise<void> {
  const { thread, branch } = writer;
  const first = { ...createRun("r1"), thread, branch, ...parties };
  await writer.commit({ run: { ...first, key: "first", metadata: { kind: "test", deep: { n: 1 } } } });
  await writer.writeStep(1, undefined, { source: "input" }, [
    createDelta("list", "append", '["a"]'),
    createDelta("last", "replace", '"one"'),
  ]);
  await writer.commit({
    effects: [
      createEffect({ step: 1, key: "pay", kind: "tool", effect: "once", outcome: `"paid ${thread}"`, args: "args" }),
      createEffect({ step: 1, key: "model", outcome: '"model said"' }),
    ],
    interrupts: [createInterrupt({ id: "1:0", step: 1, answer: '"yes"', answeredAt: 130, answeredBy: "ada" })],
  });
  await writer.writeStep(2, 1, {}, [
    createDelta("list", "append", '["b"]'),
    createDelta("map", "patch", '[{"op":"add","path":["x"],"value":1}]'),
  ]);
  await writer.writeStep(3, undefined, { branch: `${branch}/2:0`, step: 1 }, [
    createDelta("inner", "replace", '"call"'),
  ]);
  await writer.writeStep(4, undefined, { branch: `${branch}/memory`, step: 1 }, [
    createDelta("kept", "append", '["m1"]'),
  ]);
  await writer.writeStep(5, 2, { step: 3 }, [createDelta("last", "replace", '"two"')]);
  await writer.writeStep(6, 4, { branch: `${branch}/memory`, step: 2 }, [createDelta("kept", "append", '["m2"]')]);
  await writer.writeStep(7, 5, { step: 4 }, [createDelta("map", "patch", '[{"op":"add","path":["y"],"value":2}]')]);
  await writer.commit({
    run: { ...first, key: "first", status: "done", endedAt: 140, metadata: { kind: "test", deep: { n: 1 } } },
  });
}

/** Writes a waiting run with artifacts, an open interrupt, a timer and a durable event. Releases the thread. */
async function writeWaitingRun(writer: ThreadWriter): Promise<void> {
  const { thread, branch } = writer;
  const second = { ...createRun("r2"), thread, branch, startedAt: 150, ...parties };
  await writer.commit({ run: second });
  await writer.writeStep(8, 7, { source: "input", step: 5, run: "r2" }, [createDelta("list", "append", '["c"]')]);
  await writer.writeStep(9, 8, { step: 6, run: "r2" }, [createDelta("last", "replace", '"three"')]);
  await writer.commit({
    run: { ...second, status: "waiting" },
    effects: [createEffect({ step: 6, task: "6:0", key: "step", kind: "step", effect: "idempotent", outcome: "7" })],
    artifacts: [
      await createArtifact(`text of ${thread}`, { run: "r2", call: "c1" }),
      await createArtifact(`text of ${thread}`, { run: "r2", call: "c2", name: "again.txt" }),
      await createArtifact(new Uint8Array([0, 255, 128]), {
        run: "r2",
        call: "c3",
        mimeType: "image/png",
        text: false,
      }),
    ],
    interrupts: [
      createInterrupt({
        id: "6:0",
        step: 6,
        task: "6:0",
        schema: { type: "boolean" },
        payload: `{"ask":"${thread}"}`,
        expiresAt: 900,
      }),
    ],
    timers: [{ arm: createTimer({ id: "tick", generation: 6 }) }],
    outbox: [{ id: "r2.waiting", topic: "run.waiting", payload: `{"of":"${thread}"}`, at: 160 }],
    events: [{ seq: writer.getNextSeq(), branch, at: 160, text: JSON.stringify({ type: "run.waiting", of: thread }) }],
    release: true,
  });
}

async function forkFilledThread(store: Store, thread: string): Promise<void> {
  await store.branch({
    thread,
    branch: "b",
    from: 2,
    checkpoint: createCheckpoint(0, 2, { branch: "b", source: "fork", step: 2 }, [
      createDelta("last", "replace", '"forked"'),
    ]),
    interrupts: [createInterrupt({ id: "1:0", branch: "b", step: 2, answer: '"yes"', answeredAt: 130 })],
  });
}

/** Enqueues a run, posts inbox messages and adds a request. */
async function enqueueInputs(store: Store, thread: string): Promise<void> {
  const queued = {
    ...createRun(thread === "t" ? "r3" : `r3-${thread}`),
    status: "queued",
    input: '"next"',
    queuedAt: 170,
    startedAt: 170,
    key: "third",
  } as const;
  await store.enqueue({ thread, run: queued, stops: "cancel" });
  await store.post({ thread, ...createInboxMessage({ id: "l1", messages: `["of ${thread}"]` }) });
  await store.post({ thread, branch: "b", ...createInboxMessage({ id: "l1", kind: "followUp" }) });
  await store.request({ thread, id: "q1", kind: "pause", reason: `of ${thread}`, by: "ann", key: "stop", at: 175 });
}

/** Namespaces created by `fillThread`. */
export const filledNamespaces = ["main", "main/2:0", "main/memory", "b"] as const;

/** Reads all rows that a store returns for a thread, without the thread id. */
export async function readThreadSnapshot(store: Store, thread: string): Promise<object> {
  const namespaces = await Promise.all(filledNamespaces.map((namespace) => readNamespace(store, thread, namespace)));
  const { id: _, ...row } = (await store.thread(thread)) ?? { id: undefined };
  return {
    row,
    branches: await store.branches(thread),
    requests: await store.requests(thread),
    runs: (await store.runs({ thread })).map(({ thread: _of, position: _place, ...each }) => each),
    namespaces,
    states: Object.fromEntries(
      await Promise.all(
        [...new Set(namespaces.flatMap(({ history }) => history.map(({ id }) => id)))].map(
          async (id) => [id, (await store.state(thread, id)).toSorted(compareChannels)] as const,
        ),
      ),
    ),
    openInterrupts: (await store.openInterrupts({ thread })).map(({ thread: _of, position: _place, ...each }) => each),
    timers: (await store.timers({ thread })).map(({ thread: _of, ...each }) => each),
    events: await store.events(thread, { after: 0, limit: 1_000 }),
    artifacts: await readArtifacts(store, thread),
  };
}

async function readArtifacts(store: Store, thread: string): Promise<readonly object[]> {
  const rows = await store.artifacts.list(thread);
  return Promise.all(
    rows.map(async (row) => ({ row, body: [...((await store.artifacts.read(thread, row.key)) ?? [])] })),
  );
}

/** Sorts by channel name, because each store has its own order of channels. */
function compareChannels(a: { readonly channel: string }, b: { readonly channel: string }): number {
  return a.channel < b.channel ? -1 : 1;
}

async function readNamespace(store: Store, thread: string, namespace: string) {
  return {
    namespace,
    head: await store.head(thread, namespace),
    history: await store.history(thread, { branch: namespace, limit: 1_000 }),
    effects: await store.effects(thread, namespace),
    interrupts: await store.interrupts(thread, namespace),
    inbox: await store.inbox(thread, namespace),
  };
}
