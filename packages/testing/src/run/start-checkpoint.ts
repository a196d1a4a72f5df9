/** Thread that is about to execute a single node, for tests of a single node. */
import { type Graph, type Json, StatewrightError, type Store, type World } from "@statewright/core";
import type { Codec } from "@statewright/core/store";

/** First node of a test, with state and input. */
export interface StartingPoint {
  readonly node: string;
  /** Values of channels; other channels have initial values. */
  readonly state: Readonly<Record<string, unknown>>;
  /** Input of a task node. */
  readonly input?: unknown;
}

/** Empty thread for a starting point. */
export interface EmptyThread {
  readonly store: Store;
  readonly graph: Graph;
  readonly thread: string;
  readonly world: World;
  readonly codec: Codec;
}

/** Writes the first checkpoint of the thread, with a run that is about to execute the node. */
export async function writeStartCheckpoint(
  { node, state, input }: StartingPoint,
  { store, graph, thread, world, codec }: EmptyThread,
): Promise<void> {
  for (const [channel, { kind, initial }] of Object.entries(graph.state.channels))
    if (kind !== "untracked" && !Object.hasOwn(state, channel) && initial() === undefined)
      throw createMissingChannelError(graph, channel);
  const now = world.clock.now();
  const claim = await store.claim({ thread, graph: graph.name, version: graph.version, shape: "start-at", at: now });
  const takesInput = graph.nodes.get(node)?.logic.takesInput === true;
  const control = {
    machine: createMachineValue(graph, node),
    tasks: [{ id: "0:0", node, ...(takesInput ? { input: 0 } : {}) }],
    inputs: takesInput ? [input] : [],
    joins: {},
  };
  const deltas = Object.entries(state).map(([channel, value]) => ({
    channel,
    kind: "replace" as const,
    base: true,
    text: codec.encode(parseChannelValue(graph, channel, value), `the channel "${channel}"`),
  }));
  const run = { id: "run_start_at", thread, branch: claim.branch, graph: graph.name, version: graph.version };
  await new Promise<void>((resolve, reject) =>
    store.commit(
      {
        thread,
        branch: claim.branch,
        epoch: claim.epoch,
        seq: claim.nextSeq,
        run: { ...run, status: "running", attempt: 0, startedAt: now },
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
            at: now,
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

function createMachineValue(graph: Graph, node: string): Json {
  const regions = Object.keys(graph.machine.root.states);
  if (!regions.includes(node)) throw createUnknownNameError(graph, `node "${node}"`, [...graph.nodes.keys()]);
  if (graph.machine.root.type !== "parallel") return { [node]: "executing" };
  return Object.fromEntries(
    regions.map((region) => [region, region === "driver" ? "running" : region === node ? "executing" : "idle"]),
  );
}

function parseChannelValue(graph: Graph, name: string, value: unknown): unknown {
  const channel = graph.state.channels[name];
  if (channel === undefined)
    throw createUnknownNameError(graph, `channel "${name}"`, Object.keys(graph.state.channels));
  const parsed = channel.parseValue(value);
  if (parsed.ok) return parsed.value;
  throw new StatewrightError("invalid_input", {
    what: `startAt: expected a valid value of the channel "${name}", got an invalid value: ${parsed.issues.map(({ message }) => message).join("; ")}`,
    next: "Pass a complete value of the channel",
  });
}

function createMissingChannelError(graph: Graph, channel: string): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `startAt: expected a value of the channel "${channel}" of the graph "${graph.name}", which has no default, got none`,
    next: "Add the value to `state`",
  });
}

function createUnknownNameError(graph: Graph, unknown: string, known: readonly string[]): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `startAt: expected names of the graph "${graph.name}", got the unknown ${unknown}`,
    next: `Use one of ${known.map((name) => `"${name}"`).join(", ")}`,
  });
}
