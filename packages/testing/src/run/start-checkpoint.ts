/** A thread that stands before one node, as if the graph had come there: for tests of a single node. */
import { type Codec, type Graph, type Json, StatewrightError, type Store, type World } from "@statewright/core";

/** Where a test begins, and with what. */
export interface StartingPoint {
  readonly node: string;
  /** Values of channels; the others have their initial ones. */
  readonly state: Readonly<Record<string, unknown>>;
  /** What a task node is sent. */
  readonly input?: unknown;
}

/** Write the thread's first checkpoint: a run that is about to execute the node. */
export async function startAt(
  store: Store,
  graph: Graph,
  thread: string,
  point: StartingPoint,
  { world, codec }: { readonly world: World; readonly codec: Codec },
): Promise<void> {
  const { node, state, input } = point;
  for (const [channel, { kind, initial }] of Object.entries(graph.state.channels))
    if (kind !== "untracked" && !Object.hasOwn(state, channel) && initial() === undefined)
      throw lacking(graph, channel);
  const at = world.clock.now();
  const claim = await store.claim({ thread, graph: graph.name, version: graph.version, shape: "start-at", at });
  const isTask = graph.nodes.get(node)?.kind === "task";
  const control = {
    machine: machineValue(graph, node),
    tasks: [{ id: "0:0", node, ...(isTask ? { input: 0 } : {}) }],
    inputs: isTask ? [input] : [],
    joins: {},
  };
  const deltas = Object.entries(state).map(([channel, value]) => ({
    channel,
    kind: "replace" as const,
    base: true,
    text: codec.encode(checked(graph, channel, value), `the channel "${channel}"`),
  }));
  const run = { id: "run_start_at", thread, branch: claim.branch, graph: graph.name, version: graph.version };
  await new Promise<void>((resolve, reject) =>
    store.commit(
      {
        thread,
        branch: claim.branch,
        epoch: claim.epoch,
        seq: claim.nextSeq,
        run: { ...run, status: "running", attempt: 0, startedAt: at },
        checkpoint: {
          deltas,
          row: {
            id: claim.nextCheckpoint,
            branch: claim.branch,
            step: 0,
            parent: undefined,
            source: "input",
            nodes: [],
            control: codec.encode(control, "the control state"),
            run: run.id,
            at,
            durationMs: 0,
            seq: claim.nextSeq,
            bytes: 0,
          },
        },
        release: true,
      },
      (failure) => (failure === undefined ? resolve() : reject(failure)),
    ),
  );
}

function machineValue(graph: Graph, node: string): Json {
  const regions = Object.keys(graph.machine.root.states);
  if (!regions.includes(node)) throw unknown(graph, `has no node "${node}"`, [...graph.nodes.keys()]);
  if (graph.machine.root.type !== "parallel") return { [node]: "executing" };
  return Object.fromEntries(
    regions.map((region) => [region, region === "driver" ? "running" : region === node ? "executing" : "idle"]),
  );
}

function checked(graph: Graph, name: string, value: unknown): unknown {
  const channel = graph.state.channels[name];
  if (channel === undefined) throw unknown(graph, `has no channel "${name}"`, Object.keys(graph.state.channels));
  const parsed = channel.parseValue(value);
  if (parsed.ok) return parsed.value;
  throw new StatewrightError("invalid_input", {
    what: `the channel "${name}" refuses what the test gives it: ${parsed.issues.map(({ message }) => message).join("; ")}`,
    next: "Give a whole value of the channel",
  });
}

function lacking(graph: Graph, channel: string): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `the test begins without a value of the channel "${channel}" of the graph "${graph.name}", which has no default`,
    next: "Give one in its state",
  });
}

function unknown(graph: Graph, what: string, known: readonly string[]): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `the graph "${graph.name}" ${what}`,
    next: `It has ${known.map((name) => `"${name}"`).join(", ")}`,
  });
}
