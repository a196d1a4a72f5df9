/** `handle.run`: the id of the run that a handle drives, for each way to start or continue a run. */
import {
  channel,
  defineGraph,
  defineState,
  durableMachine,
  END,
  engine,
  fork,
  getState,
  type RunHandle,
  recover,
  resume,
  run,
  START,
  type Store,
} from "statewright";
import { listRuns } from "statewright/inspect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { setup } from "xstate";
import * as z from "zod";
import { crashAtNth, getFailure, ignoreResult, type Place, places } from "../../support/both-stores.ts";

const Log = defineState({ log: channel.list(z.string()) });

/** Graph that asks for a word; "break" as the word fails the run. */
function createGraph(onStart: () => void = () => undefined) {
  return defineGraph({ name: "words", state: Log, interrupts: { word: z.string() } })
    .nodes({
      ask: async (_state, { interrupt }) => {
        onStart();
        const word = await interrupt("word");
        if (word === "break") throw new Error("broken");
        return { log: [word] };
      },
    })
    .edges({ [START]: "ask", ask: END });
}

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let store: Store;
  const graph = createGraph();

  beforeEach(() => {
    place = open();
    store = place.store;
  });
  afterEach(() => place.close());

  const start = () => run(graph, { store, thread: "t", input: { log: [] } });

  /** Expects the id of `handle.run` in the result and in the store; returns it. */
  async function expectDriven(handle: RunHandle<unknown>, more: { readonly in?: Store } = {}): Promise<string> {
    const id = await handle.run;
    expect((await handle.result).run).toBe(id);
    expect((await listRuns(more.in ?? store)).map((row) => row.id)).toContain(id);
    return id;
  }

  test("the handle of a new run drives the run of its own id, also without a store [SE2]", async () => {
    const handle = start();
    expect(await expectDriven(handle)).toBe(handle.id);
    const unsaved = run(
      defineGraph({ name: "one", state: Log })
        .nodes({ a: () => ({}) })
        .edges({ [START]: "a", a: END }),
      {
        input: { log: [] },
      },
    );
    expect(await unsaved.run).toBe(unsaved.id);
    expect((await unsaved.result).run).toBe(unsaved.id);
  });

  test("the handle of a resume drives the waiting run, known before its node runs [SE2, FX16]", async () => {
    const first = start();
    await first.result;
    const known: string[] = [];
    const next = resume(
      createGraph(() => known.push("node")),
      { store, thread: "t", answers: { word: "yes" } },
    );
    void next.run.then((id) => known.push(id));
    expect(await expectDriven(next)).toBe(first.id);
    expect(next.id).not.toBe(first.id);
    expect(known).toEqual([first.id, "node"]);
  });

  test("the handle of a resume of a finished thread names the finished run [SE2, FX16]", async () => {
    const first = start();
    await first.result;
    await resume(graph, { store, thread: "t", answers: { word: "yes" } }).result;
    expect(await expectDriven(resume(graph, { store, thread: "t" }))).toBe(first.id);
    const { checkpointId } = await getState(graph, { store, thread: "t" });
    await fork(graph, { store, thread: "t", at: checkpointId ?? 0, name: "b2" });
    expect(await expectDriven(resume(graph, { store, thread: "t", branch: "b2" }))).toBe(first.id);
    expect(await listRuns(store)).toHaveLength(1);
  });

  test("a resume of a fork drives a new run of the branch, which is in the store [SE2]", async () => {
    const first = start();
    await first.result;
    const { checkpointId } = await getState(graph, { store, thread: "t" });
    await fork(graph, { store, thread: "t", at: checkpointId ?? 0, name: "b2" });
    const next = resume(graph, { store, thread: "t", branch: "b2" });
    expect(await expectDriven(next)).not.toBe(first.id);
  });

  test("the handles of a resume after a failure, and of recover after a crash, drive the old run [SE2]", async () => {
    const first = start();
    await first.result;
    const failing = resume(graph, { store, thread: "t", answers: { word: "break" } });
    expect(await failing.run).toBe(first.id);
    await expect(failing.result).rejects.toThrow("broken");
    const again = resume(graph, { store, thread: "t" });
    expect(await again.run).toBe(first.id);
    await expect(again.result).rejects.toThrow("broken");

    const killed = crashAtNth(store, 1, "after");
    const lost = run(graph, { store: killed.store, thread: "u", input: { log: [] } });
    ignoreResult(lost.result);
    await killed.dead;
    const next = place.crash();
    const [recovered] = await recover({ store: next, graphs: [graph] });
    expect(await expectDriven(recovered as RunHandle<unknown>, { in: next })).toBe(lost.id);
  });

  test("a second call with a key, and a queued input, drive the run that the store has [SE2]", async () => {
    const first = run(graph, { store, thread: "t", key: "k", input: { log: [] } });
    await first.result;
    const same = run(graph, { store, thread: "t", key: "k", input: { log: ["other"] } });
    expect(await expectDriven(same)).toBe(first.id);
    expect(same.id).not.toBe(first.id);
    const queued = run(graph, { store, thread: "t", input: { log: ["later"] }, onBusy: "enqueue" });
    expect(await queued.run).toBe(queued.id);
    expect((await listRuns(store, { status: "queued" })).map(({ id }) => id)).toEqual([queued.id]);
    await resume(graph, { store, thread: "t", answers: { word: "yes" } }).result;
    expect(await expectDriven(queued)).toBe(queued.id);
  });

  test("a refused call drives no run: its id rejects with the error of the result [SE2]", async () => {
    await start().result;
    const refused = start();
    await getFailure(refused.result, "thread_busy");
    await getFailure(refused.run, "thread_busy");
    const unknown = resume(graph, { store, thread: "nowhere" });
    await getFailure(unknown.run, "unknown_thread");
    await getFailure(unknown.result, "unknown_thread");
  });

  test("the handles of an engine and of a durable machine drive the run that they continue [SE2]", async () => {
    const serving = engine({ store, graphs: [graph] });
    await serving.start();
    const first = serving.run(graph, { thread: "t", input: { log: [] } });
    await first.result;
    expect(await expectDriven(serving.resume(graph, { thread: "t", answers: { word: "yes" } }))).toBe(first.id);
    await serving.stop();

    const machine = durableMachine(
      setup({}).createMachine({
        id: "door",
        initial: "shut",
        states: { shut: { on: { OPEN: "open" } }, open: { type: "final" } },
      }),
      { version: 1 },
    );
    const started = run(machine, { store, thread: "m" });
    await started.result;
    expect(await expectDriven(resume(machine, { store, thread: "m", answers: { OPEN: {} } }))).toBe(started.id);
    expect(await expectDriven(resume(machine, { store, thread: "m" }))).toBe(started.id);
  });
});
