/** Events of a thread with branches: each names its branch, and a reader of one branch gets the history of the branch. */
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  type RunEvent,
  resume,
  run,
  START,
  type Store,
  streamEvents,
  subgraph,
} from "statewright";
import { type PruneOptions, pruneThread } from "statewright/inspect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { getFailure, type Place, places } from "../../support/both-stores.ts";

const Log = defineState({ log: channel.list(z.string()) });

const inner = defineGraph({ name: "inner", state: Log })
  .nodes({ dig: () => ({ log: ["dug"] }) })
  .edges({ [START]: "dig", dig: END });

const graph = defineGraph({ name: "garden", state: Log })
  .nodes({
    plan: () => ({ log: ["planned"] }),
    garden: subgraph(inner, { input: () => ({ log: [] }), output: ({ log }) => ({ log }) }),
    rest: () => ({ log: ["rested"] }),
  })
  .edges({ [START]: "plan", plan: "garden", garden: "rest", rest: END });

async function listStored(store: Store, more: Partial<Parameters<typeof streamEvents>[0]> = {}): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of streamEvents({ store, thread: "t", ...more })) events.push(event);
  return events;
}

const describeEvent = (event: RunEvent): string =>
  `${event.branch} ${event.type === "step.committed" ? `${event.source} ${event.within ?? ""}${event.nodes.join()}` : event.type}`;

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let store: Store;

  beforeEach(() => {
    place = open();
    store = place.store;
  });
  afterEach(() => place.close());

  /** Runs the graph on main, forks after `plan`, then forks the fork after `garden`; returns the emitted events. */
  async function runBranches(): Promise<RunEvent[]> {
    const emitted: RunEvent[] = [];
    const first = run(graph, { store, thread: "t", input: { log: [] } });
    first.on((event) => emitted.push(event));
    await first.result;
    for (const [name, branch, node] of [
      ["b1", "main", "plan"],
      ["b2", "b1", "garden"],
    ] as const) {
      await fork(graph, { store, thread: "t", at: await findCheckpoint(branch, node), name });
      const next = resume(graph, { store, thread: "t", branch: name });
      next.on((event) => emitted.push(event));
      await next.result;
    }
    return emitted;
  }

  async function findCheckpoint(branch: string, node: "plan" | "garden"): Promise<number> {
    for await (const { checkpointId } of getHistory(graph, { store, thread: "t", branch, nodes: [node] }))
      return checkpointId;
    throw new Error(`no checkpoint of ${node}`);
  }

  test("each event of a run names its branch, also in a subgraph, and the stored events equal the emitted ones [ND1, SE12]", async () => {
    const emitted = await runBranches();
    expect(emitted.every(({ branch }) => typeof branch === "string")).toBe(true);
    expect(new Set(emitted.filter(({ within }) => within === "garden").map(({ branch }) => branch))).toEqual(
      new Set(["main", "b1"]),
    );
    const stored = await listStored(store);
    const durable = new Set(stored.map(({ type }) => type));
    // A fork writes its checkpoint without a run.
    const ofRuns = stored.filter((event) => event.type !== "step.committed" || event.source !== "fork");
    expect(ofRuns).toEqual(emitted.filter(({ type }) => durable.has(type)));
  });

  test("a committed step names its parent, its source and its run [ND1]", async () => {
    await runBranches();
    const rows = new Map<number, unknown>();
    for (const branch of ["main", "b1", "b2"])
      for await (const { checkpointId, parent, source, run } of getHistory(graph, { store, thread: "t", branch }))
        rows.set(checkpointId, { parent, source, run });
    const steps = (await listStored(store)).filter((event) => event.type === "step.committed");
    const outermost = steps.filter(({ within }) => within === undefined);
    expect(outermost).toHaveLength(rows.size);
    for (const { checkpoint, parent, source, run } of outermost)
      expect({ parent, source, run }).toEqual(rows.get(checkpoint ?? 0));
    const unsaved: unknown[] = [];
    const handle = run(graph, { input: { log: [] } });
    for await (const event of handle.events({ views: ["updates"] }))
      if (event.type === "step.committed") unsaved.push([event.parent, event.source, event.run === handle.id]);
    expect(unsaved[0]).toEqual([undefined, "input", true]);
    expect(unsaved.at(-1)).toEqual([undefined, "step", true]);
  });

  test("a reader of a branch gets its events after those of its ancestors up to the fork [SE12]", async () => {
    await runBranches();
    const toPlan = ["main run.started", "main input ", "main step plan"];
    const toGarden = ["b1 fork ", "b1 run.started", "b1 input garden", "b1 step gardendig", "b1 step garden"];
    const rest = ["step rest", "run.completed"];
    expect((await listStored(store, { branch: "main" })).map(describeEvent)).toEqual([
      ...toPlan,
      ...["main input garden", "main step gardendig", "main step garden", ...rest.map((what) => `main ${what}`)],
    ]);
    const second = (await listStored(store, { branch: "b2" })).map(describeEvent);
    expect(second).toEqual([
      ...toPlan,
      ...toGarden,
      ...["b2 fork ", "b2 run.started", ...rest.map((what) => `b2 ${what}`)],
    ]);
    const all = await listStored(store);
    expect(all).toHaveLength(19);
    const own = await listStored(store, { branch: "b1", after: 5, views: ["checkpoints"] });
    expect(own.map(describeEvent)).toEqual([...toGarden, ...rest.map((what) => `b1 ${what}`)]);
  });

  test("a follower of a branch gets its new events only [SE12]", async () => {
    await runBranches();
    const ending = new AbortController();
    const after = (await listStored(store)).at(-1)?.seq ?? 0;
    const following = { after, follow: ending.signal, views: ["checkpoints"] } as const;
    const follower = streamEvents({ store, thread: "t", branch: "b2", ...following });
    await run(graph, { store, thread: "t", branch: "main", input: { log: [] } }).result;
    await run(graph, { store, thread: "t", branch: "b2", input: { log: [] } }).result;
    const seen: string[] = [];
    for await (const event of follower) {
      seen.push(describeEvent(event));
      if (event.type === "run.completed") ending.abort();
    }
    expect(seen).toHaveLength(8);
    expect(seen.every((line) => line.startsWith("b2 "))).toBe(true);
  });

  test("streamEvents refuses a branch that does not exist, and a follow that is no signal [SE12]", async () => {
    await run(graph, { store, thread: "t", input: { log: [] } }).result;
    expect((await getFailure(listStored(store, { branch: "b9" }), "unknown_branch")).message).toMatch(/"b9"/);
    await getFailure(listStored(store, { branch: "main/2:0" }), "invalid_id");
    await getFailure(listStored(store, { follow: true as never }), "invalid_option");
  });

  test("removed events are told by their numbers, in every view and to a reader of a branch [SE12]", async () => {
    await run(graph, { store, thread: "t", input: { log: [] } }).result;
    const before = await listStored(store);
    const options: PruneOptions = { thread: "t", keepLast: 1 };
    await pruneThread(store, options);
    const left = await listStored(store);
    const [first, ...others] = left;
    expect(first).toMatchObject({ type: "events.pruned", from: 1, seq: first?.seq, branch: "main" });
    if (first?.type !== "events.pruned") throw new Error("the first event tells of no gap");
    expect(first.seq).toBe(first.to);
    expect(first.at).toBe(others[0]?.at);
    expect(others.length).toBeGreaterThan(0);
    // The numbers of the gaps and of the events that are left cover the thread, each once.
    const numbers = left.flatMap((event) =>
      event.type === "events.pruned"
        ? Array.from({ length: event.to - event.from + 1 }, (_, index) => event.from + index)
        : [event.seq],
    );
    expect(numbers).toEqual(before.map(({ seq }) => seq));
    const tools = await listStored(store, { views: ["tools"], branch: "main" });
    expect(tools).toEqual(left.filter(({ type }) => type === "events.pruned"));
    // A reader that has seen the gap, or reads after it, is not told again.
    expect(await listStored(store, { after: first.seq })).toEqual(others);
    const live = run(graph, { store, thread: "t", input: { log: [] } });
    const joined: RunEvent[] = [];
    for await (const event of live.events({ after: 0 })) joined.push(event);
    expect(joined[0]).toEqual(first);
  });
});
